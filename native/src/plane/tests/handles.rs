//! Verbs on handles.

use super::*;

fn handles(stage: &mut Stage, count: i64) -> Vec<Vec<u8>> {
    let offsets: Vec<i64> = (1..=count).collect();
    stage.receive(90, count as usize, 1000);
    stage.call(RECEIVE);
    stage.lease(&offsets, -1);
    std::mem::take(&mut stage.crowd.handles)
}

fn acts(stage: &Stage, act: Act, handles: &[Vec<u8>], lease_ms: i64, tells_each: bool) -> What {
    let held = handles.iter().map(|handle| Held { handle: handle.clone(), lease_ms }).collect();
    What::Act { route: stage.route(), handles: Handles { act, held, tells_each } }
}

fn acks(stage: &Stage, handles: &[Vec<u8>]) -> What {
    acts(stage, Act::Ack, handles, 0, true)
}

/// The place of SETTLED among the words.
const SETTLED: u8 = 2;

fn done(word: u8) -> Done {
    Done { word, visible_ms: 0 }
}

/// Offsets and words of handles of which Python has heard that they were good for nothing.
fn refused(stage: &Stage) -> Vec<Vec<i64>> {
    let of = |news: &News| match news {
        News::Refused { queue: QUEUE, partition: 0, rows } => Some(rows.clone()),
        _ => None,
    };
    stage.crowd.news.iter().filter_map(of).collect()
}

#[test]
fn a_word_that_python_has_not_told_is_no_answer() {
    let mut stage = Stage::new(1, false);
    let handles = handles(&mut stage, 2);
    stage.ask(1, acks(&stage, &handles));
    stage.call(ACK);
    stage.answer(Ok(ok(&["OK", "ODD"])));
    let is_told = |news: &News| matches!(news, News::Failed { connection: 1, fault: Fault::State, .. });
    assert!(stage.crowd.acted.is_empty() && stage.crowd.passed.is_empty() && stage.crowd.news.iter().any(is_told));
}

#[test]
fn leases_are_extended_together() {
    let mut stage = Stage::new(1, false);
    let handles = handles(&mut stage, 2);
    stage.ask(1, acts(&stage, Act::Extend, &handles[..1], 7000, false));
    stage.ask(2, acts(&stage, Act::Extend, &handles, 0, false));
    stage.ask(3, acts(&stage, Act::Extend, &handles, 9000, true));
    assert_eq!(stage.call(EXTEND), ["0", "1", "9", "7000"]);
    stage.answer(Ok(timed(&[("OK", 12_000)])));
    assert_eq!(stage.crowd.acted, [(1, vec![Done { word: 0, visible_ms: 12_000 }])]);
    assert_eq!(stage.call(EXTEND)[1..], ["1", "9", "0", "2", "9", "0", "1", "9", "9000", "2", "9", "9000"]);
    stage.answer(Ok(timed(&[("OK", 5000), ("SETTLED", 0), ("OK", 14_000), ("SETTLED", 0)])));
    // Of the second Python is to say why, and takes note of it; the third can say that itself.
    assert_eq!(stage.crowd.passed, [2]);
    assert_eq!(refused(&stage), [vec![2, i64::from(SETTLED)]]);
    assert_eq!(stage.crowd.acted[1], (3, vec![Done { word: 0, visible_ms: 14_000 }, done(SETTLED)]));
}

#[test]
fn a_lease_that_may_become_too_long_is_pythons() {
    let mut stage = Stage::new(1, false);
    let handles = handles(&mut stage, 1); // leased at 5000, which it is now
    for (most_leased_ms, is_passed) in [(30_000, false), (29_999, true), (0, false)] {
        let mut what = acts(&stage, Act::Extend, &handles, 30_000, false);
        if let What::Act { route, .. } = &mut what {
            route.most_leased_ms = most_leased_ms;
        }
        stage.ask(1, what);
        assert_eq!(stage.crowd.passed.pop().is_some(), is_passed, "{most_leased_ms}");
    }
}

#[test]
fn who_waits_is_served_with_what_is_given_back() {
    let mut stage = Stage::new(1, false);
    let handles = handles(&mut stage, 2);
    stage.receive(2, 1, 1000);
    stage.later(0);
    stage.plane.calls.caller.calls.clear();
    stage.answer(Ok(received(5000, -1, vec![], &[])));
    stage.ask(1, acts(&stage, Act::Release, &handles, 0, true));
    assert_eq!(stage.call(RELEASE), ["0", "1", "9", "2", "9"]);
    stage.answer(Ok(timed(&[("SETTLED", 0), ("OK", 5000)])));
    assert_eq!(stage.crowd.acted, [(1, vec![done(SETTLED), Done { word: 0, visible_ms: 5000 }])]);
    assert_eq!(stage.call(RECEIVE)[2], "1", "it is asked for the message at once");
}

#[test]
fn a_change_of_which_nothing_was_done_is_pythons_and_one_that_nobody_knows_of_is_told() {
    for (act, script) in [(Act::Extend, EXTEND), (Act::Release, RELEASE)] {
        for (outcome, is_passed) in
            [(Ok(word("FULL")), true), (Ok(word("LOST")), true), (Err(Failure::Unknown("x".into())), false)]
        {
            let mut stage = Stage::new(1, false);
            let handles = handles(&mut stage, 1);
            stage.ask(1, acts(&stage, act, &handles, 1000, true));
            stage.call(script);
            stage.answer(outcome);
            assert_eq!(stage.crowd.passed == [1], is_passed);
            assert_eq!(stage.crowd.news.iter().any(|news| matches!(news, News::Failed { .. })), !is_passed);
        }
    }
}

