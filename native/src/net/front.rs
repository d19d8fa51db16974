//! The loop's body: what is ready is read, plain requests are told to Python, its answers written.
//!
//! One thread calls it. Each call returns when nothing more can be done without waiting; `MORE` says
//! that it should be called again though its descriptor may be silent.

use std::io::ErrorKind;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};

use crate::auth::keys::{From, Keys};
use crate::auth::sign;
use crate::batch::{Batch, Whose};
use crate::http::head::{self, Found};
use crate::json::Scanner;
use crate::net::connection::{Asked, Connection, Held, State};
use crate::net::idle;
use crate::net::slots::Slots;
use crate::replies::Heads;
use crate::requests;

/// There is more to take.
pub const MORE: u32 = 1;
/// Some answers could not be given.
pub const UNSENT: u32 = 2;
/// The batch of answers could not be read; what stood before that is done.
pub const BAD: u32 = 4;

const LISTENER: Token = Token(usize::MAX);
const EVENTS: usize = 1024;
/// New connections between two looks at those that are there.
const ACCEPTS: usize = 256;
const BUFFER_BYTES: usize = 64 * 1024;
/// Of requests that are not whole, in all; beyond it they are Python's, which has bounds of its own.
const PART_BYTES: usize = 64 * 1024 * 1024;
/// Of requests that are asked, and of what came with them, likewise.
const ASKED_BYTES: usize = 128 * 1024 * 1024;

/// Of what one batch has for Python's protocols: all connections share it.
const BATCH_BYTES: usize = 512 * 1024;
/// Connections that Python reads after one look; others follow after the next.
const READS: usize = 8;

/// Which requests are read here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// None: all are Python's.
    Nothing,
    /// Every plain one.
    All,
    /// Those that a key has signed which is known for where they come from.
    Signed,
}

