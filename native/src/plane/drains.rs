//! Drains: moves the entries of a unit's outbox to the journal in order, then drops them from the outbox.
//!
//! Python owns the units, and asks for each drain with the call of the script, which has the owner's
//! epoch. `engine/journal/outbox.py` does the same by itself where there is no plane, or where this one
//! can't go on. An entry stays in the outbox until Kafka has answered that the journal has it. So the
//! journal may get it again after a failure, and who reads the journal takes an entry once: see
//! docs/decisions/0026.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use super::append::{Appended, Appender};
use super::calls::{Caller, Script};
use super::calls::{Template, Values};
use super::clients::{Clients, News};
use super::ended::{End, Ended};
use super::format::journal::Journal;
use super::format::Produced;
use super::kafka::Until;
use super::redis::{Failure, Reply};
use super::Plane;
use crate::pack::{NotThere, Read, Unpacker};

struct Drain {
    queue: String,
    incarnation: String,
    partition: u16,
    topic: String,
    place: usize,
    key: Vec<u8>,
    call: Template,
    /// Entries that a call shows at most.
    most: usize,
    /// It ends after so many appends; 0 = before the first.
    rounds: u64,
    /// Entries that were moved before it began, and by it.
    before: u64,
    /// Records of the journal that Kafka has not got, and what it has when it has all of them.
    records: VecDeque<Vec<u8>>,
    entries: u64,
    last_seq: i64,
    begun_us: i64,
    ended: Ended,
}

impl Drain {
    /// `[number, queue, incarnation, partition, topic, its partition, key, call, done seq, most, rounds,
    /// moved]`
    fn read(told: &mut Unpacker) -> Read<Self> {
        told.fields(12)?;
        let number = told.uint()?;
        let (queue, incarnation) = (told.text()?.to_owned(), told.text()?.to_owned());
        let partition = u16::try_from(told.uint()?).map_err(|_| NotThere)?;
        let (topic, place, key) = (told.text()?.to_owned(), told.uint()? as usize, told.bytes()?.to_vec());
        let call = Template::read(told)?;
        let (done_seq, most, rounds, before) = (told.int()?, told.uint()? as usize, told.uint()?, told.uint()?);
        let ended = Ended {
            number,
            end: End::Done,
            moved: 0,
            done_seq,
            since_ms: 0,
            has_more: false,
            append: None,
            text: String::new(),
        };
        Ok(Self {
            queue,
            incarnation,
            partition,
            topic,
            place,
            key,
            call,
            most,
            rounds,
            before,
            records: VecDeque::new(),
            entries: 0,
            last_seq: 0,
            begun_us: 0,
            ended,
        })
    }

    /// Takes in what the outbox has; None = it is not over, and there is something to append.
    fn show(&mut self, entries: &[Reply], journal: &Journal) -> Option<End> {
        self.ended.done_seq = 0;
        self.ended.since_ms = 0;
        if entries.is_empty() {
            return Some(End::Done);
        }
        let shown = entries.iter().map(Reply::bytes);
        let Some(drained) = journal.values(&self.queue, &self.incarnation, self.partition, shown) else {
            return Some(End::Passed);
        };
        self.ended.since_ms = drained.first_at_ms;
        // What has come meanwhile waits for the next drain, unless there is much of it.
        if self.before + self.ended.moved > 0 && entries.len() < self.most {
            return Some(End::Done);
        }
        if self.rounds == 0 {
            self.ended.has_more = true;
            return Some(End::Done);
        }
        (self.entries, self.last_seq) = (entries.len() as u64, drained.last_seq);
        self.records = drained.values.into();
        None
    }

    /// Takes in that Kafka has a record; the end, when it is reached.
    fn append(&mut self) -> Option<End> {
        self.records.pop_front();
        if !self.records.is_empty() {
            return None;
        }
        self.ended.moved += self.entries;
        self.ended.done_seq = self.last_seq;
        self.rounds -= 1;
        self.ended.has_more = self.rounds == 0;
        (self.rounds == 0).then_some(End::Done)
    }
}

/// The drains that have not ended.
#[derive(Default)]
pub struct Drains {
    /// Whose turn it is.
    ready: VecDeque<Drain>,
    /// By the token of a call, or of an append.
    under_way: HashMap<u64, Drain>,
}

impl Drains {
    pub fn is_dirty(&self) -> bool {
        !self.ready.is_empty()
    }
}

impl<C: Caller> Plane<C> {
    /// Begins a drain; `News::Drained` tells how it has ended.
    pub fn drain(&mut self, told: &mut Unpacker) -> Read<()> {
        self.drains.ready.push_back(Drain::read(told)?);
        Ok(())
    }

    pub(super) fn work_drains(&mut self, clients: &mut dyn Clients, appender: &mut dyn Appender, now: Instant) {
        while let Some(mut drain) = self.drains.ready.pop_front() {
            if let Some(record) = drain.records.front() {
                drain.begun_us = self.now_us();
                let deadline = now + self.service.limits.send_timeout;
                let record = Produced::journal(&drain.key, record);
                let until = Until { sent: deadline, answered: deadline };
                let token = self.calls.number();
                appender.append(&drain.topic, drain.place, &[record], token, until, now);
                self.drains.under_way.insert(token, drain);
                continue;
            }
            let values = Values { done_seq: drain.ended.done_seq, ..Values::default() };
            match self.calls.begin(Script::Drain, &drain.call, &values) {
                Some(token) => drop(self.drains.under_way.insert(token, drain)),
                None => end(clients, drain, End::Passed),
            }
        }
    }

    /// Redis has answered a call of a drain; what is none of these stays as it is.
    pub(super) fn drain_shown(&mut self, clients: &mut dyn Clients, token: u64, outcome: &Result<Reply, Failure>) {
        let Some(mut drain) = self.drains.under_way.remove(&token) else { return };
        let shown = match outcome.as_ref().map(Reply::items) {
            Ok([word, entries]) if word.bytes() == b"OK" => drain.show(entries.items(), &self.service.formats.journal),
            Ok([word, ..]) if word.bytes() == b"FENCED" => Some(End::Fenced),
            // The call may be made again: Python's will meet the same, and knows what to say.
            _ => Some(End::Passed),
        };
        match shown {
            Some(how) => end(clients, drain, how),
            None => self.drains.ready.push_back(drain),
        }
    }

    /// Kafka has answered an append of a drain.
    pub(super) fn drain_appended(&mut self, clients: &mut dyn Clients, token: u64, outcome: Appended) {
        let Some(mut drain) = self.drains.under_way.remove(&token) else { return };
        match outcome {
            Appended::Stored { at_ms, .. } => {
                drain.ended.append = Some([drain.begun_us, self.now_us(), at_ms as i64]);
                match drain.append() {
                    Some(how) => end(clients, drain, how),
                    None => self.drains.ready.push_back(drain),
                }
            }
            Appended::NotStored(text) | Appended::Unknown(text) => {
                drain.ended.text = text;
                end(clients, drain, End::NotAppended);
            }
        }
    }

    fn now_us(&self) -> i64 {
        (self.calls.caller.now_s() * 1e6) as i64
    }
}

fn end(clients: &mut dyn Clients, drain: Drain, end: End) {
    clients.tell(News::Drained(Box::new(Ended { end, ..drain.ended })));
}
