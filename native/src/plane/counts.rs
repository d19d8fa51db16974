//! Requests that were answered well, or whose clients have gone, for Python's meters and metrics: how many,
//! how long; and how long messages were in their queue and in hand.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::clients::Clients;
use super::unit::{Act, Row};
use super::whys::Why;
use crate::pack::Packer;

/// By the bounds that Python tells.
#[derive(Debug, Default)]
struct Histogram {
    sum_ms: u64,
    between: Vec<u64>,
}

#[derive(Debug, Default)]
pub struct Times {
    bounds_ms: Vec<u64>,
    in_queue: Histogram,
    acked: Histogram,
    released: Histogram,
}

impl Histogram {
    fn note(&mut self, bounds_ms: &[u64], ms: u64) {
        self.sum_ms += ms;
        self.between.resize(bounds_ms.len() + 1, 0);
        // The first bound that the time is not above; as bisect_left of Python.
        self.between[bounds_ms.partition_point(|bound| *bound < ms)] += 1;
    }
}

fn since(at_ms: u64, now_ms: i64) -> u64 {
    u64::try_from(now_ms).unwrap_or(0).saturating_sub(at_ms)
}

impl Times {
    pub fn new(bounds_ms: Vec<u64>) -> Self {
        Self { bounds_ms, ..Self::default() }
    }

    /// A message that was sent then was delivered for the first time.
    pub fn note_first(&mut self, sent_at_ms: u64, now_ms: i64) {
        self.in_queue.note(&self.bounds_ms, since(sent_at_ms, now_ms));
    }

    /// A delivery is over, if `act` ends it and it is known when it began.
    pub fn note_end(&mut self, act: Act, row: &Row, now_ms: i64) {
        let ended = match act {
            Act::Ack => &mut self.acked,
            Act::Extend if row.lease_ms > 0 => return,
            Act::Extend | Act::Release => &mut self.released,
        };
        if row.at_ms > 0 {
            ended.note(&self.bounds_ms, since(row.at_ms, now_ms));
        }
    }

    /// Writes what was noted since the last call, in the queue, until an ack, until a release:
    /// `[[sum ms, [count, ...]], ...]`
    pub fn take(&mut self, packer: &mut Packer) {
        packer.array(3);
        for histogram in [&mut self.in_queue, &mut self.acked, &mut self.released] {
            let Histogram { sum_ms, between } = std::mem::take(histogram);
            packer.array(2);
            packer.uint(sum_ms);
            packer.array(between.len());
            between.iter().for_each(|count| packer.uint(*count));
        }
    }
}

#[cfg(test)]
mod times_tests {
    use super::*;

    #[test]
    fn what_was_noted_is_taken_once() {
        let mut times = Times::new(vec![10, 100]);
        let row = |lease_ms, at_ms| Row { offset: 1, nonce: 2, lease_ms, at_ms, request: 3, place: 0 };
        times.note_first(1000, 1010);
        times.note_first(1000, 990);
        times.note_end(Act::Ack, &row(0, 1000), 1011);
        times.note_end(Act::Ack, &row(0, 0), 1011); // it does not say when it began
        times.note_end(Act::Extend, &row(5, 1000), 1011);
        times.note_end(Act::Extend, &row(0, 1000), 1101);
        times.note_end(Act::Release, &row(0, 1000), 1101);
        let mut packer = Packer::default();
        times.take(&mut packer);
        let told =
            [&[0x93, 0x92, 10, 0x93, 2, 0, 0][..], &[0x92, 11, 0x93, 0, 1, 0], &[0x92, 0xcd, 0, 202, 0x93, 0, 0, 2]];
        assert_eq!(packer.bytes, told.concat());
        packer.bytes.clear();
        times.take(&mut packer);
        assert_eq!(packer.bytes, [0x93, 0x92, 0, 0x90, 0x92, 0, 0x90, 0x92, 0, 0x90]);
    }
}

/// Bounds of times in microseconds, as Python tells them: of the meters, and of the metrics.
#[derive(Debug, Default)]
pub struct Bounds {
    pub meters_us: Vec<u64>,
    pub metrics_us: Vec<u64>,
}

/// What requests are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub queue: u64,
    /// -1 = none.
    pub tag: i64,
    pub verb: u8,
    /// A receive has waited; a send had several messages.
    pub more: bool,
    /// Its client has gone before it was answered: it has done nothing.
    pub is_gone: bool,
}

/// A request that the plane has in hand.
pub struct InHand {
    pub connection: u64,
    pub lane: u64,
    pub queue: u64,
    pub verb: u8,
    pub began: Instant,
}

#[derive(Debug, Default)]
struct Cell {
    requests: u64,
    messages: u64,
    /// Requests with no message.
    empty: u64,
    sum_us: u64,
    max_us: u64,
    meters: Vec<u64>,
    metrics: Vec<u64>,
}

/// Requests of a lane with one verb.
#[derive(Debug, Default)]
struct OfLane {
    requests: u64,
    sum_us: u64,
    max_us: u64,
}

#[derive(Debug, Default)]
pub struct Counts {
    bounds: Bounds,
    cells: HashMap<Key, Cell>,
    /// By lane, verb, and whether their clients have gone: a lane tells Python who has asked.
    of_lanes: HashMap<(u64, u8, bool), OfLane>,
    /// Bytes of messages that Kafka has taken, by queue.
    stored: HashMap<u64, u64>,
}

