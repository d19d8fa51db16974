//! The plane without Redis and without clients: a caller that answers as a test says.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::append::{Appended, Appender};
use super::ask::{values, Content};
use super::ask::{Ask, Asker, Handles, Held, What};
use super::calls::Caller;
use super::clients::{Clients, Delivery, Done, Fault, News};
use super::format::Produced;
use super::kafka::Until;
use super::redis::{Failure, Reply};
use super::routes::{Route, COUNTS_BYTES, MAY_ACK, MAY_EXTEND, MAY_RECEIVE, MAY_RELEASE, MAY_SEND};
use super::unit::Act;
use super::whys::Why;
use super::Plane;
use crate::pack::{Packer, Unpacker};
use answers::{ok, packed, received, timed, word};

mod ahead;
mod allowances;
mod answers;
mod bodies;
mod close;
mod counts;
mod deadlines;
mod drains;
mod handles;
mod receives;
mod sends;

const RECEIVE: usize = 0;
const PROBE: usize = 1;
const ACK: usize = 2;
const GIVE_BACK: usize = 3;
const EXTEND: usize = 4;
const RELEASE: usize = 5;
const LOAD: usize = 6;
const QUEUE: u64 = 7;
const TAG: u16 = 1;
const VERB: u8 = 3;

#[derive(Default)]
struct Fake {
    pub is_shut: bool,
    pub calls: Vec<(u64, usize, Vec<String>)>,
}

impl Caller for Fake {
    fn is_open(&self) -> bool {
        !self.is_shut
    }

    fn call(&mut self, token: u64, script: usize, words: usize, ready: &[u8]) -> bool {
        let text: Vec<String> =
            ready.iter().map(|byte| char::from(*byte)).collect::<String>().split("\r\n").map(String::from).collect();
        let said: Vec<String> = text.chunks(2).filter(|pair| pair.len() == 2).map(|pair| pair[1].clone()).collect();
        assert_eq!(said.len(), words);
        self.calls.push((token, script, said));
        true
    }

    fn now_s(&self) -> f64 {
        100.0
    }
}

#[derive(Default)]
struct Crowd {
    given: Vec<(u64, Vec<String>)>,
    handles: Vec<Vec<u8>>,
    gone: Vec<u64>,
    acted: Vec<(u64, Vec<Done>)>,
    sent: Vec<(u64, usize)>,
    passed: Vec<u64>,
    pub news: Vec<News>,
}

impl Clients for Crowd {
    fn give(&mut self, connection: u64, messages: &[Delivery]) -> bool {
        if self.gone.contains(&connection) {
            return false;
        }
        self.handles.extend(messages.iter().map(|one| one.handle.to_vec()));
        let bodies = messages.iter().map(|one| String::from_utf8_lossy(one.message.body()).into_owned());
        self.given.push((connection, bodies.collect()));
        true
    }

    fn sent(&mut self, connection: u64, ids: &[[u8; 36]], _: u64) {
        self.sent.push((connection, ids.len()));
    }

    fn acted(&mut self, connection: u64, done: &[Done]) {
        self.acted.push((connection, done.to_vec()));
    }

    fn pass(&mut self, connection: u64, _: Why) -> bool {
        self.passed.push(connection);
        !self.gone.contains(&connection)
    }

    fn tell(&mut self, news: News) {
        self.news.push(news);
    }
}

/// Appends that were begun: partition, records, token; and until when the last one.
#[derive(Default)]
struct Log(Vec<(usize, usize, u64)>, Option<Until>);

impl Appender for Log {
    fn append(&mut self, _: &str, partition: usize, records: &[Produced], token: u64, until: Until, _: Instant) {
        self.0.push((partition, records.len(), token));
        self.1 = Some(until);
    }
}

struct Stage {
    plane: Plane<Fake>,
    crowd: Crowd,
    kafka: Log,
    now: Instant,
    asked: u64,
}

