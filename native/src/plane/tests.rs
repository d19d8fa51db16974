//! The plane without Redis and without clients: a caller that answers as a test says.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clients::{Clients, Delivery, Fault, News, Word};
use super::format::Produced;
use super::redis::{Failure, Reply};
use super::routes::{Route, COUNTS_BYTES, MAY_ACK, MAY_RECEIVE, MAY_SEND};
use super::sends::{Appended, Appender, Content, Until};
use super::whys::Why;
use super::{Ask, Caller, Plane, What};
use crate::pack::{Packer, Unpacker};

mod close;

const RECEIVE: usize = 0;
const PROBE: usize = 1;
const ACK: usize = 2;
const GIVE_BACK: usize = 3;
const LOAD: usize = 4;
const QUEUE: u64 = 7;
const TAG: u16 = 1;
const VERB: u8 = 3;

#[derive(Default)]
pub(super) struct Fake {
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
pub(super) struct Crowd {
    given: Vec<(u64, Vec<String>)>,
    handles: Vec<Vec<u8>>,
    gone: Vec<u64>,
    acked: Vec<(u64, Vec<Word>)>,
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

    fn acked(&mut self, connection: u64, words: &[Word]) {
        self.acked.push((connection, words.to_vec()));
    }

    fn pass(&mut self, connection: u64, _: Why) {
        self.passed.push(connection);
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
pub(super) fn template(packer: &mut Packer, words: &[(u64, &str)]) {
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
    queue.array(8);
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
        queue.array(4);
        template(&mut queue, &[(0, &name), (1, ""), (2, ""), (3, ""), (4, "30000"), (6, "")]);
        template(&mut queue, &[(0, &name), (1, "")]);
        template(&mut queue, &[(0, &name), (7, "")]);
        template(&mut queue, &[(0, &name), (7, "")]);
    }
    queue.binary(b"topic");
    queue.binary(b"1");
    queue.uint(1);
    queue.uint(0);
    queue.array(partitions);
    for partition in 0..partitions {
        template(&mut queue, &[(0, &partition.to_string()), (1, ""), (8, ""), (9, "0 me "), (7, "")]);
    }
    queue
}

/// A plane that serves no queue, with a clock.
pub(super) fn idle_plane() -> Plane<Fake> {
    let mut told = Packer::default();
    told.array(7);
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
    let limits = [100, 120_000, 5000, 40, 100, 500, 1000, 3, 1_000_000, 1000, 4, 100_000, 3, 10_000, 5, 100_000];
    told.array(limits.len());
    limits.iter().for_each(|limit| told.uint(*limit));
    told.array(0);
    told.array(0);
    told.array(1);
    told.binary(b"reserved");
    told.array(3);
    ["ok", "stale", "lapsed"].iter().for_each(|word| told.binary(word.as_bytes()));
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
            verbs: MAY_SEND | MAY_RECEIVE | MAY_ACK,
            some: 1,
            most: 10,
            wait_ms: 0,
            valid_until: None,
            sender: Arc::from(&b"me"[..]),
            most_message_bytes: 1000,
            most_send_bytes: 1000,
            bounds,
        }
    }

    fn ask(&mut self, connection: u64, what: What) {
        let ask = Ask { connection, lane: 1, verb: VERB, began: self.now, what };
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
        let at = self.plane.caller.calls.iter().position(|call| call.1 == script).expect("it was called");
        let (token, _, words) = self.plane.caller.calls.remove(at);
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
}

fn packed(body: &str) -> Vec<u8> {
    let mut packed = Vec::new();
    [4000u64, 4001].iter().for_each(|time| packed.extend(time.to_be_bytes()));
    packed.extend((-1i64).to_be_bytes());
    let told = super::format::record::Records::new([0; 5], 8);
    let message = super::format::record::Message {
        body: body.as_bytes(),
        is_text: true,
        attributes: &[],
        delay_ms: 0,
        lease_ms: None,
        sender: "me",
        mark: None,
    };
    told.write(&message, &mut packed);
    packed
}

fn received(at_ms: i64, head_ms: i64, rows: Vec<Reply>, fresh: &[i64]) -> Reply {
    let mut items = vec![Reply::Bytes(b"OK".to_vec())];
    items.extend([at_ms, 9, head_ms, 50, 5, 1, 0].map(Reply::Int));
    items.push(Reply::Array(rows));
    items.push(Reply::Array(Vec::new()));
    items.push(Reply::Int(35_000));
    items.push(Reply::Array(fresh.iter().map(|offset| Reply::Int(*offset)).collect()));
    let bare = rows_without_bodies(items[8].items()).chain(fresh.iter().copied());
    let since: Vec<String> = bare.map(|offset| (4000 + offset).to_string()).collect();
    items.push(Reply::Bytes(since.join(" ").into_bytes()));
    Reply::Array(items)
}

fn rows_without_bodies(rows: &[Reply]) -> impl Iterator<Item = i64> + '_ {
    rows.chunks(5).filter(|row| row[4].bytes().is_empty()).map(|row| row[0].int())
}

fn ok(words: &[&str]) -> Reply {
    let words = words.iter().map(|word| Reply::Bytes(word.as_bytes().to_vec())).collect();
    Reply::Array(vec![Reply::Bytes(b"OK".to_vec()), Reply::Array(words), Reply::Int(1)])
}

