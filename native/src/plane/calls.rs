//! Calls of scripts, as Python words them: what stays is kept encoded, and each call fills in the rest.
//!
//! So nothing here knows a key, the order of a script's arguments, or a setting of a queue.

use std::collections::HashMap;
use std::time::Instant;

use super::clock::Clock;
use super::redis::{put_number, put_word, Failure, Redis, Reply};
use super::unit::{Act, Row};
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
mod template_tests {
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

/// Scripts, in the order in which Python tells them.
#[derive(Clone, Copy)]
pub enum Script {
    Receive,
    Probe,
    Ack,
    GiveBack,
    Extend,
    Release,
    Load,
    Drain,
}

/// What calls scripts: `Redis`, or a test.
pub trait Caller {
    /// Whether calls may begin.
    fn is_open(&self) -> bool;
    /// Begins a call of words that are encoded; false = nothing was sent.
    fn call(&mut self, token: u64, script: usize, words: usize, ready: &[u8]) -> bool;
    /// The moment, by the clock that nobody sets.
    fn now_s(&self) -> f64;
}

impl Caller for Redis {
    fn is_open(&self) -> bool {
        Redis::is_open(self)
    }

    fn call(&mut self, token: u64, script: usize, words: usize, ready: &[u8]) -> bool {
        self.begin(token, script, words, ready, 0)
    }

    fn now_s(&self) -> f64 {
        crate::system::boot_s()
    }
}

/// What a receive has asked of a partition.
pub struct Asked {
    pub partition: usize,
    pub wakes: u64,
    pub began: Instant,
    pub lease_ms: i64,
    pub ahead: bool,
}

/// A call of a queue that is under way.
pub enum Call {
    Receive(Asked),
    Probe { partition: usize, wakes: u64 },
    Act { act: Act, partition: usize, rows: Vec<Row> },
    GiveBack { partition: usize, rows: Vec<i64> },
    Load,
}

pub struct UnderWay {
    pub queue: u64,
    pub tag: u16,
    pub call: Call,
}

pub struct Calls<C> {
    pub caller: C,
    pub clock: Clock,
    pub under_way: HashMap<u64, UnderWay>,
    /// How many were begun.
    pub begun: u64,
    number: u64,
    ready: Vec<u8>,
}

impl<C: Caller> Calls<C> {
    pub fn new(caller: C) -> Self {
        Self { caller, clock: Clock::default(), under_way: HashMap::new(), begun: 0, number: 0, ready: Vec::new() }
    }

    /// A number that no call, append or request has had.
    pub fn number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// The time of the service.
    pub fn now_ms(&self) -> i64 {
        self.clock.at_ms(self.caller.now_s())
    }

    /// Begins a call, and returns its number; None = it can't be made.
    pub fn begin(&mut self, script: Script, template: &Template, values: &Values) -> Option<u64> {
        if !self.caller.is_open() {
            return None;
        }
        let words = template.fill(&mut self.ready, values);
        let number = self.number();
        let is_begun = self.caller.call(number, script as usize, words, &self.ready);
        self.begun += u64::from(is_begun);
        is_begun.then_some(number)
    }

    /// Begins a call that says what time it is.
    pub fn begin_now(&mut self, script: Script, template: &Template, values: Values) -> Option<u64> {
        let Clock { keep_ms, early_ms, is_set, .. } = self.clock;
        let values = Values { now_ms: self.now_ms(), keep_ms, early_ms, ..values };
        is_set.then(|| self.begin(script, template, &values))?
    }
}

/// Why a call has not done what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The queue is not for the plane, by a word of its script.
    Closed(&'static str),
    /// It can be tried again later.
    Other,
}

/// The items of a good reply.
pub fn good(outcome: &Result<Reply, Failure>) -> Result<&[Reply], Trouble> {
    let Ok(reply) = outcome else { return Err(Trouble::Other) };
    match reply.items() {
        [first, ..] if first.bytes() == b"OK" => Ok(reply.items()),
        [first, ..] => Err([("LOST", &b"LOST"[..]), ("FENCED", b"FENCED"), ("FIFO", b"FIFO"), ("FAIR", b"FAIR")]
            .iter()
            .find(|(_, word)| first.bytes() == *word)
            .map_or(Trouble::Other, |(reason, _)| Trouble::Closed(reason))),
        [] => Err(Trouble::Other),
    }
}
