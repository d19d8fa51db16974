//! The plane in a front: what it has of it, what a request asks of it, and what it has served: answers to
//! clients, and news for Python.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Instant;

use mio::Waker;

use super::asks::Routes;
use crate::dialects::Repeats;
use crate::json::Scanner;
use crate::net::asked::Asked;
use crate::net::front::Front;
use crate::net::news;
use crate::plane::ask::{values, Ask, Asker, Content, Handles, Held, Value, What};
use crate::plane::clients::{Clients, Delivery, Done, News, Word};
use crate::plane::format::record::Records;
use crate::plane::kafka::Producer;
use crate::plane::redis::Redis;
use crate::plane::routes::{Route, MAY_SEND_ATTRIBUTES};
use crate::plane::whys::{Why, Whys};
use crate::plane::Plane;
use crate::requests::{Entry, Request, Verb};
use crate::system::Bell;

const BUFFER_BYTES: usize = 256 * 1024;

/// What a front has of the plane.
#[derive(Default)]
pub struct Planes {
    /// Not here while it works.
    pub plane: Option<Box<Plane<Redis>>>,
    pub asks: VecDeque<Ask>,
    /// Why requests went to Python.
    pub whys: Whys,
    /// Connections whose requests wait until Python has heard of their lanes.
    pub unlearnt: HashMap<u64, Vec<u64>>,
    pub routes: Routes,
    /// Not here while the plane works.
    pub(super) kafka: Option<Producer>,
    records: Option<Records>,
    /// What may become of a handle.
    pub(super) words: Arc<[Word]>,
    /// The next batch of a send has a name of its own.
    random: u64,
    made: Cell<u64>,
    /// What Python watches while a thread polls, and whether it was rung since Python last looked.
    pub(super) bell: Option<Arc<Bell>>,
    pub(super) is_told: bool,
    pub stops: bool,
    /// A test wants to see what a panic of the thread does.
    pub panics: bool,
    pub(super) waker: Option<Waker>,
    pub(super) buffer: Vec<u8>,
    pub(super) json: Vec<u8>,
    pub(super) ticked: Option<Instant>,
    /// Of how many answers Python hears of one, and how many were given since.
    line_every: u64,
    unlined: u64,
}

impl Planes {
    pub(super) fn add(&mut self, plane: Plane<Redis>, producer: Producer, waker: Waker, bell: Arc<Bell>) {
        self.kafka = Some(producer);
        self.records = Some(plane.records().clone());
        self.words = plane.words();
        self.line_every = plane.line_every();
        // Different for each process, and for each front of one.
        self.random = RandomState::new().build_hasher().finish();
        self.waker = Some(waker);
        self.plane = Some(Box::new(plane));
        self.bell = Some(bell);
        self.buffer = vec![0; BUFFER_BYTES];
    }

    /// A request of a route that the plane may serve, and what its answer repeats; or why it is
    /// Python's.
    pub fn ask(
        &self,
        connection: u64,
        lane: u64,
        verb: Verb,
        request: &mut Request,
        scanner: &Scanner,
        now: Instant,
    ) -> Result<(Asked, Ask), Why> {
        let route = self.routes.of(lane, now).ok_or(Why::Changed)?.clone();
        let repeats = Repeats::new(verb, request, scanner);
        let asked = Asked { lane, route: Some(route.clone()), ..Asked::default() };
        let what = if verb.is_send() {
            let values = self.values(connection, &route, &repeats.contents(request, scanner))?;
            What::Send { route, values }
        } else if let Some(act) = verb.act() {
            let held =
                |entry: &Entry| Held { handle: scanner.text(entry.value).to_vec(), lease_ms: entry.lease_s * 1000 };
            let held = request.entries.iter().map(held).collect();
            What::Act { route, handles: Handles { act, held, tells_each: verb.tells_each() } }
        } else {
            What::Receive {
                route,
                most: request.most.map(|most| most as usize),
                wait_ms: request.wait_s.map(|wait| wait as u64 * 1000),
                lease_ms: request.lease_s.map_or(-1, |lease| lease * 1000),
            }
        };
        let asked = Asked { repeats: Some(Box::new(repeats)), ..asked };
        Ok((asked, Ask { by: Asker { connection, lane, verb: verb as u8, began: now }, what }))
    }

