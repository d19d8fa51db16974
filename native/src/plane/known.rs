//! What is known of a partition under a tag: whether it may have something, how much is leased of it, and
//! how many messages are leased ahead.
//!
//! `Unheard` is what became receivable while nobody waited in Python, which takes what it knows of
//! partitions for true: it asks for this before it asks Redis.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::pack::Packer;

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

/// By queue and partition: since when there may be something (ms).
#[derive(Debug, Default)]
pub struct Unheard(pub(super) BTreeMap<(u64, usize), i64>);

impl Unheard {
    pub fn note(&mut self, queue: u64, partition: usize, head_ms: i64) {
        let earliest = self.0.entry((queue, partition)).or_insert(head_ms);
        *earliest = head_ms.min(*earliest);
    }

    /// Takes what is noted of a queue: partitions, and since when.
    pub fn take_of(&mut self, queue: u64, partitions: usize) -> impl Iterator<Item = (usize, i64)> + '_ {
        (0..partitions).filter_map(move |partition| Some((partition, self.0.remove(&(queue, partition))?)))
    }

    /// Tells all, as queue, partition, since when.
    pub fn take(&mut self, packer: &mut Packer) {
        packer.array(self.0.len());
        for ((queue, partition), head_ms) in std::mem::take(&mut self.0) {
            packer.array(3);
            packer.uint(queue);
            packer.uint(partition as u64);
            packer.uint(u64::try_from(head_ms).unwrap_or(0));
        }
    }
}
