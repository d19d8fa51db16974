//! The bounds of a connection, which Python tells.

use std::time::Duration;

/// The longest time that is told.
const LONGEST: Duration = Duration::from_secs(86_400);

pub struct Limits {
    /// For the connection, and again for the greeting.
    pub connect_s: f64,
    /// For any byte, while a reply is due.
    pub reply_s: f64,
    /// The pauses between attempts to connect; the last one again and again.
    pub back_off_s: Vec<f64>,
    /// Of calls under way.
    pub bytes: usize,
    /// Of one reply, in memory.
    pub reply_bytes: usize,
}

/// A time that was told; what is none counts as the longest.
pub fn seconds(told: f64) -> Duration {
    Duration::try_from_secs_f64(told).map_or(LONGEST, |time| time.min(LONGEST))
}
