//! Where connections are kept: by slot, and by an id that no later connection of the slot has. Who comes is
//! taken in while there is room, and others end for them, as in Python's `facade.http.bounds.connections`.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Token};
use rustls::ServerConfig;

use crate::net::client::Client;
use crate::net::connection::Connection;
use crate::net::front::Front;

#[derive(Default)]
struct Slot {
    /// How often the slot was used.
    turn: u32,
    connection: Option<Connection>,
    is_taken: bool,
}

#[derive(Default)]
pub struct Slots {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

fn slot_of(id: u64) -> usize {
    (id & u64::from(u32::MAX)) as usize
}

impl Slots {
    /// The id of the next connection that is added.
    pub fn next_id(&mut self) -> u64 {
        if self.free.is_empty() {
            self.free.push(self.slots.len());
            self.slots.push(Slot::default());
        }
        let slot = self.free[self.free.len() - 1];
        u64::from(self.slots[slot].turn.wrapping_add(1)) << 32 | slot as u64
    }

    /// Keeps a new connection, whose id is `next_id`; returns its slot.
    pub fn add(&mut self, connection: Connection) -> usize {
        debug_assert_eq!(connection.id, self.next_id());
        let slot = slot_of(connection.id);
        self.free.pop();
        let place = &mut self.slots[slot];
        place.turn = (connection.id >> 32) as u32;
        place.is_taken = true;
        place.connection = Some(connection);
        slot
    }

    pub fn at(&mut self, slot: usize) -> Option<&mut Connection> {
        self.slots.get_mut(slot)?.connection.as_mut()
    }

    pub fn get(&self, slot: usize) -> Option<&Connection> {
        self.slots.get(slot)?.connection.as_ref()
    }

    /// The slot of a connection that is still there.
    pub fn of(&self, id: u64) -> Option<usize> {
        let slot = slot_of(id);
        let connection = self.slots.get(slot)?.connection.as_ref()?;
        (connection.id == id).then_some(slot)
    }

    /// Takes a connection out for a moment: `put_back` or `free` follow.
    pub fn lift(&mut self, slot: usize) -> Option<Connection> {
        self.slots.get_mut(slot)?.connection.take()
    }

    pub fn put_back(&mut self, slot: usize, connection: Connection) {
        self.slots[slot].connection = Some(connection);
    }

    pub fn free(&mut self, slot: usize) {
        if std::mem::take(&mut self.slots[slot].is_taken) {
            self.free.push(slot);
        }
    }

    /// The slots that have a connection.
    pub fn taken(&self) -> Vec<usize> {
        (0..self.slots.len()).filter(|slot| self.slots[*slot].connection.is_some()).collect()
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

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

/// New connections between two looks at those that are there.
const ACCEPTS: usize = 256;

pub struct Door {
    pub(super) listener: Option<TcpListener>,
    /// The certificate that is shown to connections from now on; None = they are in the clear.
    pub tls: Option<Arc<ServerConfig>>,
    /// Connections whose handshakes were under way, the oldest first.
    handshakes: VecDeque<u64>,
    /// Connections may wait to be accepted, and the system says so only once.
    pub(super) accepts: bool,
    /// So many connections may be there at once.
    most: usize,
    /// Slots of connections to be closed for new ones, if they are idle still.
    idle: Vec<usize>,
    /// Connections that were closed because there were too many, and idle ones that were for others.
    pub refused: u64,
    pub closed: u64,
}

impl Door {
    pub fn new(listener: TcpListener, most: usize) -> Self {
        let (handshakes, idle) = (VecDeque::new(), Vec::new());
        let listener = Some(listener);
        Self { listener, tls: None, handshakes, accepts: true, most, idle, refused: 0, closed: 0 }
    }
}

impl Front {
    /// Once a second: forgets handshakes that are over, and accepts again after what has failed.
    pub(super) fn open_door(&mut self, now: Instant) {
        let slots = &self.slots;
        let is_over =
            |id: &u64| slots.of(*id).and_then(|slot| slots.get(slot)).is_none_or(|one| !one.stream.is_handshaking());
        while self.door.handshakes.front().is_some_and(is_over) {
            self.door.handshakes.pop_front();
        }
        self.door.accepts = self.door.listener.is_some();
        self.accept(now);
    }

    pub(super) fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTS {
            let Some(listener) = &self.door.listener else { return };
            match listener.accept() {
                Ok((stream, address)) => self.welcome(stream, address.ip().to_canonical(), now),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    // Out of descriptors, say: the next tick tries again.
                    self.door.accepts = error.kind() != ErrorKind::WouldBlock;
                    return;
                }
            }
        }
        // More of them wait, and the poll will not say so again.
        self.turns.push(usize::MAX);
    }

    /// Takes a connection in, if there is room for it; else it is closed.
    fn welcome(&mut self, stream: TcpStream, peer: IpAddr, now: Instant) {
        if self.slots.len() >= self.door.most && !self.make_room(now) {
            self.door.refused += 1;
            return;
        }
        let _ = stream.set_nodelay(true);
        // A connection that ended may have had the slot when the poll had heard of it already.
        let id = self.slots.next_id();
        // Without a place in the poll it would never be heard: it is closed.
        let Some(mut client) = Client::new(stream, self.door.tls.as_ref()) else { return };
        if self.registry.register(client.source(), Token(id as usize), Interest::READABLE | Interest::WRITABLE).is_ok()
        {
            let slot = self.slots.add(Connection::new(client, id, peer, now));
            if self.door.tls.is_some() {
                self.door.handshakes.push_back(id);
            }
            self.turn(slot, now);
        }
    }

    /// Cuts off the handshake that has taken the longest; whether there was one.
    fn cut_handshake(&mut self, now: Instant) -> bool {
        while let Some(id) = self.door.handshakes.pop_front() {
            let Some(slot) = self.slots.of(id) else { continue };
            let Some(connection) = self.slots.at(slot).filter(|one| one.stream.is_handshaking()) else { continue };
            connection.is_broken = true;
            self.turn(slot, now);
            return true;
        }
        false
    }

    /// Closes a connection that has not come so far, or is idle; whether there was one.
    fn make_room(&mut self, now: Instant) -> bool {
        if self.cut_handshake(now) {
            self.door.refused += 1;
            return true;
        }
        for looked in [false, true] {
            if looked {
                self.door.idle = chosen(&self.slots, now);
            }
            while let Some(slot) = self.door.idle.pop() {
                if let Some(connection) = self.slots.at(slot) {
                    if is_idle(connection, now) {
                        connection.is_broken = true;
                        self.door.closed += 1;
                        self.turn(slot, now);
                        return true;
                    }
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod idle_tests {
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
