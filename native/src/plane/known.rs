//! What is known of a partition under a tag: whether it may have something, and how much is leased of it.

use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Known {
    /// When it may have something; None = not before it is woken.
    pub due: Option<Instant>,
    /// Since when its first message is visible (ms by the service's clock); 0 = not known.
    pub head_ms: i64,
    /// How often it was woken: what was learnt before is not taken for true after it.
    pub wakes: u64,
    pub in_flight: u64,
    /// Python has heard of traffic on it then.
    pub told: Option<Instant>,
}

impl Known {
    pub fn new(now: Instant) -> Self {
        Self { due: Some(now), head_ms: 0, wakes: 0, in_flight: 0, told: None }
    }

    /// Something may be visible, since `head_ms` (0 = not known).
    pub fn woken(&mut self, head_ms: i64, now: Instant) {
        self.wakes += 1;
        if self.due.is_none_or(|due| due > now) || (0 < head_ms && head_ms < self.head_ms) {
            self.head_ms = head_ms;
        }
        self.due = Some(now);
    }

    /// What an answer says of it that was asked when it had been woken `wakes` times: `head_ms` as the
    /// scripts have it, by a clock that stood at `at_ms`.
    pub fn learn(&mut self, wakes: u64, head_ms: i64, at_ms: i64, in_flight: u64, now: Instant) {
        self.in_flight = in_flight;
        if self.wakes == wakes {
            let wait = Duration::from_millis(u64::try_from(head_ms - at_ms).unwrap_or(0));
            self.due = (head_ms >= 0).then(|| now + wait);
            self.head_ms = head_ms.max(0);
        } else if (0..self.head_ms).contains(&head_ms) {
            self.head_ms = head_ms;
        }
    }

    /// It did not answer: nothing is known of it.
    pub fn forget(&mut self, now: Instant) {
        self.due = Some(now);
        self.head_ms = 0;
    }
}
