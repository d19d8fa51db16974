//! Drains without Redis and without Kafka: a test says what both answer.

use std::time::Instant;

use super::{idle_plane, template, Crowd, Fake};
use crate::pack::{Packer, Unpacker};
use crate::plane::append::{Appended, Appender};
use crate::plane::clients::News;
use crate::plane::ended::{End, Ended};
use crate::plane::format::Produced;
use crate::plane::kafka::Until;
use crate::plane::redis::{Failure, Reply};
use crate::plane::Plane;

const DRAIN: usize = 7;
const MOST: u64 = 3;

/// An append that was begun.
struct Begun {
    topic: String,
    place: usize,
    key: Vec<u8>,
    value: Vec<u8>,
    token: u64,
}

#[derive(Default)]
struct Log(Vec<Begun>);

impl Appender for Log {
    fn append(&mut self, topic: &str, place: usize, records: &[Produced], token: u64, _: Until, _: Instant) {
        assert_eq!(records.len(), 1);
        let (key, value) = (records[0].key.expect("a key").to_vec(), records[0].value.to_vec());
        self.0.push(Begun { topic: topic.into(), place, key, value, token });
    }
}

struct Stage {
    plane: Plane<Fake>,
    crowd: Crowd,
    kafka: Log,
    now: Instant,
}

impl Stage {
    fn new() -> Self {
        Self { plane: idle_plane(), crowd: Crowd::default(), kafka: Log::default(), now: Instant::now() }
    }

    fn work(&mut self) {
        self.plane.work(&mut self.crowd, &mut self.kafka, self.now);
    }

    fn begin(&mut self, number: u64, done_seq: i64, rounds: u64, moved: u64) {
        let mut told = Packer::default();
        told.array(12);
        told.uint(number);
        ["orders", "0123456789ab"].iter().for_each(|word| told.text(word.as_bytes()));
        told.uint(2);
        told.text(b"lw.journal");
        told.uint(7);
        told.binary(b"0123456789ab/2");
        template(&mut told, &[(0, "2"), (0, "meta"), (0, "outbox"), (0, "41"), (9, ""), (0, "3")]);
        told.int(done_seq);
        [MOST, rounds, moved].iter().for_each(|number| told.uint(*number));
        self.plane.drain(&mut Unpacker::new(&told.bytes)).expect("told");
        self.work();
    }

    /// The script was called to confirm up to `done_seq`; answers it.
    fn show(&mut self, done_seq: i64, outcome: Result<Reply, Failure>) {
        assert_eq!(self.plane.calls.caller.calls.len(), 1, "one call is under way");
        let (token, script, words) = self.plane.calls.caller.calls.remove(0);
        assert_eq!(script, DRAIN);
        assert_eq!(words, ["2", "meta", "outbox", "41", &done_seq.to_string(), "3"]);
        self.plane.answered(&mut self.crowd, token, outcome, self.now);
        self.work();
    }

    /// One record was appended; Kafka answers it. Returns its value.
    fn store(&mut self, outcome: Appended) -> Vec<u8> {
        assert_eq!(self.kafka.0.len(), 1, "one append is under way");
        let begun = self.kafka.0.remove(0);
        assert_eq!((&begun.topic[..], begun.place, &begun.key[..]), ("lw.journal", 7, &b"0123456789ab/2"[..]));
        self.plane.appended(&mut self.crowd, begun.token, outcome, self.now);
        self.work();
        begun.value
    }

    /// What was told last of a drain; nothing of it is under way.
    fn ended(&mut self) -> Ended {
        assert!(self.plane.calls.caller.calls.is_empty() && self.kafka.0.is_empty());
        match self.crowd.news.pop() {
            Some(News::Drained(ended)) => *ended,
            other => panic!("not a drain that has ended: {other:?}"),
        }
    }

    fn is_under_way(&self) -> bool {
        self.crowd.news.is_empty()
    }
}

