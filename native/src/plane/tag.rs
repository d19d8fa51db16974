//! Who waits for messages of a tag, what is known of its partitions, and what was leased ahead.
//!
//! It decides which partition is asked and who is served first; what is visible or leased, the
//! scripts say.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::known::Known;
use super::known::Pace;
use super::limits::Limits;
use super::unit::Kept;
use super::waits::Waiter;

/// How often the partitions of a tag are asked how much is leased of it, while that is too much.
const COUNT_AGAIN: Duration = Duration::from_secs(1);

/// Receives of a tag are Python's for so long when a body is not here: at first, and at most.
const SHUT: Duration = Duration::from_millis(250);
const SHUT_MOST: Duration = Duration::from_secs(5);

/// A message that is leased, and that nobody has yet.
#[derive(Debug)]
pub struct Held {
    pub partition: usize,
    pub offset: u64,
    pub nonce: u64,
    pub at_ms: u64,
    /// How often it was leased, and when first.
    pub count: u64,
    pub first_ms: u64,
    pub leased_until_ms: u64,
    /// Since when it was visible before, so where it goes back to.
    pub since_ms: i64,
    pub message: Arc<Kept>,
    /// It was leased for nobody, and for as much longer as it may be held.
    pub is_ahead: bool,
    /// What was leased ahead goes back then; what was leased for who waits is given to them then, though
    /// they wanted more.
    pub until: Instant,
}

/// What to ask next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    Nothing,
    /// When these have something: nobody knows which of them has the oldest message.
    Probe(Vec<usize>),
    Receive {
        partition: usize,
        most: usize,
        until_ms: i64,
        lease_ms: i64,
        ahead: bool,
    },
    /// More would be in flight than may be.
    Full,
    /// All were asked and nobody has anything.
    Empty,
}

pub struct Tag {
    pub number: u16,
    pub known: Vec<Known>,
    pub waiters: VecDeque<Waiter>,
    pub stock: VecDeque<Held>,
    pub stock_lease_ms: i64,
    pub pace: Pace,
    /// Calls that are under way.
    pub asked: usize,
    /// What the receive under way leases goes back, for older messages went back meanwhile.
    pub is_overtaken: bool,
    /// Receives are Python's until then, for bodies are not here; and for how long the last time.
    pub shut_until: Option<Instant>,
    shut_for: Duration,
    /// Messages may be leased ahead.
    pub may_hold: bool,
    /// The queue's lease.
    pub lease_ms: i64,
    /// Bytes of each message, about: of those that came last, at first as many as may be.
    each_bytes: usize,
    looked_at: Option<Instant>,
    is_looking: bool,
    turn: usize,
    /// When all were asked how much is leased, for it seemed to be too much.
    counted_at: Option<Instant>,
}

impl Tag {
    pub fn new(number: u16, partitions: usize, may_hold: bool, lease_ms: i64, each_bytes: usize, now: Instant) -> Self {
        Self {
            number,
            known: (0..partitions).map(|_| Known::new(now)).collect(),
            waiters: VecDeque::new(),
            stock: VecDeque::new(),
            stock_lease_ms: -1,
            pace: Pace::new(now),
            asked: 0,
            is_overtaken: false,
            shut_until: None,
            shut_for: Duration::ZERO,
            may_hold,
            lease_ms,
            each_bytes,
            looked_at: None,
            is_looking: false,
            turn: 0,
            counted_at: None,
        }
    }

    /// Something may be visible in a partition, since `head_ms` (0 = not known).
    pub fn woken(&mut self, partition: usize, head_ms: i64, now: Instant) {
        if let Some(known) = self.known.get_mut(partition) {
            known.woken(head_ms, now);
        }
    }

    /// These were leased for receives with this lease.
    pub fn add(&mut self, held: Vec<Held>, lease_ms: i64) {
        self.stock_lease_ms = lease_ms;
        if !held.is_empty() {
            self.each_bytes = held.iter().map(|held| held.message.size()).sum::<usize>().div_ceil(held.len());
        }
        self.stock.extend(held);
    }

    /// A body is not here: for a while receives are Python's.
    pub fn shut(&mut self, now: Instant) {
        // Who has served for as long as it was shut begins anew.
        let is_long_ago = self.shut_until.is_none_or(|until| until + self.shut_for <= now);
        self.shut_for = if is_long_ago { SHUT } else { (self.shut_for * 2).clamp(SHUT, SHUT_MOST) };
        self.shut_until = Some(now + self.shut_for);
    }

    fn is_stale(&self, look_again: Duration, now: Instant) -> bool {
        self.looked_at.is_none_or(|at| at + look_again <= now)
    }

