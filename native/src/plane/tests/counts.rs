//! What is counted of requests, whichever way they end.

use super::*;

/// `[verb, more, is gone, requests, messages, empty, sum us]` of each kind of request, in order.
fn counted(stage: &mut Stage) -> Vec<[u64; 7]> {
    let mut packer = Packer::default();
    stage.plane.take_counts(&mut packer);
    let mut told = Unpacker::new(&packer.bytes);
    let mut rows = Vec::new();
    for _ in 0..told.array().expect("rows") {
        assert_eq!((told.array(), told.uint()), (Ok(12), Ok(QUEUE)));
        told.int().expect("a tag");
        let mut next = || told.uint().expect("a number");
        rows.push([next(), next(), next(), next(), next(), next(), next()]);
        next(); // the greatest time
        for _ in 0..2 {
            (0..told.array().expect("counts")).for_each(|_| drop(told.uint()));
        }
    }
    rows.sort_unstable();
    rows
}

const RECEIVES: u64 = VERB as u64;

#[test]
fn who_leaves_while_it_waits_is_counted_as_gone() {
    let mut stage = Stage::new(1, false);
    stage.receive(1, 10, 20_000);
    stage.now += Duration::from_millis(700);
    let route = stage.route();
    stage.ask(1, What::Left { route });
    assert_eq!(counted(&mut stage), [[RECEIVES, 0, 1, 1, 0, 1, 700_000]]);
    let route = stage.route();
    stage.ask(1, What::Left { route });
    assert!(counted(&mut stage).is_empty(), "it had left");
}

#[test]
fn who_leaves_between_lease_and_answer_is_counted_as_gone() {
    let mut stage = Stage::new(1, false);
    stage.crowd.gone = vec![1];
    stage.receive(1, 1, 1000);
    stage.call(RECEIVE);
    stage.lease(&[3], -1);
    let rows = counted(&mut stage);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0][..5], [RECEIVES, 0, 1, 1, 0]);
}

#[test]
fn who_is_to_be_pythons_and_has_gone_is_counted_here() {
    let mut stage = Stage::new(1, false);
    stage.crowd.gone = vec![1, 2];
    stage.receive(1, 1, 1000);
    stage.send(2, &["a"]);
    stage.send(3, &["b"]);
    stage.plane.close(&mut stage.crowd, QUEUE, stage.now);
    assert_eq!(stage.crowd.passed, [1, 3]);
    let gone: Vec<_> = counted(&mut stage).iter().map(|row| (row[2], row[3])).collect();
    assert_eq!(gone, [(1, 1)], "Kafka was given the first send before, and the second is Python's");
    stage.crowd.gone = vec![4];
    stage.receive(4, 1, 1000);
    assert_eq!(counted(&mut stage)[0][2..4], [1, 1], "the queue was closed before it came");
}

#[test]
fn who_waits_at_a_stop_is_counted_as_answered() {
    let mut stage = Stage::new(1, false);
    stage.receive(1, 10, 20_000);
    stage.now += Duration::from_millis(700);
    stage.plane.stop(&mut stage.crowd, stage.now);
    assert_eq!(stage.crowd.given, [(1, vec![])]);
    assert_eq!(counted(&mut stage), [[RECEIVES, 1, 0, 1, 0, 1, 700_000]]);
}

#[test]
fn how_many_wait_is_told_by_queue_and_tag() {
    let mut stage = Stage::new(1, false);
    let told = |stage: &Stage| {
        let mut packer = Packer::default();
        stage.plane.waiters(&mut packer);
        packer.bytes
    };
    assert_eq!(told(&stage), [0x90]);
    stage.receive(1, 10, 20_000);
    stage.receive(2, 10, 20_000);
    stage.receive(3, 10, 0);
    assert_eq!(told(&stage), [0x91, 0x93, QUEUE as u8, TAG as u8, 2], "the third does not wait");
    stage.plane.stop(&mut stage.crowd, stage.now);
    assert_eq!(told(&stage), [0x90]);
}

#[test]
fn a_receive_that_got_something_is_not_empty() {
    let mut stage = Stage::new(1, false);
    stage.receive(1, 1, 1000);
    stage.call(RECEIVE);
    stage.lease(&[3], -1);
    assert_eq!(counted(&mut stage)[0][..6], [RECEIVES, 1, 0, 1, 1, 0]);
}

#[test]
fn what_has_failed_tells_how_long_it_was_in_hand() {
    let mut stage = Stage::new(1, false);
    stage.send(1, &["a"]);
    stage.now += Duration::from_millis(700);
    stage.appended(Appended::Unknown("x".into()));
    let took = |news: &News| if let News::Failed { took, .. } = news { Some(*took) } else { None };
    assert_eq!(stage.crowd.news.iter().find_map(took), Some(Duration::from_millis(700)));
}
