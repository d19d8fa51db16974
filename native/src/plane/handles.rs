//! Verbs on handles: those of all callers that wait go in one call for each unit, tag and verb.

use std::time::Instant;

use super::ask::{Asker, Handles};
use super::calls::{encoded, Rows, Values};
use super::calls::{good, Call, Caller, Script};
use super::clients::{Clients, Done, News, Word};
use super::format::ids::{read_handle, Handle};
use super::queue::Queue;
use super::redis::{Failure, Reply};
use super::routes::Route;
use super::unit::{Act, Row};
use super::whys::Why;
use super::Plane;

/// Handles of one call at most.
const MOST: usize = 500;
const STRANGE: &str = "Redis has answered what no script of ours does";

/// Handles of which no call could be begun.
pub struct Uncalled {
    at: (u64, u16),
    act: Act,
    partition: usize,
    rows: Vec<Row>,
}

impl Act {
    fn script(self) -> Script {
        match self {
            Self::Ack => Script::Ack,
            Self::Extend => Script::Extend,
            Self::Release => Script::Release,
        }
    }

    /// The numbers that its script has of a handle.
    fn put(self, row: &Row, numbers: &mut Vec<i64>) {
        numbers.extend([row.offset as i64, row.nonce as i64]);
        if self == Self::Extend {
            numbers.push(row.lease_ms);
        }
    }

    /// What became of a handle, by the answer of its script: words, with times behind each but for acks; no
    /// words at all = each has succeeded. None = the word is none of these.
    fn done(self, words: &[Word], answer: &[Reply], place: usize) -> Option<Done> {
        if answer.is_empty() {
            return Some(Done { word: 0, visible_ms: 0 });
        }
        let width = if self == Self::Ack { 1 } else { 2 };
        let said = answer.get(place * width)?.bytes();
        let word = words.iter().position(|word| word.script == said)?;
        let time = answer.get(place * width + 1).filter(|_| width > 1).map_or(0, Reply::int);
        Some(Done { word: word as u8, visible_ms: u64::try_from(time).unwrap_or(0) })
    }
}

/// The handles of a request, if all are of its route and for no other use, and it may extend their leases.
fn read(queue: &Queue, route: &Route, handles: &Handles, now_ms: i64) -> Option<Vec<Handle>> {
    let of = |partition: u16, tag: u16| {
        (tag == route.tag).then(|| Some(&queue.units.get(usize::from(partition))?.tags.get(&tag)?.ids)).flatten()
    };
    // How long a delivery may be leased in all Python judges.
    let is_short = |at_ms: u64, lease_ms: i64| {
        handles.act != Act::Extend
            || route.most_leased_ms == 0
            || at_ms == 0
            || now_ms - at_ms as i64 + lease_ms <= route.most_leased_ms
    };
    let read = handles.held.iter().map(|held| {
        read_handle(&held.handle, of).filter(|one| one.until_ms == 0 && is_short(one.at_ms, held.lease_ms))
    });
    read.collect()
}

impl<C: Caller> Plane<C> {
    /// A request on handles stands in line, or why it is Python's.
    pub(super) fn act(&mut self, by: Asker, route: &Route, handles: &Handles) -> Result<(), Why> {
        if !self.calls.caller.is_open() {
            return Err(Why::Redis);
        }
        let (now_ms, request) = (self.calls.now_ms(), self.calls.number());
        let Some(queue) = self.queues.get_mut(&route.queue).filter(|queue| queue.is_open) else {
            return Err(Why::Changed);
        };
        let read = read(queue, route, handles, now_ms).ok_or(Why::Handle)?;
        for (place, (one, held)) in read.iter().zip(&handles.held).enumerate() {
            let unit = &mut queue.units[usize::from(one.partition)];
            if let Some(of) = unit.tags.get_mut(&route.tag) {
                let Handle { offset, nonce, at_ms, .. } = *one;
                let row = Row { offset, nonce, lease_ms: held.lease_ms, at_ms, request, place };
                of.acts[handles.act as usize].rows.push_back(row);
            }
        }
        self.acting.begin(request, by, route, handles);
        self.tags.mark((route.queue, route.tag));
        Ok(())
    }

