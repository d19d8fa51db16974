//! Calls of scripts: how they are begun, which are under way, and whether an answer is good.

use std::collections::HashMap;
use std::time::Instant;

use super::clock::Clock;
use super::redis::{Failure, Redis, Reply};
use super::template::{Template, Values};
use super::unit::{Act, Row};

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
