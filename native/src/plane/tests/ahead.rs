//! What is leased ahead of receives, and what goes back.

use super::*;

#[test]
fn what_goes_back_is_asked_for_before_its_answer_is_here() {
    let mut stage = Stage::new(1, true);
    stage.receive(1, 1, 1000);
    stage.call(RECEIVE);
    stage.lease(&[1], 4000);
    stage.call(RECEIVE);
    stage.lease(&[2, 3], -1);
    stage.later(40);
    stage.call(GIVE_BACK);
    stage.receive(2, 1, 1000);
    stage.call(RECEIVE); // by the same connection, so behind it
    stage.lease(&[2], -1);
    assert_eq!(stage.crowd.given[1], (2, vec!["m2".into()]));
}

#[test]
fn what_goes_back_has_the_place_that_it_had() {
    let mut stage = Stage::new(1, true);
    (2..4).for_each(|offset| stage.store(offset, 4000));
    stage.receive(1, 1, 1000);
    stage.call(RECEIVE);
    stage.lease(&[1], 4000);
    stage.call(RECEIVE);
    stage.answer(Ok(received(5000, -1, Vec::new(), &[2, 3])));
    stage.later(40);
    // They were sent at 4000: by that, messages that came later and were visible since then would be before them.
    assert_eq!(stage.call(GIVE_BACK), ["0", "2", "9", "4002", "3", "9", "4003"]);
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
    stage.plane.calls.caller.calls.clear();
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

/// The fourth message is leased ahead, and more are being leased.
fn leasing_more() -> Stage {
    let mut stage = Stage::new(1, true);
    stage.receive(1, 1, 1000);
    stage.receive(2, 1, 1000);
    stage.call(RECEIVE);
    stage.lease(&[1, 2], 4000);
    stage.call(RECEIVE);
    stage.lease(&[3], 4000);
    stage.receive(3, 1, 1000);
    stage.call(RECEIVE);
    stage.lease(&[4], 4000);
    assert_eq!(stage.crowd.given.len(), 3);
    stage
}

#[test]
fn what_is_being_leased_does_not_come_before_what_went_back_meanwhile() {
    let mut stage = leasing_more();
    stage.later(40);
    assert_eq!(stage.call(GIVE_BACK), ["0", "4", "9", "4001"]);
    stage.receive(4, 1, 1000);
    stage.call(RECEIVE);
    stage.lease(&[5, 6], -1);
    assert_eq!(stage.crowd.given.len(), 3);
    assert_eq!(stage.call(GIVE_BACK), ["0", "5", "9", "4001", "6", "9", "4001"]);
    stage.call(RECEIVE);
    stage.lease(&[4], 4000);
    assert_eq!(stage.crowd.given[3], (4, vec!["m4".into()]));
}

#[test]
fn what_was_leased_later_goes_back_with_what_was_held_too_long() {
    let mut stage = leasing_more();
    stage.call(RECEIVE);
    stage.lease(&[], -1);
    stage.later(20);
    stage.plane.woken(QUEUE, 0, 4001, stage.now);
    stage.later(0);
    stage.call(RECEIVE);
    stage.lease(&[5], -1);
    stage.later(20);
    assert_eq!(stage.call(GIVE_BACK), ["0", "4", "9", "4001", "5", "9", "4001"]);
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
    assert!(stage.plane.calls.caller.calls.is_empty(), "Python's receive comes first");
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
    assert!(stage.plane.calls.caller.calls.is_empty(), "it is counted");
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
    assert!(stage.plane.calls.caller.calls.is_empty());
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
    stage.plane.close(&mut stage.crowd, QUEUE, stage.now);
    assert_eq!(returning(&stage), this, "nobody is to get it any more");
}