fn word(word: &str) -> Reply {
    Reply::Array(vec![Reply::Bytes(word.as_bytes().to_vec())])
}

#[test]
fn who_waits_gets_what_was_leased() {
    let mut stage = Stage::new(1, false);
    stage.receive(1, 10, 1000);
    assert_eq!(stage.call(RECEIVE), ["0", "5000", "10", "-1", "30000", "0"]);
    stage.lease(&[3, 4], -1);
    assert_eq!(stage.crowd.given, [(1, vec!["m3".into(), "m4".into()])]);
    assert!(stage.plane.caller.calls.is_empty());
}

#[test]
fn who_has_waited_hears_that_there_is_nothing() {
    let mut stage = Stage::new(1, false);
    stage.receive(1, 10, 1000);
    stage.call(RECEIVE);
    stage.lease(&[], -1);
    stage.later(999);
    assert!(stage.crowd.given.is_empty());
    stage.later(1);
    assert_eq!(stage.crowd.given, [(1, vec![])]);
    assert!(stage.crowd.news.contains(&News::Refresh { queue: QUEUE }));
}

#[test]
fn who_does_not_wait_goes_the_slow_path_when_nothing_is_known_to_be_there() {
    let mut stage = Stage::new(1, false);
    stage.receive(1, 10, 0);
    stage.call(RECEIVE);
    stage.lease(&[], -1);
    assert_eq!(stage.crowd.passed, [1]);
    stage.receive(2, 10, 0);
    assert_eq!(stage.crowd.passed, [1, 2]);
}

#[test]
fn what_a_client_that_has_gone_was_to_get_goes_to_the_next_or_back() {
    let mut stage = Stage::new(1, false);
    stage.crowd.gone = vec![1];
    stage.receive(1, 1, 1000);
    stage.receive(2, 1, 1000);
    stage.call(RECEIVE);
    stage.lease(&[3], -1);
    assert_eq!(stage.crowd.given, [(2, vec!["m3".into()])]);
    stage.crowd.gone = vec![4];
    stage.plane.woken(QUEUE, 0, 0, stage.now);
    stage.receive(4, 1, 1000);
    stage.call(RECEIVE);
    stage.lease(&[5], -1);
    assert_eq!(stage.call(GIVE_BACK), ["0", "5", "9", "4001"]);
    stage.answer(Ok(ok(&["OK"])));
    let rows = vec![5, 9, 4001];
    assert!(stage.crowd.news.contains(&News::Returned { queue: QUEUE, tag: TAG, partition: 0, rows, late: 0 }));
}

#[test]
fn what_it_was_too_late_to_give_back_has_not_come_back() {
    let mut stage = Stage::new(1, false);
    stage.crowd.gone = vec![1];
    stage.receive(1, 3, 1000);
    stage.call(RECEIVE);
    stage.lease(&[5, 6, 7], -1);
    stage.call(GIVE_BACK);
    stage.answer(Ok(ok(&["STALE", "OK", "STALE"])));
    let returned =
        |rows: &[i64], late| News::Returned { queue: QUEUE, tag: TAG, partition: 0, rows: rows.to_vec(), late };
    assert!(stage.crowd.news.contains(&returned(&[6, 9, 4001], 2)));
    stage.receive(1, 1, 1000);
    stage.call(RECEIVE);
    stage.lease(&[8], -1);
    stage.call(GIVE_BACK);
    stage.answer(Ok(ok(&["STALE"])));
    assert_eq!(stage.crowd.news.last(), Some(&returned(&[], 1)));
    stage.receive(2, 1, 1000);
    assert!(stage.plane.caller.calls.is_empty(), "nothing is there that was not before");
}

#[test]
fn a_wake_during_a_call_is_not_forgotten() {
    let mut stage = Stage::new(1, false);
    stage.receive(1, 1, 1000);
    stage.call(RECEIVE);
    stage.plane.woken(QUEUE, 0, 0, stage.now);
    stage.lease(&[], -1);
    stage.call(RECEIVE);
}

#[test]
fn who_is_alone_gets_the_oldest_of_all_partitions() {
    let mut stage = Stage::new(2, false);
    stage.receive(1, 10, 1000);
    let heads = HashMap::from([("0".to_owned(), 4500), ("1".to_owned(), 4000)]);
    for _ in 0..2 {
        let partition = stage.call(PROBE)[0].clone();
        let mut items = vec![Reply::Bytes(b"OK".to_vec())];
        items.extend([5000, heads[&partition], 50, 1, 0, 1, 1, 1, 0].map(Reply::Int));
        stage.answer(Ok(Reply::Array(items)));
    }
    assert_eq!(stage.call(RECEIVE), ["1", "5000", "10", "-1", "30000", "4500"]);
    stage.lease(&[3], -1);
    assert!(stage.crowd.given.is_empty(), "there is more elsewhere");
    assert_eq!(stage.call(RECEIVE), ["0", "5000", "9", "-1", "30000", "0"]);
    stage.lease(&[8], -1);
    assert_eq!(stage.crowd.given, [(1, vec!["m3".into(), "m8".into()])]);
}

