//! One connection to Redis: its socket, its commands, and since when it is silent.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use super::address::Address;
use super::calls::{Calls, Ended};
use super::resp::{Parser, Reply};
use crate::net::stream::Stream;

/// A process that stood still itself has not read yet what came meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stage {
    Connecting,
    Greeting,
    Greeted,
}

pub struct Link {
    pub number: u64,
    pub stream: Stream,
    pub calls: Calls,
    pub parser: Parser,
    pub stage: Stage,
    /// Whether its server was in use at any time.
    pub is_used: bool,
    /// What the replies to come of the greeting are to.
    greeting: VecDeque<&'static str>,
    /// Since when it is in its stage, or waits for bytes.
    since: Instant,
    suspect: Option<Instant>,
}

impl Link {
    pub fn new(number: u64, stream: Stream, most: usize, now: Instant) -> Self {
        Self {
            number,
            stream,
            calls: Calls::default(),
            parser: Parser::new(most),
            stage: Stage::Connecting,
            is_used: false,
            greeting: VecDeque::new(),
            since: now,
            suspect: None,
        }
    }

    /// Begins the greeting when the socket is connected. Returns whether it is.
    pub fn open(&mut self, address: &Address, now: Instant) -> io::Result<bool> {
        if self.stage != Stage::Connecting {
            return Ok(true);
        }
        if !self.stream.open()? {
            return Ok(false);
        }
        (self.stage, self.since) = (Stage::Greeting, now);
        if let Some((user, password)) = &address.login {
            match user {
                Some(user) => self.greet("AUTH", &[user, password]),
                None => self.greet("AUTH", &[password]),
            }
        }
        if address.database != 0 {
            self.greet("SELECT", &[address.database.to_string().as_bytes()]);
        }
        self.greet("INFO", &[]);
        Ok(true)
    }

    fn greet(&mut self, name: &'static str, words: &[&[u8]]) {
        let words: Vec<&[u8]> = std::iter::once(name.as_bytes()).chain(words.iter().copied()).collect();
        self.calls.greet(&words);
        self.greeting.push_back(name);
    }

    /// Takes in a reply of the greeting. Returns what INFO said, when it is the last one.
    pub fn greeted(&mut self, reply: Reply) -> Result<Option<Vec<u8>>, String> {
        let name = self.greeting.pop_front().unwrap_or_default();
        match reply {
            Reply::Error(text) => Err(format!("Redis refused {name}: {}", String::from_utf8_lossy(&text))),
            Reply::Bytes(info) if self.greeting.is_empty() => {
                self.stage = Stage::Greeted;
                Ok(Some(info))
            }
            _ if self.greeting.is_empty() => Err(format!("Redis answered {name} with no text")),
            _ => Ok(None),
        }
    }

    /// To be called before a command is added.
    pub fn note_asked(&mut self) {
        if self.calls.is_empty() {
            (self.since, self.suspect) = (Instant::now(), None);
        }
    }

    pub fn note_heard(&mut self, now: Instant) {
        if self.stage == Stage::Greeted {
            (self.since, self.suspect) = (now, None);
        }
    }

    pub fn would_write(&self) -> bool {
        !self.calls.unsent().is_empty() || self.stream.holds_output()
    }

    /// Writes what the socket takes.
    pub fn write(&mut self) -> io::Result<()> {
        let sent = self.stream.write(self.calls.unsent())?;
        self.calls.note_sent(sent);
        Ok(())
    }

    /// Takes back what was not written; calls among it are added to `ended`. Returns whether bytes of a
    /// command would follow all the same, or of one that was written in part.
    pub fn hold_back(&mut self, ended: &mut Vec<Ended>) -> bool {
        self.calls.drop_unsent(ended) || self.stream.holds_output()
    }

    /// Why it is to be cut now, if it is.
    pub fn overdue(&mut self, connect: Duration, reply: Duration, now: Instant) -> Option<String> {
        if self.ends_at(connect, reply).is_none_or(|at| now < at) {
            return None;
        }
        match self.stage {
            Stage::Connecting => Some(format!("no connection within {} s", connect.as_secs_f64())),
            Stage::Greeting => Some(format!("no answer to the greeting within {} s", connect.as_secs_f64())),
            Stage::Greeted if self.suspect.is_none() => {
                self.suspect = Some(now);
                None
            }
            Stage::Greeted => Some(format!("no reply for {} s", reply.as_secs_f64())),
        }
    }

    /// When `overdue` has something to do.
    pub fn ends_at(&self, connect: Duration, reply: Duration) -> Option<Instant> {
        match (self.stage, self.suspect) {
            (Stage::Connecting | Stage::Greeting, _) => Some(self.since + connect),
            _ if self.calls.is_empty() => None,
            (Stage::Greeted, None) => Some(self.since + reply),
            (Stage::Greeted, Some(at)) => Some(at + LOOK_AGAIN),
        }
    }
}
