//! Who waits for messages of a tag, what is known of its partitions, and what was leased ahead.
//!
//! It decides which partition is asked and who is served first; what is visible or leased, the
//! scripts say.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::routes::Bound;
use super::unit::Kept;

/// How often the partitions of a tag are asked how much is leased of it, while that is too much.
const COUNT_AGAIN: Duration = Duration::from_secs(1);

/// Numbers that Python tells at the start; see `engine/plane/told.py`.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Messages of one call at most.
    pub most_a_call: usize,
    /// What may be leased of a tag.
    pub most_in_flight: u64,
    /// How often all partitions are asked in any case.
    pub look_again: Duration,
    /// How long what nobody asked for is held, and by what its lease is longer.
    pub ahead: Duration,
    pub most_ahead: usize,
    /// After what nobody took.
    pub pause: Duration,
    /// Leases that are shorter have nothing leased ahead.
    pub least_lease_ms: i64,
    /// Receives that wait, at most.
    pub most_waits: usize,
    /// Bytes of the messages of one answer, if it has more than one.
    pub most_receive_bytes: usize,
    /// Bytes of bodies that are kept.
    pub most_bytes: usize,
    /// Of one append to Kafka at most.
    pub batch_records: usize,
    pub batch_bytes: usize,
    /// Records that go to a partition in turn.
    pub run: usize,
    /// How long a send may take.
    pub send_timeout: Duration,
    /// Sends of a queue that wait, and their bytes, at most.
    pub most_sends: usize,
    pub most_waiting_bytes: usize,
}

/// A receive that was not answered yet.
#[derive(Debug)]
pub struct Waiter {
    pub connection: u64,
    pub verb: u8,
    pub most: usize,
    /// -1 = the message's own, else the queue's.
    pub lease_ms: i64,
    /// None = it does not wait.
    pub until: Option<Instant>,
    pub began: Instant,
    pub bounds: Arc<[Bound]>,
}

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
    pub message: Arc<Kept>,
    /// It was leased for nobody, and for as much longer as it may be held.
    pub is_ahead: bool,
    /// What was leased ahead goes back then; what was leased for who waits is given to them then, though
    /// they wanted more.
    pub until: Instant,
}

/// What is known of a partition under this tag.
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

/// How many messages were handed out lately: as many are leased ahead of the next receives.
#[derive(Debug)]
pub struct Pace {
    began: Instant,
    before: usize,
    count: usize,
    paused_until: Instant,
}

impl Pace {
    fn new(now: Instant) -> Self {
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

    fn wanted(&self, span: Duration, now: Instant) -> usize {
        if now - self.began >= 2 * span || self.is_paused(now) {
            return 0;
        }
        self.before.max(self.count)
    }
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
    /// Receives are Python's until then, for bodies are not here; and for how long the last time.
    pub shut_until: Option<Instant>,
    pub shut_for: Duration,
    /// Messages may be leased ahead.
    pub may_hold: bool,
    /// The queue's lease.
    pub lease_ms: i64,
    /// Bytes of each message, about: of those that came last, at first as many as may be.
    pub each_bytes: usize,
    /// When it has its next turn in any case.
    pub timer: Option<Instant>,
    looked_at: Option<Instant>,
    is_looking: bool,
    turn: usize,
    /// When all were asked how much is leased, for it seemed to be too much.
    counted_at: Option<Instant>,
}

impl Tag {
    pub fn new(number: u16, partitions: usize, may_hold: bool, lease_ms: i64, each_bytes: usize, now: Instant) -> Self {
        let known = || Known { due: Some(now), head_ms: 0, wakes: 0, in_flight: 0, told: None };
        Self {
            number,
            known: (0..partitions).map(|_| known()).collect(),
            waiters: VecDeque::new(),
            stock: VecDeque::new(),
            stock_lease_ms: -1,
            pace: Pace::new(now),
            asked: 0,
            shut_until: None,
            shut_for: Duration::ZERO,
            may_hold,
            lease_ms,
            each_bytes,
            timer: None,
            looked_at: None,
            is_looking: false,
            turn: 0,
            counted_at: None,
        }
    }

