//! Acks: handles of all callers that wait go in one call for each unit and tag.

use std::time::Instant;

use super::clients::{Clients, Fault, News, Word};
use super::format::ids::read_handle;
use super::receives::TELL;
use super::redis::{Failure, Reply};
use super::routes::Route;
use super::template::{encoded, Rows, Values};
use super::unit::Row;
use super::whys::Why;
use super::{Ask, Call, Caller, Plane, Script, Trouble};

/// Handles of one call at most.
const MOST: usize = 500;

/// An ack that is under way.
pub struct Acking {
    connection: u64,
    lane: u64,
    verb: u8,
    queue: u64,
    tag: u16,
    began: Instant,
    left: usize,
    words: Vec<Word>,
    has_words: bool,
    /// Of some handles nothing was done; of some nobody knows, and why.
    undone: bool,
    unknown: Option<String>,
}

impl<C: Caller> Plane<C> {
    /// An ack stands in line, or why it is Python's.
    pub(super) fn ack(&mut self, ask: &Ask, route: &Route, handles: &[Vec<u8>]) -> Result<(), Why> {
        if !self.caller.is_open() {
            return Err(Why::Redis);
        }
        let Some(queue) = self.queues.get_mut(&route.queue).filter(|queue| queue.is_open) else {
            return Err(Why::Changed);
        };
        let of = |partition: u16, tag: u16| {
            (tag == route.tag).then(|| Some(&queue.units.get(usize::from(partition))?.tags.get(&tag)?.ids)).flatten()
        };
        let read: Option<Vec<_>> =
            handles.iter().map(|text| read_handle(text, of).filter(|one| one.until_ms == 0)).collect();
        let read = read.ok_or(Why::Handle)?;
        self.next += 1;
        let ack = self.next;
        for (place, one) in read.iter().enumerate() {
            let unit = &mut queue.units[usize::from(one.partition)];
            if let Some(of) = unit.tags.get_mut(&route.tag) {
                of.acks.push_back(Row { offset: one.offset, nonce: one.nonce, ack, place });
            }
        }
        let acking = Acking {
            connection: ask.connection,
            lane: ask.lane,
            verb: ask.verb,
            queue: route.queue,
            tag: route.tag,
            began: ask.began,
            left: read.len(),
            words: vec![Word::Stale; read.len()],
            has_words: false,
            undone: false,
            unknown: None,
        };
        self.acks.insert(ack, acking);
        self.dirty.insert((route.queue, route.tag));
        Ok(())
    }

    /// Begins a call for each unit that has handles and no call under way.
    pub(super) fn acknowledge(&mut self, at: (u64, u16)) {
        let partitions = self.queues.get(&at.0).map_or(0, |queue| queue.units.len());
        for partition in 0..partitions {
            let Some(of) = self.queues.get_mut(&at.0).and_then(|queue| queue.units[partition].tags.get_mut(&at.1))
            else {
                return;
            };
            if of.is_acking || of.acks.is_empty() {
                continue;
            }
            let size = of.acks.len().min(MOST);
            let rows: Vec<Row> = of.acks.drain(..size).collect();
            of.is_acking = true;
            let pairs: Vec<i64> = rows.iter().flat_map(|row| [row.offset as i64, row.nonce as i64]).collect();
            let encoded = encoded(&pairs);
            let values = Values { rows: Rows { encoded: &encoded, words: pairs.len() }, ..Values::default() };
            if !self.call(at, partition, Script::Ack, values, Call::Ack { partition, rows: rows.clone() }) {
                self.unacked.push((at, partition, rows));
            }
        }
    }

    /// Those whose call could not be made: nothing was done of them.
    pub(super) fn end_unacked(&mut self, clients: &mut dyn Clients, now: Instant) {
        for ((number, tag), partition, rows) in std::mem::take(&mut self.unacked) {
            self.acked(clients, number, tag, partition, &rows, Err(Trouble::Other), &Err(Failure::NotSent), now);
            // Others may wait behind them, for one call takes so many.
            self.dirty.insert((number, tag));
            self.drop_closed(number);
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn acked(
        &mut self,
        clients: &mut dyn Clients,
        number: u64,
        tag: u16,
        partition: usize,
        rows: &[Row],
        told: Result<&[Reply], Trouble>,
        outcome: &Result<Reply, Failure>,
        now: Instant,
    ) {
        let mut unit = self.queues.get_mut(&number).and_then(|queue| queue.units.get_mut(partition));
        if let Some(of) = unit.as_mut().and_then(|unit| unit.tags.get_mut(&tag)) {
            of.is_acking = false;
        }
        if let Some(unit) = unit.as_mut().filter(|unit| unit.told.is_none_or(|told| told + TELL <= now)) {
            unit.told = Some(now);
            clients.tell(News::Used { queue: number, partition });
        }
        let words = told.ok().and_then(|items| items.get(1)).map(Reply::items);
        let why = unknown(outcome);
        let mut ended = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            let word = words.map(|words| word(words, place));
            if let (Some(Word::Ok), Some(unit)) = (word, unit.as_mut()) {
                unit.settle(row.offset);
            }
            let Some(acking) = self.acks.get_mut(&row.ack) else { continue };
            match word {
                Some(word) => {
                    acking.words[row.place] = word;
                    acking.has_words = true;
                }
                None => {
                    acking.undone |= why.is_none();
                    acking.unknown = acking.unknown.take().or_else(|| why.clone());
                }
            }
            acking.left -= 1;
            if acking.left == 0 {
                ended.push(row.ack);
            }
        }
        for ack in ended {
            self.end_ack(clients, ack, now);
        }
    }

    fn end_ack(&mut self, clients: &mut dyn Clients, ack: u64, now: Instant) {
        let Some(acking) = self.acks.remove(&ack) else { return };
        let done = acking.words.iter().filter(|word| **word == Word::Ok).count();
        if acking.unknown.is_none() && !acking.undone {
            let key = (acking.queue, i64::from(acking.tag), acking.verb, false);
            self.counts.note(key, done, now.saturating_duration_since(acking.began));
            clients.acked(acking.connection, &acking.words);
        } else if acking.unknown.is_none() && !acking.has_words {
            clients.pass(acking.connection, Why::Redis);
        } else {
            let text = acking.unknown.unwrap_or_else(|| "some of the messages are acknowledged, others are not".into());
            clients.tell(News::Failed {
                connection: acking.connection,
                lane: acking.lane,
                verb: acking.verb,
                fault: Fault::State,
                text,
            });
        }
    }
}

/// The word of a handle; none at all = each is OK.
fn word(words: &[Reply], place: usize) -> Word {
    match words.get(place).map(Reply::bytes) {
        None if words.is_empty() => Word::Ok,
        Some(b"OK") => Word::Ok,
        Some(b"LAPSED") => Word::Lapsed,
        _ => Word::Stale,
    }
}

/// Why nobody knows whether a call has done something; None = it has not.
fn unknown(outcome: &Result<Reply, Failure>) -> Option<String> {
    match outcome {
        Ok(Reply::Array(_)) | Err(Failure::NotSent) => None,
        Ok(_) => Some("Redis has answered what no script of ours does".into()),
        Err(Failure::Unknown(text) | Failure::Refused(text)) => Some(text.clone()),
    }
}
