//! The brokers that are known by an address, and the connection to each.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Registry, Token};

use super::link::{Answer, Link, Request};
use super::lost::{Cause, Lost};
use super::names::Names;
use super::partitions::Append;
use super::settings::Settings;

/// When nobody was reached by then, the next broker is tried as well.
pub const ELSEWHERE: Duration = Duration::from_secs(1);

pub struct Node {
    host: String,
    port: u16,
    /// It was named at the start, so it is never forgotten.
    is_first: bool,
    addresses: VecDeque<SocketAddr>,
    is_looked_up: bool,
    pub link: Option<Link>,
    retry_at: Instant,
    pause: Duration,
    trouble: Option<Lost>,
}

impl Node {
    fn new(host: &str, port: u16, is_first: bool, now: Instant) -> Self {
        Self {
            host: host.to_owned(),
            port,
            is_first,
            addresses: VecDeque::new(),
            is_looked_up: false,
            link: None,
            retry_at: now,
            pause: Duration::ZERO,
            trouble: None,
        }
    }

    pub fn is_ready(&self) -> bool {
        self.link.as_ref().is_some_and(Link::is_ready)
    }

    fn is_opening(&self) -> bool {
        self.is_looked_up || self.link.as_ref().is_some_and(|link| !link.is_ready())
    }
}

pub struct Nodes {
    settings: Arc<Settings>,
    registry: Registry,
    /// The token of `names`; those of the nodes follow by their places.
    first: usize,
    most: usize,
    all: Vec<Node>,
    names: Names,
    /// Which is tried next, and when the last one was.
    next: usize,
    tried: Option<Instant>,
}

