//! Sends of which Python has allowed so many.

use super::*;

#[test]
fn what_is_delayed_is_sent_while_python_allows_some() {
    let mut stage = Stage::new(1, false);
    let mut route = stage.route();
    let mut send = |stage: &mut Stage, connection, delays: &[Option<i64>]| {
        let contents: Vec<Content> =
            delays.iter().map(|delay_ms| Content { delay_ms: *delay_ms, ..content("a") }).collect();
        stage.ask(connection, stage.sent(route.clone(), &contents));
        route.delay_ms = 7000;
    };
    send(&mut stage, 1, &[Some(5)]);
    assert_eq!(stage.crowd.passed, [1]);
    assert!(stage.crowd.news.contains(&News::LowDelays { queue: QUEUE }));
    stage.plane.delays.grant(QUEUE, 4, Duration::from_secs(9), stage.now);
    send(&mut stage, 2, &[Some(5000), Some(5000), None, Some(0)]);
    stage.appended(Appended::Stored { first: 3, at_ms: 4000 });
    let load = stage.call(LOAD);
    // Offsets and counts of three entries.
    assert_eq!([&load[4], &load[11], &load[12], &load[19], &load[20], &load[27]], ["3", "2", "5", "1", "6", "1"]);
    let due_ms = |packed: &str| packed.chars().skip(8).take(8).fold(0, |ms, byte| (ms << 8) | u64::from(byte));
    assert_eq!([due_ms(&load[5]), due_ms(&load[13])], [9000, 11_000]);
    send(&mut stage, 3, &[Some(0), Some(5), Some(5)]);
    assert_eq!(stage.crowd.passed, [1, 3], "there is room for one");
}

#[test]
fn what_is_counted_is_sent_as_far_as_it_is_allowed() {
    let mut stage = Stage::new(1, false);
    let send = |stage: &mut Stage, connection: u64, body: &str| {
        let route = Route { verbs: stage.route().verbs | COUNTS_BYTES, ..stage.route() };
        stage.ask(connection, stage.sent(route, &[content(body)]));
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

#[test]
fn what_is_not_sent_takes_nothing_of_the_delays_allowed() {
    let mut stage = Stage::new(1, false);
    let now = stage.now;
    stage.plane.delays.grant(QUEUE, 5, Duration::from_secs(60), now);
    let send = |stage: &mut Stage, connection: u64, body: &str| {
        let route = Route { verbs: stage.route().verbs | COUNTS_BYTES, delay_ms: 7000, ..stage.route() };
        stage.ask(connection, stage.sent(route, &[content(body)]));
    };
    let left = |stage: &mut Stage| {
        let mut packer = Packer::default();
        stage.plane.delays.take_all(&mut packer, now);
        let left = u64::from(*packer.bytes.last().expect("a count"));
        stage.plane.delays.grant(QUEUE, left, Duration::from_secs(60), now);
        left
    };
    send(&mut stage, 1, "abc");
    assert_eq!((stage.crowd.passed.clone(), left(&mut stage)), (vec![1], 5), "its bytes are not allowed");
    stage.plane.allowances.grant(QUEUE, 6, Duration::from_secs(60), now);
    send(&mut stage, 2, "abc");
    assert_eq!(left(&mut stage), 4, "it is on its way");
    stage.appended(Appended::NotStored("no leader".into()));
    assert_eq!((stage.crowd.passed.clone(), left(&mut stage)), (vec![1, 2], 5), "it is Python's");
    send(&mut stage, 3, "abc");
    send(&mut stage, 4, "abc");
    assert_eq!(left(&mut stage), 3, "one is on its way, and one waits behind it");
    stage.plane.close(&mut stage.crowd, QUEUE, stage.now);
    assert_eq!((stage.crowd.passed.clone(), left(&mut stage)), (vec![1, 2, 4], 4), "the queue was closed");
    stage.appended(Appended::Stored { first: 3, at_ms: 4000 });
    assert_eq!(left(&mut stage), 4, "what is stored is counted");
}