/// A template: fixed words with kind 0, slots by their kinds.
fn template(packer: &mut Packer, words: &[(u64, &str)]) {
    packer.array(words.len());
    for (kind, word) in words {
        packer.array(2);
        packer.uint(*kind);
        packer.binary(word.as_bytes());
    }
}

/// What Python tells of a queue.
fn queue_told(number: u64, partitions: usize, may_hold: bool) -> Packer {
    let mut queue = Packer::default();
    queue.array(9);
    queue.uint(number);
    queue.binary(&[1, 2, 3, 4, 5, 6]);
    queue.array(1);
    queue.array(5);
    queue.uint(u64::from(TAG));
    queue.uint(u64::from(may_hold));
    queue.uint(30_000);
    queue.uint(100);
    queue.array(partitions);
    for partition in 0..partitions {
        let name = partition.to_string();
        queue.array(6);
        template(&mut queue, &[(0, &name), (1, ""), (2, ""), (3, ""), (4, "30000"), (6, "")]);
        template(&mut queue, &[(0, &name), (1, "")]);
        (0..4).for_each(|_| template(&mut queue, &[(0, &name), (7, "")]));
    }
    queue.binary(b"topic");
    queue.binary(b"1");
    queue.uint(1);
    queue.uint(0);
    queue.array(partitions);
    for partition in 0..partitions {
        template(&mut queue, &[(0, &partition.to_string()), (1, ""), (8, ""), (0, "0 me"), (7, "")]);
    }
    queue.uint(0);
    queue
}

/// A plane that serves no queue, with a clock.
fn idle_plane() -> Plane<Fake> {
    let mut told = Packer::default();
    told.array(8);
    told.binary(b"secret");
    told.array(2);
    told.array(2);
    told.binary(&[0; 5]);
    told.uint(8);
    told.array(3);
    told.binary(&[0; 5]);
    told.array(1);
    told.text(b"acked");
    told.uint(3);
    let limits =
        [100, 120_000, 5000, 40, 100, 500, 1000, 3, 1_000_000, 1000, 4, 100_000, 3, 10_000, 5, 100_000, 60_000, 0];
    told.array(limits.len());
    limits.iter().for_each(|limit| told.uint(*limit));
    told.array(0);
    told.array(0);
    told.array(1);
    told.uint(100);
    told.array(1);
    told.binary(b"reserved");
    told.array(3);
    for word in [["OK", "ok", ""], ["SUPERSEDED", "stale", "superseded"], ["SETTLED", "stale", "settled"]] {
        told.array(3);
        word.iter().for_each(|text| told.binary(text.as_bytes()));
    }
    let mut plane = Plane::new(Fake::default(), &mut Unpacker::new(&told.bytes)).unwrap_or_else(|_| panic!("told"));
    let mut clock = Packer::default();
    clock.array(6);
    ["100.0", "5000.0", "0.0", "0.01"].iter().for_each(|text| clock.binary(text.as_bytes()));
    clock.uint(0);
    clock.int(0);
    plane.set_clock(&mut Unpacker::new(&clock.bytes)).expect("told");
    plane
}

impl Stage {
    fn new(partitions: usize, may_hold: bool) -> Self {
        let mut plane = idle_plane();
        let queue = queue_told(QUEUE, partitions, may_hold);
        let now = Instant::now();
        plane.open(&mut Unpacker::new(&queue.bytes), now).expect("told");
        Self { plane, crowd: Crowd::default(), kafka: Log::default(), now, asked: 0 }
    }

    fn route(&self) -> Route {
        let bounds = Arc::from(vec![(b"me".to_vec(), 2)]);
        Route {
            queue: QUEUE,
            tag: TAG,
            verbs: MAY_SEND | MAY_RECEIVE | MAY_ACK | MAY_EXTEND | MAY_RELEASE,
            some: 1,
            most: 10,
            wait_ms: 0,
            valid_until: None,
            sender: Arc::from(&b"me"[..]),
            most_message_bytes: 1000,
            most_send_bytes: 1000,
            delay_ms: 0,
            most_delay_ms: 60_000,
            most_leased_ms: 0,
            bounds,
        }
    }

