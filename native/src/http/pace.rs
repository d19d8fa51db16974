//! How fast a body must come: so much in each span of time.

use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Pace {
    /// When the request began to come.
    pub since: Instant,
    /// When this span began.
    at: Instant,
    /// Bytes in this span.
    came: usize,
    /// Since when nobody reads what the client sends, which is not its fault.
    paused_at: Option<Instant>,
}

impl Pace {
    pub fn new(since: Instant, now: Instant) -> Self {
        Self { since, at: now, came: 0, paused_at: None }
    }

    pub fn came(&mut self, bytes: usize) {
        self.came += bytes;
    }

    pub fn pause(&mut self, now: Instant) {
        self.paused_at.get_or_insert(now);
    }

    pub fn resume(&mut self, now: Instant) {
        if let Some(at) = self.paused_at.take() {
            self.at += now - at;
            self.since += now - at;
        }
    }

    /// Whether less than `least` bytes came in the span that is over; a new one begins, if not.
    pub fn is_slow(&mut self, now: Instant, span: Duration, least: usize) -> bool {
        if self.paused_at.is_some() || now < self.at + span {
            return false;
        }
        if self.came < least {
            return true;
        }
        (self.at, self.came) = (now, 0);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_secs(10);

    #[test]
    fn each_span_has_a_least() {
        let start = Instant::now();
        let mut pace = Pace::new(start, start);
        pace.came(100);
        assert!(!pace.is_slow(start + SPAN / 2, SPAN, 100));
        assert!(!pace.is_slow(start + SPAN, SPAN, 100));
        pace.came(99);
        assert!(!pace.is_slow(start + SPAN + SPAN / 2, SPAN, 100));
        assert!(pace.is_slow(start + 2 * SPAN, SPAN, 100));
    }

    #[test]
    fn what_is_not_read_is_not_counted_as_slow() {
        let start = Instant::now();
        let mut pace = Pace::new(start, start);
        pace.pause(start + SPAN / 2);
        assert!(!pace.is_slow(start + 9 * SPAN, SPAN, 1));
        pace.resume(start + 9 * SPAN);
        assert!(!pace.is_slow(start + 9 * SPAN, SPAN, 1));
        assert!(pace.is_slow(start + 9 * SPAN + SPAN / 2, SPAN, 1));
    }
}
