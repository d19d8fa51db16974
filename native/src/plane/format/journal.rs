//! Records of the journal, as `engine/journal/outbox.py` makes them of the entries that scripts have left
//! in the outbox of a unit (`state/lua/include/unit.lua`): MessagePack there, Avro in Kafka.

use super::avro::{data, long};
use crate::pack::{NotThere, Read, Unpacker};

const FIELDS: usize = 7;

/// How records of the journal begin, which kinds there are, and how many offsets a record may have before
/// the next begins.
pub struct Journal {
    head: [u8; 5],
    kinds: Vec<String>,
    most_offsets: usize,
}

/// What a drain has shown: the values to append, in order, when its first entry was made, and the seq of
/// the last.
#[derive(Debug, PartialEq, Eq)]
pub struct Drained {
    pub values: Vec<Vec<u8>>,
    pub first_at_ms: i64,
    pub last_seq: i64,
}

/// Entries of one record, packed.
#[derive(Default)]
struct Piece {
    entries: usize,
    offsets: usize,
    rows: Vec<u8>,
}

impl Journal {
    pub fn new(head: [u8; 5], kinds: Vec<String>, most_offsets: usize) -> Self {
        Self { head, kinds, most_offsets }
    }

    /// Returns the values of the records of a unit's entries; None = there are no entries, or one is not
    /// understood: Python drains this unit.
    pub fn values<'a>(
        &self,
        queue: &str,
        incarnation: &str,
        partition: u16,
        entries: impl Iterator<Item = &'a [u8]>,
    ) -> Option<Drained> {
        let (mut values, mut piece) = (Vec::new(), Piece::default());
        let mut drained: Option<(i64, i64)> = None;
        for entry in entries {
            if piece.offsets > self.most_offsets {
                values.push(self.value(queue, incarnation, partition, &piece));
                piece = Piece::default();
            }
            let (seq, at_ms) = self.add(entry, &mut piece).ok()?;
            drained = Some((drained.map_or(at_ms, |(first_at_ms, _)| first_at_ms), seq));
        }
        let (first_at_ms, last_seq) = drained?;
        values.push(self.value(queue, incarnation, partition, &piece));
        Some(Drained { values, first_at_ms, last_seq })
    }

    fn value(&self, queue: &str, incarnation: &str, partition: u16, piece: &Piece) -> Vec<u8> {
        let mut value = Vec::with_capacity(piece.rows.len() + queue.len() + 64);
        value.extend_from_slice(&self.head);
        data(&mut value, queue.as_bytes());
        data(&mut value, incarnation.as_bytes());
        long(&mut value, i64::from(partition));
        long(&mut value, piece.entries as i64);
        value.extend_from_slice(&piece.rows);
        value.push(0); // the end of the entries
        value
    }

    /// Adds an entry. Returns its seq and time.
    fn add(&self, entry: &[u8], piece: &mut Piece) -> Read<(i64, i64)> {
        let mut entry = Unpacker::new(entry);
        entry.fields(FIELDS)?;
        let (seq, at_ms, kind) = (entry.int()?, entry.int()?, entry.text()?);
        let kind = self.kinds.iter().position(|known| known == kind).ok_or(NotThere)?;
        long(&mut piece.rows, seq);
        long(&mut piece.rows, at_ms);
        long(&mut piece.rows, kind as i64);
        long(&mut piece.rows, entry.int()?);
        let offsets = entry.array()?;
        longs(&mut entry, offsets, &mut piece.rows)?;
        // No times are 0 in place of a list.
        let mut ahead = entry.clone();
        if ahead.int() == Ok(0) {
            entry = ahead;
            longs(&mut entry, 0, &mut piece.rows)?;
        } else {
            let times = entry.array()?;
            longs(&mut entry, times, &mut piece.rows)?;
        }
        data(&mut piece.rows, entry.text()?.as_bytes());
        piece.entries += 1;
        piece.offsets += offsets;
        if entry.is_empty() {
            Ok((seq, at_ms))
        } else {
            Err(NotThere)
        }
    }
}

/// Writes an array of so many numbers, in one block.
fn longs(entry: &mut Unpacker, count: usize, rows: &mut Vec<u8>) -> Read<()> {
    if count > 0 {
        long(rows, count as i64);
    }
    for _ in 0..count {
        long(rows, entry.int()?);
    }
    rows.push(0);
    Ok(())
}
