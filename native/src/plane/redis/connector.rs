//! Opens sockets to Redis: one attempt at a time, with a pause that grows between them.
//!
//! A name is looked up by a thread, for nothing else can without waiting: at most one of them lives,
//! and what a late one has found serves the next attempt.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{channel, Receiver, TryRecvError};
use std::time::{Duration, Instant};

use super::address::{Address, Place};
use super::limits::seconds;
use crate::net::stream::Stream;

/// How often a lookup that is under way is asked for its result.
const LOOKUP: Duration = Duration::from_millis(5);

type Found = io::Result<Vec<SocketAddr>>;

pub struct Connector {
    back_off_s: Vec<f64>,
    patience: Duration,
    /// The attempts that failed since Redis was in use.
    failures: usize,
    next_at: Instant,
    lookup: Option<Receiver<Found>>,
    lookup_since: Instant,
    /// What is to be tried before an attempt counts as failed.
    addresses: VecDeque<SocketAddr>,
    /// The reason that was told last.
    told: String,
}

impl Connector {
    /// `patience`: for how long a name is looked up.
    pub fn new(back_off_s: Vec<f64>, patience: Duration) -> Self {
        let now = Instant::now();
        Self {
            back_off_s,
            patience,
            failures: 0,
            next_at: now,
            lookup: None,
            lookup_since: now,
            addresses: VecDeque::new(),
            told: String::new(),
        }
    }

    /// When `connect` has something to do.
    pub fn wake_at(&self) -> Instant {
        if self.lookup.is_some() {
            self.next_at.max(Instant::now() + LOOKUP)
        } else {
            self.next_at
        }
    }

    /// A socket that has begun to connect, if one is to be opened now and it is known where.
    pub fn connect(&mut self, to: &Address, now: Instant) -> io::Result<Option<Stream>> {
        if now < self.next_at {
            return Ok(None);
        }
        let (host, port) = match &to.place {
            Place::Unix(path) => return Stream::unix(path).map(Some),
            Place::Tcp { host, port } => (host, *port),
        };
        if self.addresses.is_empty() {
            if let Ok(address) = host.parse::<IpAddr>() {
                self.addresses.push_back(SocketAddr::new(address, port));
            } else if let Some(found) = self.look_up(host, port, now)? {
                self.addresses = found.into();
                // If the first one leads nowhere, each attempt ends there before others are tried.
                let first = self.failures % self.addresses.len().max(1);
                self.addresses.rotate_left(first);
            } else {
                return Ok(None);
            }
        }
        match self.addresses.pop_front() {
            Some(address) => Stream::tcp(address, to.tls.as_ref().map(|tls| (tls, host.as_str()))).map(Some),
            None => Err(io::Error::other("the name has no address")),
        }
    }

    fn look_up(&mut self, host: &str, port: u16, now: Instant) -> io::Result<Option<Vec<SocketAddr>>> {
        let Some(lookup) = &self.lookup else {
            let (sender, receiver) = channel();
            let name = (host.to_owned(), port);
            let work = move || drop(sender.send(name.to_socket_addrs().map(Iterator::collect)));
            std::thread::Builder::new().name("lookup".into()).spawn(work)?;
            (self.lookup, self.lookup_since) = (Some(receiver), now);
            return Ok(None);
        };
        let found = match lookup.try_recv() {
            Err(TryRecvError::Empty) if now < self.lookup_since + self.patience => return Ok(None),
            Err(TryRecvError::Empty) => {
                self.lookup_since = now;
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the name was not found in time"));
            }
            Ok(found) => found,
            Err(TryRecvError::Disconnected) => Err(io::Error::other("the lookup of the name broke off")),
        };
        self.lookup = None;
        found.map(Some)
    }

    /// Takes in that an attempt failed. Returns whether the reason is news.
    pub fn note_failed(&mut self, reason: &str, now: Instant) -> bool {
        if self.addresses.is_empty() {
            let last = self.back_off_s.len().saturating_sub(1);
            self.next_at =
                now + self.back_off_s.get(self.failures.min(last)).map_or(Duration::ZERO, |pause| seconds(*pause));
            self.failures += 1;
        }
        let is_news = self.told != reason;
        if is_news {
            self.told = reason.to_owned();
        }
        is_news
    }

    /// Takes in that the connection is in use: when it is lost the next attempt is at once.
    pub fn note_used(&mut self, now: Instant) {
        (self.failures, self.next_at) = (0, now);
        self.addresses.clear();
        self.told.clear();
    }
}