/// An entry as the script packs it, with so many offsets.
fn entry(seq: i64, offsets: usize) -> Reply {
    let mut packed = Packer::default();
    packed.array(7);
    packed.int(seq);
    packed.int(4000 + seq);
    packed.text(b"acked");
    packed.uint(1);
    packed.array(offsets);
    (0..offsets).for_each(|offset| packed.uint(offset as u64));
    packed.uint(0);
    packed.text(b"");
    Reply::Bytes(packed.bytes)
}

fn entries(seqs: std::ops::Range<i64>) -> Result<Reply, Failure> {
    shown(seqs.map(|seq| entry(seq, 1)).collect())
}

fn shown(entries: Vec<Reply>) -> Result<Reply, Failure> {
    Ok(Reply::Array(vec![Reply::Bytes(b"OK".to_vec()), Reply::Array(entries)]))
}

fn stored() -> Appended {
    Appended::Stored { first: 10, at_ms: 5000 }
}

#[test]
fn an_entry_is_confirmed_when_kafka_has_it_and_not_before() {
    let mut stage = Stage::new();
    stage.begin(1, 0, 100, 0);
    stage.show(0, entries(11..13));
    assert!(stage.plane.calls.caller.calls.is_empty(), "Kafka has not answered");
    stage.store(stored());
    stage.show(12, entries(13..14));
    let ended = stage.ended();
    assert_eq!((ended.number, ended.end, ended.moved, ended.done_seq), (1, End::Done, 2, 0));
    assert_eq!((ended.since_ms, ended.has_more), (4013, false), "what has come meanwhile waits for the next drain");
    assert_eq!(ended.append, Some([100_000_000, 100_000_000, 5000]));
}

#[test]
fn much_that_has_come_meanwhile_is_moved_too() {
    let mut stage = Stage::new();
    stage.begin(1, 0, 100, 0);
    stage.show(0, entries(1..4));
    stage.store(stored());
    stage.show(3, entries(4..7));
    stage.store(stored());
    stage.show(6, shown(Vec::new()));
    let ended = stage.ended();
    assert_eq!((ended.end, ended.moved, ended.since_ms, ended.has_more), (End::Done, 6, 0, false));
}

#[test]
fn an_outbox_that_has_nothing_ends_a_drain() {
    let mut stage = Stage::new();
    stage.begin(1, 0, 100, 0);
    stage.show(0, shown(Vec::new()));
    assert_eq!(stage.ended().end, End::Done);
}

#[test]
fn records_of_a_look_are_appended_one_after_the_other() {
    let mut stage = Stage::new();
    stage.begin(1, 0, 100, 0);
    stage.show(0, shown(vec![entry(1, 4), entry(2, 1), entry(3, 1)]));
    let first = stage.store(stored());
    assert!(stage.is_under_way());
    let second = stage.store(stored());
    assert_ne!(first, second);
    stage.show(3, shown(Vec::new()));
    assert_eq!(stage.ended().moved, 3);
}

#[test]
fn what_may_not_be_in_the_journal_stays_in_the_outbox() {
    for outcome in [Appended::NotStored("full".into()), Appended::Unknown("late".into())] {
        let mut stage = Stage::new();
        stage.begin(1, 0, 100, 0);
        stage.show(0, entries(1..3));
        stage.store(outcome);
        let ended = stage.ended();
        assert_eq!((ended.end, ended.moved, ended.done_seq, ended.since_ms), (End::NotAppended, 0, 0, 4001));
        assert!(["full", "late"].contains(&&ended.text[..]));
    }
}

#[test]
fn a_record_behind_one_that_failed_is_not_appended() {
    let mut stage = Stage::new();
    stage.begin(1, 0, 100, 0);
    stage.show(0, shown(vec![entry(1, 4), entry(2, 1)]));
    stage.store(Appended::Unknown("late".into()));
    assert_eq!((stage.ended().end, stage.kafka.0.len()), (End::NotAppended, 0));
}

#[test]
fn an_owner_of_before_appends_nothing() {
    let mut stage = Stage::new();
    stage.begin(1, 9, 100, 0);
    stage.show(9, Ok(Reply::Array(vec![Reply::Bytes(b"FENCED".to_vec())])));
    assert_eq!(stage.ended().end, End::Fenced);
}

