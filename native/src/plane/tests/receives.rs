//! Receives: who waits, and what each gets.

use super::*;

#[test]
fn who_waits_gets_what_was_leased() {
    let mut stage = Stage::new(1, false);
    stage.receive(1, 10, 1000);
    assert_eq!(stage.call(RECEIVE), ["0", "5000", "10", "-1", "30000", "0"]);
    stage.lease(&[3, 4], -1);
    assert_eq!(stage.crowd.given, [(1, vec!["m3".into(), "m4".into()])]);
    assert!(stage.plane.calls.caller.calls.is_empty());
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
fn of_messages_of_one_ms_those_of_the_partition_that_was_asked_last_come_first() {
    let mut stage = Stage::new(2, false);
    stage.receive(1, 1, 1000);
    for _ in 0..2 {
        stage.call(PROBE);
        let mut items = vec![Reply::Bytes(b"OK".to_vec())];
        items.extend([5000, 4000, 50, 2, 0, 1, 1, 1, 0].map(Reply::Int));
        stage.answer(Ok(Reply::Array(items)));
    }
    let first = stage.call(RECEIVE)[0].clone();
    stage.lease(&[3], 4000);
    stage.receive(2, 1, 1000);
    assert_eq!(stage.call(RECEIVE)[0], first);
}

#[test]
fn a_closed_queue_hands_out_nothing_that_was_leased_before() {
    let mut stage = Stage::new(1, true);
    stage.receive(1, 1, 1000);
    stage.call(RECEIVE);
    stage.plane.close(&mut stage.crowd, QUEUE, stage.now);
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
    stage.plane.calls.caller.is_shut = true;
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
