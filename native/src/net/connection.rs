//! One connection: its bytes in and out, and what comes next of it.
//!
//! `front` moves it from state to state; verbs are not known here.

use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use crate::http::refusal::Refusal;
use crate::net::asked::{Asked, Coming};
use crate::net::client::Client;
use crate::net::output::Held;
use crate::net::output::Output;
use crate::system::has_ended;

/// Bytes that are read of a connection before others have their turn.
pub const TURN_BYTES: usize = 64 * 1024;
/// Room that an idle connection keeps.
const KEPT_BYTES: usize = 16 * 1024;

/// What is done with what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The next request is read.
    Ready,
    /// A request is being answered: nothing is read but its body.
    Asked,
    /// A request was answered, and what still comes of its body is dropped.
    Dropping,
    /// The last reply was written, and what the client still sends is dropped. A connection that is
    /// closed with bytes unread is reset, and the reset may reach the client before it has read the
    /// reply (RFC 9112, 9.6).
    Last,
}

#[derive(Debug)]
pub struct Connection {
    pub stream: Client,
    pub id: u64,
    /// Whose it is.
    pub peer: IpAddr,
    pub state: State,
    pub asked: Option<Asked>,
    pub coming: Option<Coming>,
    /// Python knows of it.
    pub is_known: bool,
    pub input: Vec<u8>,
    /// How much of the head that comes was looked at.
    pub checked: usize,
    /// The last reply, in its turn.
    pub refusal: Option<Refusal>,
    /// What of it is in the front's sums.
    pub counted: Held,
    pub output: Output,
    /// There may be more to read than we have read.
    pub is_readable: bool,
    /// The end may be behind what there is to read: a short read is not enough.
    pub hears_end: bool,
    /// The system has told that the client has ended its side, maybe behind more than we read.
    pub has_end: bool,
    /// Python has heard that there is something to read, and has not read yet.
    pub is_offered: bool,
    /// It is looked at in the next call in any case.
    pub has_turn: bool,
    /// Python does not want more now.
    pub is_paused: bool,
    /// How long the plane had the request that comes next in hand, before it gave it to Python.
    pub waited: Duration,
    /// Nothing is asked any more: it ends when what was written has left.
    pub is_closing: bool,
    /// Until when what the client still sends is dropped.
    pub last_until: Option<Instant>,
    /// The client has ended its side.
    pub has_left: bool,
    /// Nothing that is written arrives any more.
    pub is_broken: bool,
    /// Python has heard that it is over.
    pub is_told: bool,
    /// Python waits until all has left.
    pub is_blocked: bool,
    /// When it came.
    pub since: Instant,
    /// Since when nothing has happened.
    pub idle_since: Instant,
    /// Since when a part of a request is here.
    pub part_since: Option<Instant>,
}

impl Connection {
    pub fn new(stream: Client, id: u64, peer: IpAddr, now: Instant) -> Self {
        Self {
            stream,
            id,
            peer,
            state: State::Ready,
            asked: None,
            coming: None,
            is_known: false,
            input: Vec::new(),
            checked: 0,
            refusal: None,
            counted: Held::default(),
            output: Output::default(),
            is_readable: true,
            hears_end: true,
            has_end: false,
            is_offered: false,
            has_turn: false,
            is_paused: false,
            waited: Duration::ZERO,
            is_closing: false,
            last_until: None,
            has_left: false,
            is_broken: false,
            is_told: false,
            is_blocked: false,
            since: now,
            idle_since: now,
            part_since: None,
        }
    }

    /// Whether nobody asks any more.
    pub fn is_over(&self) -> bool {
        self.has_left || self.is_broken
    }

    /// For how long nothing was asked, None = something is.
    pub fn idle(&self, now: Instant) -> Option<Duration> {
        let is_idle = self.state == State::Ready && self.input.is_empty() && self.unsent() == 0;
        is_idle.then(|| now.saturating_duration_since(self.idle_since))
    }

    /// What it holds here, until Python or a reply has it.
    pub fn held(&self) -> Held {
        match self.part_since {
            Some(_) => Held { part: self.input.len(), asked: 0, parts: 1 },
            None => Held { part: 0, asked: self.input.len(), parts: 0 },
        }
    }