#[test]
fn a_call_that_may_not_have_been_made_is_made_again_by_python() {
    for outcome in [
        Err(Failure::NotSent),
        Err(Failure::Unknown("lost".into())),
        Ok(Reply::Error(b"BUSY".to_vec())),
        Ok(Reply::Nothing),
    ] {
        let mut stage = Stage::new();
        stage.begin(1, 9, 100, 0);
        stage.show(9, outcome);
        let ended = stage.ended();
        assert_eq!((ended.end, ended.done_seq), (End::Passed, 9), "what the journal has is confirmed by Python");
    }
    let mut stage = Stage::new();
    stage.plane.calls.caller.is_shut = true;
    stage.begin(1, 9, 100, 0);
    assert_eq!((stage.ended().end, stage.plane.calls.caller.calls.len()), (End::Passed, 0));
}

#[test]
fn what_was_appended_is_known_though_redis_has_gone_meanwhile() {
    let mut stage = Stage::new();
    stage.begin(1, 0, 100, 0);
    stage.show(0, entries(1..3));
    stage.plane.calls.caller.is_shut = true;
    stage.store(stored());
    let ended = stage.ended();
    assert_eq!((ended.end, ended.moved, ended.done_seq), (End::Passed, 2, 2));
}

#[test]
fn entries_that_are_not_understood_are_pythons() {
    let mut stage = Stage::new();
    stage.begin(1, 0, 100, 0);
    stage.show(0, shown(vec![entry(1, 1), Reply::Bytes(b"?".to_vec())]));
    assert_eq!(stage.ended().end, End::Passed);
}

#[test]
fn a_drain_ends_after_as_many_appends_as_it_may_do() {
    let mut stage = Stage::new();
    stage.begin(1, 0, 0, 0);
    stage.show(0, entries(1..3));
    let looked = stage.ended();
    assert_eq!((looked.end, looked.moved, looked.has_more, looked.done_seq), (End::Done, 0, true, 0));
    stage.begin(2, 0, 1, 0);
    stage.show(0, entries(1..3));
    stage.store(stored());
    let once = stage.ended();
    assert_eq!((once.moved, once.has_more, once.done_seq), (2, true, 2));
    stage.begin(3, 2, 1, 2);
    stage.show(2, entries(3..5));
    let last = stage.ended();
    assert_eq!(
        (last.moved, last.has_more, last.done_seq),
        (0, false, 0),
        "something was moved before, and little is left"
    );
}

#[test]
fn drains_of_several_units_do_not_wait_for_each_other() {
    let mut stage = Stage::new();
    stage.begin(1, 0, 100, 0);
    stage.show(0, entries(1..3));
    stage.begin(2, 0, 100, 0);
    stage.show(0, shown(Vec::new()));
    match stage.crowd.news.pop() {
        Some(News::Drained(ended)) => assert_eq!(ended.number, 2),
        other => panic!("{other:?}"),
    }
    assert_eq!(stage.kafka.0.len(), 1);
}

#[test]
fn a_drain_that_is_cut_is_refused() {
    let mut stage = Stage::new();
    for told in [&[0x9b, 1][..], &[0x9c, 1], &[0x9c, 0xc0], &[]] {
        assert!(stage.plane.drain(&mut Unpacker::new(told)).is_err());
    }
    stage.work();
    assert!(stage.plane.calls.caller.calls.is_empty());
}

#[test]
fn the_end_of_a_drain_is_told_in_as_many_fields_as_are_counted() {
    let mut stage = Stage::new();
    stage.begin(1, 0, 100, 0);
    stage.show(0, shown(Vec::new()));
    let mut told = Packer::default();
    let ended = stage.ended();
    ended.write(&mut told);
    let mut read = Unpacker::new(&told.bytes);
    assert_eq!((read.uint(), read.uint(), read.uint()), (Ok(1), Ok(0), Ok(0)));
    assert_eq!((read.int(), read.int(), read.uint()), (Ok(0), Ok(0), Ok(0)));
    assert_eq!((read.array(), read.text()), (Ok(0), Ok("")));
    assert!(read.is_empty());
    assert_eq!(Ended::FIELDS, 8);
}
