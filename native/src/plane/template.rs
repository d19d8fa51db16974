//! Calls of scripts as Python words them: what stays is kept encoded, and each call fills in the rest.
//!
//! So nothing here knows a key, the order of a script's arguments, or a setting of a queue.

use super::redis::{put_number, put_word};
use crate::pack::{NotThere, Read, Unpacker};

/// What a call fills in; the numbers are those of `state/redis/calls.py`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Slot {
    Now,
    Most,
    Lease,
    /// A number that Python gives, and what a lease ahead is longer by.
    PlusMore(i64),
    /// A number that Python gives, and how much longer messages are kept by the service's clock.
    PlusKeep(i64),
    Until,
    /// How much later a due time of the log has come, by the service's clock.
    Early,
    Rows,
    /// Up to which entry the journal has what is in an outbox.
    Done,
}

#[derive(Debug)]
enum Piece {
    /// Words, encoded.
    Fixed(Vec<u8>),
    Slot(Slot),
}

/// What a call has of its own.
#[derive(Debug, Default)]
pub struct Values<'a> {
    pub now_ms: i64,
    pub most: i64,
    /// -1 = the message's own, else the queue's.
    pub lease_ms: i64,
    pub more_ms: i64,
    pub keep_ms: i64,
    pub until_ms: i64,
    pub early_ms: i64,
    pub done_seq: i64,
    pub rows: Rows<'a>,
}

/// Words at the end of a call, encoded, and how many.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows<'a> {
    pub encoded: &'a [u8],
    pub words: usize,
}

/// Encodes numbers as words.
pub fn encoded(numbers: &[i64]) -> Vec<u8> {
    let mut output = Vec::with_capacity(numbers.len() * 16);
    numbers.iter().for_each(|number| put_number(&mut output, *number));
    output
}

/// One call, from the number of its keys on.
#[derive(Debug, Default)]
pub struct Template {
    pieces: Vec<Piece>,
    words: usize,
}

impl Template {
    /// `[[0, word], [slot, number or ""], ...]`
    pub fn read(unpacker: &mut Unpacker) -> Read<Self> {
        let mut made = Self::default();
        for _ in 0..unpacker.array()? {
            unpacker.fields(2)?;
            let (kind, word) = (unpacker.uint()?, unpacker.bytes()?);
            let number = || std::str::from_utf8(word).ok().and_then(|text| text.parse().ok()).ok_or(NotThere);
            let slot = match kind {
                0 => {
                    made.fix(word);
                    continue;
                }
                1 => Slot::Now,
                2 => Slot::Most,
                3 => Slot::Lease,
                4 => Slot::PlusMore(number()?),
                5 => Slot::PlusKeep(number()?),
                6 => Slot::Until,
                7 => Slot::Rows,
                8 => Slot::Early,
                9 => Slot::Done,
                _ => return Err(NotThere),
            };
            made.words += usize::from(slot != Slot::Rows);
            made.pieces.push(Piece::Slot(slot));
        }
        Ok(made)
    }

    fn fix(&mut self, word: &[u8]) {
        self.words += 1;
        if !matches!(self.pieces.last(), Some(Piece::Fixed(_))) {
            self.pieces.push(Piece::Fixed(Vec::new()));
        }
        if let Some(Piece::Fixed(words)) = self.pieces.last_mut() {
            put_word(words, word);
        }
    }

    /// Writes the words of one call; returns how many.
    pub fn fill(&self, output: &mut Vec<u8>, values: &Values) -> usize {
        output.clear();
        for piece in &self.pieces {
            let number = match piece {
                Piece::Fixed(words) => {
                    output.extend_from_slice(words);
                    continue;
                }
                Piece::Slot(Slot::Rows) => {
                    output.extend_from_slice(values.rows.encoded);
                    continue;
                }
                Piece::Slot(Slot::Early) => values.early_ms,
                Piece::Slot(Slot::Now) => values.now_ms,
                Piece::Slot(Slot::Most) => values.most,
                Piece::Slot(Slot::Lease) if values.lease_ms < 0 => -1,
                Piece::Slot(Slot::Lease) => values.lease_ms + values.more_ms,
                Piece::Slot(Slot::PlusMore(number)) => number + values.more_ms,
                Piece::Slot(Slot::PlusKeep(number)) => number.saturating_add(values.keep_ms),
                Piece::Slot(Slot::Until) => values.until_ms,
                Piece::Slot(Slot::Done) => values.done_seq,
            };
            put_number(output, number);
        }
        self.words + values.rows.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::Packer;

    #[test]
    fn a_call_is_filled_in() {
        let mut told = Packer::default();
        let words: [(u64, &[u8]); 9] =
            [(0, b"1"), (0, b"key"), (1, b""), (2, b""), (3, b""), (4, b"30000"), (5, b"100"), (6, b""), (7, b"")];
        told.array(words.len());
        for (kind, word) in words {
            told.array(2);
            told.uint(kind);
            told.binary(word);
        }
        let template = Template::read(&mut Unpacker::new(&told.bytes)).expect("it was told");
        let mut output = Vec::new();
        let values = Values {
            now_ms: 7,
            most: 10,
            lease_ms: -1,
            more_ms: 40,
            keep_ms: 5,
            rows: Rows { encoded: &encoded(&[3, 4]), words: 2 },
            ..Values::default()
        };
        assert_eq!(template.fill(&mut output, &values), 10);
        let words: Vec<&str> = std::str::from_utf8(&output).expect("text").split("\r\n").collect();
        let words: Vec<&str> = words.chunks(2).filter(|pair| pair.len() == 2).map(|pair| pair[1]).collect();
        assert_eq!(words, ["1", "key", "7", "10", "-1", "30040", "105", "0", "3", "4"]);
        template.fill(&mut output, &Values { lease_ms: 1000, more_ms: 40, ..values });
        assert!(output.windows(4).any(|four| four == b"1040"));
    }

    #[test]
    fn what_is_cut_is_no_call() {
        for told in
            [&[0x91, 0x92, 10, 0xc4, 0][..], &[0x91, 0x92, 4, 0xc4, 1, b'x'], &[0x91, 0x93, 0, 0xc4, 0], &[0x92]]
        {
            assert!(Template::read(&mut Unpacker::new(told)).is_err());
        }
    }
}
