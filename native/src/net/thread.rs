//! The thread of the plane, which polls in place of Python: its turns, and how long it waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token, Waker};

use crate::net::front::{Front, EVENTS};
use crate::net::stream::Ready;
use crate::plane::kafka::{Producer, Settings};
use crate::plane::redis::Redis;
use crate::plane::Plane;
use crate::system::Bell;

/// A value that a thread uses again and again, and that others want now and then.
///
/// A mutex alone goes to whoever asks first when it is free, and under load that is the thread
/// which has just given it back: the others would sleep on.
pub struct Turns<T> {
    value: Mutex<T>,
    /// Held by who waits for the value and goes before the thread.
    door: Mutex<()>,
}

impl<T> Turns<T> {
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), door: Mutex::new(()) }
    }

    /// Takes the value before the thread does, after the turn that is under way and at most one more.
    pub fn take(&self) -> MutexGuard<'_, T> {
        match self.value.try_lock() {
            Ok(value) => return value,
            Err(TryLockError::Poisoned(error)) => return error.into_inner(),
            Err(TryLockError::WouldBlock) => {}
        }
        let _door = held(&self.door);
        held(&self.value)
    }

    /// Takes the value for a turn of the thread, when nobody else waits for it.
    pub fn take_turn(&self) -> MutexGuard<'_, T> {
        drop(held(&self.door));
        held(&self.value)
    }
}

/// A panic ends the process, so nobody has left it half done.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const WAKER: Token = Token(usize::MAX - 1);
const REDIS: Token = Token(usize::MAX - 2);
const KAFKA: std::ops::Range<usize> = usize::MAX - 1026..usize::MAX - 2;
/// The thread looks after its connections so often, though nothing is heard.
const TICK: Duration = Duration::from_millis(100);

/// Gives a front the plane and a thread, which polls from now on.
pub fn start(shared: &Arc<Turns<Front>>, plane: Plane<Redis>, kafka: Settings) -> std::io::Result<JoinHandle<()>> {
    let bell = Arc::new(Bell::new()?);
    let mut poll = shared.take().add_plane(plane, kafka, bell.clone())?;
    let shared = shared.clone();
    let run = move || {
        let mut events = Events::with_capacity(EVENTS);
        let mut patience = None;
        loop {
            // One that is interrupted is made again.
            let _ = poll.poll(&mut events, patience);
            let mut front = shared.take_turn();
            if front.planes.stops {
                return;
            }
            assert!(!front.planes.panics, "a test asked for it");
            let ready: Vec<Ready> = events.iter().map(Ready::of).collect();
            let tells = front.turn_of_thread(&ready);
            patience = front.patience();
            drop(front);
            if tells {
                bell.ring();
            }
        }
    };
    std::thread::Builder::new().name("plane".into()).spawn(run)
}

impl Front {
    /// Adds the plane; returns what its thread polls.
    fn add_plane(&mut self, plane: Plane<Redis>, kafka: Settings, bell: Arc<Bell>) -> std::io::Result<Poll> {
        let mut producer = Producer::new(kafka, self.registry.try_clone()?, KAFKA, Instant::now())?;
        producer.reach(Instant::now());
        let waker = Waker::new(&self.registry, WAKER)?;
        self.planes.add(plane, producer, waker, bell);
        self.poll.take().ok_or_else(|| std::io::ErrorKind::Other.into())
    }

    /// One turn of the thread; whether Python has something to hear that it was not told of.
    fn turn_of_thread(&mut self, ready: &[Ready]) -> bool {
        let now = Instant::now();
        self.handle(ready, now);
        let redis = ready.iter().filter(|one| one.token == REDIS);
        let redis = redis
            .fold((false, false), |(read, write), one| (read | one.is_readable | one.has_end, write | one.is_writable));
        if let Some(kafka) = &mut self.planes.kafka {
            ready.iter().filter(|one| KAFKA.contains(&one.token.0)).for_each(|one| kafka.ready(one.token, now));
        }
        self.run_plane(redis, now);
        let has_news = !self.batch.is_empty() || !self.unsent.is_empty();
        let tells = has_news && !self.planes.is_told;
        self.planes.is_told |= tells;
        tells
    }

    /// How long the thread may wait; None = there is no plane any more.
    fn patience(&self) -> Option<Duration> {
        if self.has_turns() || !self.planes.asks.is_empty() {
            return Some(Duration::ZERO);
        }
        let plane = self.planes.plane.as_ref()?;
        let kafka = self.planes.kafka.as_ref().map(|kafka| kafka.next_tick(Instant::now()));
        let wake_at = [plane.wake_at(), plane.calls.caller.wake_at(), kafka].into_iter().flatten().min();
        let patience = wake_at.map_or(TICK, |at| at.saturating_duration_since(Instant::now()));
        Some(patience.min(TICK))
    }