#[test]
fn a_closed_queue_hands_out_nothing_that_was_leased_before() {
    let mut stage = Stage::new(1, true);
    stage.receive(1, 1, 1000);
    stage.call(RECEIVE);
    stage.plane.close(&mut stage.crowd, QUEUE);
    assert_eq!(stage.crowd.passed, [1]);
    stage.lease(&[3], -1);
    assert_eq!(stage.call(GIVE_BACK), ["0", "3", "9", "4001"]);
    stage.answer(Err(Failure::Unknown("lost".into())));
    let rows = vec![3, 9, 4001];
    assert!(stage.crowd.news.contains(&News::Return { queue: QUEUE, tag: TAG, partition: 0, rows }));
    stage.receive(2, 1, 1000);
    assert_eq!(stage.crowd.passed, [1, 2]);
    assert!(stage.crowd.given.is_empty());
}

#[test]
fn what_was_leased_ahead_is_handed_out_or_goes_back_in_time() {
    let mut stage = Stage::new(1, true);
    for connection in 1..=2 {
        stage.receive(connection, 1, 1000);
        stage.call(RECEIVE);
        stage.lease(&[connection as i64], 4000);
    }
    // One was asked for lately, so one is leased ahead, and its lease is longer.
    stage.plane.caller.calls.clear();
    let mut stage = Stage::new(1, true);
    stage.receive(1, 1, 1000);
    stage.call(RECEIVE);
    stage.lease(&[1], 4000);
    let ahead = stage.call(RECEIVE);
    assert_eq!(ahead, ["0", "5000", "1", "-1", "30040", "0"]);
    stage.lease(&[2, 3], 4000);
    stage.receive(2, 1, 1000);
    assert_eq!(stage.crowd.given[1], (2, vec!["m2".into()]));
    stage.later(40);
    assert_eq!(stage.call(GIVE_BACK)[1..4], ["3", "9", "4001"]);
}

#[test]
fn bodies_that_are_not_here_are_pythons() {
    let mut stage = Stage::new(1, false);
    stage.receive(1, 2, 1000);
    stage.call(RECEIVE);
    let mut again = [5, 1, 0, 35_000].map(Reply::Int).to_vec();
    again.push(Reply::Bytes(Vec::new()));
    stage.answer(Ok(received(5000, -1, again, &[3, 4])));
    assert_eq!(
        stage.call(GIVE_BACK),
        ["0", "3", "9", "4003", "4", "9", "4004", "5", "9", "4005"],
        "each keeps its place: later, others would come before it; earlier, it would expire before its time"
    );
    assert_eq!(stage.crowd.passed, [1]);
    stage.receive(2, 1, 1000);
    assert_eq!(stage.crowd.passed, [1, 2]);
    stage.later(251);
    stage.receive(3, 1, 1000);
    assert_eq!(stage.crowd.passed, [1, 2]);
}

#[test]
fn lost_state_closes_the_queue() {
    for reason in ["LOST", "FENCED", "FIFO", "FAIR"] {
        let mut stage = Stage::new(1, false);
        stage.receive(1, 1, 1000);
        stage.call(RECEIVE);
        stage.answer(Ok(word(reason)));
        assert_eq!(stage.crowd.passed, [1]);
        assert!(stage.crowd.news.contains(&News::Closed { queue: QUEUE, reason }));
    }
}

#[test]
fn without_redis_all_is_pythons() {
    let mut stage = Stage::new(1, false);
    stage.receive(1, 1, 1000);
    stage.call(RECEIVE);
    stage.answer(Err(Failure::Unknown("lost".into())));
    assert_eq!(stage.crowd.passed, [1]);
    stage.plane.caller.is_shut = true;
    stage.receive(2, 1, 1000);
    assert_eq!(stage.crowd.passed, [1, 2]);
}

#[test]
fn as_many_wait_as_may() {
    let mut stage = Stage::new(1, false);
    (1..=3).for_each(|connection| stage.receive(connection, 1, 1000));
    assert_eq!(stage.crowd.passed, [3], "one may have two");
    stage.call(RECEIVE);
    stage.lease(&[1], -1);
    stage.receive(4, 1, 1000);
    assert_eq!(stage.crowd.passed, [3]);
    let left = What::Left { route: stage.route() };
    stage.ask(4, left);
    stage.receive(5, 1, 1000);
    assert_eq!(stage.crowd.passed, [3]);
}

fn handles(stage: &mut Stage, count: i64) -> Vec<Vec<u8>> {
    let offsets: Vec<i64> = (1..=count).collect();
    stage.receive(90, count as usize, 1000);
    stage.call(RECEIVE);
    stage.lease(&offsets, -1);
    std::mem::take(&mut stage.crowd.handles)
}

#[test]
fn acks_go_together_and_are_told_apart() {
    let mut stage = Stage::new(1, false);
    let handles = handles(&mut stage, 3);
    for (connection, some) in [(1, &handles[..1]), (2, &handles[1..])] {
        let what = What::Ack { route: stage.route(), handles: some.to_vec() };
        stage.ask(connection, what);
    }
    assert_eq!(stage.call(ACK), ["0", "1", "9"]);
    stage.answer(Ok(ok(&[])));
    assert_eq!(stage.crowd.acked, [(1, vec![Word::Ok])]);
    assert_eq!(stage.call(ACK), ["0", "2", "9", "3", "9"]);
    stage.answer(Ok(ok(&["OK", "STALE"])));
    assert_eq!(stage.crowd.acked[1], (2, vec![Word::Ok, Word::Stale]));
}

