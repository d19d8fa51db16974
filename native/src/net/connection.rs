//! One connection: its bytes in and out, and who reads them.
//!
//! `front` moves it from state to state; this module must not know verbs.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use mio::net::TcpStream;

use crate::c::has_ended;

/// Bytes that are read of a connection before others have their turn.
pub const TURN_BYTES: usize = 64 * 1024;
/// Bytes that wait to be sent before Python's protocol is told to wait; it hears when all have left.
pub const OUTPUT_BYTES: usize = 64 * 1024;
/// Room that an idle connection keeps.
const KEPT_BYTES: usize = 16 * 1024;

/// Who reads what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// We do: what comes next may be a plain request.
    Ready,
    /// Nobody: a plain request is being answered.
    Asked,
    /// Python's protocol: it is in the middle of something.
    Passed,
}

/// The plain request that is being answered, and what its reply repeats.
#[derive(Debug)]
pub struct Asked {
    pub bytes: usize,
    pub entries: Vec<(Vec<u8>, [u8; 32])>,
}

/// Bytes of a connection's input: of a part of a request, or of what is asked and all that came with
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub part: usize,
    pub asked: usize,
}

#[derive(Debug)]
pub struct Connection {
    pub stream: TcpStream,
    pub id: u64,
    /// Whose it is.
    pub peer: IpAddr,
    pub state: State,
    pub asked: Option<Asked>,
    /// Python has a protocol for it.
    pub is_known: bool,
    pub input: Vec<u8>,
    /// What of it is in the front's sums.
    pub counted: Held,
    pub output: Vec<u8>,
    sent: usize,
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
    /// How often Python's protocol was given bytes.
    pub passes: u32,
    /// Python does not want more now.
    pub is_paused: bool,
    /// Nothing is asked any more: it ends when what was written has left.
    pub is_closing: bool,
    /// The client has ended its side.
    pub has_left: bool,
    /// Nothing that is written arrives any more.
    pub is_broken: bool,
    /// Python has heard that it is over.
    pub is_told: bool,
    /// Our side ends when what was written has left.
    pub ends_output: bool,
    /// Python's protocol was told to wait, or will be.
    pub is_blocked: bool,
    pub is_block_told: bool,
    /// Since when nothing has happened.
    pub idle_since: Instant,
    /// Since when a part of a request is here.
    pub part_since: Option<Instant>,
}

impl Connection {
    pub fn new(stream: TcpStream, id: u64, peer: IpAddr, now: Instant) -> Self {
        Self {
            stream,
            id,
            peer,
            state: State::Ready,
            asked: None,
            is_known: false,
            input: Vec::new(),
            counted: Held::default(),
            output: Vec::new(),
            sent: 0,
            is_readable: true,
            hears_end: true,
            has_end: false,
            is_offered: false,
            has_turn: false,
            passes: 0,
            is_paused: false,
            is_closing: false,
            has_left: false,
            is_broken: false,
            is_told: false,
            ends_output: false,
            is_blocked: false,
            is_block_told: false,
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
            _ if self.state == State::Passed => Held::default(),
            Some(_) => Held { part: self.input.len(), asked: 0 },
            None => Held { part: 0, asked: self.input.len() },
        }
    }

    /// What is not read stays with the client, when the system's buffers are full.
    fn is_full(&self) -> bool {
        match self.state {
            State::Asked => true,
            State::Passed => self.is_paused,
            // A client that does not read its reply is not read either.
            State::Ready => self.unsent() > 0,
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
        // The end stands behind what is not read while somebody waits for an answer.
        self.has_left |= self.has_end && self.state == State::Asked;
    }

    /// Reads once; how many bytes.
    pub fn receive(&mut self, buffer: &mut [u8]) -> usize {
        match self.stream.read(buffer) {
            Ok(0) => self.has_left = true,
            Ok(size) => {
                // What comes after a short read is told of by a new event.
                self.is_readable = size == buffer.len() || self.hears_end;
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
        self.is_readable && !self.is_offered && !self.is_over() && !self.is_closing && !self.is_full()
    }

    /// What waits to be sent.
    pub fn unsent(&self) -> usize {
        self.output.len() - self.sent
    }

    /// Sends what can be sent now; whether anything was.
    pub fn write(&mut self) -> bool {
        let before = self.unsent();
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => self.lose_output(),
                Ok(size) => self.sent += size,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.sent > OUTPUT_BYTES {
                        self.output.drain(..self.sent);
                        self.sent = 0;
                    }
                    return self.unsent() < before;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.lose_output(),
            }
        }
        self.output.clear();
        self.output.shrink_to(KEPT_BYTES);
        self.sent = 0;
        if self.ends_output {
            self.ends_output = false;
            // A client that has gone needs no end; we hear of it when we read.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        before > 0
    }

    fn lose_output(&mut self) {
        self.output.clear();
        self.sent = 0;
        self.is_broken = true;
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
