//! What became receivable while nobody waited in Python, which takes what it knows of partitions for
//! true: it asks for this before it asks Redis.

use std::collections::BTreeMap;

use crate::pack::Packer;

/// By queue and partition: since when there may be something (ms).
#[derive(Debug, Default)]
pub struct Unheard(pub(super) BTreeMap<(u64, usize), i64>);

impl Unheard {
    pub fn note(&mut self, queue: u64, partition: usize, head_ms: i64) {
        let earliest = self.0.entry((queue, partition)).or_insert(head_ms);
        *earliest = head_ms.min(*earliest);
    }

    /// Takes what is noted of a queue: partitions, and since when.
    pub fn take_of(&mut self, queue: u64, partitions: usize) -> impl Iterator<Item = (usize, i64)> + '_ {
        (0..partitions).filter_map(move |partition| Some((partition, self.0.remove(&(queue, partition))?)))
    }

    /// Tells all, as queue, partition, since when.
    pub fn take(&mut self, packer: &mut Packer) {
        packer.array(self.0.len());
        for ((queue, partition), head_ms) in std::mem::take(&mut self.0) {
            packer.array(3);
            packer.uint(queue);
            packer.uint(partition as u64);
            packer.uint(u64::try_from(head_ms).unwrap_or(0));
        }
    }
}