    /// Those that may have something, that with the oldest message first; not known ones before them. Of two with
    /// messages of one ms it is the one that was asked last: a sender stays in a partition for a while, so the others
    /// follow.
    fn oldest(&self, now: Instant) -> Vec<usize> {
        let partitions = self.known.len();
        let mut due: Vec<usize> = (1..=partitions)
            .map(|number| (self.turn + number) % partitions)
            .filter(|partition| self.known[*partition].due.is_some_and(|due| due <= now))
            .collect();
        due.sort_by_key(|partition| {
            let head_ms = self.known[*partition].head_ms;
            (head_ms, head_ms > 0 && *partition != self.turn)
        });
        due
    }

    fn wanted(&self) -> (usize, i64) {
        let lease_ms = self.waiters.front().map_or(self.stock_lease_ms, |waiter| waiter.lease_ms);
        let same = self.waiters.iter().take_while(|waiter| waiter.lease_ms == lease_ms);
        (same.map(|waiter| waiter.most).sum(), lease_ms)
    }

    /// Whether something may be leased ahead for receives with this lease.
    fn holds(&self, lease_ms: i64, limits: &Limits) -> bool {
        let lease_ms = if lease_ms < 0 { self.lease_ms } else { lease_ms };
        self.may_hold && lease_ms >= limits.least_lease_ms
    }

    /// Whether the first waiter gets what it asked for, or all that there is to get now.
    pub fn is_served(&self, now: Instant) -> bool {
        let Some(waiter) = self.waiters.front() else { return false };
        let has_other = waiter.lease_ms != self.stock_lease_ms;
        !self.stock.is_empty()
            && !has_other
            && (self.stock.len() >= waiter.most
                || self.stock.front().is_some_and(|held| !held.is_ahead && held.until <= now)
                || (self.asked == 0 && self.oldest(now).is_empty()))
    }

    /// What to ask, when nothing is under way.
    pub fn next(&mut self, limits: &Limits, now: Instant) -> Step {
        let (wanted, lease_ms) = self.wanted();
        let span = limits.ahead / 2;
        let pace = if self.holds(lease_ms, limits) { self.pace.wanted(span, now).min(limits.most_ahead) } else { 0 };
        let is_wanted = wanted > self.stock.len() || (wanted == 0 && pace > 0 && self.stock.len() * 2 < pace);
        if self.asked > 0 || !is_wanted || (!self.stock.is_empty() && lease_ms != self.stock_lease_ms) {
            return Step::Nothing;
        }
        if !self.waiters.is_empty() && !self.is_looking && self.is_stale(limits.look_again, now) {
            self.is_looking = true;
            self.known.iter_mut().for_each(|known| known.forget(now));
        }
        let due = self.oldest(now);
        let Some(first) = due.first().copied() else {
            return self.looked(now);
        };
        let is_alone = self.waiters.len() == 1;
        let unknown: Vec<usize> = due.iter().copied().filter(|one| self.known[*one].head_ms == 0).collect();
        if is_alone && unknown.len() > 1 {
            return Step::Probe(unknown);
        }
        let fits = limits.most_receive_bytes / self.each_bytes.max(1);
        let ahead = pace.saturating_sub(self.stock.len());
        let most = (wanted.saturating_sub(self.stock.len()) + ahead).min(fits).clamp(1, limits.most_a_call);
        let in_flight: u64 = self.known.iter().map(|known| known.in_flight).sum();
        if in_flight + most as u64 > limits.most_in_flight {
            return self.full(now);
        }
        self.turn = first;
        self.stock_lease_ms = lease_ms;
        // Who is alone gets the oldest messages of all partitions.
        let until_ms = due.get(1).filter(|_| is_alone).map_or(0, |second| self.known[*second].head_ms);
        Step::Receive { partition: first, most, until_ms, lease_ms, ahead: pace > 0 }
    }

    /// No partition may have something.
    fn looked(&mut self, now: Instant) -> Step {
        if std::mem::take(&mut self.is_looking) {
            self.looked_at = Some(now);
            if self.stock.is_empty() {
                return Step::Empty;
            }
        }
        Step::Nothing
    }

    /// More would be in flight than may be; what was acked since the last answers only another one tells.
    fn full(&mut self, now: Instant) -> Step {
        if self.counted_at.is_some_and(|at| at + COUNT_AGAIN > now) {
            return Step::Full;
        }
        self.counted_at = Some(now);
        Step::Probe((0..self.known.len()).collect())
    }

    /// When there is something to do though nothing is heard.
    pub fn wake_at(&self, limits: &Limits) -> Option<Instant> {
        let is_quiet = self.asked == 0 && !self.waiters.is_empty();
        let held = self.stock.front().filter(|held| held.is_ahead || is_quiet).map(|held| held.until);
        if !is_quiet {
            return held;
        }
        let over = self.waiters.iter().filter_map(|waiter| waiter.until).min();
        let due = self.known.iter().filter_map(|known| known.due).min();
        let look = self.looked_at.map(|at| at + limits.look_again);
        [held, over, due, look].into_iter().flatten().min()
    }
}
