//! The door of a front: who comes is taken in while there is room, and others end for them.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Token};
use rustls::ServerConfig;

use crate::net::client::Client;
use crate::net::connection::Connection;
use crate::net::front::Front;
use crate::net::idle;

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
                self.door.idle = idle::chosen(&self.slots, now);
            }
            while let Some(slot) = self.door.idle.pop() {
                if let Some(connection) = self.slots.at(slot) {
                    if idle::is_idle(connection, now) {
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