    fn ask(&mut self, connection: u64, what: What) {
        let ask = Ask { by: Asker { connection, lane: 1, verb: VERB, began: self.now }, what };
        self.plane.ask(&mut self.crowd, ask, self.now);
        self.plane.work(&mut self.crowd, &mut self.kafka, self.now);
    }

    fn receive(&mut self, connection: u64, most: usize, wait_ms: u64) {
        let what = What::Receive { route: self.route(), most: Some(most), wait_ms: Some(wait_ms), lease_ms: -1 };
        self.ask(connection, what);
    }

    fn later(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        self.plane.work(&mut self.crowd, &mut self.kafka, self.now);
    }

    /// Takes the next call of a script, and its words.
    fn call(&mut self, script: usize) -> Vec<String> {
        let at = self.plane.calls.caller.calls.iter().position(|call| call.1 == script).expect("it was called");
        let (token, _, words) = self.plane.calls.caller.calls.remove(at);
        self.asked = token;
        words
    }

    fn answer(&mut self, outcome: Result<Reply, Failure>) {
        let token = self.asked;
        self.plane.answered(&mut self.crowd, token, outcome, self.now);
        self.plane.work(&mut self.crowd, &mut self.kafka, self.now);
    }

    /// Answers a receive that leases these messages, with their bodies; then there are `head_ms` more.
    fn lease(&mut self, offsets: &[i64], head_ms: i64) {
        let mut rows = Vec::new();
        for offset in offsets {
            rows.extend([*offset, 1, 5000, 35_000].map(Reply::Int));
            rows.push(Reply::Bytes(packed(&format!("m{offset}"))));
        }
        self.answer(Ok(received(5000, head_ms, rows, &[])));
    }

    fn send(&mut self, connection: u64, bodies: &[&str]) {
        let route = self.route();
        let contents: Vec<Content> = bodies.iter().map(|body| content(body)).collect();
        self.ask(connection, self.sent(route, &contents));
    }

    fn sent(&self, route: Route, contents: &[Content]) -> What {
        let values = values(self.plane.records(), &route, contents, 1);
        What::Send { route, values }
    }

    /// Kafka answers the append that was begun first.
    fn appended(&mut self, outcome: Appended) -> (usize, usize) {
        let (partition, records, token) = self.kafka.0.remove(0);
        self.plane.appended(&mut self.crowd, token, outcome, self.now);
        self.later(0);
        (partition, records)
    }

    fn loaded(&mut self, taken: i64) {
        self.loaded_since(taken, 4000);
    }

    /// The window has taken so many, of which the first is visible since `head_ms`.
    fn loaded_since(&mut self, taken: i64, head_ms: i64) {
        let numbers = |some: &[i64]| Reply::Array(some.iter().map(|number| Reply::Int(*number)).collect());
        let items = vec![
            Reply::Bytes(b"OK".to_vec()),
            numbers(&[12]),
            numbers(&[0]),
            Reply::Int(taken),
            Reply::Int(-1),
            numbers(&[]),
            Reply::Int(head_ms),
        ];
        self.answer(Ok(Reply::Array(items)));
    }

    /// A message of one partition is stored and loaded.
    fn store(&mut self, first: u64, at_ms: u64) {
        self.send(1, &["a"]);
        self.appended(Appended::Stored { first, at_ms });
        self.call(LOAD);
        self.loaded_since(1, at_ms as i64);
    }
}

fn content(body: &str) -> Content<'_> {
    Content {
        body: body.as_bytes(),
        attributes: Vec::new(),
        digest: crate::replies::digest(body.as_bytes()),
        delay_ms: None,
    }
}
