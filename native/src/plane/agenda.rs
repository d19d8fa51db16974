//! Where there may be something to do: now, and at which moments.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

#[derive(Debug)]
pub struct Agenda<K> {
    dirty: BTreeSet<K>,
    timers: BTreeSet<(Instant, K)>,
    timer_of: HashMap<K, Instant>,
}

impl<K> Default for Agenda<K> {
    fn default() -> Self {
        Self { dirty: BTreeSet::new(), timers: BTreeSet::new(), timer_of: HashMap::new() }
    }
}

impl<K: Copy + Ord + std::hash::Hash> Agenda<K> {
    /// There may be something to do now.
    pub fn mark(&mut self, key: K) {
        self.dirty.insert(key);
    }

    /// There may be then, unless there is sooner.
    pub fn set(&mut self, key: K, at: Instant) {
        let before = self.timer_of.get(&key).copied();
        if before.is_some_and(|before| before <= at) {
            return;
        }
        if let Some(before) = before {
            self.timers.remove(&(before, key));
        }
        self.timer_of.insert(key, at);
        self.timers.insert((at, key));
    }

    /// Marks those whose moment has come.
    pub fn wake(&mut self, now: Instant) {
        while let Some((_, key)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.pop_first();
            self.timer_of.remove(&key);
            self.dirty.insert(key);
        }
    }

    /// Takes one that is marked.
    pub fn next(&mut self) -> Option<K> {
        self.dirty.pop_first()
    }

    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    pub fn wake_at(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_soonest_moment_counts() {
        let (mut agenda, now) = (Agenda::default(), Instant::now());
        let after = |ms| now + Duration::from_millis(ms);
        agenda.set(1, after(20));
        agenda.set(1, after(30));
        agenda.set(2, after(25));
        agenda.set(1, after(10));
        assert_eq!(agenda.wake_at(), Some(after(10)));
        agenda.wake(after(9));
        assert!(!agenda.is_dirty());
        agenda.wake(after(10));
        assert_eq!((agenda.next(), agenda.next()), (Some(1), None));
        assert_eq!(agenda.wake_at(), Some(after(25)));
        agenda.set(1, after(24));
        agenda.mark(3);
        agenda.wake(after(25));
        assert_eq!([agenda.next(), agenda.next(), agenda.next(), agenda.next()], [Some(1), Some(2), Some(3), None]);
    }
}
