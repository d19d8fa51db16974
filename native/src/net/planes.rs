//! The plane in a front: what it has of it, and what a request asks of it.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Instant;

use mio::Waker;

use super::routes::Routes;
use crate::dialects::Repeats;
use crate::json::Scanner;
use crate::net::asked::Asked;
use crate::plane::ask::{Ask, Asker, Handles, Held, What};
use crate::plane::clients::Word;
use crate::plane::content::{self, Content, Value};
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
        Ok(content::values(self.records.as_ref().ok_or(Why::Off)?, route, contents, random))
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