impl Counts {
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    pub fn note(&mut self, key: Key, lane: u64, messages: usize, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let of_lane = self.of_lanes.entry((lane, key.verb, key.is_gone)).or_default();
        of_lane.requests += 1;
        of_lane.sum_us += us;
        of_lane.max_us = of_lane.max_us.max(us);
        let cell = self.cells.entry(key).or_default();
        cell.requests += 1;
        cell.messages += messages as u64;
        cell.empty += u64::from(messages == 0);
        cell.sum_us += us;
        cell.max_us = cell.max_us.max(us);
        for (bounds, counts) in
            [(&self.bounds.meters_us, &mut cell.meters), (&self.bounds.metrics_us, &mut cell.metrics)]
        {
            // The first bound that the time is not above; as bisect_left of Python.
            let place = bounds.partition_point(|bound| *bound < us);
            counts.resize(bounds.len() + 1, 0);
            counts[place] += 1;
        }
    }

    /// Notes a request of a queue whose client has gone.
    pub fn note_gone(&mut self, queue: u64, lane: u64, verb: u8, took: Duration) {
        self.note(Key { queue, tag: -1, verb, more: false, is_gone: true }, lane, 0, took);
    }

    /// Gives a request to Python, or notes that its client has gone.
    pub fn pass(&mut self, clients: &mut dyn Clients, request: &InHand, why: Why) {
        if !clients.pass(request.connection, why) {
            self.note_gone(request.queue, request.lane, request.verb, request.began.elapsed());
        }
    }

    /// Kafka has messages of so many bytes.
    pub fn note_stored(&mut self, queue: u64, bytes: u64) {
        *self.stored.entry(queue).or_default() += bytes;
    }

    /// Writes the bytes of messages that Kafka has taken since the last call: `[[queue, bytes], ...]`
    pub fn take_stored(&mut self, packer: &mut Packer) {
        packer.array(self.stored.len());
        for (queue, bytes) in self.stored.drain() {
            packer.array(2);
            packer.uint(queue);
            packer.uint(bytes);
        }
    }

    /// Writes who has asked since the last call: `[[lane, verb, is gone, requests, sum us, max us], ...]`
    pub fn take_of_lanes(&mut self, packer: &mut Packer) {
        packer.array(self.of_lanes.len());
        for ((lane, verb, is_gone), of_lane) in self.of_lanes.drain() {
            packer.array(6);
            [lane, u64::from(verb), u64::from(is_gone), of_lane.requests, of_lane.sum_us, of_lane.max_us]
                .into_iter()
                .for_each(|number| packer.uint(number));
        }
    }

    /// Writes what was counted since the last call:
    /// `[[queue, tag, verb, more, is gone, requests, messages, empty, sum us, max us, [count...], [count...]], ...]`
    pub fn take(&mut self, packer: &mut Packer) {
        packer.array(self.cells.len());
        for (key, cell) in self.cells.drain() {
            packer.array(12);
            packer.uint(key.queue);
            packer.int(key.tag);
            packer.uint(u64::from(key.verb));
            packer.uint(u64::from(key.more));
            packer.uint(u64::from(key.is_gone));
            [cell.requests, cell.messages, cell.empty, cell.sum_us, cell.max_us]
                .into_iter()
                .for_each(|number| packer.uint(number));
            for counts in [&cell.meters, &cell.metrics] {
                packer.array(counts.len());
                counts.iter().for_each(|count| packer.uint(*count));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::Unpacker;

    #[test]
    fn what_was_counted_is_taken_once() {
        let mut counts = Counts::new(Bounds { meters_us: vec![10, 100], metrics_us: vec![50] });
        let key = Key { queue: 1, tag: -1, verb: 3, more: true, is_gone: false };
        counts.note(key, 9, 2, Duration::from_micros(10));
        counts.note(key, 9, 0, Duration::from_micros(200));
        let mut packer = Packer::default();
        counts.take(&mut packer);
        let mut unpacker = Unpacker::new(&packer.bytes);
        assert_eq!((unpacker.array(), unpacker.array(), unpacker.uint()), (Ok(1), Ok(12), Ok(1)));
        assert_eq!(packer.bytes[packer.bytes.len() - 7..], [0x93, 1, 0, 1, 0x92, 1, 1]);
        packer.bytes.clear();
        counts.take(&mut packer);
        assert_eq!(packer.bytes, [0x90]);
    }

    #[test]
    fn requests_of_a_lane_are_taken_once() {
        let mut counts = Counts::default();
        let key = Key { queue: 1, tag: -1, verb: 3, more: false, is_gone: false };
        counts.note(key, 9, 1, Duration::from_micros(10));
        counts.note(Key { queue: 2, tag: 4, more: true, ..key }, 9, 1, Duration::from_micros(30));
        let mut packer = Packer::default();
        counts.take_of_lanes(&mut packer);
        assert_eq!(packer.bytes, [0x91, 0x96, 9, 3, 0, 2, 40, 30]);
        packer.bytes.clear();
        counts.take_of_lanes(&mut packer);
        assert_eq!(packer.bytes, [0x90]);
        counts.note_gone(1, 9, 3, Duration::from_micros(5));
        counts.take_of_lanes(&mut packer);
        assert_eq!(packer.bytes, [0x90, 0x91, 0x96, 9, 3, 1, 1, 5, 5]);
    }

    #[test]
    fn bytes_are_taken_once() {
        let mut counts = Counts::default();
        counts.note_stored(7, 40);
        counts.note_stored(7, 2);
        let mut packer = Packer::default();
        counts.take_stored(&mut packer);
        assert_eq!(packer.bytes, [0x91, 0x92, 7, 42]);
        packer.bytes.clear();
        counts.take_stored(&mut packer);
        assert_eq!(packer.bytes, [0x90]);
    }
}
