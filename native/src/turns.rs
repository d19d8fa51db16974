//! A value that a thread uses again and again, and that others want now and then.
//!
//! A mutex alone goes to whoever asks first when it is free, and under load that is the thread which has
//! just given it back: the others would sleep on.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

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

#[cfg(test)]
mod tests {
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
