//! Sends: what is sent to a queue meanwhile goes in one append to Kafka and one call of Redis.
//!
//! What was given to Kafka is never given again: when its outcome is unknown, Python says so. What
//! surely is not there is Python's as it came.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clients::{Clients, Fault, News};
use super::format::record::{Attribute, Mark, Message, Packed, Parts, Records};
use super::format::Produced;
use super::receives::TELL;
use super::redis::Reply;
use super::routes::{Route, COUNTS_BYTES};
use super::tag::Limits;
use super::template::{put_number, put_word, Rows, Values};
use super::unit::Kept;
use super::whys::Why;
use super::{Call, Caller, Plane, Script, Trouble};
use crate::replies::Digest32;

/// Who was answered a moment ago sends again in a moment.
const LINGER: Duration = Duration::from_micros(300);
const LINGER_FROM: usize = 4;
/// Kept with each body, besides its record: about.
const OVERHEAD_BYTES: usize = 500;
/// What was not acked for so long gives way to what is sent now.
const OLD: Duration = Duration::from_secs(30);
/// How long an answer waits for Redis, which is not needed for it.
const SOON: Duration = Duration::from_secs(1);

/// Appends records to Kafka: `Producer`, or a test.
pub trait Appender {
    /// Begins to append records side by side, all or none; `Plane::appended` is told of the token later.
    fn append(&mut self, topic: &str, partition: usize, records: &[Produced], token: u64, until: Until, now: Instant);
}

/// Of sends that share an append: when the first of them is to have left for Kafka, and when nobody waits
/// for its outcome any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    pub sent: Instant,
    pub answered: Instant,
}

/// What became of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    Stored {
        first: u64,
        at_ms: u64,
    },
    /// Nothing of it is in the log.
    NotStored(String),
    Unknown(String),
}

/// A message that is sent.
pub struct Content<'a> {
    pub body: &'a [u8],
    pub attributes: Vec<Attribute<'a>>,
    pub digest: Digest32,
}

impl Content<'_> {
    /// Its size as limits count it.
    pub fn size(&self) -> usize {
        let of = |one: &Attribute| one.name.len() + one.kind.len() + one.value.len();
        self.body.len() + self.attributes.iter().map(of).sum::<usize>()
    }
}

/// A message that was read: its record, where in it its parts are, and the body's digest.
#[derive(Debug)]
pub struct Value {
    pub record: Vec<u8>,
    pub parts: Parts,
    pub digest: Digest32,
    /// As limits and quotas count it.
    pub size: usize,
}

/// One send that was not answered yet.
#[derive(Debug)]
struct Send {
    connection: u64,
    lane: u64,
    verb: u8,
    began: Instant,
    deadline: Instant,
    /// It was told that its time is over; what became of it nobody hears.
    is_over: bool,
    values: Vec<Value>,
    /// Bytes of its queue's allowance.
    counted: u64,
}

impl Send {
    fn fail(&self, clients: &mut dyn Clients, fault: Fault, text: &str) {
        let (connection, lane, verb) = (self.connection, self.lane, self.verb);
        clients.tell(News::Failed { connection, lane, verb, fault, text: text.into() });
    }
}

/// When the next of them is late that nobody has told so.
fn first_late(sends: &[Send]) -> Option<Instant> {
    sends.iter().filter(|one| !one.is_over).map(|one| one.deadline).min()
}

/// What is sent to a queue.
pub struct Sends {
    topic: String,
    /// Which tags want a message without attributes, as the script takes it.
    mask: Vec<u8>,
    /// The window gets no bodies: this worker is the only one, and keeps them.
    is_alone: bool,
    waiting: VecDeque<Send>,
    records: usize,
    bytes: usize,
    is_under_way: bool,
    /// Records of the last batch, if several sends shared it.
    last: usize,
    partition: usize,
    /// Records that went there in turn.
    run: usize,
    linger_until: Option<Instant>,
}