impl Nodes {
    /// `tokens`: which of the poll are free for this; two at least.
    pub fn new(
        settings: Arc<Settings>,
        registry: Registry,
        tokens: std::ops::Range<usize>,
        now: Instant,
    ) -> std::io::Result<Self> {
        let most = tokens.len().saturating_sub(1);
        let first = settings.bootstrap.iter().take(most);
        let all = first.map(|(host, port)| Node::new(host, *port, true, now)).collect();
        let names = Names::new(&registry, Token(tokens.start))?;
        Ok(Self { settings, registry, first: tokens.start, most, all, names, next: 0, tried: None })
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn get(&mut self, place: usize) -> &mut Node {
        &mut self.all[place]
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.all.iter().enumerate()
    }

    /// Returns the place of a broker by its address; None when there are too many. `is_used` says which
    /// places have a broker now.
    pub fn place(&mut self, host: &str, port: u16, now: Instant, is_used: impl Fn(usize) -> bool) -> Option<usize> {
        if let Some(place) = self.all.iter().position(|node| node.host == host && node.port == port) {
            return Some(place);
        }
        let is_free = |(place, node): &(usize, &Node)| {
            !node.is_first && node.link.is_none() && !node.is_looked_up && !is_used(*place)
        };
        if let Some((place, _)) = self.all.iter().enumerate().find(is_free) {
            self.all[place] = Node::new(host, port, false, now);
            return Some(place);
        }
        (self.all.len() < self.most).then(|| {
            self.all.push(Node::new(host, port, false, now));
            self.all.len() - 1
        })
    }

    /// Begins to connect, unless that is under way or has failed just now.
    pub fn open(&mut self, place: usize, now: Instant) -> Option<(usize, Lost)> {
        let node = &mut self.all[place];
        if node.link.is_some() || node.is_looked_up || now < node.retry_at {
            return None;
        }
        let Some(address) = node.addresses.pop_front() else {
            node.is_looked_up = true;
            self.names.ask(place, &node.host, node.port);
            return self.look_up(now);
        };
        let token = Token(self.first + 1 + place);
        match Link::open(self.settings.clone(), &node.host, address, (&self.registry, token), now) {
            Ok(link) => node.link = Some(link),
            Err(error) => return Some((place, error.into())),
        }
        None
    }

    /// Goes on with names whose addresses have come. Returns a node that has none.
    pub fn look_up(&mut self, now: Instant) -> Option<(usize, Lost)> {
        while let Some((place, found)) = self.names.found() {
            let node = &mut self.all[place];
            node.is_looked_up = false;
            let failed = match found {
                Ok(addresses) if !addresses.is_empty() => {
                    node.addresses = addresses.into();
                    self.open(place, now)
                }
                Ok(_) => Some((place, Lost::new(Cause::Resolve, &format!("{} has no address", node.host)))),
                Err(error) => Some((place, Lost::new(Cause::Resolve, &format!("{}: {error}", node.host)))),
            };
            if failed.is_some() {
                return failed;
            }
        }
        None
    }

    /// Opens a connection to any broker, when there is none, and to one more whenever that takes long.
    pub fn open_any(&mut self, now: Instant) -> Option<(usize, Lost)> {
        let is_tried = self.tried.is_some_and(|at| now < at + ELSEWHERE);
        if self.all.iter().any(Node::is_ready) || (is_tried && self.all.iter().any(Node::is_opening)) {
            return None;
        }
        let order = (0..self.all.len()).map(|step| (self.next + step) % self.all.len());
        let free = |place: &usize| !self.all[*place].is_opening() && self.all[*place].retry_at <= now;
        let place = order.into_iter().find(free)?;
        (self.next, self.tried) = (place + 1, Some(now));
        self.open(place, now)
    }

    /// Returns a node that answers, the one with the least to do, if it can be without `busy`.
    pub fn any_ready(&self, busy: Option<usize>) -> Option<usize> {
        let load = |node: &Node| node.link.as_ref().map_or(0, |link| link.under_way.len());
        let ready = self.iter().filter(|(_, node)| node.is_ready());
        ready.min_by_key(|(place, node)| (Some(*place) == busy, load(node))).map(|(place, _)| place)
    }

    /// Returns the place of a token, if it is a node's.
    pub fn of_token(&mut self, token: Token) -> Option<usize> {
        if token.0 == self.first {
            self.names.hear();
        }
        token.0.checked_sub(self.first + 1).filter(|place| *place < self.all.len())
    }

    /// Reads and writes what can be.
    pub fn turn(
        &mut self,
        place: usize,
        scratch: &mut [u8],
        answers: &mut Vec<Answer>,
        now: Instant,
    ) -> Result<(), Lost> {
        let node = &mut self.all[place];
        let Some(link) = node.link.as_mut() else { return Ok(()) };
        let turned = link.turn(scratch, answers, now);
        if answers.iter().any(|answer| matches!(answer, Answer::Opened)) {
            (node.pause, node.trouble) = (Duration::ZERO, None);
        }
        turned
    }

    /// Takes the connection of a node away, which is tried again later.
    pub fn lose(&mut self, place: usize, lost: &Lost, now: Instant) -> Option<Link> {
        let (least, most) = self.settings.backoff;
        let node = &mut self.all[place];
        let link = node.link.take();
        if lost.cause == Cause::Idle {
            node.retry_at = now;
            return link;
        }
        node.trouble = Some(lost.clone());
        if node.addresses.is_empty() || link.as_ref().is_some_and(Link::is_ready) {
            node.addresses.clear();
            node.pause = (node.pause * 2).clamp(least, most);
            node.retry_at = now + node.pause;
        }
        link
    }

    /// Returns connections that are to be closed.
    pub fn overdue(&self, now: Instant) -> Vec<(usize, Lost)> {
        let lost = |(place, node): (usize, &Node)| Some((place, node.link.as_ref()?.overdue(now)?));
        self.iter().filter_map(lost).collect()
    }

    /// Returns all appends that were sent and have no answer.
    pub fn under_way(&mut self) -> impl Iterator<Item = &mut Append> {
        let requests = self.all.iter_mut().filter_map(|node| node.link.as_mut()).flat_map(|link| &mut link.under_way);
        requests.flat_map(Request::appends)
    }

    /// Returns topics of what was sent before `since` and has no answer.
    pub fn slow(&self, since: Instant) -> impl Iterator<Item = &Arc<str>> {
        let requests = self.all.iter().filter_map(|node| node.link.as_ref()).flat_map(|link| &link.under_way);
        requests.filter(move |request| request.since < since).flat_map(Request::topics)
    }

    /// Returns why a broker is not reached, if one is not.
    pub fn trouble(&self) -> Option<(String, &Lost)> {
        let told =
            |node: &Node| node.trouble.as_ref().map(|lost| format!("{}:{}: {}", node.host, node.port, lost.text));
        self.all.iter().find_map(|node| told(node).zip(node.trouble.as_ref()))
    }
}
