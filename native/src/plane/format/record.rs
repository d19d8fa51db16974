//! The record of a message, as `schemas/pack.py` writes it and `schemas/wire.py` reads it, and the form in
//! which the window has it, as `state/packed.py`.

use std::ops::Range;

use super::avro::{data, long, Cursor};
use super::ids::HEX;

const NONE: u8 = 0;
const SOME: u8 = 2;
const MARK_BYTES: usize = 16;
/// More attributes than any dialect takes are for Python, which compares their names with less effort.
const MOST_ATTRIBUTES: usize = 100;
/// Sent, due, own lease.
const TIMES_BYTES: usize = 24;
/// It has no lease of its own.
const NO_LEASE: i64 = -1;
/// Numbers and branches of a record beside its bytes and texts: an upper bound.
const FIXED_BYTES: usize = 64;

/// A record's place in its atomic batch: index and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub id: [u8; MARK_BYTES],
    pub index: u32,
    pub size: u32,
}

impl Mark {
    /// Returns the first mark of a batch; `random` tells it from all others.
    pub fn first(random: u64, size: u32) -> Self {
        let mut id = [0; MARK_BYTES];
        for (place, digit) in id.iter_mut().enumerate() {
            *digit = HEX[(random >> (60 - 4 * place) & 15) as usize];
        }
        Self { id, index: 0, size }
    }
}

/// A user attribute; its type is a word.
#[derive(Clone, Copy)]
pub struct Attribute<'a> {
    pub name: &'a str,
    pub kind: &'a str,
    pub value: &'a [u8],
}

/// A message that is sent here first, and has neither group nor deduplication id.
pub struct Message<'a> {
    pub body: &'a [u8],
    pub is_text: bool,
    pub attributes: &'a [Attribute<'a>],
    pub delay_ms: i64,
    pub lease_ms: Option<i64>,
    pub sender: &'a str,
    pub mark: Option<Mark>,
}

/// Where in its record the parts of a message are. A body that is text is UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    pub body: Range<usize>,
    pub is_text: bool,
    /// How many there are, and where; see `attributes`.
    pub attributes: (usize, Range<usize>),
    pub sender: Range<usize>,
    /// None = that of who says none.
    pub priority: Option<i64>,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub parts: Parts,
    pub delay_ms: i64,
    pub lease_ms: Option<i64>,
    pub mark: Option<Mark>,
    pub priority: i64,
}

/// Records of the newest schema: how they begin, and the priority of who says none.
#[derive(Clone)]
pub struct Records {
    head: [u8; 5],
    priority: i64,
}

impl Records {
    pub fn new(head: [u8; 5], priority: i64) -> Self {
        Self { head, priority }
    }

    /// Appends the record of a message. Returns where in `out` its parts are.
    pub fn write(&self, message: &Message, out: &mut Vec<u8>) -> Parts {
        out.reserve(message.body.len() + message.sender.len() + FIXED_BYTES);
        out.extend_from_slice(&self.head);
        data(out, message.body);
        let body = out.len() - message.body.len()..out.len();
        let many = message.attributes.len();
        if many > 0 {
            long(out, many as i64);
        }
        let start = out.len();
        for attribute in message.attributes {
            data(out, attribute.name.as_bytes());
            data(out, attribute.kind.as_bytes());
            data(out, attribute.value);
        }
        let end = out.len();
        out.push(NONE); // the end of the attributes
        let attributes = (many, if many > 0 { start..end } else { out.len()..out.len() });
        long(out, message.delay_ms);
        match message.lease_ms {
            Some(lease_ms) => {
                out.push(SOME);
                long(out, lease_ms);
            }
            None => out.push(NONE),
        }
        data(out, message.sender.as_bytes());
        let sender = out.len() - message.sender.len()..out.len();
        out.push(NONE); // no origin
        match &message.mark {
            Some(mark) => {
                out.push(SOME);
                data(out, &mark.id);
                long(out, i64::from(mark.index));
                long(out, i64::from(mark.size));
            }
            None => out.push(NONE),
        }
        out.extend_from_slice(&[NONE, NONE]); // no group, no deduplication id
        long(out, self.priority);
        out.push(u8::from(message.is_text));
        Parts { body, is_text: message.is_text, attributes, sender, priority: None }
    }

