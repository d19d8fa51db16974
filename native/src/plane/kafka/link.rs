//! One connection to a broker: it logs in, writes requests, and reads answers in their order.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Registry, Token};

use super::bytes::{Malformed, Reader};
use super::login::{Exchange, Next};
use super::lost::{Cause, Lost};
use super::partitions::{Append, Group};
use super::settings::Settings;
use super::wire::{self, Metadata};
use crate::net::stream::Stream;

pub enum Asked {
    Login,
    Metadata,
    Produce(Vec<Group>),
}

pub struct Request {
    correlation: i32,
    /// How many bytes of the connection there are up to its end.
    end: u64,
    pub since: Instant,
    pub asked: Asked,
}

impl Request {
    pub fn topics(&self) -> impl Iterator<Item = &Arc<str>> {
        let groups = match &self.asked {
            Asked::Produce(groups) => groups.as_slice(),
            Asked::Login | Asked::Metadata => &[],
        };
        groups.iter().map(|group| &group.topic)
    }

    pub fn appends(&mut self) -> impl Iterator<Item = &mut Append> {
        let groups = match &mut self.asked {
            Asked::Produce(groups) => groups.as_mut_slice(),
            Asked::Login | Asked::Metadata => &mut [],
        };
        groups.iter_mut().flat_map(|group| &mut group.appends)
    }
}

pub enum Answer {
    /// The connection may be used now.
    Opened,
    Metadata(Metadata),
    Produced(Vec<Group>),
}

#[derive(PartialEq, Eq)]
enum Phase {
    Connecting,
    LoggingIn,
    Ready,
}

pub struct Link {
    settings: Arc<Settings>,
    stream: Stream,
    phase: Phase,
    exchange: Exchange,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Bytes that were put into `output` since the beginning, and those that have left it.
    queued: u64,
    written: u64,
    pub under_way: VecDeque<Request>,
    correlation: i32,
    opened: Instant,
    heard: Instant,
    /// The broker reads nothing before that.
    quiet_until: Option<Instant>,
    /// Nothing is asked any more from then on, because the login ends.
    retires: Option<Instant>,
}

impl Link {
    pub fn open(
        settings: Arc<Settings>,
        host: &str,
        address: SocketAddr,
        (registry, token): (&Registry, Token),
        now: Instant,
    ) -> std::io::Result<Self> {
        let mut stream = Stream::tcp(address, settings.tls.as_ref().map(|tls| (tls, host)))?;
        stream.register(registry, token)?;
        Ok(Self {
            exchange: Exchange::new(settings.clone()),
            settings,
            stream,
            phase: Phase::Connecting,
            input: Vec::new(),
            output: Vec::new(),
            queued: 0,
            written: 0,
            under_way: VecDeque::new(),
            correlation: 0,
            opened: now,
            heard: now,
            quiet_until: None,
            retires: None,
        })
    }

    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Whether one more request may be written now.
    pub fn has_room(&self, now: Instant) -> bool {
        self.is_ready()
            && self.under_way.len() < self.settings.in_flight
            && self.quiet_until.is_none_or(|until| until <= now)
            && self.retires.is_none_or(|at| now < at)
    }