#[test]
fn an_ack_of_which_nothing_was_done_is_pythons_and_one_that_nobody_knows_of_is_told() {
    for (outcome, is_passed) in [
        (Ok(word("FULL")), true),
        (Ok(word("LOST")), true),
        (Err(Failure::NotSent), true),
        (Err(Failure::Unknown("x".into())), false),
        (Err(Failure::Refused("x".into())), false),
        (Ok(Reply::Int(1)), false),
    ] {
        let mut stage = Stage::new(1, false);
        let handles = handles(&mut stage, 1);
        let what = What::Ack { route: stage.route(), handles };
        stage.ask(1, what);
        stage.call(ACK);
        stage.answer(outcome);
        assert_eq!(stage.crowd.passed == [1], is_passed);
        assert_eq!(stage.crowd.news.iter().any(|news| matches!(news, News::Failed { .. })), !is_passed);
        assert!(stage.crowd.acked.is_empty());
    }
}

#[test]
fn handles_of_others_are_pythons() {
    let mut stage = Stage::new(1, false);
    for handle in [b"x".to_vec(), vec![b'A'; 52]] {
        let what = What::Ack { route: stage.route(), handles: vec![handle] };
        stage.ask(1, what);
    }
    assert_eq!(stage.crowd.passed, [1, 1]);
}

#[test]
fn an_answer_has_so_many_bytes() {
    let mut stage = Stage::new(1, false);
    stage.receive(1, 3, 1000);
    stage.call(RECEIVE);
    let long = "x".repeat(600);
    let mut rows = Vec::new();
    for offset in 1..=3 {
        rows.extend([offset, 1, 5000, 35_000].map(Reply::Int));
        rows.push(Reply::Bytes(packed(&long)));
    }
    stage.answer(Ok(received(5000, -1, rows, &[])));
    assert_eq!(stage.crowd.given.len(), 1);
    assert_eq!(stage.crowd.given[0].1.len(), 1, "two are more than 1000 bytes");
    assert_eq!(stage.call(GIVE_BACK).len(), 1 + 2 * 3);
}

fn content(body: &str) -> Content<'_> {
    Content { body: body.as_bytes(), attributes: Vec::new(), digest: crate::replies::digest(body.as_bytes()) }
}

impl Stage {
    fn send(&mut self, connection: u64, bodies: &[&str]) {
        let route = self.route();
        let contents: Vec<Content> = bodies.iter().map(|body| content(body)).collect();
        let values = super::sends::values(self.plane.records(), &route, &contents, 1);
        self.ask(connection, What::Send { route, values });
    }

    /// Kafka answers the append that was begun first.
    fn appended(&mut self, outcome: Appended) -> (usize, usize) {
        let (partition, records, token) = self.kafka.0.remove(0);
        self.plane.appended(&mut self.crowd, token, outcome, self.now);
        self.later(0);
        (partition, records)
    }

    fn loaded(&mut self, taken: i64) {
        let numbers = |some: &[i64]| Reply::Array(some.iter().map(|number| Reply::Int(*number)).collect());
        let items = vec![
            Reply::Bytes(b"OK".to_vec()),
            numbers(&[12]),
            numbers(&[0]),
            Reply::Int(taken),
            Reply::Int(-1),
            numbers(&[]),
        ];
        self.answer(Ok(Reply::Array(items)));
    }
}

#[test]
fn sends_are_stored_loaded_and_answered_in_turn() {
    let mut stage = Stage::new(1, false);
    stage.send(1, &["a"]);
    stage.send(2, &["b", "c"]);
    assert_eq!(stage.appended(Appended::Stored { first: 10, at_ms: 4000 }), (0, 1));
    assert!(stage.crowd.sent.is_empty());
    let load = stage.call(LOAD);
    assert_eq!(
        (&load[..5], &load[6..]),
        (
            &["0", "5000", "0", "0 me 4000", "10"].map(String::from)[..],
            &["1", "", "", "", "", "1"].map(String::from)[..]
        )
    );
    stage.loaded(1);
    assert_eq!(stage.crowd.sent, [(1, 1)]);
    assert_eq!(stage.appended(Appended::Stored { first: 11, at_ms: 4001 }), (0, 2));
    stage.call(LOAD);
    stage.loaded(2);
    assert_eq!(stage.crowd.sent[1], (2, 2));
    stage.receive(3, 10, 1000);
    stage.call(RECEIVE);
    stage.answer(Ok(received(5000, -1, Vec::new(), &[10, 11, 12])));
    assert_eq!(stage.crowd.given, [(3, vec!["a".into(), "b".into(), "c".into()])]);
}

impl Stage {
    /// A message of one partition is stored and loaded.
    fn store(&mut self, first: u64, at_ms: u64) {
        self.send(1, &["a"]);
        self.appended(Appended::Stored { first, at_ms });
        self.call(LOAD);
        self.loaded(1);
    }

    /// Partitions and times of which Python was told that something is visible.
    fn woken(&mut self) -> Vec<(usize, u64)> {
        let woken = |news: &News| match news {
            News::Woken { queue: QUEUE, partition, head_ms } => Some((*partition, *head_ms)),
            _ => None,
        };
        std::mem::take(&mut self.crowd.news).iter().filter_map(woken).collect()
    }
}

