//! One connection to Redis: its socket, its commands, and since when it is silent. A turn writes what the
//! fence lets through, and reads replies.

use std::collections::VecDeque;
use std::io;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use super::address::Address;
use super::calls::{Calls, Command, Ended};
use super::resp::{Parser, Reply};
use super::{Failure, News, Redis, HALF_SENT};
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

/// How much is read before others have their turn.
const READ_AT_ONCE: usize = 4 * 1024 * 1024;
/// How often a call is made again because Redis forgot its script meanwhile.
const MOST_LOADS: usize = 5;
const UNCONFIRMED: &str = "Kafka did not confirm in time that this Redis is the one in use";

impl Redis {
    pub(super) fn serve(&mut self, link: &mut Link, registry: &mio::Registry, buffer: &mut [u8]) -> Result<(), String> {
        if !link.open(&self.address, Instant::now()).map_err(|error| error.to_string())? {
            return Ok(());
        }
        self.write(link)?;
        let mut read = 0;
        while read < READ_AT_ONCE || link.stream.holds_input() {
            match link.stream.read(buffer) {
                Ok(0) => return Err("Redis closed the connection".into()),
                Ok(size) => {
                    read += size;
                    link.note_heard(Instant::now());
                    self.read(link, &buffer[..size])?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.write(link),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        link.stream.tell_again(registry, self.token).map_err(|error| error.to_string())?;
        self.write(link)
    }

    /// Writes what was begun, unless its time is over: then it is not sent.
    pub(super) fn write(&mut self, link: &mut Link) -> Result<(), String> {
        if let Some(token) = link.calls.take_unfinished() {
            self.answer(token, Err(Failure::NotSent));
        }
        match link.stage {
            Stage::Connecting => return Ok(()),
            Stage::Greeted if link.would_write() && !self.is_in_time() => return self.hold_back(link),
            _ => {}
        }
        link.write().map_err(|error| error.to_string())
    }

    /// Fails when a command was written in part: Redis must not get the other one.
    fn hold_back(&mut self, link: &mut Link) -> Result<(), String> {
        let mut ended = Vec::new();
        let is_partial = link.hold_back(&mut ended);
        ended.iter().for_each(|call| self.answer(call.token, Err(Failure::NotSent)));
        if is_partial {
            return Err(HALF_SENT.into());
        }
        Ok(())
    }

    fn read(&mut self, link: &mut Link, mut input: &[u8]) -> Result<(), String> {
        while let Some(reply) = link.parser.next(&mut input)? {
            self.heard(link, reply)?;
        }
        Ok(())
    }

    fn heard(&mut self, link: &mut Link, reply: Reply) -> Result<(), String> {
        match link.calls.next_answered() {
            None => return Err("Redis sent a reply that nothing has asked for".into()),
            Some(Command::Greeting) => {
                if let Some(info) = link.greeted(reply)? {
                    self.news.push_back(News::Greeted { link: link.number, info });
                }
            }
            // Why a script could not be loaded is no matter: its call tells.
            Some(Command::Load(_) | Command::Forgotten) => {}
            Some(Command::Call { token, unknown, .. }) => {
                let (is_in_time, is_unknown) = (self.is_in_time(), unknown < MOST_LOADS && is_no_script(&reply));
                if is_in_time && is_unknown {
                    link.calls.again(&self.scripts);
                    return Ok(());
                }
                self.answer(
                    token,
                    match reply {
                        _ if is_unknown => Err(Failure::NotSent),
                        _ if !is_in_time => Err(Failure::Unknown(UNCONFIRMED.into())),
                        Reply::Error(text) => Err(Failure::Refused(String::from_utf8_lossy(&text).into_owned())),
                        reply => Ok(reply),
                    },
                );
            }
        }
        link.calls.answered();
        Ok(())
    }

    pub(super) fn answer(&mut self, token: u64, outcome: Result<Reply, Failure>) {
        self.news.push_back(News::Answer { token, outcome });
    }
}

/// Whether Redis does not know the script, and so did nothing.
fn is_no_script(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with(b"NOSCRIPT"))
}
