//! How many bytes may be sent to queues whose bytes are counted, and how many messages with delays: Python has
//! counted them before it allows them.

use std::collections::hash_map::{Entry, HashMap};
use std::time::{Duration, Instant};

use crate::pack::Packer;

/// Python is asked for more so often at most.
const ASK: Duration = Duration::from_millis(50);
/// Of more queues all is forgotten: it counts as sent.
const MOST: usize = 10_000;

#[derive(Debug)]
struct Allowance {
    bytes: u64,
    /// What is left then is of no use: another day has begun.
    until: Instant,
    /// Below this Python is asked for more.
    low: u64,
}

/// By the numbers of queues.
#[derive(Debug, Default)]
pub struct Allowances {
    of: HashMap<u64, Allowance>,
    asked: HashMap<u64, Instant>,
    low: Vec<u64>,
}

impl Allowances {
    /// Python allows so many bytes more.
    pub fn grant(&mut self, queue: u64, bytes: u64, valid: Duration, now: Instant) {
        if self.of.len() >= MOST {
            self.of.clear();
        }
        self.of.retain(|_, allowance| allowance.until > now);
        let left = self.of.get(&queue).map_or(0, |allowance| allowance.bytes);
        self.of.insert(queue, Allowance { bytes: left + bytes, until: now + valid, low: bytes / 4 });
    }

    /// Counts the bytes of a send; false = so many are not allowed.
    pub fn take(&mut self, queue: u64, bytes: u64, now: Instant) -> bool {
        let allowance = self.of.get_mut(&queue).filter(|allowance| allowance.until > now);
        let is_taken = allowance.as_ref().is_some_and(|allowance| allowance.bytes >= bytes);
        let mut is_low = true;
        if let Some(allowance) = allowance {
            allowance.bytes -= if is_taken { bytes } else { 0 };
            is_low = allowance.bytes < allowance.low;
        }
        if is_low || !is_taken {
            self.asked.retain(|_, at| *at + ASK > now);
            if let Entry::Vacant(asked) = self.asked.entry(queue) {
                asked.insert(now);
                self.low.push(queue);
            }
        }
        is_taken
    }

    /// What was counted is not sent, or Python counts it.
    pub fn give_back(&mut self, queue: u64, bytes: u64) {
        if let Some(allowance) = self.of.get_mut(&queue) {
            allowance.bytes += bytes;
        }
    }

    /// The queues of which Python is to allow more.
    pub fn take_low(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.low)
    }

    /// Writes what is left, and takes it away: `[[queue, bytes], ...]`
    pub fn take_all(&mut self, packer: &mut Packer, now: Instant) {
        self.of.retain(|_, allowance| allowance.until > now);
        packer.array(self.of.len());
        for (queue, allowance) in &mut self.of {
            packer.array(2);
            packer.uint(*queue);
            packer.uint(std::mem::take(&mut allowance.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn no_more_is_taken_than_was_allowed() {
        let (mut allowances, now) = (Allowances::default(), Instant::now());
        assert!(!allowances.take(1, 1, now));
        assert_eq!(allowances.take_low(), [1]);
        allowances.grant(1, 100, DAY, now);
        assert!(allowances.take(1, 60, now) && !allowances.take(1, 41, now) && allowances.take(1, 40, now));
        allowances.give_back(1, 40);
        assert!(allowances.take(1, 40, now));
        assert!(!allowances.take(2, 1, now), "another queue has its own");
    }

    #[test]
    fn more_is_asked_for_before_it_ends_and_not_each_time() {
        let (mut allowances, now) = (Allowances::default(), Instant::now());
        allowances.grant(1, 100, DAY, now);
        assert!(allowances.take(1, 50, now));
        assert!(allowances.take_low().is_empty());
        assert!((0..10).all(|_| allowances.take(1, 3, now)));
        assert_eq!(allowances.take_low(), [1]);
        assert!(allowances.take(1, 1, now + ASK));
        assert_eq!(allowances.take_low(), [1]);
    }

    #[test]
    fn what_is_left_is_taken_away_once_and_is_of_one_day() {
        let (mut allowances, now) = (Allowances::default(), Instant::now());
        allowances.grant(7, 100, DAY, now);
        let mut packer = Packer::default();
        allowances.take_all(&mut packer, now);
        assert_eq!(packer.bytes, [0x91, 0x92, 7, 100]);
        assert!(!allowances.take(7, 1, now));
        allowances.give_back(7, 5); // a send that was under way
        packer.bytes.clear();
        allowances.take_all(&mut packer, now);
        assert_eq!(packer.bytes, [0x91, 0x92, 7, 5]);
        allowances.grant(7, 100, DAY, now);
        assert!(!allowances.take(7, 1, now + DAY));
        packer.bytes.clear();
        allowances.take_all(&mut packer, now + DAY);
        assert_eq!(packer.bytes, [0x90]);
    }
}
