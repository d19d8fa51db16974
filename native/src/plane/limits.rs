//! Numbers that Python tells at the start; the other side is `engine/plane/told.py`.

use std::time::Duration;

use crate::pack::{Read, Unpacker};

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
    /// Of one append to Kafka at most, if several sends share it.
    pub batch_records: usize,
    pub batch_bytes: usize,
    /// Records that go to a partition in turn.
    pub run: usize,
    /// How long a send may take.
    pub send_timeout: Duration,
    /// Sends of a queue that wait, and their bytes, at most.
    pub most_sends: usize,
    pub most_waiting_bytes: usize,
    /// What was sent this long ago, or less, is within the retention of every queue.
    pub least_retention_ms: u64,
    /// Of how many requests one has a line in the access log; 0 = none has.
    pub line_every: u64,
}

impl Limits {
    /// As many numbers as there are fields, in their order.
    pub fn read(told: &mut Unpacker) -> Read<Self> {
        told.fields(18)?;
        Ok(Self {
            most_a_call: told.uint()? as usize,
            most_in_flight: told.uint()?,
            look_again: told.millis()?,
            ahead: told.millis()?,
            most_ahead: told.uint()? as usize,
            pause: told.millis()?,
            least_lease_ms: told.uint()? as i64,
            most_waits: told.uint()? as usize,
            most_bytes: told.uint()? as usize,
            most_receive_bytes: told.uint()? as usize,
            batch_records: told.uint()? as usize,
            batch_bytes: told.uint()? as usize,
            run: told.uint()? as usize,
            send_timeout: told.millis()?,
            most_sends: told.uint()? as usize,
            most_waiting_bytes: told.uint()? as usize,
            least_retention_ms: told.uint()?,
            line_every: told.uint()?,
        })
    }
}
