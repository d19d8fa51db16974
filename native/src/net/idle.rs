//! Which connections end for new ones when there are too many, as in Python's
//! `facade.http.bounds.connections`.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use crate::net::connection::Connection;
use crate::net::slots::Slots;

/// A connection that nobody has used for so long may be closed for a new one.
const IDLE: Duration = Duration::from_secs(1);
/// So many are looked out at once, for a look costs time.
const AT_ONCE: usize = 64;

pub fn is_idle(connection: &Connection, now: Instant) -> bool {
    connection.idle(now).is_some_and(|since| since >= IDLE)
}

/// Slots of connections that are idle, to be closed from the last one on: of the peers with the most
/// connections first, and those that are idle for the longest time.
pub fn chosen(slots: &Slots, now: Instant) -> Vec<usize> {
    let taken = slots.taken();
    let all = || taken.iter().filter_map(|slot| Some((*slot, slots.get(*slot)?)));
    let idle: Vec<_> = all().filter(|(_, one)| is_idle(one, now)).collect();
    if idle.is_empty() {
        return Vec::new();
    }
    let mut numbers: HashMap<IpAddr, usize> = HashMap::new();
    for (_, one) in all() {
        *numbers.entry(counted_as(one.peer)).or_default() += 1;
    }
    let mut idle: Vec<_> =
        idle.into_iter().map(|(slot, one)| (numbers[&counted_as(one.peer)], one.idle(now), slot)).collect();
    idle.sort_unstable();
    idle.split_off(idle.len().saturating_sub(AT_ONCE)).into_iter().map(|one| one.2).collect()
}

/// A network of IPv6 is one peer: it has more addresses than anybody could count.
pub fn counted_as(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_one_peer() {
        for (address, peer) in
            [("10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::"), ("2001:db8:0:0:ffff::", "2001:db8::")]
        {
            assert_eq!(counted_as(address.parse().expect("an address")), peer.parse::<IpAddr>().expect("an address"));
        }
    }
}
