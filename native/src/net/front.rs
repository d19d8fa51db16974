//! The loop's body: what is ready is read, requests are told to Python, its answers written.
//!
//! One thread calls it. Each call returns when nothing more can be done without waiting; `MORE` says
//! that it should be called again though its descriptor may be silent.

use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use mio::event::Source;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Registry, Token};

use crate::auth::keys::Keys;
use crate::batch::Batch;
use crate::net::bounds::Bounds;
use crate::net::connection::{Connection, State};
use crate::net::door::Door;
use crate::net::door::Slots;
use crate::net::output::Held;
use crate::net::planes::Planes;
use crate::net::stream::Ready;
use crate::replies::Heads;

/// There is more to take.
pub const MORE: u32 = 1;
/// Some answers could not be given.
pub const UNSENT: u32 = 2;
/// The batch of answers could not be read; what stood before that is done.
pub const BAD: u32 = 4;

const LISTENER: Token = Token(usize::MAX);
pub const EVENTS: usize = 1024;
const BUFFER_BYTES: usize = 64 * 1024;
/// Of what one batch has of requests that go the long way: all connections share it.
const BATCH_BYTES: usize = 512 * 1024;

/// Which requests are read to their end here; all others are told to Python as they are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// None.
    Nothing,
    /// Every plain one.
    All,
    /// Those that a key has signed which is known for where they come from.
    Signed,
}

pub struct Front {
    /// None = a thread of the plane polls.
    pub(super) poll: Option<Poll>,
    pub(super) registry: Registry,
    events: Events,
    pub planes: Planes,
    pub door: Door,
    pub(super) reads: Reads,
    /// A proxy tells where requests come from.
    pub(super) trusts_proxy: bool,
    pub bounds: Bounds,
    pub keys: Keys,
    /// Requests that gave way to others before they were whole.
    pub gave_way: u64,
    pub(super) makes_way: bool,
    /// Slots of connections whose unfinished requests give way next.
    pub(super) ways: Vec<usize>,
    pub slots: Slots,
    pub batch: Batch,
    pub heads: Heads,
    pub unsent: Vec<u64>,
    /// Slots to be looked at again in the next call.
    pub(super) turns: Vec<usize>,
    pub(super) buffer: Vec<u8>,
    pub(super) scratch: Vec<u8>,
    /// Of all connections.
    pub held: Held,
}

impl Front {
    pub fn new(
        listener: std::net::TcpListener,
        prefix: &[u8],
        reads: Reads,
        trusts_proxy: bool,
        most: usize,
    ) -> std::io::Result<Self> {
        listener.set_nonblocking(true)?;
        let mut listener = TcpListener::from_std(listener);
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let registry = poll.registry().try_clone()?;
        Ok(Self {
            poll: Some(poll),
            registry,
            planes: Planes::default(),
            events: Events::with_capacity(EVENTS),
            door: Door::new(listener, most),
            reads,
            trusts_proxy,
            bounds: Bounds::default(),
            keys: Keys::default(),
            gave_way: 0,
            makes_way: false,
            ways: Vec::new(),
            slots: Slots::default(),
            batch: Batch::default(),
            // Python counts the replies that it makes from 0.
            heads: Heads::new(prefix, 1 << 47),
            unsent: Vec::new(),
            turns: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
            scratch: Vec::new(),
            held: Held::default(),
        })
    }

    /// What the owner's event loop watches for reading.
    pub fn descriptor(&self) -> RawFd {
        let bell = self.planes.bell.as_ref().map_or(-1, |bell| bell.descriptor());
        self.poll.as_ref().map_or(bell, |poll| poll.as_raw_fd())
    }

    /// Reads what is ready into the batch. Returns MORE when it should be called again at once.
    pub fn look(&mut self) -> u32 {
        if let Some(bell) = &self.planes.bell {
            bell.hush();
        }
        self.planes.is_told = false;
        if let Some(poll) = &mut self.poll {
            // An interrupted or failed poll is made again: the descriptor stays readable.
            let _ = poll.poll(&mut self.events, Some(Duration::ZERO));
            let ready: Vec<Ready> = self.events.iter().map(Ready::of).collect();
            self.handle(&ready, Instant::now());
        }
        self.flags()
    }

