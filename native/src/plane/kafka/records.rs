//! Batches of records in Kafka's format 2: not compressed, without a producer id.
//!
//! A producer id exists so that a request may be sent again without harm. Nothing here is sent again
//! that may have been stored, so there is none.

use std::time::Instant;

use super::bytes::{put, put_varint, set_size, varint_bytes};

/// Of sends that share an append: when the first of them is to have left for Kafka, and when nobody waits
/// for its outcome any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    pub sent: Instant,
    pub answered: Instant,
}

pub type Header<'a> = (&'a str, Option<&'a [u8]>);

pub struct Record<'a> {
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: &'a [Header<'a>],
    /// Epoch ms; the broker replaces it where the topic says LogAppendTime.
    pub timestamp_ms: i64,
}

impl Record<'_> {
    /// Returns how many bytes its key, value and headers take, about.
    pub fn size(&self) -> usize {
        let of = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len) + 5;
        let headers = self.headers.iter().map(|(name, value)| name.len() + of(*value) + 5);
        of(self.key) + of(self.value) + headers.sum::<usize>()
    }
}

/// What a record takes at most beside its key, value and headers.
const RECORD_BYTES: usize = 22;
pub const BATCH_BYTES: usize = 61;

/// The records of one append, written as far as it does not matter where they stand in a batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Records {
    bytes: Vec<u8>,
    /// Where each ends, and its time.
    each: Vec<(usize, i64)>,
}

impl Records {
    pub fn new(records: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), each: Vec::with_capacity(records) }
    }

    pub fn push(&mut self, record: &Record) {
        put_optional(&mut self.bytes, record.key);
        put_optional(&mut self.bytes, record.value);
        put_varint(&mut self.bytes, record.headers.len() as i64);
        for (name, value) in record.headers {
            put_optional(&mut self.bytes, Some(name.as_bytes()));
            put_optional(&mut self.bytes, *value);
        }
        self.each.push((self.bytes.len(), record.timestamp_ms));
    }

    pub fn len(&self) -> usize {
        self.each.len()
    }

    pub fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// Returns how many bytes the records take in a batch, at most.
    pub fn size(&self) -> usize {
        self.bytes.len() + RECORD_BYTES * self.each.len()
    }
}

fn put_optional(output: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => put_varint(output, -1),
        Some(value) => {
            put_varint(output, value.len() as i64);
            output.extend_from_slice(value);
        }
    }
}

/// Writes one batch of all records of `parts`, of which there is one at least.
pub fn put_batch<'a>(output: &mut Vec<u8>, parts: impl Iterator<Item = &'a Records> + Clone) {
    let times = parts.clone().flat_map(|part| &part.each).map(|(_, time)| *time);
    let count = times.clone().count() as i32;
    let (first_ms, last_ms) = (times.clone().next().unwrap_or(0), times.max().unwrap_or(0));
    put(output, 0i64.to_be_bytes()); // the first offset, which the broker writes
    let size_at = output.len();
    put(output, 0i32.to_be_bytes());
    put(output, (-1i32).to_be_bytes()); // the leader's epoch, which the broker writes
    output.push(2);
    let sum_at = output.len();
    put(output, 0u32.to_be_bytes());
    put(output, 0i16.to_be_bytes()); // not compressed, CreateTime, of no transaction
    put(output, (count - 1).to_be_bytes());
    put(output, first_ms.to_be_bytes());
    put(output, last_ms.to_be_bytes());
    put(output, (-1i64).to_be_bytes());
    put(output, (-1i16).to_be_bytes());
    put(output, (-1i32).to_be_bytes());
    put(output, count.to_be_bytes());
    let mut place = 0;
    for part in parts {
        let mut begin = 0;
        for (end, time) in &part.each {
            put_record(output, place, time.wrapping_sub(first_ms), &part.bytes[begin..*end]);
            (begin, place) = (*end, place + 1);
        }
    }
    set_size(output, size_at);
    let sum = crc32c::crc32c(&output[sum_at + 4..]);
    output[sum_at..sum_at + 4].copy_from_slice(&sum.to_be_bytes());
}

fn put_record(output: &mut Vec<u8>, place: i64, after_ms: i64, content: &[u8]) {
    let size = 1 + varint_bytes(after_ms) + varint_bytes(place) + content.len();
    put_varint(output, size as i64);
    output.push(0);
    put_varint(output, after_ms);
    put_varint(output, place);
    output.extend_from_slice(content);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32c_of_rfc_3720() {
        let ascending: Vec<u8> = (0..32).collect();
        let descending: Vec<u8> = (0..32).rev().collect();
        for (bytes, sum) in [
            (&[0u8; 32][..], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&ascending, 0x46dd_794e),
            (&descending, 0x113f_db5c),
            (b"123456789", 0xe306_9283),
        ] {
            assert_eq!(crc32c::crc32c(bytes), sum);
        }
    }

    /// Each byte as the protocol's guide says; the sum is that of what follows it.
    #[test]
    fn a_batch_of_two_appends() {
        let (mut one, mut other) = (Records::default(), Records::default());
        one.push(&Record { key: None, value: Some(b"v"), headers: &[], timestamp_ms: 1000 });
        let headers: [Header; 2] = [("h", Some(b"x")), ("n", None)];
        other.push(&Record { key: Some(b"k"), value: None, headers: &headers, timestamp_ms: 999 });
        let mut batch = Vec::new();
        put_batch(&mut batch, [&one, &other].into_iter());
        let records = b"\x0e\0\0\0\x01\x02v\0\x1c\0\x01\x02\x02k\x01\x04\x02h\x02x\x02n\x01";
        let mut expected = b"\0\0\0\0\0\0\0\0".to_vec();
        expected.extend(((BATCH_BYTES - 12 + records.len()) as i32).to_be_bytes());
        expected.extend(b"\xff\xff\xff\xff\x02");
        expected.extend(&batch[17..21]);
        expected.extend(b"\0\0\0\0\0\x01\0\0\0\0\0\0\x03\xe8\0\0\0\0\0\0\x03\xe8");
        expected.extend(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\x02");
        expected.extend(records);
        assert_eq!(batch, expected);
        assert_eq!(batch[17..21], crc32c::crc32c(&batch[21..]).to_be_bytes());
        assert!(batch.len() <= BATCH_BYTES + one.size() + other.size());
    }
}
