//! Calls of scripts in Redis, over one connection that comes back by itself.
//!
//! One thread drives it, by a poll of its own; nothing waits. A connection is of no use until Python
//! has judged its server by INFO and admitted it, for a time (docs/decisions/0041): that time is
//! compared before a call is sent and again at its reply. All commands of a turn leave in one write.
//! Scripts are loaded when a connection is admitted first, and again when Redis has forgotten them:
//! such a call is made again, behind calls that were begun after it.

pub mod address;
mod calls;
mod connector;
mod encryption;
mod limits;
mod link;
mod news;
pub mod probe;
#[cfg(test)]
mod redis_tests;
mod resp;
#[cfg(test)]
mod resp_tests;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub use address::Address;
pub use calls::Script;
use calls::{Ended, Prepared};
use connector::Connector;
use limits::seconds;
pub use limits::Limits;
use link::{Link, Stage};
pub use news::{Failure, News};
pub use resp::{put_number, put_word, Reply};

const ELSEWHERE: &str = "another Redis came into use before this one answered";
const HALF_SENT: &str = "this Redis may not be used any more, and a command was written in part";

pub struct Redis {
    address: Address,
    scripts: Vec<Prepared>,
    connect: Duration,
    reply: Duration,
    bytes: usize,
    reply_bytes: usize,
    connector: Connector,
    link: Option<Link>,
    links: u64,
    token: mio::Token,
    /// Until when the link's server is the one in use, by the clock that nobody sets; 0 = it is not.
    until: f64,
    news: VecDeque<News>,
}

impl Redis {
    /// Nothing is opened before `tick`.
    pub fn new(address: Address, scripts: Vec<Script>, limits: Limits) -> Self {
        let connect = seconds(limits.connect_s);
        Self {
            address,
            scripts: scripts.iter().map(Prepared::new).collect(),
            connect,
            reply: seconds(limits.reply_s),
            bytes: limits.bytes,
            reply_bytes: limits.reply_bytes,
            connector: Connector::new(limits.back_off_s, connect),
            link: None,
            links: 0,
            token: mio::Token(0),
            until: 0.0,
            news: VecDeque::new(),
        }
    }

    /// Takes in that the server of this link is the one in use until then, by `boot_s`; a later call
    /// only adds time. Of a link that is no more it is ignored.
    pub fn admit(&mut self, link: u64, until: f64) {
        let Some(current) = self.link.as_mut().filter(|current| current.number == link) else { return };
        if current.stage != Stage::Greeted {
            return;
        }
        self.until = self.until.max(until);
        if !current.is_used {
            current.is_used = true;
            current.note_asked();
            self.scripts.iter().enumerate().for_each(|(at, script)| current.calls.load(at, script));
            self.connector.note_used(Instant::now());
        }
    }

    /// Ends all calls, and sends nothing more until `admit`.
    pub fn shut(&mut self) {
        self.until = 0.0;
        let Some(mut link) = self.link.take() else { return };
        self.end_calls(&mut link, ELSEWHERE);
        if link.stage == Stage::Greeted && link.hold_back(&mut Vec::new()) {
            self.lose(link, HALF_SENT);
        } else {
            self.link = Some(link);
        }
    }

    /// Cuts a link, if it is still there: the next one looks the address up again, after a pause when
    /// this one was never in use.
    pub fn leave(&mut self, link: u64, reason: &str) {
        if let Some(link) = self.link.take_if(|current| current.number == link) {
            self.lose(link, reason);
        }
    }

    /// Whether a call may begin.
    pub fn is_open(&self) -> bool {
        self.link.is_some() && self.is_in_time()
    }

    fn is_in_time(&self) -> bool {
        self.until > 0.0 && crate::system::boot_s() < self.until
    }