impl Sends {
    pub fn new(topic: String, mask: Vec<u8>, is_alone: bool, partition: usize) -> Self {
        Self {
            topic,
            mask,
            is_alone,
            waiting: VecDeque::new(),
            records: 0,
            bytes: 0,
            is_under_way: false,
            last: 0,
            partition,
            run: 0,
            linger_until: None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && !self.is_under_way
    }

    /// The sends of the next batch; none = it is not its turn.
    fn take(&mut self, limits: &Limits, now: Instant) -> Vec<Send> {
        let is_soon = self.records < self.last && self.last >= LINGER_FROM;
        if self.waiting.is_empty() || self.is_under_way {
            return Vec::new();
        }
        if is_soon && now < *self.linger_until.get_or_insert(now + LINGER) {
            return Vec::new();
        }
        self.linger_until = None;
        let (mut sends, mut records, mut bytes) = (Vec::new(), 0, 0);
        while records < limits.batch_records && bytes < limits.batch_bytes {
            let Some(one) = self.waiting.pop_front() else { break };
            records += one.values.len();
            bytes += size(&one.values);
            sends.push(one);
        }
        self.records -= records;
        self.bytes -= bytes;
        self.last = if sends.len() > 1 { records } else { 0 };
        sends
    }

    /// Where the next records go: those of a while to one partition, then to the next.
    fn place(&mut self, records: usize, partitions: usize, limits: &Limits) -> usize {
        if self.run >= limits.run {
            self.partition = (self.partition + 1) % partitions;
            self.run = 0;
        }
        self.run += records;
        self.partition
    }
}

fn size(values: &[Value]) -> usize {
    values.iter().map(|value| value.record.len()).sum()
}

/// Records that Kafka has: where, and who waits for them (connection, if any; verb, since when, messages).
struct Loading {
    queue: u64,
    partition: usize,
    first: u64,
    end: u64,
    at_ms: i64,
    keeps: bool,
    waiting: Vec<(Option<u64>, u8, Instant, usize)>,
}

/// What of all queues is on its way out.
#[derive(Default)]
pub struct Outgoing {
    dirty: BTreeSet<u64>,
    timers: BTreeSet<(Instant, u64)>,
    /// By their tokens: what Kafka was given, and what the window was.
    appending: HashMap<u64, (u64, usize, Vec<Send>)>,
    /// When a send of an append is late.
    late: BTreeSet<(Instant, u64)>,
    loading: HashMap<u64, Loading>,
    /// Until when somebody waits for a call of the window.
    answer_until: VecDeque<(Instant, u64)>,
    /// Which bodies are kept, oldest first: since when, queue, partition, offset, bytes.
    kept: VecDeque<(Instant, u64, usize, u64, usize)>,
    kept_bytes: usize,
}

impl Outgoing {
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    pub fn wake_at(&self) -> Option<Instant> {
        let answer = self.answer_until.front().map(|(at, _)| *at);
        let timers = [&self.timers, &self.late].map(|timers| timers.first().map(|(at, _)| *at));
        timers.into_iter().flatten().chain(answer).min()
    }
}

/// Writes the records of one send; `random` names its batch.
pub fn values(records: &Records, route: &Route, contents: &[Content], random: u64) -> Vec<Value> {
    let many = u32::try_from(contents.len()).unwrap_or(u32::MAX);
    let sender = std::str::from_utf8(&route.sender).unwrap_or_default();
    let write = |(index, content): (usize, &Content)| {
        let Content { body, attributes, digest } = content;
        let mark = (many > 1).then(|| Mark { index: index as u32, ..Mark::first(random, many) });
        let mut record = Vec::with_capacity(content.size() + 96);
        let message = Message { body, is_text: true, attributes, delay_ms: 0, lease_ms: None, sender, mark };
        let parts = records.write(&message, &mut record);
        Value { record, parts, digest: *digest, size: content.size() }
    };
    contents.iter().enumerate().map(write).collect()
}

impl<C: Caller> Plane<C> {
    /// A send stands in line, or why it is Python's.
    pub(super) fn send(
        &mut self,
        connection: u64,
        lane: u64,
        verb: u8,
        began: Instant,
        route: &Route,
        values: Vec<Value>,
    ) -> Result<(), Why> {
        let limits = &self.service.limits;
        let Some(queue) = self.queues.get_mut(&route.queue).filter(|queue| queue.is_open) else {
            return Err(Why::Changed);
        };
        let sends = &mut queue.sends;
        let is_full = sends.waiting.len() >= limits.most_sends || sends.bytes >= limits.most_waiting_bytes;
        if is_full {
            return Err(Why::Busy);
        }
        let mut counted = 0;
        if route.verbs & COUNTS_BYTES > 0 {
            counted = values.iter().map(|value| value.size as u64).sum();
            if !self.allowances.take(route.queue, counted, began) {
                return Err(Why::Quota);
            }
        }
        sends.records += values.len();
        sends.bytes += size(&values);
        let deadline = began + limits.send_timeout;
        sends.waiting.push_back(Send { connection, lane, verb, began, deadline, is_over: false, values, counted });
        self.out.dirty.insert(route.queue);
        Ok(())
    }