    /// Something may be visible in a partition, since `head_ms` (0 = not known).
    pub fn woken(&mut self, partition: usize, head_ms: i64, now: Instant) {
        let Some(known) = self.known.get_mut(partition) else { return };
        known.wakes += 1;
        if known.due.is_none_or(|due| due > now) || (0 < head_ms && head_ms < known.head_ms) {
            known.head_ms = head_ms;
        }
        known.due = Some(now);
    }

    /// What an answer says of a partition that had been woken `wakes` times when it was asked:
    /// `head_ms` as the scripts have it, by a clock that stood at `at_ms`.
    pub fn learn(&mut self, partition: usize, wakes: u64, head_ms: i64, at_ms: i64, in_flight: u64, now: Instant) {
        let known = &mut self.known[partition];
        known.in_flight = in_flight;
        if known.wakes == wakes {
            let wait = Duration::from_millis(u64::try_from(head_ms - at_ms).unwrap_or(0));
            known.due = (head_ms >= 0).then(|| now + wait);
            known.head_ms = head_ms.max(0);
        } else if (0..known.head_ms).contains(&head_ms) {
            known.head_ms = head_ms;
        }
    }

    /// A partition did not answer: nothing is known of it.
    pub fn forget(&mut self, partition: usize, now: Instant) {
        self.known[partition].due = Some(now);
        self.known[partition].head_ms = 0;
    }

    fn is_stale(&self, look_again: Duration, now: Instant) -> bool {
        self.looked_at.is_none_or(|at| at + look_again <= now)
    }

    /// Those that may have something, that with the oldest message first; not known ones before them.
    fn oldest(&self, now: Instant) -> Vec<usize> {
        let partitions = self.known.len();
        let mut due: Vec<usize> = (1..=partitions)
            .map(|number| (self.turn + number) % partitions)
            .filter(|partition| self.known[*partition].due.is_some_and(|due| due <= now))
            .collect();
        due.sort_by_key(|partition| self.known[*partition].head_ms);
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
        let ahead = pace.saturating_sub(self.stock.len());
        let is_wanted = wanted > self.stock.len() || (wanted == 0 && pace > 0 && self.stock.len() * 2 < pace);
        if self.asked > 0 || !is_wanted || (!self.stock.is_empty() && lease_ms != self.stock_lease_ms) {
            return Step::Nothing;
        }
        if !self.waiters.is_empty() && !self.is_looking && self.is_stale(limits.look_again, now) {
            self.is_looking = true;
            (0..self.known.len()).for_each(|partition| self.forget(partition, now));
        }
        let due = self.oldest(now);
        let Some(first) = due.first().copied() else {
            if self.is_looking {
                self.is_looking = false;
                self.looked_at = Some(now);
                return if self.stock.is_empty() { Step::Empty } else { Step::Nothing };
            }
            return Step::Nothing;
        };
        let is_alone = self.waiters.len() == 1;
        let unknown: Vec<usize> = due.iter().copied().filter(|one| self.known[*one].head_ms == 0).collect();
        if is_alone && unknown.len() > 1 {
            return Step::Probe(unknown);
        }
        let fits = limits.most_receive_bytes / self.each_bytes.max(1);
        let most = (wanted.saturating_sub(self.stock.len()) + ahead).min(fits).clamp(1, limits.most_a_call);
        let in_flight: u64 = self.known.iter().map(|known| known.in_flight).sum();
        if in_flight + most as u64 > limits.most_in_flight {
            // What was acked since then only an answer tells.
            if self.counted_at.is_none_or(|at| at + COUNT_AGAIN <= now) {
                self.counted_at = Some(now);
                return Step::Probe((0..self.known.len()).collect());
            }
            return Step::Full;
        }
        self.turn = first;
        self.stock_lease_ms = lease_ms;
        // Who is alone gets the oldest messages of all partitions.
        let until_ms = due.get(1).filter(|_| is_alone).map_or(0, |second| self.known[*second].head_ms);
        Step::Receive { partition: first, most, until_ms, lease_ms, ahead: pace > 0 }
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