    /// Reads what has come, and writes what waits. `answers` gets what was read.
    pub fn turn(&mut self, scratch: &mut [u8], answers: &mut Vec<Answer>, now: Instant) -> Result<(), Lost> {
        if self.phase == Phase::Connecting {
            if !self.stream.open()? {
                return Ok(());
            }
            self.phase = Phase::LoggingIn;
            self.ask(Asked::Login, now, wire::put_versions);
        }
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return Err(self.ended()),
                Ok(size) => self.input.extend_from_slice(&scratch[..size]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.flush(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
            self.answers(answers, now)?;
        }
    }

    fn ended(&self) -> Lost {
        match (&self.phase, self.under_way.is_empty()) {
            (Phase::Ready, true) => Lost::new(Cause::Idle, "the broker closed the connection"),
            (Phase::Ready, false) => Lost::new(Cause::Transport, "the broker closed the connection"),
            _ => Lost::new(Cause::Transport, "the broker closed the connection before it answered"),
        }
    }

    /// Writes what can be written now.
    pub fn flush(&mut self) -> Result<(), Lost> {
        if self.phase != Phase::Connecting {
            let size = self.stream.write(&self.output)?;
            self.written += size as u64;
            if size == self.output.len() {
                self.output.clear();
                self.output.shrink_to(KEPT_BYTES);
            } else {
                self.output.drain(..size);
            }
        }
        Ok(())
    }

    /// Puts a request into the output; `put` writes it. Call `flush` after it.
    pub fn ask(&mut self, asked: Asked, now: Instant, put: impl FnOnce(&mut Vec<u8>, i32, &str)) {
        let before = self.output.len();
        put(&mut self.output, self.correlation, &self.settings.client_id);
        self.queued += (self.output.len() - before) as u64;
        self.under_way.push_back(Request { correlation: self.correlation, end: self.queued, since: now, asked });
        self.correlation = self.correlation.wrapping_add(1);
    }

    pub fn ask_metadata<T: AsRef<str>>(&mut self, topics: &[T], now: Instant) {
        self.ask(Asked::Metadata, now, |output, correlation, id| wire::put_metadata(output, correlation, id, topics));
    }

    pub fn ask_produce(&mut self, groups: Vec<Group>, now: Instant) {
        let before = self.output.len();
        let ms = self.settings.replicas_ms();
        wire::put_produce(&mut self.output, self.correlation, &self.settings.client_id, ms, &groups);
        self.queued += (self.output.len() - before) as u64;
        let asked = Asked::Produce(groups);
        self.under_way.push_back(Request { correlation: self.correlation, end: self.queued, since: now, asked });
        self.correlation = self.correlation.wrapping_add(1);
    }

    /// Whether the broker may have got a request whole.
    pub fn may_have(&self, request: &Request) -> bool {
        request.end <= self.written
    }

    /// Returns why the connection is to be closed now, if it is.
    pub fn overdue(&self, now: Instant) -> Option<Lost> {
        if !self.is_ready() && now > self.opened + self.settings.connect {
            return Some(Lost::new(Cause::TimedOut, "the broker let nobody in in time"));
        }
        let Some(oldest) = self.under_way.front() else {
            let retires = self.retires.is_some_and(|at| at <= now);
            let is_over = self.is_ready() && (retires || now > self.heard + self.settings.idle);
            return is_over.then(|| Lost::new(Cause::Idle, "the connection was not used"));
        };
        let since = oldest.since.max(self.heard).max(self.quiet_until.unwrap_or(self.heard));
        (now > since + self.settings.request)
            .then(|| Lost::new(Cause::TimedOut, &format!("no answer in {} ms", self.settings.request.as_millis())))
    }

    fn answers(&mut self, answers: &mut Vec<Answer>, now: Instant) -> Result<(), Lost> {
        let (mut input, mut at) = (std::mem::take(&mut self.input), 0);
        while let Some(head) = input[at..].first_chunk() {
            let size = usize::try_from(i32::from_be_bytes(*head)).map_err(|_| Malformed)?;
            if size > wire::ANSWER_BYTES {
                return Err(Malformed.into());
            }
            let Some(frame) = input.get(at + 4..at + 4 + size) else { break };
            at += 4 + size;
            let mut frame = Reader::new(frame);
            let request = self.under_way.pop_front().ok_or(Malformed)?;
            self.heard = now;
            if frame.int32()? != request.correlation {
                // What the others are answers to, nobody knows.
                self.under_way.push_front(request);
                return Err(Malformed.into());
            }
            match request.asked {
                Asked::Login => match self.exchange.hear(&mut frame)? {
                    Next::Say(put) => self.ask(Asked::Login, now, put),
                    Next::Ready(lifetime) => {
                        self.phase = Phase::Ready;
                        self.retires = lifetime.map(|lifetime| now + lifetime * 4 / 5);
                        answers.push(Answer::Opened);
                    }
                },
                Asked::Metadata => answers.push(Answer::Metadata(wire::metadata(&mut frame)?)),
                Asked::Produce(mut groups) => {
                    // Groups that the answer does not name, or that stand behind what can't be read,
                    // have no outcome.
                    let throttle = wire::produced(&mut frame, &mut groups);
                    answers.push(Answer::Produced(groups));
                    let throttle = Duration::from_millis(u64::try_from(throttle?).unwrap_or(0));
                    self.quiet_until = (!throttle.is_zero()).then(|| now + throttle);
                }
            }
        }
        input.drain(..at);
        input.shrink_to(KEPT_BYTES);
        self.input = input;
        Ok(())
    }
}

/// Room that a connection keeps while nothing is under way.
const KEPT_BYTES: usize = 256 * 1024;