    pub(super) fn work_sends(&mut self, clients: &mut dyn Clients, appender: &mut dyn Appender, now: Instant) {
        while let Some(first) = self.out.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.out.timers.remove(&first);
            self.out.dirty.insert(first.1);
        }
        while let Some((_, token)) = self.out.answer_until.front().copied().filter(|(at, _)| *at <= now) {
            self.out.answer_until.pop_front();
            self.answer_sends(clients, token, now);
        }
        while let Some((_, token)) = self.out.late.first().copied().filter(|(at, _)| *at <= now) {
            self.out.late.pop_first();
            self.end_late(clients, token, now);
        }
        for queue in self.allowances.take_low() {
            clients.tell(News::Low { queue });
        }
        while let Some(number) = self.out.dirty.pop_first() {
            self.commit(clients, appender, number, now);
        }
    }

    /// What Kafka was not given of a queue is Python's.
    pub(super) fn pass_sends(&mut self, clients: &mut dyn Clients, number: u64) {
        let Some(queue) = self.queues.get_mut(&number) else { return };
        for one in queue.sends.waiting.drain(..) {
            self.allowances.give_back(number, one.counted);
            clients.pass(one.connection, Why::Changed);
        }
        (queue.sends.records, queue.sends.bytes) = (0, 0);
    }

    /// Who shares an append with others, and whose time is over before Kafka has answered, waits no more.
    fn end_late(&mut self, clients: &mut dyn Clients, token: u64, now: Instant) {
        let Some((queue, _, sends)) = self.out.appending.get_mut(&token) else { return };
        clients.tell(News::Suspect { queue: *queue });
        for one in sends.iter_mut().filter(|one| !one.is_over && one.deadline <= now) {
            one.fail(clients, Fault::MayBeStored, "no answer of Kafka in time");
            one.is_over = true;
        }
        self.out.late.extend(first_late(sends).map(|at| (at, token)));
    }

    /// Begins the next batch of a queue, if it is its turn.
    fn commit(&mut self, clients: &mut dyn Clients, appender: &mut dyn Appender, number: u64, now: Instant) {
        let limits = &self.service.limits;
        let Some(queue) = self.queues.get_mut(&number).filter(|queue| queue.is_open) else { return };
        let mut sends = queue.sends.take(limits, now);
        if let Some(at) = queue.sends.linger_until {
            self.out.timers.insert((at, number));
        }
        let took_some = !sends.is_empty();
        sends.retain(|one| {
            let is_late = one.deadline <= now;
            if is_late {
                self.allowances.give_back(number, one.counted);
                one.fail(clients, Fault::NotStored, "");
            }
            !is_late
        });
        let deadlines = sends.iter().map(|one| one.deadline);
        let (Some(sent), Some(answered)) = (deadlines.clone().min(), deadlines.max()) else {
            if took_some {
                self.out.dirty.insert(number); // all were late, and others may wait behind them
            }
            return;
        };
        let values = sends.iter().flat_map(|one| &one.values);
        let records: Vec<Produced> = values.map(|value| Produced::message(&value.record)).collect();
        let partition = queue.sends.place(records.len(), queue.units.len(), limits);
        queue.sends.is_under_way = true;
        let unit = &mut queue.units[partition];
        if unit.told.is_none_or(|told| told + TELL <= now) {
            unit.told = Some(now);
            clients.tell(News::Used { queue: number, partition });
        }
        self.next += 1;
        appender.append(&queue.sends.topic, partition, &records, self.next, Until { sent, answered }, now);
        self.out.late.insert((sent, self.next));
        self.out.appending.insert(self.next, (number, partition, sends));
    }

