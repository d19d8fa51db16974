//! The formats that Python and the plane share: both write the same bytes, and read each other's.
//!
//! Each part returns None for what it does not read or can't write: Python does, or says what is wrong.
//! `tests/unit/facade/test_plane_formats.py` compares both ways with the functions of Python.

mod avro;
pub mod ids;
pub mod journal;
pub mod record;
#[cfg(test)]
mod tests;
pub mod tried;

use crate::pack::{NotThere, Read, Unpacker};
use journal::Journal;
use record::Records;

/// What Kafka gets of a record beside its topic and partition.
///
/// As `engine/log/appender.py` has it: a message (`append_many`) and an entry of the journal (`append`)
/// have no headers, and neither is given a time. The time in a batch is that of its sender, and the
/// broker writes its own in place of it, for topics are made with LogAppendTime; that time is in the
/// answer to the request.
pub struct Produced<'a> {
    pub key: Option<&'a [u8]>,
    pub value: &'a [u8],
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
}

impl<'a> Produced<'a> {
    /// Returns a message of a queue's topic: it has no key.
    pub fn message(value: &'a [u8]) -> Self {
        Self { key: None, value, headers: &[] }
    }

    /// Returns a record of the journal; `key` is that of its unit, which Python says.
    pub fn journal(key: &'a [u8], value: &'a [u8]) -> Self {
        Self { key: Some(key), value, headers: &[] }
    }
}

/// The formats with the numbers and words that Python says at start.
pub struct Formats {
    pub records: Records,
    pub journal: Journal,
}

impl Formats {
    /// Reads `[[head of a message record, default priority], [head of a journal record, [word of a
    /// kind, ...] as in its schema, offsets of a record]]`.
    pub fn read(told: &mut Unpacker) -> Read<Self> {
        told.fields(2)?;
        told.fields(2)?;
        let records = Records::new(head(told)?, told.int()?);
        told.fields(3)?;
        let head = head(told)?;
        let kinds = (0..told.array()?).map(|_| told.text().map(String::from)).collect::<Read<_>>()?;
        let most = told.uint()?;
        Ok(Self { records, journal: Journal::new(head, kinds, most as usize) })
    }
}

fn head(told: &mut Unpacker) -> Read<[u8; 5]> {
    told.bytes()?.try_into().map_err(|_| NotThere)
}
