//! The plain form of EMQ's hot calls: which fields, of which type, in which range. What a client leaves out
//! is as its queue has it.

use std::collections::HashSet;

use super::reader::Reader;
use super::{verb_of, Call, Kind, Protocol};
use crate::json::{Place, Refused, Scan, Scanner};
use crate::plane::whys::Why;
use crate::requests::{Entry, Request, Verb};

/// Handles of a batch.
const MOST_HANDLES: usize = 100;
/// Messages of a batch: what sends more gains nothing here.
const MOST_SENT: usize = 32;
/// Of a queue's name, an entry's id and a handle each.
const NAME_BYTES: usize = 512;
const HANDLE_BYTES: usize = 1024;

/// Reads a whole call.
pub fn read(protocol: Protocol, scanner: &mut Scanner) -> Result<(Verb, Request), Why> {
    let mut reader = Reader::new(protocol, scanner);
    let (method, seqid) = reader.begin().map_err(|_| Why::Fields)?;
    let verb = verb_of(reader.bytes(method)).ok_or(Why::Verb)?;
    let mut request = argument(verb, &mut reader).map_err(|_| Why::Fields)?;
    let queue = scanner.text(request.url).to_vec();
    request.call = Some(Call { protocol, seqid, queue, query: Vec::new() });
    Ok((verb, request))
}

/// The one argument of a method, and the end of the message.
fn argument(verb: Verb, reader: &mut Reader) -> Scan<Request> {
    let mut found = None;
    reader.fields(|reader, number, kind| match (number, kind) {
        (1, Kind::Struct) if found.is_none() => {
            found = Some(request(verb, reader)?);
            Ok(())
        }
        _ => Err(Refused),
    })?;
    reader.end()?;
    found.ok_or(Refused)
}

fn request(verb: Verb, reader: &mut Reader) -> Scan<Request> {
    let mut queue = None;
    let (mut found, mut alone) = (Request::default(), Parts::default());
    reader.fields(|reader, number, kind| {
        match (number, kind, verb) {
            (1, Kind::Text, _) if queue.is_none() => queue = Some(reader.some_text(NAME_BYTES)?),
            (2, Kind::Text, Verb::EmqSend | Verb::EmqDelete) if alone.value.is_none() => {
                alone.value = Some(value(verb, reader)?);
            }
            (3, Kind::I32, Verb::EmqSend) if alone.delay_s.is_none() => alone.delay_s = Some(reader.number(0, 0)?),
            (2, Kind::List, Verb::EmqSendBatch | Verb::EmqDeleteBatch) if found.entries.is_empty() => {
                found.entries = entries(verb, reader)?;
            }
            (2, Kind::I32, Verb::EmqReceive) if found.most.is_none() => found.most = Some(reader.number(1, 100)?),
            (3, Kind::I32, Verb::EmqReceive) if found.wait_s.is_none() => found.wait_s = Some(reader.number(0, 20)?),
            _ => return Err(Refused),
        }
        Ok(())
    })?;
    found.url = queue.ok_or(Refused)?;
    if alone.value.is_some() {
        found.entries.push(alone.entry()?);
    }
    if verb != Verb::EmqReceive && found.entries.is_empty() {
        return Err(Refused);
    }
    Ok(found)
}

/// What an entry has, or a call that is no batch.
#[derive(Default)]
struct Parts {
    id: Option<Place>,
    value: Option<Place>,
    /// A delay of nothing, which a send may name.
    delay_s: Option<i64>,
}

impl Parts {
    fn entry(self) -> Scan<Entry> {
        Ok(Entry {
            id: self.id.unwrap_or_default(),
            value: self.value.ok_or(Refused)?,
            delay_s: self.delay_s,
            ..Entry::default()
        })
    }
}

/// Each with an id, or a handle, of its own.
fn entries(verb: Verb, reader: &mut Reader) -> Scan<Vec<Entry>> {
    let mut found: Vec<Entry> = Vec::new();
    let most = if verb == Verb::EmqSendBatch { MOST_SENT } else { MOST_HANDLES };
    reader.structs(most, |reader| {
        found.push(entry(verb, reader)?);
        Ok(())
    })?;
    let key = |entry: &Entry| reader.bytes(if verb == Verb::EmqSendBatch { entry.id } else { entry.value });
    let distinct: HashSet<&[u8]> = found.iter().map(key).collect();
    if distinct.len() < found.len() {
        return Err(Refused);
    }
    Ok(found)
}

fn entry(verb: Verb, reader: &mut Reader) -> Scan<Entry> {
    let mut parts = Parts::default();
    reader.fields(|reader, number, kind| {
        match (number, kind, verb) {
            (1, Kind::Text, Verb::EmqSendBatch) if parts.id.is_none() => parts.id = Some(reader.some_text(NAME_BYTES)?),
            (2, Kind::Text, Verb::EmqSendBatch) | (1, Kind::Text, Verb::EmqDeleteBatch) if parts.value.is_none() => {
                parts.value = Some(value(verb, reader)?);
            }
            (3, Kind::I32, Verb::EmqSendBatch) if parts.delay_s.is_none() => parts.delay_s = Some(reader.number(0, 0)?),
            _ => return Err(Refused),
        }
        Ok(())
    })?;
    if verb == Verb::EmqSendBatch && parts.id.is_none() {
        return Err(Refused);
    }
    parts.entry()
}

/// A body, of which the queue says how long it may be, or a handle.
fn value(verb: Verb, reader: &mut Reader) -> Scan<Place> {
    reader.some_text(if verb.is_send() { usize::MAX } else { HANDLE_BYTES })
}
