//! Bodies that are kept here, of what was sent here: a receive that leases one needs no other.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ask::{size, Value};
use super::calls::Caller;
use super::format::record::{Attribute, Found, Packed};
use super::leased::Leased;
use super::queue::Queue;
use super::unit::Kept;
use super::Plane;
use crate::replies::digest;

/// Kept with each body, besides its record: about.
const OVERHEAD_BYTES: usize = 500;
/// What was not acked for so long gives way to what is sent now.
const OLD: Duration = Duration::from_secs(30);

struct Body {
    since: Instant,
    queue: u64,
    partition: usize,
    offset: u64,
    bytes: usize,
}

/// Which are kept of all queues, oldest first.
#[derive(Default)]
pub struct Bodies {
    line: VecDeque<Body>,
    bytes: usize,
}

impl Bodies {
    /// Whether there is room for so many bytes; what is old or was acked gives way to them.
    fn has_room(&mut self, queues: &mut HashMap<u64, Queue>, wanted: usize, most: usize, now: Instant) -> bool {
        while let Some(Body { since, queue, partition, offset, bytes }) = self.line.front() {
            let unit = queues.get_mut(queue).and_then(|queue| queue.units.get_mut(*partition));
            if let Some(unit) = unit.filter(|unit| unit.bodies.contains_key(offset)) {
                if *since + OLD > now || self.bytes + wanted <= most {
                    break;
                }
                unit.bodies.remove(offset);
            }
            self.bytes -= bytes;
            self.line.pop_front();
        }
        self.bytes + wanted <= most
    }
}

impl<C: Caller> Plane<C> {
    /// Whether these are kept here.
    pub(super) fn has_room(&mut self, queue: u64, values: &[Value], now: Instant) -> bool {
        let wanted = size(values) + values.len() * OVERHEAD_BYTES;
        let has_room = self.bodies.has_room(&mut self.queues, wanted, self.service.limits.most_bytes, now);
        has_room && self.queues.get(&queue).is_some_and(|queue| queue.sends.is_alone && queue.is_open)
    }

    pub(super) fn keep(
        &mut self,
        number: u64,
        partition: usize,
        values: Vec<Value>,
        first: u64,
        at_ms: u64,
        now: Instant,
    ) {
        let Some(queue) = self.queues.get_mut(&number) else { return };
        let tags = queue.sends.mask.iter().filter(|wants| **wants == b'1').count() as u16;
        for (value, offset) in values.into_iter().zip(first..) {
            let bytes = value.record.len() + OVERHEAD_BYTES;
            let Value { record, parts, digest, .. } = value;
            let kept = Kept { record, parts, digest, sent_at_ms: at_ms };
            queue.units[partition].bodies.insert(offset, (Arc::new(kept), tags));
            self.bodies.bytes += bytes;
            self.bodies.line.push_back(Body { since: now, queue: number, partition, offset, bytes });
        }
    }

    /// A message whose body is here, and of which all can be told here.
    pub(super) fn kept(&self, number: u64, partition: usize, leased: &Leased, at_ms: u64) -> Option<Arc<Kept>> {
        if leased.packed.is_empty() {
            let (kept, _) = self.queues.get(&number)?.units.get(partition)?.bodies.get(&leased.offset)?;
            // Of one that comes again without its body the script does not know when it expires.
            let is_young = at_ms <= kept.sent_at_ms + self.service.limits.least_retention_ms;
            return ((leased.count == 1 || is_young) && self.is_told(kept)).then(|| kept.clone());
        }
        let packed = Packed::read(leased.packed)?;
        let Found { parts, lease_ms, .. } = self.service.formats.records.read(packed.record)?;
        let kept = Kept {
            digest: digest(packed.record.get(parts.body.clone())?),
            record: packed.record.to_vec(),
            parts,
            sent_at_ms: packed.sent_at_ms,
        };
        (lease_ms.is_none() && self.is_told(&kept)).then(|| Arc::new(kept))
    }

    /// Whether the replies of all dialects can have its sender and its attributes.
    fn is_told(&self, message: &Kept) -> bool {
        let mut is_told = !message.sender().is_empty();
        message.attributes(|Attribute { name, kind, value }| {
            let is_reserved = self.service.reserved.iter().any(|reserved| reserved == name.as_bytes());
            let is_binary = kind.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("binary"));
            is_told &= !is_reserved && kind.is_ascii() && (is_binary || std::str::from_utf8(value).is_ok());
        });
        is_told
    }
}