    /// Begins a call for each unit and verb that has handles and no call under way.
    pub(super) fn begin_acts(&mut self, at: (u64, u16)) {
        let partitions = self.queues.get(&at.0).map_or(0, |queue| queue.units.len());
        for (partition, act) in (0..partitions).flat_map(|partition| Act::ALL.map(|act| (partition, act))) {
            let Some(of) = self.queues.get_mut(&at.0).and_then(|queue| queue.units[partition].tags.get_mut(&at.1))
            else {
                return;
            };
            let acts = &mut of.acts[act as usize];
            if acts.is_under_way || acts.rows.is_empty() {
                continue;
            }
            let size = acts.rows.len().min(MOST);
            let rows: Vec<Row> = acts.rows.drain(..size).collect();
            acts.is_under_way = true;
            let mut numbers = Vec::with_capacity(rows.len() * 3);
            rows.iter().for_each(|row| act.put(row, &mut numbers));
            let encoded = encoded(&numbers);
            let values = Values { rows: Rows { encoded: &encoded, words: numbers.len() }, ..Values::default() };
            if self
                .call(at, partition, act.script(), values, Call::Act { act, partition, rows: rows.clone() })
                .is_none()
            {
                self.uncalled.push(Uncalled { at, act, partition, rows });
            }
        }
    }

    /// Those whose call could not be made: nothing was done of them.
    pub(super) fn end_uncalled(&mut self, clients: &mut dyn Clients, now: Instant) {
        for Uncalled { at, act, partition, rows } in std::mem::take(&mut self.uncalled) {
            self.acted(clients, at, (act, partition, &rows), &Err(Failure::NotSent), now);
            // Others may wait behind them, for one call takes so many.
            self.tags.mark(at);
            self.drop_closed(at.0);
        }
    }

    /// A call has done what it should with these handles, or not.
    pub(super) fn acted(
        &mut self,
        clients: &mut dyn Clients,
        (number, tag): (u64, u16),
        (act, partition, rows): (Act, usize, &[Row]),
        outcome: &Result<Reply, Failure>,
        now: Instant,
    ) {
        let told = good(outcome).unwrap_or_default();
        let (answer, seq) = (told.get(1).map(Reply::items), told.get(2).map_or(0, Reply::int));
        let words = &self.service.words;
        let done = |place| answer.and_then(|answer| act.done(words, answer, place));
        let dones: Vec<Option<Done>> = (0..rows.len()).map(done).collect();
        let is_strange = answer.is_some() && dones.contains(&None);
        let why = if is_strange { Some(STRANGE.into()) } else { unknown(outcome) };
        let mut refused = Vec::new();
        for (row, done) in rows.iter().zip(&dones) {
            let tells_each = self.acting.note(row, *done, why.as_ref());
            // Of what Python is to answer it takes note itself.
            if let Some(done) = done.filter(|done| tells_each && !done.is_ok()) {
                refused.extend([row.offset as i64, i64::from(done.word)]);
            }
        }
        let now_ms = self.calls.now_ms();
        let is_ok = |done: &Option<Done>| done.is_some_and(|done| done.is_ok());
        for (row, _) in rows.iter().zip(&dones).filter(|(_, done)| is_ok(done)) {
            self.times.note_end(act, row, now_ms);
        }
        if !refused.is_empty() {
            clients.tell(News::Refused { queue: number, partition, rows: refused });
        }
        if let Some(unit) = self.queues.get_mut(&number).and_then(|queue| queue.units.get_mut(partition)) {
            if let Some(of) = unit.tags.get_mut(&tag) {
                of.acts[act as usize].is_under_way = false;
            }
            if unit.is_to_tell(now) {
                clients.tell(News::Used { queue: number, partition });
            }
            let is_acked = |done: &Option<Done>| act == Act::Ack && is_ok(done);
            rows.iter().zip(&dones).filter(|(_, done)| is_acked(done)).for_each(|(row, _)| unit.settle(row.offset));
        }
        let visible = dones.iter().flatten().filter(|done| done.is_ok()).map(|done| done.visible_ms as i64);
        if let Some(head_ms) = visible.min().filter(|_| act == Act::Release) {
            self.woken(number, partition, head_ms, now);
        }
        let is_durable = self.queues.get(&number).is_some_and(|queue| queue.is_durable);
        if is_durable && act == Act::Ack && seq > 0 {
            let written = self.calls.number();
            self.acting.wait(written, rows);
            clients.tell(News::Written { queue: number, partition, seq: seq as u64, number: written });
        } else {
            self.acting.count_done(rows.iter().map(|row| row.request), &mut self.counts, clients, now);
        }
    }

    /// The journal has what a call has written, or Python says why nobody knows.
    pub fn journaled(&mut self, clients: &mut dyn Clients, number: u64, why: &str, now: Instant) {
        let requests = self.acting.journaled(number, why);
        self.acting.count_done(requests, &mut self.counts, clients, now);
    }
}

/// Why nobody knows whether a call has done something; None = it has not.
fn unknown(outcome: &Result<Reply, Failure>) -> Option<String> {
    match outcome {
        Ok(Reply::Array(_)) | Err(Failure::NotSent) => None,
        Ok(_) => Some(STRANGE.into()),
        Err(Failure::Unknown(text) | Failure::Refused(text)) => Some(text.clone()),
    }
}