#[test]
fn who_begins_to_wait_in_python_hears_of_what_was_sent_before() {
    let mut stage = Stage::new(2, false);
    (0..4).for_each(|number| stage.store(number, 4000 + number));
    assert!(stage.woken().is_empty());
    stage.plane.watch(&mut stage.crowd, QUEUE, true);
    assert_eq!(stage.woken(), [(0, 4000), (1, 4003)]);
    stage.store(4, 4004);
    assert_eq!(stage.woken(), [(1, 4004)]);
    stage.plane.watch(&mut stage.crowd, QUEUE, false);
    stage.plane.watch(&mut stage.crowd, QUEUE, true);
    assert!(stage.woken().is_empty(), "it has heard of all");
}

#[test]
fn python_hears_of_what_was_sent_to_a_queue_that_is_closed() {
    let mut stage = Stage::new(1, false);
    stage.store(0, 4000);
    stage.send(2, &["b"]);
    stage.plane.close(&mut stage.crowd, QUEUE);
    assert_eq!(stage.woken(), [(0, 4000)]);
    stage.appended(Appended::Stored { first: 1, at_ms: 4001 });
    stage.call(LOAD);
    stage.loaded(1);
    assert_eq!(stage.woken(), [(0, 4001)]);
}

#[test]
fn who_waits_is_served_when_redis_takes_a_send_late() {
    let mut stage = Stage::new(1, false);
    stage.receive(3, 1, 20_000);
    stage.call(RECEIVE);
    stage.answer(Ok(received(5000, -1, Vec::new(), &[])));
    stage.send(1, &["a"]);
    stage.appended(Appended::Stored { first: 0, at_ms: 4000 });
    stage.later(1500);
    assert_eq!(stage.crowd.sent, [(1, 1)], "the answer does not wait for Redis");
    assert_eq!(stage.plane.caller.calls.len(), 1, "nobody looks before it is there");
    stage.call(LOAD);
    stage.loaded(1);
    stage.call(RECEIVE);
    stage.answer(Ok(received(5000, -1, Vec::new(), &[0])));
    assert_eq!(stage.crowd.given, [(3, vec!["a".into()])]);
}

#[test]
fn records_of_a_while_go_to_one_partition() {
    let mut stage = Stage::new(2, false);
    let places: Vec<usize> = (0..6)
        .map(|number| {
            stage.send(1, &["a"]);
            let (partition, _) = stage.appended(Appended::Stored { first: number, at_ms: 4000 });
            stage.call(LOAD);
            stage.loaded(1);
            partition
        })
        .collect();
    assert_eq!(places, [0, 0, 0, 1, 1, 1]);
}

#[test]
fn what_kafka_has_not_is_pythons_and_what_it_may_have_is_told() {
    for (outcome, is_passed) in [(Appended::NotStored("x".into()), true), (Appended::Unknown("x".into()), false)] {
        let mut stage = Stage::new(1, false);
        stage.send(1, &["a"]);
        stage.appended(outcome);
        assert_eq!(stage.crowd.passed == [1], is_passed);
        let told = |fault| News::Failed { connection: 1, lane: 1, verb: VERB, fault, text: "x".into() };
        assert_eq!(stage.crowd.news.contains(&told(Fault::MayBeStored)), !is_passed);
        stage.send(2, &["b"]);
        assert_eq!(stage.kafka.0.len(), 1, "the next has its turn");
    }
}

#[test]
fn a_send_that_waited_for_too_long_is_not_stored() {
    let mut stage = Stage::new(1, false);
    stage.send(1, &["a"]);
    stage.send(2, &["b"]);
    stage.now += Duration::from_millis(10_000);
    stage.appended(Appended::Unknown("x".into()));
    let late = |news: &News| matches!(news, News::Failed { connection: 2, fault: Fault::NotStored, .. });
    assert!(stage.crowd.news.iter().any(late));
    assert!(stage.kafka.0.is_empty());
}

#[test]
fn a_send_is_answered_without_redis() {
    let mut stage = Stage::new(1, false);
    stage.send(1, &["a"]);
    stage.appended(Appended::Stored { first: 10, at_ms: 4000 });
    stage.call(LOAD);
    stage.later(999);
    assert!(stage.crowd.sent.is_empty());
    stage.later(1);
    assert_eq!(stage.crowd.sent, [(1, 1)]);
    stage.answer(Err(Failure::Unknown("cut".into())));
    assert!(stage.crowd.news.contains(&News::Unloaded { queue: QUEUE }));
    stage.plane.caller.is_shut = true;
    stage.send(2, &["b"]);
    stage.appended(Appended::Stored { first: 11, at_ms: 4000 });
    assert_eq!(stage.crowd.sent[1], (2, 1));
}

#[test]
fn a_closed_queue_gives_kafka_nothing_more_and_answers_what_it_has() {
    let mut stage = Stage::new(1, false);
    stage.send(1, &["a"]);
    stage.send(2, &["b"]);
    stage.plane.close(&mut stage.crowd, QUEUE);
    assert_eq!(stage.crowd.passed, [2]);
    stage.appended(Appended::Stored { first: 10, at_ms: 4000 });
    stage.call(LOAD);
    stage.loaded(1);
    assert_eq!(stage.crowd.sent, [(1, 1)]);
    stage.send(3, &["c"]);
    assert_eq!(stage.crowd.passed, [2, 3]);
}

