//! Sends: what Kafka gets, and who hears of it.

use super::*;

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
        (&["0", "5000", "0", "0 me", "10"].map(String::from)[..], &["1", "", "", "", "", "1"].map(String::from)[..])
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
    /// Partitions and times of which Python hears when it asks.
    fn unheard(&mut self) -> Vec<(usize, u64)> {
        let rows = std::mem::take(&mut self.plane.unheard.0);
        rows.into_iter().map(|((_, partition), head_ms)| (partition, head_ms as u64)).collect()
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
    stage.plane.watch(QUEUE, true);
    assert_eq!(stage.unheard(), [(0, 4000), (1, 4003)]);
    assert!(stage.woken().is_empty());
    stage.store(4, 4004);
    assert_eq!(stage.woken(), [(1, 4004)]);
    assert!(stage.unheard().is_empty(), "it has heard of all");
}

#[test]
fn python_hears_of_what_was_sent_to_a_queue_that_is_closed() {
    let mut stage = Stage::new(1, false);
    stage.store(0, 4000);
    stage.send(2, &["b"]);
    stage.plane.close(&mut stage.crowd, QUEUE, stage.now);
    assert_eq!(stage.woken(), [(0, 4000)]);
    stage.appended(Appended::Stored { first: 1, at_ms: 4001 });
    stage.call(LOAD);
    stage.loaded_since(1, 4001);
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
    assert_eq!(stage.plane.calls.caller.calls.len(), 1, "nobody looks before it is there");
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
        let told =
            |fault| News::Failed { connection: 1, lane: 1, verb: VERB, fault, took: Duration::ZERO, text: "x".into() };
        assert_eq!(stage.crowd.news.contains(&told(Fault::MayBeStored)), !is_passed);
        stage.send(2, &["b"]);
        assert_eq!(stage.kafka.0.len(), 1, "the next has its turn");
    }
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
    stage.plane.calls.caller.is_shut = true;
    stage.send(2, &["b"]);
    stage.appended(Appended::Stored { first: 11, at_ms: 4000 });
    assert_eq!(stage.crowd.sent[1], (2, 1));
}

#[test]
fn a_closed_queue_gives_kafka_nothing_more_and_answers_what_it_has() {
    let mut stage = Stage::new(1, false);
    stage.send(1, &["a"]);
    stage.send(2, &["b"]);
    stage.plane.close(&mut stage.crowd, QUEUE, stage.now);
    assert_eq!(stage.crowd.passed, [2]);
    stage.appended(Appended::Stored { first: 10, at_ms: 4000 });
    stage.call(LOAD);
    stage.loaded(1);
    assert_eq!(stage.crowd.sent, [(1, 1)]);
    stage.send(3, &["c"]);
    assert_eq!(stage.crowd.passed, [2, 3]);
}

#[test]
fn as_many_sends_wait_as_may() {
    let mut stage = Stage::new(1, false);
    (1..=7).for_each(|connection| stage.send(connection, &["a"]));
    assert_eq!(stage.crowd.passed, [7], "one is under way, five wait");
}

#[test]
fn loads_that_cant_be_made_leave_those_under_way_alone() {
    let mut stage = Stage::new(1, false);
    let other = queue_told(QUEUE + 1, 1, false);
    stage.plane.open(&mut Unpacker::new(&other.bytes), stage.now).expect("told");
    stage.send(1, &["a"]);
    let route = Route { queue: QUEUE + 1, ..stage.route() };
    stage.ask(2, stage.sent(route, &[content("b")]));
    stage.appended(Appended::Stored { first: 10, at_ms: 4000 });
    stage.call(LOAD);
    stage.plane.calls.caller.is_shut = true;
    stage.appended(Appended::Stored { first: 10, at_ms: 4000 });
    stage.answer(Err(Failure::Unknown("another Redis came into use".into())));
    stage.later(1000);
    assert_eq!(stage.crowd.sent, [(2, 1), (1, 1)]);
    stage.send(3, &["c"]);
    assert_eq!(stage.kafka.0.len(), 1, "the next has its turn");
}

#[test]
fn a_closed_queue_is_forgotten_though_redis_is_away() {
    let mut stage = Stage::new(1, false);
    stage.send(1, &["a"]);
    stage.plane.close(&mut stage.crowd, QUEUE, stage.now);
    stage.plane.calls.caller.is_shut = true;
    stage.appended(Appended::Stored { first: 10, at_ms: 4000 });
    assert_eq!(stage.crowd.sent, [(1, 1)]);
    assert!(stage.plane.queues.is_empty());
}

#[test]
fn an_append_has_no_more_bytes_than_may_be_unless_one_send_has() {
    let mut stage = Stage::new(1, false);
    stage.plane.service.limits.batch_bytes = 2000;
    stage.send(1, &["a"]);
    let body = "x".repeat(900);
    (2..5).for_each(|connection| stage.send(connection, &[&body]));
    stage.send(5, &[&"x".repeat(3000)]);
    stage.send(6, &["b"]);
    for (number, records) in [(0, 1), (1, 2), (3, 1), (4, 1), (5, 1)] {
        assert_eq!(stage.appended(Appended::Stored { first: number, at_ms: 4000 }), (0, records), "from {number} on");
        stage.call(LOAD);
        stage.loaded(1);
    }
}

#[test]
fn the_script_says_since_when_what_it_has_taken_is_visible() {
    let mut stage = Stage::new(1, false);
    for (first, is_taken, head_ms) in [(0, true, 4500), (1, false, 0)] {
        stage.send(1, &["a"]);
        stage.appended(Appended::Stored { first, at_ms: 9_000_000 });
        stage.call(LOAD);
        if is_taken {
            stage.loaded_since(1, head_ms);
        } else {
            stage.answer(Err(Failure::Unknown("cut".into())));
        }
        assert_eq!(stage.unheard(), [(0, head_ms as u64)]);
    }
}
