//! Each request and each answer byte by byte, and answers that no broker should send.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::appends::Appends;
use super::appends_tests::settings;
use super::bytes::{put, put_bytes, put_text, Malformed, Reader};
use super::login::Exchange;
use super::partitions::{Append, Group};
use super::records::Until;
use super::records::{put_batch, Record, Records};
use super::wire::*;
use crate::chance::Chance;

fn group(topic: &str, index: i32, value: &[u8]) -> Group {
    let mut records = Records::default();
    records.push(&Record { key: None, value: Some(value), headers: &[], timestamp_ms: 7 });
    let until = Until { sent: Instant::now(), answered: Instant::now() };
    let append = Append { token: Some(1), records, until, is_alone: false };
    Group { place: 0, topic: topic.into(), index, appends: vec![append], written: None }
}

fn sized(body: &[u8]) -> Vec<u8> {
    [&(body.len() as i32).to_be_bytes()[..], body].concat()
}

#[test]
fn requests() {
    let mut output = Vec::new();
    put_versions(&mut output, 5, "lw");
    assert_eq!(output, sized(b"\0\x12\0\0\0\0\0\x05\0\x02lw"));
    output.clear();
    put_handshake(&mut output, 6, "lw", "PLAIN");
    assert_eq!(output, sized(b"\0\x11\0\x01\0\0\0\x06\0\x02lw\0\x05PLAIN"));
    output.clear();
    put_authenticate(&mut output, 7, "lw", b"\0u\0p");
    assert_eq!(output, sized(b"\0\x24\0\x01\0\0\0\x07\0\x02lw\0\0\0\x04\0u\0p"));
    output.clear();
    put_metadata(&mut output, 8, "lw", &["a", "bc"]);
    assert_eq!(output, sized(b"\0\x03\0\x07\0\0\0\x08\0\x02lw\0\0\0\x02\0\x01a\0\x02bc\0"));
}

#[test]
fn a_produce_request_has_each_topic_once() {
    let groups = [group("a", 3, b"x"), group("a", 0, b"y"), group("b", 1, b"z")];
    let mut output = b"before".to_vec();
    put_produce(&mut output, 9, "lw", 8_000, &groups);
    let mut body = b"\0\0\0\x07\0\0\0\x09\0\x02lw\xff\xff\xff\xff\0\0\x1f\x40\0\0\0\x02".to_vec();
    let mut end = |head: &[u8], group: &Group| {
        let mut batch = Vec::new();
        put_batch(&mut batch, [&group.appends[0].records].into_iter());
        body.extend_from_slice(head);
        body.extend(sized(&batch));
    };
    end(b"\0\x01a\0\0\0\x02\0\0\0\x03", &groups[0]);
    end(b"\0\0\0\0", &groups[1]);
    end(b"\0\x01b\0\0\0\x01\0\0\0\x01", &groups[2]);
    assert_eq!(output, [b"before".to_vec(), sized(&body)].concat());
}

fn versions_answer(produce: (i16, i16)) -> Vec<u8> {
    let mut answer = b"\0\0\0\0\0\x04".to_vec();
    for (key, low, high) in [(3i16, 0i16, 13i16), (0, produce.0, produce.1), (17, 0, 1), (36, 0, 2)] {
        [key, low, high].iter().for_each(|number| put(&mut answer, number.to_be_bytes()));
    }
    answer
}

#[test]
fn versions_of_kafka_3_and_4_have_what_is_needed() {
    let apis = [&PRODUCE, &METADATA, &HANDSHAKE, &AUTHENTICATE];
    let missing = |answer: &[u8]| missing(&mut Reader::new(answer), &apis);
    assert_eq!(missing(&versions_answer((0, 9))), Ok(Ok(None)));
    assert_eq!(missing(&versions_answer((3, 13))), Ok(Ok(None)));
    assert_eq!(missing(&versions_answer((8, 13))), Ok(Ok(Some(&PRODUCE))));
    assert_eq!(missing(&versions_answer((0, 6))), Ok(Ok(Some(&PRODUCE))));
    assert_eq!(missing(b"\0\0\0\0\0\0"), Ok(Ok(Some(&PRODUCE))));
    assert_eq!(missing(b"\0\x23\0\0\0\0"), Ok(Err(35)));
}

fn handshake_answer() -> Vec<u8> {
    let mut answer = b"\0\x21\0\0\0\x02".to_vec();
    ["PLAIN", "GSSAPI"].iter().for_each(|name| put_text(&mut answer, name));
    answer
}

fn authenticate_answer() -> Vec<u8> {
    let mut answer = b"\0\0\xff\xff".to_vec();
    put_bytes(&mut answer, b"r=abcd,s=AAAA,i=4096");
    put(&mut answer, 60_000i64.to_be_bytes());
    answer
}

fn metadata_answer() -> Vec<u8> {
    let mut answer = b"\0\0\0\0\0\0\0\x01\0\0\0\x02".to_vec();
    put_text(&mut answer, "kafka-2");
    put(&mut answer, 9092i32.to_be_bytes());
    answer.extend(b"\0\x01r\xff\xff\0\0\0\x02\0\0\0\x01\0\0");
    put_text(&mut answer, "a");
    answer.extend(b"\0\0\0\0\x02");
    for (error, index, leader) in [(0i16, 1i32, 2i32), (5, 0, -1)] {
        put(&mut answer, error.to_be_bytes());
        [index, leader, 4, 2, 2, 3, 1, 2, 0].iter().for_each(|number| put(&mut answer, number.to_be_bytes()));
    }
    answer
}