#[test]
fn acks_go_together_and_are_told_apart() {
    let mut stage = Stage::new(1, false);
    let handles = handles(&mut stage, 3);
    for (connection, some) in [(1, &handles[..1]), (2, &handles[1..])] {
        let what = acks(&stage, some);
        stage.ask(connection, what);
    }
    assert_eq!(stage.call(ACK), ["0", "1", "9"]);
    stage.answer(Ok(ok(&[])));
    assert_eq!(stage.crowd.acted, [(1, vec![done(0)])]);
    assert_eq!(stage.call(ACK), ["0", "2", "9", "3", "9"]);
    stage.answer(Ok(ok(&["OK", "SETTLED"])));
    assert_eq!(stage.crowd.acted[1], (2, vec![done(0), done(SETTLED)]));
    assert_eq!(refused(&stage), [vec![3, i64::from(SETTLED)]]);
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
        let what = acks(&stage, &handles);
        stage.ask(1, what);
        stage.call(ACK);
        stage.answer(outcome);
        assert_eq!(stage.crowd.passed == [1], is_passed);
        assert_eq!(stage.crowd.news.iter().any(|news| matches!(news, News::Failed { .. })), !is_passed);
        assert!(stage.crowd.acted.is_empty());
    }
}

#[test]
fn durable_acks_are_answered_when_the_journal_has_them() {
    for (why, is_answered) in [("", true), ("late", false)] {
        let mut stage = Stage::new(1, false);
        stage.plane.queues.get_mut(&QUEUE).expect("open").is_durable = true;
        let handles = handles(&mut stage, 2);
        stage.ask(1, acks(&stage, &handles[..1]));
        stage.ask(2, acks(&stage, &handles));
        stage.call(ACK);
        stage.answer(Ok(ok(&[])));
        let Some(News::Written { queue: QUEUE, partition: 0, seq: 1, number }) = stage.crowd.news.pop() else {
            panic!("Python is to wait for the journal")
        };
        stage.call(ACK);
        stage.answer(Ok(word("FULL")));
        assert_eq!(
            (stage.crowd.passed.clone(), stage.crowd.acted.len()),
            (vec![2], 0),
            "nothing was done of the second"
        );
        stage.plane.close(&mut stage.crowd, QUEUE, stage.now);
        stage.plane.journaled(&mut stage.crowd, number, why, stage.now);
        assert_eq!(stage.crowd.acted == [(1, vec![done(0)])], is_answered);
        let late = |news: &News| matches!(news, News::Failed { fault: Fault::MayBeStored, text, .. } if text == "late");
        assert_eq!(stage.crowd.news.iter().any(late), !is_answered);
        stage.plane.journaled(&mut stage.crowd, number, why, stage.now);
        assert_eq!(stage.crowd.acted.len(), usize::from(is_answered), "it is answered once");
    }
}

#[test]
fn handles_of_others_are_pythons() {
    let mut stage = Stage::new(1, false);
    for handle in [b"x".to_vec(), vec![b'A'; 52]] {
        let what = acks(&stage, &[handle]);
        stage.ask(1, what);
    }
    assert_eq!(stage.crowd.passed, [1, 1]);
}

#[test]
fn acks_beyond_one_call_are_pythons_too_when_redis_is_away() {
    let mut stage = Stage::new(1, false);
    let handle = handles(&mut stage, 1).remove(0);
    let what = acks(&stage, std::slice::from_ref(&handle));
    stage.ask(1, what);
    for connection in 2..=4 {
        let what = acks(&stage, &vec![handle.clone(); 300]);
        stage.ask(connection, what);
    }
    stage.call(ACK);
    stage.plane.calls.caller.is_shut = true;
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
    let what = acks(&stage, &handles);
    let ask = Ask { by: Asker { connection: 1, lane: 1, verb: VERB, began: stage.now }, what };
    stage.plane.ask(&mut stage.crowd, ask, stage.now);
    stage.plane.close(&mut stage.crowd, QUEUE, stage.now);
    stage.later(0);
    stage.call(ACK);
    stage.answer(Ok(ok(&[])));
    assert_eq!(stage.crowd.acted, [(1, vec![done(0)])]);
}

#[test]
fn times_are_noted_of_first_deliveries_and_of_what_ended_one() {
    let mut stage = Stage::new(1, false);
    let handles = handles(&mut stage, 2);
    stage.ask(1, acks(&stage, &handles));
    stage.call(ACK);
    stage.answer(Ok(ok(&["OK", "SETTLED"])));
    let mut packer = Packer::default();
    stage.plane.times.take(&mut packer);
    let mut told = Unpacker::new(&packer.bytes);
    assert_eq!(told.array(), Ok(3));
    let counts = (0..3).map(|_| {
        told.array().and_then(|_| told.uint()).expect("a sum");
        (0..told.array().expect("counts")).map(|_| told.uint().expect("a count")).sum()
    });
    assert_eq!(counts.collect::<Vec<u64>>(), [2, 1, 0]);
}
