//! Bodies that are kept here, and messages without one.

use super::*;

#[test]
fn what_comes_again_is_served_while_it_can_not_have_expired() {
    let mut stage = Stage::new(1, false);
    stage.store(0, 4000);
    for (at_ms, is_given) in [(64_000, true), (64_001, false)] {
        stage.plane.woken(QUEUE, 0, 0, stage.now);
        stage.receive(3, 1, 1000);
        stage.call(RECEIVE);
        let mut again = [0, 2, 5000, 99_000].map(Reply::Int).to_vec();
        again.push(Reply::Bytes(Vec::new()));
        stage.answer(Ok(received(at_ms, -1, again, &[])));
        assert_eq!((stage.crowd.given.len(), stage.crowd.passed.len()), (1, usize::from(!is_given)), "at {at_ms}");
    }
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
fn what_comes_behind_a_body_that_is_not_here_goes_back_with_it() {
    let mut stage = Stage::new(1, false);
    stage.store(8, 4000);
    stage.plane.woken(QUEUE, 0, 0, stage.now);
    stage.receive(3, 2, 1000);
    stage.call(RECEIVE);
    stage.answer(Ok(received(5000, -1, Vec::new(), &[7, 8])));
    assert_eq!(stage.call(GIVE_BACK), ["0", "7", "9", "4007", "8", "9", "4008"]);
    assert!(stage.crowd.given.is_empty());
    assert_eq!(stage.crowd.passed, [3]);
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
fn bodies_are_kept_up_to_a_bound() {
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
