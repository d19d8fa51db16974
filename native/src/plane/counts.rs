//! Requests that were answered well, for Python's meters and metrics: how many, how long.

use std::collections::HashMap;
use std::time::Duration;

use crate::pack::Packer;

/// Bounds of times in microseconds, as Python tells them: of the meters, and of the metrics.
#[derive(Debug, Default)]
pub struct Bounds {
    pub meters_us: Vec<u64>,
    pub metrics_us: Vec<u64>,
}

/// A queue, a tag (-1 = none), the number of the verb, whether it waited; of a send, whether it had several
/// messages.
pub type Key = (u64, i64, u8, bool);

#[derive(Debug, Default)]
struct Cell {
    requests: u64,
    messages: u64,
    sum_us: u64,
    max_us: u64,
    meters: Vec<u64>,
    metrics: Vec<u64>,
}

#[derive(Debug, Default)]
pub struct Counts {
    bounds: Bounds,
    cells: HashMap<Key, Cell>,
}

impl Counts {
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, cells: HashMap::new() }
    }

    pub fn note(&mut self, key: Key, messages: usize, took: Duration) {
        let cell = self.cells.entry(key).or_default();
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        cell.requests += 1;
        cell.messages += messages as u64;
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

    /// Writes what was counted since the last call:
    /// `[[queue, tag, verb, waited, requests, messages, sum us, max us, [count...], [count...]], ...]`
    pub fn take(&mut self, packer: &mut Packer) {
        packer.array(self.cells.len());
        for ((queue, tag, verb, waited), cell) in self.cells.drain() {
            packer.array(10);
            packer.uint(queue);
            packer.int(tag);
            packer.uint(u64::from(verb));
            packer.uint(u64::from(waited));
            [cell.requests, cell.messages, cell.sum_us, cell.max_us].into_iter().for_each(|number| packer.uint(number));
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
        counts.note((1, -1, 3, true), 2, Duration::from_micros(10));
        counts.note((1, -1, 3, true), 0, Duration::from_micros(200));
        let mut packer = Packer::default();
        counts.take(&mut packer);
        let mut unpacker = Unpacker::new(&packer.bytes);
        assert_eq!((unpacker.array(), unpacker.array(), unpacker.uint()), (Ok(1), Ok(10), Ok(1)));
        assert_eq!(packer.bytes[packer.bytes.len() - 7..], [0x93, 1, 0, 1, 0x92, 1, 1]);
        packer.bytes.clear();
        counts.take(&mut packer);
        assert_eq!(packer.bytes, [0x90]);
    }
}