    /// Begins a call of a script: `ready` are `words` further words as RESP, from the number of keys on;
    /// `more` words follow by `word` and `number`. Returns whether it was begun: else nothing is sent,
    /// and there will be no answer.
    pub fn begin(&mut self, token: u64, script: usize, words: usize, ready: &[u8], more: usize) -> bool {
        let is_open = self.is_open();
        let (Some(link), Some(prepared)) = (&mut self.link, self.scripts.get(script)) else { return false };
        if !is_open || link.calls.under_way() + ready.len() > self.bytes {
            return false;
        }
        if let Some(token) = link.calls.take_unfinished() {
            self.news.push_back(News::Answer { token, outcome: Err(Failure::NotSent) });
        }
        link.note_asked();
        link.calls.begin(token, script, prepared, words, ready, more);
        true
    }

    /// Adds a word to the call that was begun last.
    pub fn word(&mut self, word: &[u8]) {
        if let Some(link) = &mut self.link {
            link.calls.word(word);
        }
    }

    pub fn number(&mut self, value: i64) {
        if let Some(link) = &mut self.link {
            link.calls.number(value);
        }
    }

    /// Sends what was begun. A call without all of its words is not sent.
    pub fn flush(&mut self, _registry: &mio::Registry) {
        let Some(mut link) = self.link.take() else { return };
        let written = self.write(&mut link);
        self.keep(link, written);
    }

    /// Reads and writes; to be called for each event of the socket, with room to read into.
    pub fn ready(&mut self, registry: &mio::Registry, _readable: bool, _writable: bool, buffer: &mut [u8]) {
        let Some(mut link) = self.link.take() else { return };
        let served = self.serve(&mut link, registry, buffer);
        self.keep(link, served);
    }

    /// Connects, with `token`, and cuts a link that is silent; to be called at `wake_at`, and now and
    /// then.
    pub fn tick(&mut self, registry: &mio::Registry, token: mio::Token) {
        self.token = token;
        let now = Instant::now();
        if let Some(mut link) = self.link.take() {
            let overdue = link.overdue(self.connect, self.reply, now).map_or(Ok(()), Err);
            self.keep(link, overdue);
        }
        if self.link.is_none() {
            self.connect(registry, now);
        }
    }

    /// When `tick` has something to do.
    pub fn wake_at(&self) -> Option<Instant> {
        match &self.link {
            Some(link) => link.ends_at(self.connect, self.reply),
            None => Some(self.connector.wake_at()),
        }
    }

    /// What happened since the last call.
    pub fn news(&mut self) -> VecDeque<News> {
        std::mem::take(&mut self.news)
    }

    fn connect(&mut self, registry: &mio::Registry, now: Instant) {
        let opened = self.connector.connect(&self.address, now).and_then(|found| {
            let Some(mut stream) = found else { return Ok(None) };
            stream.register(registry, self.token).map(|()| Some(stream))
        });
        match opened {
            Ok(None) => {}
            Ok(Some(stream)) => {
                self.links += 1;
                self.link = Some(Link::new(self.links, stream, self.reply_bytes, now));
            }
            Err(error) => {
                let reason = error.to_string();
                if self.connector.note_failed(&reason, now) {
                    self.news.push_back(News::Lost { link: self.links, reason });
                }
            }
        }
    }

    fn keep(&mut self, link: Link, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.link = Some(link),
            Err(reason) => self.lose(link, &reason),
        }
    }

    fn lose(&mut self, mut link: Link, reason: &str) {
        self.until = 0.0;
        self.end_calls(&mut link, &format!("the connection to Redis was lost before the reply: {reason}"));
        let is_news = if link.is_used {
            self.connector.note_used(Instant::now());
            true
        } else {
            self.connector.note_failed(reason, Instant::now())
        };
        if is_news || link.stage == Stage::Greeted {
            self.news.push_back(News::Lost { link: link.number, reason: reason.to_owned() });
        }
    }

    fn end_calls(&mut self, link: &mut Link, reason: &str) {
        let mut ended = Vec::new();
        link.calls.forget(&mut ended);
        for Ended { token, sent } in ended {
            let failure = if sent { Failure::Unknown(reason.to_owned()) } else { Failure::NotSent };
            self.answer(token, Err(failure));
        }
    }
}
