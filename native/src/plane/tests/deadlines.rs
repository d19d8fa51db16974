//! Sends whose time is over.

use super::*;

#[test]
fn a_send_that_waited_for_too_long_is_not_stored() {
    let mut stage = Stage::new(1, false);
    stage.send(1, &["a"]);
    stage.send(2, &["b"]);
    stage.now += Duration::from_millis(10_000);
    stage.appended(Appended::Unknown("x".into()));
    let late = |news: &News| matches!(news, News::Failed { connection: 2, fault: Fault::NotStored, .. });
    assert!(stage.crowd.news.iter().any(late));
    assert!(stage.kafka.0.is_empty());
}

#[test]
fn behind_a_batch_of_late_sends_nothing_stands_still() {
    let mut stage = Stage::new(1, false);
    (1..=5).for_each(|connection| stage.send(connection, &["a"]));
    stage.now += Duration::from_millis(5);
    stage.send(6, &["b"]);
    stage.now += Duration::from_millis(9_995);
    stage.appended(Appended::Unknown("x".into()));
    stage.later(1);
    let late = stage.crowd.news.iter().filter(|news| matches!(news, News::Failed { fault: Fault::NotStored, .. }));
    assert_eq!(late.count(), 4);
    assert_eq!(stage.kafka.0.len(), 1, "what is in time goes to Kafka");
}

impl Stage {
    /// Sends that share a batch behind another one: 2 has 100 ms left, 3 and 4 have nearly all their time.
    fn shared_batch(&mut self) -> Instant {
        self.send(1, &["a"]);
        self.send(2, &["b"]);
        let began = self.now;
        self.now += Duration::from_millis(9_900);
        self.send(3, &["c", "d"]);
        self.send(4, &["e"]);
        self.appended(Appended::Stored { first: 10, at_ms: 4000 });
        self.call(LOAD);
        self.loaded(1);
        assert_eq!((self.kafka.0.len(), self.kafka.0[0].1), (1, 4));
        began
    }

    fn failed(&self) -> Vec<(u64, Fault)> {
        let failed = |news: &News| match news {
            News::Failed { connection, fault, .. } => Some((*connection, *fault)),
            _ => None,
        };
        self.crowd.news.iter().filter_map(failed).collect()
    }
}

#[test]
fn each_send_of_a_batch_has_its_own_deadline() {
    let mut stage = Stage::new(1, false);
    let began = stage.shared_batch();
    let until = stage.kafka.1.expect("it was begun");
    assert_eq!(until.sent.duration_since(began).as_millis(), 10_000);
    assert_eq!(until.answered.duration_since(began).as_millis(), 19_900);
    assert_eq!(stage.plane.wake_at(), Some(until.sent));
    stage.later(99);
    assert!(stage.failed().is_empty());
    stage.later(1);
    assert_eq!(stage.failed(), [(2, Fault::MayBeStored)]);
    stage.later(1000);
    stage.appended(Appended::Stored { first: 11, at_ms: 4000 });
    stage.call(LOAD);
    stage.loaded(4);
    assert_eq!(stage.crowd.sent, [(1, 1), (3, 2), (4, 1)]);
    stage.later(20_000);
    assert_eq!(stage.failed().len(), 1);
    stage.plane.woken(QUEUE, 0, 0, stage.now);
    stage.receive(5, 10, 1000);
    stage.call(RECEIVE);
    stage.answer(Ok(received(5000, -1, Vec::new(), &[11, 12, 13, 14])));
    assert_eq!(stage.crowd.given[0].1, ["b", "c", "d", "e"], "what nobody waits for is there too");
}

#[test]
fn who_was_told_that_it_is_late_is_told_nothing_else() {
    for (outcome, passed) in [(Appended::Unknown("x".into()), vec![]), (Appended::NotStored("x".into()), vec![3, 4])] {
        let mut stage = Stage::new(1, false);
        stage.shared_batch();
        stage.later(100);
        stage.appended(outcome);
        assert_eq!(stage.crowd.passed, passed);
        assert_eq!(stage.failed().iter().filter(|(connection, _)| *connection == 2).count(), 1);
        assert_eq!(stage.failed().len() + passed.len(), 3);
    }
    let mut stage = Stage::new(1, false);
    stage.shared_batch();
    stage.later(10_000);
    assert_eq!(stage.failed().iter().map(|(connection, _)| *connection).collect::<Vec<_>>(), [2, 3, 4]);
}
