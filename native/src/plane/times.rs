//! How long messages were in their queue before somebody got them, and in hand until they were settled or
//! given back, for Python's metrics.

use super::unit::{Act, Row};
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
mod tests {
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