fn produce_answer() -> Vec<u8> {
    let mut answer = b"\0\0\0\x02".to_vec();
    for (topic, index, error, offset) in [("b", 1i32, 6i16, -1i64), ("a", 3, 0, 40)] {
        put_text(&mut answer, topic);
        put(&mut answer, 1i32.to_be_bytes());
        put(&mut answer, index.to_be_bytes());
        put(&mut answer, error.to_be_bytes());
        [offset, 1_000, 0].iter().for_each(|number| put(&mut answer, number.to_be_bytes()));
    }
    put(&mut answer, 25i32.to_be_bytes());
    answer
}

#[test]
fn answers() {
    assert_eq!(handshake(&mut Reader::new(&handshake_answer())), Ok((33, "PLAIN, GSSAPI".to_owned())));
    let token = b"r=abcd,s=AAAA,i=4096";
    assert_eq!(
        authenticated(&mut Reader::new(&authenticate_answer())),
        Ok(Authenticated { error: 0, text: "", token, lifetime_ms: 60_000 })
    );
    let topic = Topic { name: "a".to_owned(), error: 0, partitions: vec![(1, 0, 2), (0, 5, -1)] };
    assert_eq!(
        metadata(&mut Reader::new(&metadata_answer())),
        Ok(Metadata { brokers: vec![(2, "kafka-2".to_owned(), 9092)], topics: vec![topic] })
    );
    let mut groups = [("b", 3), ("a", 0), ("a", 3), ("b", 1)].map(|(topic, index)| group(topic, index, b"x"));
    assert_eq!(produced(&mut Reader::new(&produce_answer()), &mut groups), Ok(25));
    assert_eq!(
        groups.map(|group| group.written),
        [
            None,
            None,
            Some(Written { error: 0, base_offset: 40, at_ms: 1_000 }),
            Some(Written { error: 6, base_offset: -1, at_ms: 1_000 }),
        ]
    );
}

/// An answer with some bytes cut, put in, or set.
fn mutated(chance: &mut Chance, answer: &[u8]) -> Vec<u8> {
    let mut bytes = answer.to_vec();
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len());
        match chance.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, chance.below(256) as u8),
            2 if bytes.len() >= at + 4 => bytes[at..at + 4].copy_from_slice(&[0x7f, 255, 255, 255]),
            3 if bytes.len() >= at + 2 => bytes[at..at + 2].copy_from_slice(&[255, chance.below(256) as u8]),
            _ if at < bytes.len() => bytes[at] = chance.below(256) as u8,
            _ => {}
        }
    }
    bytes
}

/// No bytes of a broker's stop this process, and what was sent has one outcome at most.
#[test]
fn a_hundred_thousand_answers_that_no_broker_should_send() {
    let answers =
        [versions_answer((3, 13)), handshake_answer(), authenticate_answer(), metadata_answer(), produce_answer()];
    let mut chance = Chance(0x5eed);
    let (settings, now) = (Arc::new(settings()), Instant::now());
    let poll = mio::Poll::new().unwrap();
    let registry = || poll.registry().try_clone().unwrap();
    let mut refused = 0;
    for round in 0..100_000 {
        let bytes = mutated(&mut chance, &answers[round % answers.len()]);
        let reader = || Reader::new(&bytes);
        refused += usize::from(missing(&mut reader(), &[&PRODUCE]) == Err(Malformed));
        refused += usize::from(handshake(&mut reader()) == Err(Malformed));
        let mut exchange = Exchange::new(settings.clone());
        let steps = [&bytes, &answers[1], &bytes, &bytes];
        let _ = steps.iter().try_for_each(|step| exchange.hear(&mut Reader::new(step)).map(|_| ()));
        let mut appends = Appends::new(settings.clone());
        for (token, index) in [(1, 3), (2, 0)] {
            let mut append = group("a", index, b"x").appends.remove(0);
            append.token = Some(token);
            append.until.sent = now + Duration::from_secs(1);
            appends.begin("a", index, append, now);
        }
        let mut nodes = super::nodes::Nodes::new(settings.clone(), registry(), 1..9, now).unwrap();
        if let Ok(metadata) = metadata(&mut reader()) {
            let limits = (&settings.codes, settings.propagation);
            let news = appends.leaders.learn(&metadata, &mut appends.partitions, &mut nodes, limits, now);
            news.into_iter().for_each(|news| appends.heed(news, now));
        }
        let mut groups: Vec<Group> = (0..nodes.len()).flat_map(|place| appends.gather(place)).collect();
        let _ = produced(&mut reader(), &mut groups);
        groups.into_iter().for_each(|group| appends.settle(1, group, now));
        let mut tokens: Vec<u64> = appends.outcomes.news.iter().map(|(token, _)| *token).collect();
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!(tokens.len(), appends.outcomes.news.len());
    }
    assert!(refused > 10_000, "{refused}");
}