#[test]
fn as_many_sends_wait_as_may_and_bodies_are_kept_up_to_a_bound() {
    let mut stage = Stage::new(1, false);
    (1..=7).for_each(|connection| stage.send(connection, &["a"]));
    assert_eq!(stage.crowd.passed, [7], "one is under way, five wait");
    let mut stage = Stage::new(1, false);
    let long = "x".repeat(90_000);
    for first in 0..12 {
        stage.send(1, &[&long]);
        stage.appended(Appended::Stored { first, at_ms: 4000 });
        let load = stage.call(LOAD);
        assert_eq!(load[5].len() > 90_000, first > 10, "{first}");
        stage.loaded(1);
    }
}

#[test]
fn loads_that_cant_be_made_leave_those_under_way_alone() {
    let mut stage = Stage::new(1, false);
    let other = queue_told(QUEUE + 1, 1, false);
    stage.plane.open(&mut Unpacker::new(&other.bytes), stage.now).expect("told");
    stage.send(1, &["a"]);
    let route = Route { queue: QUEUE + 1, ..stage.route() };
    let values = super::sends::values(stage.plane.records(), &route, &[content("b")], 1);
    stage.ask(2, What::Send { route, values });
    stage.appended(Appended::Stored { first: 10, at_ms: 4000 });
    stage.call(LOAD);
    stage.plane.caller.is_shut = true;
    stage.appended(Appended::Stored { first: 10, at_ms: 4000 });
    stage.answer(Err(Failure::Unknown("another Redis came into use".into())));
    stage.later(1000);
    assert_eq!(stage.crowd.sent, [(2, 1), (1, 1)]);
    stage.send(3, &["c"]);
    assert_eq!(stage.kafka.0.len(), 1, "the next has its turn");
}

#[test]
fn behind_a_batch_of_late_sends_nothing_stands_still() {
    let mut stage = Stage::new(1, false);
    (1..=5).for_each(|connection| stage.send(connection, &["a"]));
    stage.now += Duration::from_millis(5);
    stage.send(6, &["b"]);
    stage.now += Duration::from_millis(9_995);
    stage.appended(Appended::Unknown("x".into()));
    stage.later(1);
    let late = stage.crowd.news.iter().filter(|news| matches!(news, News::Failed { fault: Fault::NotStored, .. }));
    assert_eq!(late.count(), 4);
    assert_eq!(stage.kafka.0.len(), 1, "what is in time goes to Kafka");
}

#[test]
fn acks_beyond_one_call_are_pythons_too_when_redis_is_away() {
    let mut stage = Stage::new(1, false);
    let handle = handles(&mut stage, 1).remove(0);
    let what = What::Ack { route: stage.route(), handles: vec![handle.clone()] };
    stage.ask(1, what);
    for connection in 2..=4 {
        let what = What::Ack { route: stage.route(), handles: vec![handle.clone(); 300] };
        stage.ask(connection, what);
    }
    stage.call(ACK);
    stage.plane.caller.is_shut = true;
    stage.answer(Err(Failure::NotSent));
    while stage.plane.is_dirty() {
        stage.later(0);
    }
    assert_eq!(stage.crowd.passed, [1, 2, 3, 4]);
}

#[test]
fn acks_that_wait_when_their_queue_is_closed_are_made() {
    let mut stage = Stage::new(1, false);
    let handles = handles(&mut stage, 1);
    let what = What::Ack { route: stage.route(), handles };
    let ask = Ask { connection: 1, lane: 1, verb: VERB, began: stage.now, what };
    stage.plane.ask(&mut stage.crowd, ask, stage.now);
    stage.plane.close(&mut stage.crowd, QUEUE);
    stage.later(0);
    stage.call(ACK);
    stage.answer(Ok(ok(&[])));
    assert_eq!(stage.crowd.acked, [(1, vec![Word::Ok])]);
}

#[test]
fn what_was_leased_for_who_has_gone_goes_back_though_another_lease_is_waited_for() {
    let mut stage = Stage::new(1, false);
    stage.receive(1, 10, 20_000);
    stage.call(RECEIVE);
    let what = What::Receive { route: stage.route(), most: Some(10), wait_ms: Some(20_000), lease_ms: 60_000 };
    stage.ask(2, what);
    let left = What::Left { route: stage.route() };
    stage.ask(1, left);
    stage.lease(&[3], -1);
    assert_eq!(stage.call(GIVE_BACK), ["0", "3", "9", "4001"]);
    stage.answer(Ok(ok(&["OK"])));
    assert_eq!(stage.call(RECEIVE), ["0", "5000", "10", "60000", "30000", "0"]);
    stage.lease(&[3], -1);
    assert_eq!(stage.crowd.given, [(2, vec!["m3".into()])]);
}