    /// Kafka has a batch, or not.
    pub fn appended(&mut self, clients: &mut dyn Clients, token: u64, outcome: Appended, now: Instant) {
        let Some((number, partition, sends)) = self.out.appending.remove(&token) else {
            return self.drain_appended(clients, token, outcome);
        };
        if let Some(at) = first_late(&sends) {
            self.out.late.remove(&(at, token));
        }
        if let Appended::Stored { first, at_ms } = outcome {
            self.load(clients, number, partition, sends, first, at_ms, now);
            return self.drop_closed(number);
        }
        self.end_batch(number);
        if matches!(outcome, Appended::NotStored(_)) {
            self.allowances.give_back(number, sends.iter().map(|one| one.counted).sum());
        }
        let sends = sends.into_iter().filter(|one| !one.is_over);
        match outcome {
            Appended::Stored { .. } => {}
            Appended::NotStored(text) => {
                for one in sends {
                    if one.deadline > now {
                        clients.pass(one.connection, Why::Kafka);
                    } else {
                        one.fail(clients, Fault::NotStored, &text);
                    }
                }
            }
            Appended::Unknown(text) => {
                clients.tell(News::Suspect { queue: number });
                sends.for_each(|one| one.fail(clients, Fault::MayBeStored, &text));
            }
        }
        self.drop_closed(number);
    }

