//! How many messages are leased ahead.

use std::time::{Duration, Instant};

/// How many messages were handed out lately: as many are leased ahead of the next receives.
#[derive(Debug)]
pub struct Pace {
    began: Instant,
    before: usize,
    count: usize,
    paused_until: Instant,
}

impl Pace {
    pub fn new(now: Instant) -> Self {
        Self { began: now, before: 0, count: 0, paused_until: now }
    }

    pub fn note(&mut self, count: usize, span: Duration, now: Instant) {
        if now - self.began >= span {
            self.before = if now - self.began < 2 * span { self.count } else { 0 };
            self.began = now;
            self.count = 0;
        }
        self.count += count;
    }

    pub fn pause(&mut self, until: Instant) {
        self.paused_until = self.paused_until.max(until);
    }

    /// Whether nothing is leased ahead now.
    pub fn is_paused(&self, now: Instant) -> bool {
        now < self.paused_until
    }

    pub fn wanted(&self, span: Duration, now: Instant) -> usize {
        if now - self.began >= 2 * span || self.is_paused(now) {
            return 0;
        }
        self.before.max(self.count)
    }
}
