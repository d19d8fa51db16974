//! Which unfinished requests give way when they hold too much together.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::net::door::counted_as;
use crate::net::door::Slots;

/// What each is counted for besides its bytes.
const COST: usize = 4 * 1024;
/// So many are looked out at once, for a look costs time.
const AT_ONCE: usize = 64;

/// Slots of connections with unfinished requests, to give way from the last one on: of the peers who
/// hold the most by such, and those that have been coming for the longest time.
pub fn chosen(slots: &Slots) -> Vec<usize> {
    let mut weights: HashMap<IpAddr, usize> = HashMap::new();
    let mut parts = Vec::new();
    for slot in slots.taken() {
        let Some(one) = slots.get(slot) else { continue };
        let Some(since) = one.part_since else { continue };
        let peer = counted_as(one.peer);
        *weights.entry(peer).or_default() += one.input.len() + COST;
        parts.push((peer, since, slot));
    }
    let mut found: Vec<_> =
        parts.into_iter().map(|(peer, since, slot)| (weights[&peer], std::cmp::Reverse(since), slot)).collect();
    found.sort_unstable();
    found.split_off(found.len().saturating_sub(AT_ONCE)).into_iter().map(|one| one.2).collect()
}
