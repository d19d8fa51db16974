//! Appends to Kafka: how they are begun, and what becomes of them.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::format::Produced;
use super::kafka::{Outcome, Producer, Record, Until};

/// Appends records to Kafka: `Producer`, or a test.
pub trait Appender {
    /// Begins to append records side by side, all or none; `Plane::appended` is told of the token later.
    fn append(&mut self, topic: &str, partition: usize, records: &[Produced], token: u64, until: Until, now: Instant);
}

/// What became of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    Stored {
        first: u64,
        at_ms: u64,
    },
    /// Nothing of it is in the log.
    NotStored(String),
    Unknown(String),
}

/// Without a way to Kafka no route lets anybody send.
impl Appender for Option<Producer> {
    fn append(&mut self, topic: &str, partition: usize, records: &[Produced], token: u64, until: Until, now: Instant) {
        let Some(producer) = self else { return };
        let records = records.iter().map(|Produced { key, value, headers }| Record {
            key: *key,
            value: Some(value),
            headers,
            timestamp_ms: now_ms(),
        });
        producer.append(topic, partition as i32, records, token, until, now);
    }
}

/// The time of a record that its broker writes over.
fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

impl From<Outcome> for Appended {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Stored { base_offset, log_append_ms: Some(at_ms) } => {
                Self::Stored { first: base_offset as u64, at_ms: at_ms as u64 }
            }
            // Without its time the window can't have it: the loader brings it, and whoever sent asks again.
            Outcome::Stored { .. } => Self::Unknown("the topic does not have the times of its log".into()),
            Outcome::NotStored(reason) => Self::NotStored(reason.text),
            Outcome::Unknown(reason) => Self::Unknown(reason.text),
        }
    }
}
