//! What becomes of appends, by what brokers say.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::appends::Appends;
use super::leaders::News;
use super::outcomes::{Outcome, Reason};
use super::partitions::{Append, Group};
use super::records::Until;
use super::records::{Record, Records};
use super::settings::Settings;
use super::wire::Written;

const NOT_LEADER: i16 = 6;
const TOO_LARGE: i16 = 10;
const TIMED_OUT: i16 = 7;
const AFTER_APPEND: i16 = 20;

pub fn options() -> HashMap<String, String> {
    let text =
        "bootstrap.servers=127.0.0.1:9092 client.id=lw security.protocol=SASL_PLAINTEXT sasl.mechanism=SCRAM-SHA-256 \
        sasl.username=u sasl.password=p connections.max.idle.ms=1000 metadata.max.age.ms=1000 request.timeout.ms=1000 \
        socket.connection.setup.timeout.ms=1000 reconnect.backoff.ms=50 reconnect.backoff.max.ms=400 max.in.flight=5 \
        topic.metadata.propagation.max.ms=600 batch.size=1000 message.max.bytes=5000 queue.buffering.max.kbytes=10 \
        codes.refused=3,6,10,29 codes.again=3,6 codes.missing=3 codes.unknown_partition=-190 codes.timed_out=-185 \
        codes.transport=-195 codes.tls=-181 codes.authentication=-169 codes.unsupported=-165 codes.resolve=-193 \
        codes.queue_full=-184 codes.too_large=10 codes.stopped=-197";
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

pub fn settings() -> Settings {
    Settings::new(options()).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// Appends to one partition whose leader has place 0.
struct Play {
    appends: Appends,
    now: Instant,
    place: usize,
}

impl Play {
    fn new() -> Self {
        let now = Instant::now();
        let mut appends = Appends::new(Arc::new(settings()));
        let place = appends.partitions.place("t", 0, now);
        appends.partitions.get(place).unwrap().leader = Some(0);
        Self { appends, now, place }
    }

    fn append(&mut self, token: u64, bytes: usize) {
        let mut records = Records::default();
        for _ in 0..2 {
            records.push(&Record { key: None, value: Some(&vec![b'x'; bytes / 2]), headers: &[], timestamp_ms: 0 });
        }
        let deadline = self.now + Duration::from_secs(10);
        let until = Until { sent: deadline, answered: deadline };
        self.appends.begin("t", 0, Append { token: Some(token), records, until, is_alone: false }, self.now);
    }

    /// The one batch that may be sent to a node, and its tokens.
    fn sent(&mut self, node: usize) -> Option<(Group, Vec<u64>)> {
        let group = self.appends.gather(node).pop()?;
        let tokens = group.appends.iter().filter_map(|append| append.token).collect();
        Some((group, tokens))
    }

    fn answered(&mut self, mut group: Group, error: i16, base_offset: i64) {
        group.written = Some(Written { error, base_offset, at_ms: 5 });
        self.appends.settle(0, group, self.now);
    }

    fn leads(&mut self, node: usize) {
        let partition = self.appends.partitions.get(self.place).unwrap();
        partition.leader = Some(node);
        partition.under_way = partition.under_way.filter(|old| *old == node);
        partition.is_listed = false;
        self.appends.heed(News::Led(self.place), self.now);
    }

    fn outcomes(&mut self) -> Vec<(u64, Outcome)> {
        std::mem::take(&mut self.appends.outcomes.news)
    }
}

fn stored(base_offset: i64) -> Outcome {
    Outcome::Stored { base_offset, log_append_ms: Some(5) }
}

fn refused(code: i16) -> Outcome {
    Outcome::NotStored(Reason::new(code, ""))
}

fn unknown(code: i16) -> Outcome {
    Outcome::Unknown(Reason::new(code, ""))
}

#[test]
fn what_waits_shares_the_next_batch_and_one_is_under_way() {
    let mut play = Play::new();
    play.append(1, 100);
    let (first, tokens) = play.sent(0).unwrap();
    assert_eq!(tokens, [1]);
    (2..6).for_each(|token| play.append(token, 300));
    assert!(play.sent(0).is_none());
    play.answered(first, 0, 40);
    let (second, tokens) = play.sent(0).unwrap();
    assert_eq!(tokens, [2, 3], "two have less than a thousand bytes");
    play.answered(second, 0, 42);
    assert_eq!(play.outcomes(), [(1, stored(40)), (2, stored(42)), (3, stored(44))]);
    assert_eq!(play.sent(0).unwrap().1, [4, 5]);
}

#[test]
fn what_a_broker_wrote_before_it_stopped_leading_is_not_sent_again() {
    for (error, base_offset) in [(NOT_LEADER, 7), (3, 7), (TIMED_OUT, 7), (TIMED_OUT, -1), (AFTER_APPEND, 7), (-1, -1)]
    {
        let mut play = Play::new();
        play.append(1, 10);
        let (group, _) = play.sent(0).unwrap();
        play.answered(group, error, base_offset);
        assert_eq!(play.outcomes(), [(1, unknown(error))]);
        play.leads(1);
        assert!(play.sent(1).is_none());
        assert_eq!(play.appends.outcomes.held, 0);
    }
}

#[test]
fn what_a_broker_refused_goes_to_the_next_leader_first() {
    let mut play = Play::new();
    play.append(1, 10);
    let (group, _) = play.sent(0).unwrap();
    play.append(2, 10);
    play.answered(group, NOT_LEADER, -1);
    assert!(play.sent(0).is_none());
    assert!(play.appends.leaders.due().is_some_and(|due| due <= play.now));
    play.leads(1);
    assert_eq!(play.sent(1).unwrap().1, [1, 2]);
    assert_eq!(play.outcomes(), []);
}

#[test]
fn nothing_comes_behind_what_was_sent_to_a_later_leader() {
    let mut play = Play::new();
    play.append(1, 10);
    let (group, _) = play.sent(0).unwrap();
    play.append(2, 10);
    play.leads(1);
    assert_eq!(play.sent(1).unwrap().1, [2]);
    play.answered(group, NOT_LEADER, -1);
    assert_eq!(play.outcomes(), [(1, refused(NOT_LEADER))]);
}

#[test]
fn a_batch_that_is_refused_is_sent_apart_once() {
    let mut play = Play::new();
    (1..4).for_each(|token| play.append(token, 10));
    let (group, tokens) = play.sent(0).unwrap();
    assert_eq!(tokens, [1, 2, 3]);
    play.answered(group, TOO_LARGE, -1);
    for token in 1..4 {
        let (group, tokens) = play.sent(0).unwrap();
        assert_eq!(tokens, [token]);
        play.answered(group, if token == 2 { TOO_LARGE } else { 0 }, if token == 2 { -1 } else { 9 });
    }
    assert_eq!(play.outcomes(), [(1, stored(9)), (2, refused(TOO_LARGE)), (3, stored(9))]);
}

#[test]
fn a_topic_that_is_missing_is_tried_for_a_while() {
    let mut play = Play::new();
    play.append(1, 10);
    for _ in 0..3 {
        let (group, _) = play.sent(0).unwrap();
        play.answered(group, 3, -1);
        play.now += Duration::from_millis(250);
        play.leads(0);
    }
    let (group, _) = play.sent(0).unwrap();
    play.answered(group, 3, -1);
    assert_eq!(play.outcomes(), [(1, refused(3))]);
}

#[test]
fn a_connection_that_is_lost_leaves_no_doubt_about_what_it_did_not_carry() {
    for (may_be_stored, outcomes) in [(true, vec![(1, unknown(-195))]), (false, vec![])] {
        let mut play = Play::new();
        play.append(1, 10);
        let (group, _) = play.sent(0).unwrap();
        play.appends.abandon(0, group, may_be_stored, &Reason::new(-195, ""), play.now);
        play.appends.lose(0, play.now);
        assert_eq!(play.outcomes(), outcomes);
        play.leads(0);
        assert_eq!(play.sent(0).is_some(), !may_be_stored);
    }
}

#[test]
fn what_waits_until_its_time_is_over_is_never_sent() {
    let mut play = Play::new();
    play.append(1, 10);
    play.now += Duration::from_secs(5);
    play.append(2, 10);
    let late = Reason::new(-185, "late");
    play.appends.give_up(Some(play.now + Duration::from_secs(6)), &late);
    assert_eq!(play.outcomes(), [(1, Outcome::NotStored(late.clone()))]);
    assert_eq!(play.sent(0).unwrap().1, [2]);
    play.append(3, 10);
    play.appends.give_up(None, &late);
    assert_eq!(play.outcomes(), [(3, Outcome::NotStored(late))]);
}

#[test]
fn an_answer_that_does_not_name_a_batch_leaves_it_unknown() {
    let mut play = Play::new();
    play.append(1, 10);
    let (group, _) = play.sent(0).unwrap();
    play.appends.settle(0, group, play.now);
    let text = "the broker's answer does not name the partition";
    assert_eq!(play.outcomes(), [(1, Outcome::Unknown(Reason::new(-195, text)))]);
}

#[test]
fn an_option_that_is_not_known_is_unsupported() {
    for (name, value, wrong) in [
        ("sasl.mechanism", "OAUTHBEARER", "unsupported: sasl.mechanism=OAUTHBEARER"),
        ("ssl.cipher.suites", "x", "unsupported: ssl.cipher.suites"),
        ("client.dns.lookup", "x", "unsupported: client.dns.lookup=x"),
        ("security.protocol", "SSL", "TLS: there is no certificate of an authority"),
        ("bootstrap.servers", "kafka", "bootstrap.servers: \"kafka\" is not host:port"),
        ("batch.size", "many", "batch.size is no number: many"),
        ("sasl.password", "", "sasl.password is not set"),
    ] {
        let mut options = options();
        options.insert(name.to_owned(), value.to_owned());
        assert_eq!(Settings::new(options).err().as_deref(), Some(wrong));
    }
}