    /// The records of a send, if its route lets it have as many bytes, and attributes.
    fn values(&self, connection: u64, route: &Route, contents: &[Content]) -> Result<Vec<Value>, Why> {
        let is_large = contents.iter().any(|content| content.size() > route.most_message_bytes)
            || contents.iter().map(Content::size).sum::<usize>() > route.most_send_bytes;
        let is_plain = contents.iter().all(|content| content.attributes.is_empty());
        if is_large {
            return Err(Why::Size);
        }
        if contents.iter().any(|one| one.delay_ms.unwrap_or(route.delay_ms) > route.most_delay_ms) {
            return Err(Why::Delay);
        }
        if !is_plain && route.verbs & MAY_SEND_ATTRIBUTES == 0 {
            return Err(Why::Attributes);
        }
        let random = self.random ^ connection.rotate_left(17) ^ self.made.get();
        self.made.set(self.made.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        Ok(values(self.records.as_ref().ok_or(Why::Off)?, route, contents, random))
    }

    /// Counts an answer; whether Python hears of it, for the access log.
    pub(super) fn has_line(&mut self) -> bool {
        self.unlined += 1;
        let has_line = self.line_every > 0 && self.unlined >= self.line_every;
        if has_line {
            self.unlined = 0;
        }
        has_line
    }

    /// The client of a request of the plane has gone.
    pub fn left(&mut self, connection: u64, route: Route, now: Instant) {
        self.asks.push_back(Ask { by: Asker { connection, lane: 0, verb: 0, began: now }, what: What::Left { route } });
    }
}

impl Front {
    /// Answers what the plane has served by what `write` writes; nothing if nobody asks it any more.
    fn answer_of(&mut self, connection: u64, write: impl FnOnce(&Repeats, &mut Vec<u8>)) {
        let mut json = std::mem::take(&mut self.planes.json);
        json.clear();
        if let Some((asked, repeats)) =
            self.asked(connection).and_then(|asked| Some((asked, asked.repeats.as_deref()?)))
        {
            write(repeats, &mut json);
            let (head, now) = (repeats.head(), Instant::now());
            let line = (asked.lane, repeats.verb as u64, asked.began.unwrap_or(now));
            self.reply(connection, head, &json, now);
            if self.planes.has_line() {
                self.tell_served(connection, line, now);
            }
        }
        self.planes.json = json;
    }

    /// Tells Python of an answer that has a line in its access log.
    fn tell_served(&mut self, connection: u64, (lane, verb, began): (u64, u64, Instant), now: Instant) {
        let took_us = now.saturating_duration_since(began).as_micros() as u64;
        let number = self.heads.last();
        let slot = self.slots.of(connection).and_then(|slot| self.slots.get(slot));
        let peer = slot.map_or_else(String::new, |connection| connection.peer.to_string());
        self.batch.plane(|packer| news::write_served(packer, [lane, verb, took_us, number], &peer));
    }
}

impl Clients for Front {
    fn give(&mut self, connection: u64, messages: &[Delivery]) -> bool {
        if !messages.is_empty() && self.is_gone(connection) {
            return false;
        }
        self.answer_of(connection, |repeats, json| repeats.received(json, messages));
        true
    }

    fn sent(&mut self, connection: u64, ids: &[[u8; 36]], at_ms: u64) {
        self.answer_of(connection, |repeats, json| repeats.sent(json, ids, at_ms));
    }

    fn acted(&mut self, connection: u64, done: &[Done]) {
        let texts = self.planes.words.clone();
        let results: Vec<(&Word, u64)> =
            done.iter().filter_map(|done| Some((texts.get(usize::from(done.word))?, done.visible_ms))).collect();
        self.answer_of(connection, |repeats, json| repeats.acted(json, &results));
    }

    fn pass(&mut self, connection: u64, why: Why) -> bool {
        let is_passed = self.passed(connection, Instant::now());
        if is_passed {
            self.planes.whys.note(why);
        }
        is_passed
    }

    fn tell(&mut self, news: News) {
        let call = match &news {
            News::Failed { connection, .. } => {
                self.asked(*connection).and_then(|asked| asked.repeats.as_ref()?.call.clone())
            }
            _ => None,
        };
        self.batch.plane(|packer| news::write(packer, &news, call.as_ref()));
    }
}