#[test]
fn a_tag_that_was_full_is_looked_at_again() {
    let mut stage = Stage::new(1, false);
    let probed = |in_flight: i64| {
        let numbers = [5000, 4000, 50, 5, in_flight, 0, 0, 0, 0].map(Reply::Int);
        Reply::Array(std::iter::once(Reply::Bytes(b"OK".to_vec())).chain(numbers).collect())
    };
    stage.receive(1, 1, 20_000);
    stage.call(RECEIVE);
    let mut full = received(5000, 4000, Vec::new(), &[]);
    if let Reply::Array(items) = &mut full {
        items[6] = Reply::Int(120_000);
    }
    stage.answer(Ok(full));
    stage.call(PROBE);
    stage.answer(Ok(probed(120_000)));
    assert_eq!(stage.crowd.passed, [1]);
    stage.receive(2, 1, 20_000);
    assert_eq!(stage.crowd.passed, [1, 2], "a moment ago it was full");
    stage.later(1000);
    stage.receive(3, 1, 20_000);
    stage.call(PROBE);
    stage.answer(Ok(probed(7)));
    stage.call(RECEIVE);
    stage.lease(&[3], -1);
    assert_eq!(stage.crowd.given, [(3, vec!["m3".into()])]);
}

#[test]
fn what_is_being_leased_ahead_goes_back_at_once_for_a_receive_of_python() {
    let mut stage = Stage::new(1, true);
    stage.receive(1, 1, 1000);
    stage.call(RECEIVE);
    stage.lease(&[1], 4000);
    stage.call(RECEIVE);
    stage.plane.empty_stock(QUEUE, TAG, Duration::from_secs(5), stage.now);
    stage.lease(&[2], 4000);
    assert_eq!(stage.call(GIVE_BACK), ["0", "2", "9", "4001"]);
    stage.answer(Ok(ok(&["OK"])));
    assert!(stage.plane.caller.calls.is_empty(), "Python's receive comes first");
}

#[test]
fn after_a_count_leases_ahead_go_on_unless_python_has_stopped_them_for_longer() {
    let mut stage = Stage::new(1, true);
    stage.receive(1, 1, 1000);
    stage.call(RECEIVE);
    stage.lease(&[1], 4000);
    stage.call(RECEIVE);
    stage.lease(&[2], 4000);
    stage.plane.empty_stock(QUEUE, TAG, Duration::from_millis(5), stage.now);
    stage.later(0);
    assert_eq!(stage.call(GIVE_BACK), ["0", "2", "9", "4001"]);
    stage.answer(Ok(ok(&["OK"])));
    stage.later(4);
    assert!(stage.plane.caller.calls.is_empty(), "it is counted");
    stage.later(1);
    stage.plane.woken(QUEUE, 0, 4001, stage.now);
    stage.later(0);
    stage.call(RECEIVE);
    stage.lease(&[2], 4000);
    stage.plane.empty_stock(QUEUE, TAG, Duration::from_secs(5), stage.now);
    stage.plane.empty_stock(QUEUE, TAG, Duration::from_millis(5), stage.now);
    stage.later(0);
    stage.call(GIVE_BACK);
    stage.answer(Ok(ok(&["OK"])));
    stage.later(6);
    assert!(stage.plane.caller.calls.is_empty());
}

#[test]
fn bodies_are_kept_for_as_long_as_there_is_room() {
    let mut stage = Stage::new(1, false);
    for (first, body) in [(10, "a"), (11, "b")] {
        stage.send(1, &[body]);
        stage.appended(Appended::Stored { first, at_ms: 4000 });
        stage.call(LOAD);
        stage.loaded(1);
        stage.later(31_000);
    }
    stage.receive(2, 10, 1000);
    stage.call(RECEIVE);
    stage.answer(Ok(received(5000, -1, Vec::new(), &[10, 11])));
    assert_eq!(stage.crowd.given, [(2, vec!["a".into(), "b".into()])]);
}

#[test]
fn a_closed_queue_is_forgotten_though_redis_is_away() {
    let mut stage = Stage::new(1, false);
    stage.send(1, &["a"]);
    stage.plane.close(&mut stage.crowd, QUEUE);
    stage.plane.caller.is_shut = true;
    stage.appended(Appended::Stored { first: 10, at_ms: 4000 });
    assert_eq!(stage.crowd.sent, [(1, 1)]);
    assert!(stage.plane.queues.is_empty());
}

#[test]
fn who_serves_for_as_long_as_it_was_shut_begins_anew() {
    let mut stage = Stage::new(1, false);
    let mut connection = 0;
    let mut shut_ms = |after_ms: u64| {
        stage.later(after_ms);
        connection += 1;
        stage.receive(connection, 1, 1000);
        stage.call(RECEIVE);
        stage.answer(Ok(received(5000, -1, Vec::new(), &[3])));
        stage.call(GIVE_BACK);
        stage.answer(Ok(ok(&["OK"])));
        let list = stage.plane.tag(QUEUE, TAG).expect("it is open");
        list.shut_until.expect("it is shut").duration_since(stage.now).as_millis()
    };
    assert_eq!([shut_ms(0), shut_ms(250), shut_ms(500), shut_ms(1000)], [250, 500, 1000, 2000]);
    assert_eq!([shut_ms(2000 + 1999), shut_ms(8000)], [4000, 250]);
}

impl Stage {
    /// Sends that share a batch behind another one: 2 has 100 ms left, 3 and 4 have nearly all their time.
    fn shared_batch(&mut self) -> Instant {
        self.send(1, &["a"]);
        self.send(2, &["b"]);
        let began = self.now;
        self.now += Duration::from_millis(9_900);
        self.send(3, &["c", "d"]);
        self.send(4, &["e"]);
        self.appended(Appended::Stored { first: 10, at_ms: 4000 });
        self.call(LOAD);
        self.loaded(1);
        assert_eq!((self.kafka.0.len(), self.kafka.0[0].1), (1, 4));
        began
    }

