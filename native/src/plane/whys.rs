//! Why requests went to Python, counted for its metrics.

use std::collections::HashMap;

use crate::pack::Packer;

/// Why a request is Python's. `engine/plane/whys.py` has a word for each, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Why {
    /// There is no plane.
    Off,
    /// It is no hot verb.
    Verb,
    /// Its head has something that only Python reads.
    Head,
    /// So has its body.
    Fields,
    /// Its signature is not checked here.
    Key,
    /// Python lets the plane serve no such request, or not yet; it knows why.
    Lane,
    /// It is larger than it may be here.
    Size,
    /// Messages have attributes, and Python did not let the plane send such ones.
    Attributes,
    /// Too much is in hand.
    Busy,
    /// The connection to Redis is not there, or a call was not made.
    Redis,
    /// The queue was closed, or rights were looked up again, while it was in hand.
    Changed,
    /// A message has no body here, or one that only Python reads.
    Bodies,
    /// It does not wait, and there was nothing: Python looks at the ends of the log.
    Empty,
    /// A handle is not of the route, or is for one use.
    Handle,
    /// Kafka was not given it.
    Kafka,
    /// More bytes than Python has allowed.
    Quota,
    /// It came too slowly.
    Slow,
    /// A longer delay than Python has allowed, or more messages with one.
    Delay,
}

const WHYS: usize = Why::Delay as usize + 1;

/// Counts since they were taken.
#[derive(Debug, Default)]
pub struct Whys {
    counts: [u64; WHYS],
    /// By lane, and by the bit of what was asked of it.
    of_lanes: HashMap<(u64, u8), u64>,
}

impl Whys {
    pub fn note(&mut self, why: Why) {
        self.counts[why as usize] += 1;
    }

    /// Python lets the plane serve none of these requests of a lane.
    pub fn note_lane(&mut self, lane: u64, verb: u8) {
        *self.of_lanes.entry((lane, verb)).or_default() += 1;
    }

    /// Writes what was counted since the last call: `[[why, lane, bit of the verb, count], ...]`
    pub fn take(&mut self, packer: &mut Packer) {
        let some = std::mem::take(&mut self.counts);
        let some = some.into_iter().enumerate().filter(|(_, count)| *count > 0);
        let lanes = self.of_lanes.drain().map(|((lane, verb), count)| [Why::Lane as u64, lane, u64::from(verb), count]);
        let rows: Vec<_> = some.map(|(why, count)| [why as u64, 0, 0, count]).chain(lanes).collect();
        packer.array(rows.len());
        for row in rows {
            packer.array(row.len());
            row.iter().for_each(|number| packer.uint(*number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_taken_once() {
        let mut whys = Whys::default();
        whys.note(Why::Verb);
        whys.note(Why::Verb);
        whys.note_lane(7, 2);
        let mut packer = Packer::default();
        whys.take(&mut packer);
        assert_eq!(packer.bytes, [0x92, 0x94, 1, 0, 0, 2, 0x94, Why::Lane as u8, 7, 2, 1]);
        packer.bytes.clear();
        whys.take(&mut packer);
        assert_eq!(packer.bytes, [0x90]);
    }
}