pub struct Front {
    poll: Poll,
    events: Events,
    listener: Option<TcpListener>,
    /// Connections may wait to be accepted, and the system says so only once.
    accepts: bool,
    reads: Reads,
    /// A proxy tells where requests come from.
    trusts_proxy: bool,
    pub keys: Keys,
    /// Connections that were closed because there were too many, and idle ones that were for others.
    pub refused: u64,
    pub closed: u64,
    is_draining: bool,
    /// So many connections may be there at once.
    most: usize,
    /// Slots of connections to be closed for new ones, if they are idle still.
    idle: Vec<usize>,
    pub slots: Slots,
    pub batch: Batch,
    pub heads: Heads,
    pub unsent: Vec<u64>,
    /// Slots to be looked at again in the next call.
    turns: Vec<usize>,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
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
        Ok(Self {
            poll,
            events: Events::with_capacity(EVENTS),
            listener: Some(listener),
            accepts: true,
            reads,
            trusts_proxy,
            keys: Keys::default(),
            refused: 0,
            closed: 0,
            is_draining: false,
            most,
            idle: Vec::new(),
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
        self.poll.as_raw_fd()
    }

    /// Reads what is ready into the batch. Returns MORE when it should be called again at once.
    pub fn look(&mut self) -> u32 {
        let now = Instant::now();
        for slot in std::mem::take(&mut self.turns) {
            if let Some(connection) = self.slots.at(slot) {
                connection.has_turn = false;
            }
            self.turn(slot, now);
        }
        // An interrupted or failed poll is made again: the descriptor stays readable.
        let _ = self.poll.poll(&mut self.events, Some(Duration::ZERO));
        let ready: Vec<_> = self
            .events
            .iter()
            .map(|event| {
                (event.token(), event.is_readable(), event.is_read_closed() || event.is_error(), event.is_writable())
            })
            .collect();
        for (token, is_readable, has_end, is_writable) in ready {
            if token == LISTENER {
                self.accepts = true;
            } else if let Some(connection) = self.slots.at(token.0) {
                connection.is_readable |= is_readable || has_end;
                connection.hears_end |= has_end;
                connection.has_end |= has_end;
                if is_writable && connection.write() {
                    connection.idle_since = now; // its client reads
                }
                self.turn(token.0, now);
            }
        }
        if self.accepts {
            self.accept(now);
        }
        self.flags()
    }

    pub fn flags(&self) -> u32 {
        let more = !self.turns.is_empty() || !self.batch.is_empty();
        (if more { MORE } else { 0 }) | (if self.unsent.is_empty() { 0 } else { UNSENT })
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTS {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((mut stream, address)) => {
                    if self.slots.len() >= self.most && !self.make_room(now) {
                        self.refused += 1;
                        continue; // it is closed
                    }
                    let _ = stream.set_nodelay(true);
                    let slot = self.slots.next();
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    // Without a place in the poll it would never be heard: it is closed.
                    if self.poll.registry().register(&mut stream, Token(slot), interest).is_ok() {
                        self.slots.add(|id| Connection::new(stream, id, address.ip().to_canonical(), now));
                        self.turn(slot, now);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    // Out of descriptors, say: the next tick tries again.
                    self.accepts = error.kind() != ErrorKind::WouldBlock;
                    return;
                }
            }
        }
        // More of them wait, and the poll will not say so again.
        self.turns.push(usize::MAX);
    }

    /// Closes a connection that is idle; whether there was one.
    fn make_room(&mut self, now: Instant) -> bool {
        for looked in [false, true] {
            if looked {
                self.idle = idle::chosen(&self.slots, now);
            }
            while let Some(slot) = self.idle.pop() {
                if let Some(connection) = self.slots.at(slot) {
                    if idle::is_idle(connection, now) {
                        connection.is_broken = true;
                        self.closed += 1;
                        self.turn(slot, now);
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Does what can be done for one connection now.
    pub fn turn(&mut self, slot: usize, now: Instant) {
        let Some(mut connection) = self.slots.lift(slot) else { return };
        if connection.state == State::Passed && connection.input.is_empty() && !connection.is_closing {
            self.offer(&mut connection, slot);
            self.settle(connection, slot);
            return;
        }
        if self.batch.data_bytes() >= BATCH_BYTES && !connection.is_broken {
            self.take_turn(&mut connection, slot);
            self.slots.put_back(slot, connection);
            return;
        }
        let before = connection.input.len();
        // What came with the last request may be whole, and is asked before more is read.
        if connection.state != State::Ready || before == 0 || connection.part_since.is_some() {
            connection.read(&mut self.buffer);
        }
        if connection.input.len() != before {
            connection.idle_since = now;
        }
        self.serve(&mut connection, now);
        self.settle(connection, slot);
    }

    /// Has Python read a connection that is its own: bytes that we had read would be copied more often.
    fn offer(&mut self, connection: &mut Connection, slot: usize) {
        if !connection.wants_turn() {
            return;
        }
        if self.batch.reads() >= READS {
            self.take_turn(connection, slot);
            return;
        }
        connection.is_offered = true;
        self.batch.read(connection.id);
    }

    /// Python reads into `room`; how many bytes. 0 = there is nothing now. If there is more, the
    /// connection stands behind those that had no turn in the last look.
    pub fn receive(&mut self, slot: usize, room: &mut [u8]) -> usize {
        let now = Instant::now();
        let Some(mut connection) = self.slots.lift(slot) else { return 0 };
        connection.is_offered = false;
        let mut size = 0;
        if connection.state == State::Passed && connection.wants_turn() {
            size = connection.receive(room);
            if size > 0 {
                connection.passes = connection.passes.wrapping_add(1);
                connection.idle_since = now;
            }
            self.settle(connection, slot);
        } else {
            self.slots.put_back(slot, connection);
            self.turn(slot, now);
        }
        size
    }

    /// Asks or passes on what has come.
    fn serve(&mut self, connection: &mut Connection, now: Instant) {
        if connection.is_closing && connection.asked.is_none() {
            connection.input.clear();
            return;
        }
        if connection.state == State::Ready && !connection.input.is_empty() && connection.unsent() == 0 {
            match self.ask(connection, now) {
                Outcome::Asked => connection.part_since = None,
                Outcome::Part if self.held.part < PART_BYTES => {
                    connection.part_since.get_or_insert(now);
                }
                _ => connection.state = State::Passed,
            }
        }
        if connection.state == State::Passed && !connection.input.is_empty() {
            self.pass(connection);
        }
    }

    fn pass(&mut self, connection: &mut Connection) {
        connection.part_since = None;
        connection.is_known = true;
        connection.passes = connection.passes.wrapping_add(1);
        self.batch.data(connection.id, &connection.input);
        connection.consume(connection.input.len());
    }

    /// No key counts any more, and lanes are told again.
    pub fn forget(&mut self) {
        self.keys.forget();
        self.batch.forget_lanes();
    }

    /// Writes from where a connection has asked; nothing if it is no more.
    pub fn write_from(&self, id: u64, text: &mut Vec<u8>) {
        if let Some(connection) = self.slots.of(id).and_then(|slot| self.slots.get(slot)) {
            match head::read(&connection.input) {
                Found::Head(found) if connection.asked.is_some() && self.trusts_proxy => {
                    From::new(found.forwarded, connection.peer).write(text);
                }
                _ => From::Peer(connection.peer).write(text),
            }
        }
    }

    fn ask(&mut self, connection: &mut Connection, now: Instant) -> Outcome {
        if self.reads == Reads::Nothing || self.held.asked > ASKED_BYTES {
            return Outcome::Other;
        }
        let found = match head::read(&connection.input) {
            Found::Head(found) => found,
            Found::Part => return Outcome::Part,
            Found::Other => return Outcome::Other,
        };
        // Before the body: of a stranger none is kept here.
        let mut key = None;
        if self.reads == Reads::Signed {
            let from = From::new(if self.trusts_proxy { found.forwarded } else { b"" }, connection.peer);
            key = self.keys.of(found.whose, from, now);
            if key.is_none() {
                if !found.whose.is_empty() {
                    self.batch.signer(found.whose, from);
                }
                return Outcome::Other;
            }
        }
        let end = found.head_bytes + found.body_bytes;
        let Some(body) = connection.input.get(found.head_bytes..end) else { return Outcome::Part };
        let mut scanner = Scanner::new(body, &mut self.scratch);
        let Ok(request) = requests::read(found.verb, &mut scanner) else { return Outcome::Other };
        if key.is_some_and(|key| !sign::fits(&connection.input, &found, body, key, sign::now_s())) {
            return Outcome::Other;
        }
        let whose = Whose { host: found.host, path: found.path, signer: found.whose };
        let entries = self.batch.ask(connection.id, found.verb, whose, &request, &scanner);
        connection.asked = Some(Asked { bytes: end, entries });
        connection.state = State::Asked;
        Outcome::Asked
    }

    /// Puts a connection back, or ends it.
    fn settle(&mut self, mut connection: Connection, slot: usize) {
        let held = connection.held();
        self.count(&mut connection, held);
        let answered = connection.is_closing && connection.asked.is_none();
        let over = answered || connection.is_over();
        if connection.is_over() && !connection.is_told && (connection.is_known || connection.asked.is_some()) {
            connection.is_told = true;
            self.batch.gone(connection.id);
        }
        if connection.is_broken || (over && connection.unsent() == 0) {
            if connection.is_known && !connection.is_told {
                self.batch.gone(connection.id);
            }
            // It may be closed all the same.
            let _ = self.poll.registry().deregister(&mut connection.stream);
            self.slots.free(slot);
            self.count(&mut connection, Held::default());
            return;
        }
        if connection.is_blocked != connection.is_block_told {
            connection.is_block_told = connection.is_blocked;
            self.batch.blocked(connection.id);
        }
        if connection.is_blocked && connection.unsent() == 0 {
            connection.is_blocked = false;
            connection.is_block_told = false;
            self.batch.drained(connection.id);
        }
        if connection.wants_turn() {
            self.take_turn(&mut connection, slot);
        }
        self.slots.put_back(slot, connection);
    }

    fn count(&mut self, connection: &mut Connection, held: Held) {
        let before = std::mem::replace(&mut connection.counted, held);
        self.held.part = self.held.part + held.part - before.part;
        self.held.asked = self.held.asked + held.asked - before.asked;
    }

    /// Has a connection looked at in the next call.
    fn take_turn(&mut self, connection: &mut Connection, slot: usize) {
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

    /// Once or more a second: connections that say nothing, or whose clients read nothing of what
    /// waits for them, are closed; of requests that do not become whole Python's protocol is told,
    /// which knows how long to wait.
    pub fn tick(&mut self, idle: Duration, part: Duration) -> u32 {
        let now = Instant::now();
        for slot in self.slots.taken() {
            let Some(connection) = self.slots.at(slot) else { continue };
            if connection.part_since.is_some_and(|since| now - since >= part) {
                connection.state = State::Passed;
                self.turn(slot, now);
            } else if now - connection.idle_since >= idle
                && (connection.state == State::Ready || connection.is_closing || connection.unsent() > 0)
            {
                connection.is_broken = true;
                self.turn(slot, now);
            }
        }
        self.accepts = self.listener.is_some();
        self.accept(now);
        self.flags()
    }

    /// Nothing new is accepted; a connection ends when what it has asked is answered.
    pub fn drain(&mut self) -> u32 {
        self.is_draining = true;
        if let Some(mut listener) = self.listener.take() {
            let _ = self.poll.registry().deregister(&mut listener);
        }
        let now = Instant::now();
        for slot in self.slots.taken() {
            if let Some(connection) = self.slots.at(slot) {
                if connection.state != State::Passed {
                    connection.is_closing = true;
                    self.turn(slot, now);
                }
            }
        }
        self.flags()
    }

    /// Python's protocol has nothing under way; it had got bytes so often when it said so.
    pub fn rest(&mut self, slot: usize, passes: &[u8]) {
        let closes = self.is_draining;
        if let Some(connection) = self.slots.at(slot) {
            // What it has got since is a request that it is in the middle of.
            if connection.state == State::Passed && passes == connection.passes.to_be_bytes() {
                connection.state = State::Ready;
                connection.is_closing |= closes;
            }
        }
    }
}

enum Outcome {
    Asked,
    Part,
    Other,
}
