//! The time of the service, as `state/clock/service_clock.py` tells it.

use crate::pack::{Read, Unpacker};

/// What Python has told last; not told = no call may begin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clock {
    since_s: f64,
    since_ms: f64,
    error_ms: f64,
    /// What it may be moved by, of the time that passes.
    slew: f64,
    pub keep_ms: i64,
    pub early_ms: i64,
    pub is_set: bool,
}

impl Clock {
    /// `[since s, since ms, error ms, slew, keep ms, early ms]`, the first four as texts.
    pub fn read(unpacker: &mut Unpacker) -> Read<Self> {
        unpacker.array()?;
        let mut float = || -> Read<f64> {
            let text = std::str::from_utf8(unpacker.bytes()?).map_err(|_| crate::pack::NotThere)?;
            text.parse().map_err(|_| crate::pack::NotThere)
        };
        let (since_s, since_ms, error_ms, slew) = (float()?, float()?, float()?, float()?);
        Ok(Self {
            since_s,
            since_ms,
            error_ms,
            slew,
            keep_ms: unpacker.uint()? as i64,
            early_ms: unpacker.int()?,
            is_set: true,
        })
    }

    /// The time at a moment of the clock that nobody sets.
    pub fn at_ms(&self, at_s: f64) -> i64 {
        let passed_ms = (at_s - self.since_s) * 1000.0;
        let most_ms = passed_ms * self.slew;
        let moved_ms = if self.error_ms > most_ms { most_ms } else { self.error_ms.max(-most_ms) };
        (self.since_ms + passed_ms + moved_ms) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_moved_by_a_hundredth() {
        let clock =
            Clock { since_s: 10.0, since_ms: 1000.0, error_ms: 100.0, slew: 0.01, is_set: true, ..Clock::default() };
        assert_eq!(clock.at_ms(11.0), 2010);
        assert_eq!(clock.at_ms(30.0), 21_100);
        assert_eq!(Clock { error_ms: -100.0, ..clock }.at_ms(11.0), 1990);
        assert_eq!(Clock { error_ms: 0.0, ..clock }.at_ms(11.0), 2000);
    }
}