    /// Does what is ready, after what had no turn before.
    pub fn handle(&mut self, ready: &[Ready], now: Instant) {
        for slot in std::mem::take(&mut self.turns) {
            if let Some(connection) = self.slots.at(slot) {
                connection.has_turn = false;
            }
            self.turn(slot, now);
        }
        for one in ready {
            if one.token == LISTENER {
                self.door.accepts = true;
                continue;
            }
            let Some(slot) = self.slots.of(one.token.0 as u64) else { continue };
            if let Some(connection) = self.slots.at(slot) {
                connection.is_readable |= one.is_readable || one.has_end;
                connection.hears_end |= one.has_end;
                connection.has_end |= one.has_end;
                if one.is_writable && connection.write() {
                    connection.idle_since = now; // its client reads
                }
                self.turn(slot, now);
            }
        }
        if self.door.accepts {
            self.accept(now);
        }
    }

    pub fn flags(&self) -> u32 {
        let more = (self.poll.is_some() && self.has_turns()) || !self.batch.is_empty();
        (if more { MORE } else { 0 }) | (if self.unsent.is_empty() { 0 } else { UNSENT })
    }

    /// Does what can be done for one connection now.
    pub fn turn(&mut self, slot: usize, now: Instant) {
        let Some(mut connection) = self.slots.lift(slot) else { return };
        match connection.state {
            _ if connection.is_broken => {}
            State::Last | State::Dropping => self.drop_input(&mut connection, now),
            State::Asked if connection.coming.is_some() => self.offer(&mut connection, slot),
            State::Asked => connection.hear_end(),
            State::Ready if self.batch.told_bytes() >= BATCH_BYTES => {
                self.take_turn(&mut connection, slot);
                self.slots.put_back(slot, connection);
                return;
            }
            State::Ready => {
                let before = connection.input.len();
                // What came with the last request may be whole, and is asked before more is read.
                if before == 0 || connection.part_since.is_some() {
                    connection.read(&mut self.buffer);
                }
                if connection.input.len() != before {
                    connection.idle_since = now;
                }
                self.serve(&mut connection, now);
            }
        }
        self.settle(connection, slot, now);
    }

    /// Puts a connection back, or ends it.
    pub fn settle(&mut self, mut connection: Connection, slot: usize, now: Instant) {
        let held = connection.held();
        self.held.replace(&mut connection.counted, held);
        let answered = connection.is_closing && connection.asked.is_none() && connection.state != State::Last;
        let over = answered || connection.is_over();
        if connection.is_over() && !connection.is_told && (connection.is_known || connection.asked.is_some()) {
            connection.is_told = true;
            let route = connection.asked.as_ref().and_then(|asked| asked.route.clone());
            if connection.is_known || route.is_none() {
                self.batch.gone(connection.id);
            }
            if let Some(route) = route {
                self.planes.left(connection.id, route, now);
            }
        }
        if connection.is_broken || (over && connection.unsent() == 0) {
            if connection.is_known && !connection.is_told {
                self.batch.gone(connection.id);
            }
            connection.stream.say_end();
            self.leave(connection.stream.source());
            self.slots.free(slot);
            self.held.replace(&mut connection.counted, Held::default());
            return;
        }
        if connection.is_blocked && connection.unsent() == 0 {
            connection.is_blocked = false;
            self.batch.drained(connection.id);
        }
        if connection.wants_turn() {
            self.take_turn(&mut connection, slot);
        }
        self.slots.put_back(slot, connection);
        if self.has_no_room() {
            self.make_way(now);
        }
    }

    /// Has the poll forget what was registered; it may end all the same.
    pub(super) fn leave(&mut self, source: &mut impl Source) {
        let _ = self.registry.deregister(source);
    }

    pub fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Has a connection looked at in the next call.
    pub(super) fn take_turn(&mut self, connection: &mut Connection, slot: usize) {
        if !connection.has_turn {
            connection.has_turn = true;
            self.turns.push(slot);
        }
    }

    /// An answer was written, or Python has done something: sends, and goes on with what has come.
    pub fn go_on(&mut self, slot: usize, now: Instant) {
        if let Some(connection) = self.slots.at(slot) {
            connection.write();
            connection.idle_since = now;
            self.turn(slot, now);
        }
    }
}