    fn failed(&self) -> Vec<(u64, Fault)> {
        let failed = |news: &News| match news {
            News::Failed { connection, fault, .. } => Some((*connection, *fault)),
            _ => None,
        };
        self.crowd.news.iter().filter_map(failed).collect()
    }
}

#[test]
fn each_send_of_a_batch_has_its_own_deadline() {
    let mut stage = Stage::new(1, false);
    let began = stage.shared_batch();
    let until = stage.kafka.1.expect("it was begun");
    assert_eq!(until.sent.duration_since(began).as_millis(), 10_000);
    assert_eq!(until.answered.duration_since(began).as_millis(), 19_900);
    assert_eq!(stage.plane.wake_at(), Some(until.sent));
    stage.later(99);
    assert!(stage.failed().is_empty());
    stage.later(1);
    assert_eq!(stage.failed(), [(2, Fault::MayBeStored)]);
    stage.later(1000);
    stage.appended(Appended::Stored { first: 11, at_ms: 4000 });
    stage.call(LOAD);
    stage.loaded(4);
    assert_eq!(stage.crowd.sent, [(1, 1), (3, 2), (4, 1)]);
    stage.later(20_000);
    assert_eq!(stage.failed().len(), 1);
    stage.plane.woken(QUEUE, 0, 0, stage.now);
    stage.receive(5, 10, 1000);
    stage.call(RECEIVE);
    stage.answer(Ok(received(5000, -1, Vec::new(), &[11, 12, 13, 14])));
    assert_eq!(stage.crowd.given[0].1, ["b", "c", "d", "e"], "what nobody waits for is there too");
}

#[test]
fn who_was_told_that_it_is_late_is_told_nothing_else() {
    for (outcome, passed) in [(Appended::Unknown("x".into()), vec![]), (Appended::NotStored("x".into()), vec![3, 4])] {
        let mut stage = Stage::new(1, false);
        stage.shared_batch();
        stage.later(100);
        stage.appended(outcome);
        assert_eq!(stage.crowd.passed, passed);
        assert_eq!(stage.failed().iter().filter(|(connection, _)| *connection == 2).count(), 1);
        assert_eq!(stage.failed().len() + passed.len(), 3);
    }
    let mut stage = Stage::new(1, false);
    stage.shared_batch();
    stage.later(10_000);
    assert_eq!(stage.failed().iter().map(|(connection, _)| *connection).collect::<Vec<_>>(), [2, 3, 4]);
}

#[test]
fn what_is_on_its_way_back_is_told_until_it_is_there() {
    let mut stage = Stage::new(1, true);
    let returning = |stage: &Stage| {
        let mut packer = Packer::default();
        stage.plane.returning(&mut packer);
        packer.bytes
    };
    let (none, this) = (vec![0x90], vec![0x91, 0x92, QUEUE as u8, TAG as u8]);
    stage.receive(1, 1, 1000);
    assert_eq!(returning(&stage), none, "it is for somebody");
    stage.call(RECEIVE);
    stage.lease(&[1], 4000);
    stage.call(RECEIVE);
    assert_eq!(returning(&stage), this, "it is being leased ahead");
    stage.plane.empty_stock(QUEUE, TAG, Duration::from_secs(5), stage.now);
    stage.lease(&[2], 4000);
    stage.call(GIVE_BACK);
    assert_eq!(returning(&stage), this);
    stage.answer(Ok(ok(&["OK"])));
    assert_eq!(returning(&stage), none);
    stage.receive(2, 1, 1000);
    stage.call(RECEIVE);
    stage.plane.close(&mut stage.crowd, QUEUE);
    assert_eq!(returning(&stage), this, "nobody is to get it any more");
}

#[test]
fn what_is_counted_is_sent_as_far_as_it_is_allowed() {
    let mut stage = Stage::new(1, false);
    let send = |stage: &mut Stage, connection: u64, body: &str| {
        let route = Route { verbs: stage.route().verbs | COUNTS_BYTES, ..stage.route() };
        let values = super::sends::values(stage.plane.records(), &route, &[content(body)], 1);
        stage.ask(connection, What::Send { route, values });
    };
    send(&mut stage, 1, "abc");
    assert_eq!(stage.crowd.passed, [1], "nothing is allowed yet");
    assert!(stage.crowd.news.contains(&News::Low { queue: QUEUE }));
    let now = stage.now;
    stage.plane.allowances.grant(QUEUE, 5, Duration::from_secs(60), now);
    send(&mut stage, 2, "abc");
    send(&mut stage, 3, "def");
    assert_eq!(stage.crowd.passed, [1, 3]);
    // Kafka has not got it: it is Python's, which counts it by itself.
    stage.appended(Appended::NotStored("no leader".into()));
    assert_eq!(stage.crowd.passed, [1, 3, 2]);
    let mut packer = Packer::default();
    stage.plane.allowances.take_all(&mut packer, now);
    assert_eq!(packer.bytes, [0x91, 0x92, QUEUE as u8, 5]);
}