    /// Reads a record that `write` could have made, of any priority.
    ///
    /// None = it is damaged, of another schema or a native producer, moved, of a group, with a
    /// deduplication id, or its text is none: Python knows.
    pub fn read(&self, record: &[u8]) -> Option<Found> {
        if !record.starts_with(&self.head) {
            return None;
        }
        let mut cursor = Cursor::new(record, self.head.len());
        let body = cursor.data()?;
        let attributes = read_attributes(record, &mut cursor)?;
        let delay_ms = cursor.long()?;
        let lease_ms = if cursor.is_there()? { Some(cursor.long()?) } else { None };
        let sender = cursor.text()?;
        if cursor.is_there()? {
            return None; // an origin
        }
        let mark = if cursor.is_there()? { Some(read_mark(record, &mut cursor)?) } else { None };
        if cursor.is_there()? || cursor.is_there()? {
            return None; // a group or a deduplication id
        }
        let priority = cursor.long()?;
        let is_text = match cursor.byte()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        if !cursor.is_at_end() || is_text && std::str::from_utf8(&record[body.clone()]).is_err() {
            return None;
        }
        let own = Some(priority).filter(|own| *own != self.priority);
        let parts = Parts { body, is_text, attributes, sender, priority: own };
        Some(Found { parts, delay_ms, lease_ms, mark, priority })
    }
}

impl Parts {
    /// Tells `seen` the attributes that are in a record, in their order.
    pub fn attributes<'a>(&self, record: &'a [u8], mut seen: impl FnMut(Attribute<'a>)) {
        let (count, place) = &self.attributes;
        let mut cursor = Cursor::new(record, place.start);
        for _ in 0..*count {
            let Some(attribute) = read_attribute(record, &mut cursor) else { return };
            seen(attribute);
        }
    }
}

/// Each name once, in one block.
fn read_attributes(record: &[u8], cursor: &mut Cursor) -> Option<(usize, Range<usize>)> {
    let count = usize::try_from(cursor.long()?).ok().filter(|count| *count <= MOST_ATTRIBUTES)?;
    let start = cursor.at();
    for place in 0..count {
        let name = read_attribute(record, cursor)?.name;
        let mut earlier = Cursor::new(record, start);
        for _ in 0..place {
            if read_attribute(record, &mut earlier)?.name == name {
                return None;
            }
        }
    }
    let end = cursor.at();
    (count == 0 || cursor.byte()? == NONE).then_some((count, start..end))
}

fn read_attribute<'a>(record: &'a [u8], cursor: &mut Cursor) -> Option<Attribute<'a>> {
    let name = std::str::from_utf8(&record[cursor.data()?]).ok()?;
    let kind = std::str::from_utf8(&record[cursor.data()?]).ok()?;
    Some(Attribute { name, kind, value: &record[cursor.data()?] })
}

/// A mark whose id is as long as ours.
fn read_mark(record: &[u8], cursor: &mut Cursor) -> Option<Mark> {
    let id = record[cursor.text()?].try_into().ok()?;
    let index = u32::try_from(cursor.long()?).ok()?;
    Some(Mark { id, index, size: u32::try_from(cursor.long()?).ok()? })
}

/// A record as the window has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed<'a> {
    pub sent_at_ms: u64,
    pub due_ms: u64,
    pub lease_ms: Option<i64>,
    /// Empty = the window has no body.
    pub record: &'a [u8],
}

impl<'a> Packed<'a> {
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(TIMES_BYTES + self.record.len());
        out.extend_from_slice(&self.sent_at_ms.to_be_bytes());
        out.extend_from_slice(&self.due_ms.to_be_bytes());
        out.extend_from_slice(&self.lease_ms.unwrap_or(NO_LEASE).to_be_bytes());
        out.extend_from_slice(self.record);
    }

    /// None = its times are not whole.
    pub fn read(packed: &'a [u8]) -> Option<Self> {
        let (sent, rest) = packed.split_first_chunk()?;
        let (due, rest) = rest.split_first_chunk()?;
        let (lease, record) = rest.split_first_chunk()?;
        let lease_ms = Some(i64::from_be_bytes(*lease)).filter(|lease_ms| *lease_ms != NO_LEASE);
        Some(Self { sent_at_ms: u64::from_be_bytes(*sent), due_ms: u64::from_be_bytes(*due), lease_ms, record })
    }
}