    /// Has the thread look again, if there is one and something to do for it.
    pub fn rouse(&self) {
        if let Some(waker) = &self.planes.waker {
            if self.planes.stops || self.planes.panics || self.has_turns() || !self.planes.asks.is_empty() {
                // One that is full wakes it too.
                let _ = waker.wake();
            }
        }
    }

    /// Has the plane do what it can now.
    fn run_plane(&mut self, redis: (bool, bool), now: Instant) {
        let Some(mut plane) = self.planes.plane.take() else { return };
        self.drive_redis(&mut plane.calls.caller, redis, now);
        let mut kafka = self.planes.kafka.take();
        if let Some(kafka) = kafka.as_mut().filter(|kafka| kafka.next_tick(now) <= now) {
            kafka.tick(now);
        }
        loop {
            plane.hear(self, now);
            if let Some(kafka) = &mut kafka {
                let outcomes: Vec<_> = kafka.outcomes().collect();
                outcomes.into_iter().for_each(|(token, outcome)| plane.appended(self, token, outcome.into(), now));
            }
            while let Some(ask) = self.planes.asks.pop_front() {
                plane.ask(self, ask, now);
            }
            plane.work(self, &mut kafka, now);
            plane.calls.caller.flush(&self.registry);
            if let Some(kafka) = &mut kafka {
                kafka.flush(now);
            }
            if self.planes.asks.is_empty() && !plane.is_dirty() {
                break;
            }
        }
        self.planes.kafka = kafka;
        self.planes.plane = Some(plane);
    }

    fn drive_redis(&mut self, caller: &mut Redis, (is_readable, is_writable): (bool, bool), now: Instant) {
        if is_readable || is_writable {
            caller.ready(&self.registry, is_readable, is_writable, &mut self.planes.buffer);
        }
        if self.planes.ticked.is_none_or(|at| now >= at + TICK) || caller.wake_at().is_some_and(|at| at <= now) {
            self.planes.ticked = Some(now);
            caller.tick(&self.registry, REDIS);
        }
    }

    /// Does something with the plane, if there is one, and what follows from it.
    pub fn with_plane<T>(&mut self, act: impl FnOnce(&mut Plane<Redis>, &mut Self, Instant) -> T) -> Option<T> {
        let mut plane = self.planes.plane.take()?;
        let now = Instant::now();
        let outcome = act(&mut plane, self, now);
        self.planes.plane = Some(plane);
        self.run_plane((false, false), now);
        Some(outcome)
    }
}

#[cfg(test)]
mod turns_tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn who_waits_goes_before_the_next_turn() {
        let turns = Turns::new(Vec::new());
        for _ in 0..100 {
            let mut turn = turns.take_turn();
            turn.clear();
            std::thread::scope(|scope| {
                scope.spawn(|| turns.take().push("who waits"));
                while turns.door.try_lock().is_ok() {
                    std::thread::yield_now();
                }
                drop(turn);
                turns.take_turn().push("the next turn");
            });
            assert_eq!(*turns.take(), ["who waits", "the next turn"]);
        }
    }

    /// How long somebody waits for a value of which a thread has one turn after the other, and for how many
    /// turns: `cargo test --release waits -- --ignored --nocapture`.
    #[test]
    #[ignore = "it measures"]
    fn how_long_who_waits_waits() {
        let (mutex, turns) = (Mutex::new(0), Turns::new(0));
        measure("a mutex", || held(&mutex), || held(&mutex));
        measure("turns", || turns.take_turn(), || turns.take());
    }

    fn measure<'a>(name: &str, turn: impl Fn() -> MutexGuard<'a, u64> + Sync, take: impl Fn() -> MutexGuard<'a, u64>) {
        const TURN: Duration = Duration::from_micros(200);
        let (is_over, count) = (AtomicBool::new(false), AtomicU64::new(0));
        let (mut waits, mut turns): (Vec<u128>, Vec<u64>) = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let (held, began) = (turn(), Instant::now());
                    count.fetch_add(1, Ordering::Relaxed);
                    while began.elapsed() < TURN {
                        std::hint::spin_loop();
                    }
                    drop(held);
                }
            });
            let waits = (0..2000).map(|_| {
                std::thread::sleep(TURN);
                let (began, before) = (Instant::now(), count.load(Ordering::Relaxed));
                let held = take();
                let turns = count.load(Ordering::Relaxed) - before;
                drop(held);
                (began.elapsed().as_micros(), turns)
            });
            let waits = waits.unzip();
            is_over.store(true, Ordering::Relaxed);
            waits
        });
        waits.sort_unstable();
        turns.sort_unstable();
        let places = [1000, 1980, 1999];
        println!("{name}: us {:?}, turns {:?}", places.map(|at| waits[at]), places.map(|at| turns[at]));
    }
}