    /// The next batch of a queue has its turn.
    fn end_batch(&mut self, number: u64) {
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.sends.is_under_way = false;
            self.out.dirty.insert(number);
        }
    }

    /// The window gets what Kafka has, and its bodies are kept. Where that fails the loader brings them.
    #[allow(clippy::too_many_arguments)]
    fn load(
        &mut self,
        clients: &mut dyn Clients,
        queue: u64,
        partition: usize,
        sends: Vec<Send>,
        first: u64,
        at_ms: u64,
        now: Instant,
    ) {
        let who = |one: &Send| (!one.is_over).then_some(one.connection);
        let waiting = sends.iter().map(|one| (who(one), one.verb, one.began, one.values.len())).collect();
        let values: Vec<Value> = sends.into_iter().flat_map(|one| one.values).collect();
        let end = first + values.len() as u64;
        let keeps = self.has_room(queue, &values, now);
        let (encoded, words) = self.entries(queue, &values, first, at_ms, keeps);
        if keeps {
            self.keep(queue, partition, values, first, at_ms, now);
        }
        let values = Values { rows: Rows { encoded: &encoded, words }, wake_ms: at_ms as i64, ..Values::default() };
        let tag = self.queues.get(&queue).and_then(|queue| queue.tags.keys().next().copied()).unwrap_or(0);
        let is_made = self.call((queue, tag), partition, Script::Load, values, Call::Load);
        if !is_made {
            self.next += 1; // else it could be the token of a load that is under way
        }
        let token = self.next;
        self.out.loading.insert(token, Loading { queue, partition, first, end, at_ms: at_ms as i64, keeps, waiting });
        if is_made {
            self.out.answer_until.push_back((now + SOON, token));
        } else {
            self.loaded(clients, queue, token, Err(Trouble::Other), now);
        }
    }

    /// The entries of the script: one for all, where their bodies are kept here.
    fn entries(&self, queue: u64, values: &[Value], first: u64, at_ms: u64, keeps: bool) -> (Vec<u8>, usize) {
        let mask: &[u8] = self.queues.get(&queue).map_or(b"", |queue| &queue.sends.mask);
        let (mut encoded, mut words) = (Vec::new(), 0);
        let mut entry = |offset: u64, record: &[u8], count: usize| {
            put_number(&mut encoded, offset as i64);
            let mut packed = Vec::with_capacity(24 + record.len());
            Packed { sent_at_ms: at_ms, due_ms: at_ms, lease_ms: None, record }.write(&mut packed);
            put_word(&mut encoded, &packed);
            put_word(&mut encoded, mask);
            (0..4).for_each(|_| put_word(&mut encoded, b""));
            put_number(&mut encoded, count as i64);
            words += 8;
        };
        if keeps {
            entry(first, b"", values.len());
        } else {
            values.iter().zip(first..).for_each(|(value, offset)| entry(offset, &value.record, 1));
        }
        (encoded, words)
    }

    /// Whether these are kept here; what is old or was acked gives way to them.
    fn has_room(&mut self, queue: u64, values: &[Value], now: Instant) -> bool {
        let wanted = size(values) + values.len() * OVERHEAD_BYTES;
        while let Some((at, number, partition, offset, bytes)) = self.out.kept.front().copied() {
            let mut bodies =
                self.queues.get_mut(&number).and_then(|queue| Some(&mut queue.units.get_mut(partition)?.bodies));
            let is_here = bodies.as_ref().is_some_and(|bodies| bodies.contains_key(&offset));
            if is_here && (at + OLD > now || self.out.kept_bytes + wanted <= self.service.limits.most_bytes) {
                break;
            }
            if let Some(bodies) = bodies.as_mut() {
                bodies.remove(&offset);
            }
            self.out.kept.pop_front();
            self.out.kept_bytes -= bytes;
        }
        let is_alone = self.queues.get(&queue).is_some_and(|queue| queue.sends.is_alone && queue.is_open);
        is_alone && self.out.kept_bytes + wanted <= self.service.limits.most_bytes
    }

    fn keep(&mut self, number: u64, partition: usize, values: Vec<Value>, first: u64, at_ms: u64, now: Instant) {
        let Some(queue) = self.queues.get_mut(&number) else { return };
        let tags = queue.sends.mask.iter().filter(|wants| **wants == b'1').count() as u16;
        for (value, offset) in values.into_iter().zip(first..) {
            let bytes = value.record.len() + OVERHEAD_BYTES;
            let Value { record, parts, digest, .. } = value;
            let kept = Kept { record, parts, digest, sent_at_ms: at_ms, due_ms: at_ms };
            queue.units[partition].bodies.insert(offset, (Arc::new(kept), tags));
            self.out.kept_bytes += bytes;
            self.out.kept.push_back((now, number, partition, offset, bytes));
        }
    }

    /// The window has answered a load, or will not.
    pub(super) fn loaded(
        &mut self,
        clients: &mut dyn Clients,
        queue: u64,
        token: u64,
        told: Result<&[Reply], Trouble>,
        now: Instant,
    ) {
        self.answer_sends(clients, token, now);
        let Some(Loading { partition, first, end, at_ms, keeps, .. }) = self.out.loading.remove(&token) else { return };
        self.wake(clients, queue, partition, at_ms, now);
        let taken = match told {
            Ok([_, cursors, _, taken, ..]) => {
                let cursor = cursors.items().iter().map(Reply::int).max().unwrap_or(0);
                if taken.int() == 0 && cursor > end as i64 {
                    clients.tell(News::Ahead { queue, partition, cursor: cursor as u64 });
                }
                taken.int() > 0
            }
            _ => {
                clients.tell(News::Unloaded { queue });
                false
            }
        };
        let Some(known) = self.queues.get_mut(&queue) else { return };
        if keeps && !taken {
            // The loader will bring them, with their bodies.
            (first..end).for_each(|offset| drop(known.units[partition].bodies.remove(&offset)));
        }
    }

    /// Whoever has sent hears that Kafka has it.
    fn answer_sends(&mut self, clients: &mut dyn Clients, token: u64, now: Instant) {
        let Some(loading) = self.out.loading.get_mut(&token) else { return };
        let (queue, partition, at_ms, mut offset) = (loading.queue, loading.partition, loading.at_ms, loading.first);
        let waiting = std::mem::take(&mut loading.waiting);
        if waiting.is_empty() {
            return;
        }
        let Some(known) = self.queues.get(&queue) else { return };
        let Some(ids) = known.units[partition].tags.values().next().map(|of| &of.ids) else { return };
        for (connection, verb, began, count) in waiting {
            let first = offset;
            offset += count as u64;
            let Some(connection) = connection else { continue };
            let names: Vec<[u8; 36]> = (first..offset).filter_map(|offset| ids.id(offset)).collect();
            clients.sent(connection, &names, at_ms as u64);
            self.counts.note((queue, -1, verb, count > 1), count, now.saturating_duration_since(began));
        }
        self.end_batch(queue);
    }

    /// Whoever waits for what was sent is served; Python hears of it when somebody waits there.
    fn wake(&mut self, clients: &mut dyn Clients, number: u64, partition: usize, head_ms: i64, now: Instant) {
        self.woken(number, partition, head_ms, now);
        let Some(queue) = self.queues.get_mut(&number) else { return };
        let earliest = &mut queue.units[partition].unheard_ms;
        *earliest = Some(earliest.map_or(head_ms, |before| before.min(head_ms)));
        if queue.is_watched || !queue.is_open {
            self.tell_unheard(clients, number);
        }
    }

    /// Python hears of what was sent while nobody waited there: it takes what it knew of partitions for
    /// true.
    pub(super) fn tell_unheard(&mut self, clients: &mut dyn Clients, number: u64) {
        let Some(queue) = self.queues.get_mut(&number) else { return };
        for (partition, unit) in queue.units.iter_mut().enumerate() {
            if let Some(head_ms) = unit.unheard_ms.take() {
                clients.tell(News::Woken { queue: number, partition, head_ms: head_ms as u64 });
            }
        }
    }
}