    /// What is not read stays with the client, when the system's buffers are full.
    fn is_full(&self) -> bool {
        match self.state {
            State::Asked => self.coming.is_none() || self.is_paused,
            // A client that does not read its reply is not read either.
            State::Ready => self.unsent() > 0,
            State::Dropping | State::Last => false,
        }
    }

    /// Reads what there is, up to TURN_BYTES, by `buffer`.
    pub fn read(&mut self, buffer: &mut [u8]) {
        let mut left = TURN_BYTES;
        while self.is_readable && left > 0 && !self.is_over() && !self.is_full() {
            let size = self.receive(buffer);
            self.input.extend_from_slice(&buffer[..size]);
            left = left.saturating_sub(size);
        }
        self.hear_end();
    }

    /// The end stands behind what is not read while somebody waits for an answer.
    pub fn hear_end(&mut self) {
        self.has_left |= self.has_end && self.state == State::Asked && self.coming.is_none();
    }

    /// Reads once; how many bytes.
    pub fn receive(&mut self, buffer: &mut [u8]) -> usize {
        match self.stream.read(buffer) {
            Ok(0) => self.has_left = true,
            Ok(size) => {
                // What comes after that is told of by a new event.
                self.is_readable = !self.stream.is_drained() || self.hears_end;
                return size;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.is_readable = false;
                self.hears_end = false;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => self.is_broken = true,
        }
        0
    }

    /// Whether it is worth reading again though the system says nothing new.
    pub fn wants_turn(&self) -> bool {
        let ends = self.is_closing && self.state != State::Last && self.coming.is_none();
        self.is_readable && !self.is_offered && !self.is_over() && !ends && !self.is_full()
    }

    /// What waits to be sent; TLS may hold it.
    pub fn unsent(&self) -> usize {
        self.output.unsent() + usize::from(self.stream.holds_output())
    }

    /// Sends what can be sent now; whether anything was.
    pub fn write(&mut self) -> bool {
        let before = self.unsent();
        self.is_broken |= self.output.send(&mut self.stream).is_err();
        self.unsent() < before
    }

    /// Whether the connection ends after the reply that is written now: nobody can tell whether a
    /// client that still waits for "100 Continue" sends its body.
    pub fn ends_after_reply(&self) -> bool {
        self.is_closing || self.coming.as_ref().is_some_and(|coming| coming.waits || !coming.is_short)
    }

    /// A reply is whole, which has said whether the connection `ends`; until then what still comes is
    /// dropped.
    pub fn answered(&mut self, ends: bool, last_until: Instant, now: Instant) {
        if let Some(asked) = self.asked.take() {
            self.consume(asked.bytes);
        }
        self.is_paused = false;
        self.state = State::Ready;
        self.is_closing |= ends;
        if let Some(coming) = &mut self.coming {
            coming.pace.resume(now);
            self.state = State::Dropping;
        }
        if self.is_closing && (self.coming.is_some() || !self.input.is_empty() || self.is_readable) {
            self.end(last_until);
        }
    }

    /// Python does not want more of a body now.
    pub fn pause(&mut self, now: Instant) {
        if let Some(coming) = &mut self.coming {
            self.is_paused = true;
            coming.pace.pause(now);
        }
    }

    pub fn resume(&mut self, now: Instant) {
        self.is_paused = false;
        if let Some(coming) = &mut self.coming {
            coming.pace.resume(now);
        }
    }

    /// What was written is the last; until then what the client still sends is dropped.
    pub fn end(&mut self, last_until: Instant) {
        self.asked = None;
        self.coming = None;
        self.part_since = None;
        self.checked = 0;
        self.input.clear();
        self.is_closing = true;
        self.output.ends = true;
        self.last_until = Some(last_until);
        self.state = State::Last;
    }

    /// Takes the first bytes of the input away.
    pub fn consume(&mut self, bytes: usize) {
        self.input.drain(..bytes);
        self.input.shrink_to(KEPT_BYTES);
    }

    /// Whether the client has closed it, also when nobody has heard of that yet, and when there is
    /// something to read before the end.
    pub fn is_gone(&mut self) -> bool {
        self.has_left |= has_ended(self.stream.as_raw_fd());
        self.is_over()
    }
}
