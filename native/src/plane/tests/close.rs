//! Every order of what can happen around `close(queue)`, played to the plane itself against a model of
//! what Redis has leased to whom.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// So many events in a row; each order of them is one history.
const DEPTH: usize = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A client asks for a message, and waits or does not.
    Receive(bool),
    /// The first client that waits leaves.
    Leave,
    /// Redis does the next call, and answers it.
    Answer,
    /// It does it, and the answer is lost, as are those behind it.
    Cut,
    Later,
    Close,
}

const EVENTS: [Event; 7] =
    [Event::Receive(true), Event::Receive(false), Event::Leave, Event::Answer, Event::Cut, Event::Later, Event::Close];

/// What Redis has: three messages, and the nonce of each that is leased.
struct Model {
    stage: Stage,
    leased: BTreeMap<i64, i64>,
    nonce: i64,
    asked: u64,
    is_closed: bool,
    given_before: usize,
}

impl Model {
    fn new() -> Self {
        let stage = Stage::new(1, true);
        Self { stage, leased: BTreeMap::new(), nonce: 8, asked: 0, is_closed: false, given_before: 0 }
    }

    /// Whether the event could happen.
    fn step(&mut self, event: Event) -> bool {
        match event {
            Event::Receive(waits) => {
                self.asked += 1;
                self.stage.receive(self.asked, 1, if waits { 1000 } else { 0 });
            }
            Event::Leave => {
                let route = self.stage.route();
                let Some(first) = self.waiting().into_iter().next() else { return false };
                self.stage.crowd.gone.push(first);
                self.stage.ask(first, What::Left { route });
            }
            Event::Answer | Event::Cut if self.stage.plane.calls.caller.calls.is_empty() => return false,
            Event::Answer => {
                let (token, reply) = self.done();
                self.hears(token, Ok(reply));
            }
            Event::Cut => {
                let (token, _) = self.done();
                let behind: Vec<u64> = self.stage.plane.calls.caller.calls.drain(..).map(|call| call.0).collect();
                for token in std::iter::once(token).chain(behind) {
                    self.hears(token, Err(Failure::Unknown("cut".into())));
                }
            }
            Event::Later => self.stage.later(45),
            Event::Close if self.is_closed => return false,
            Event::Close => {
                self.is_closed = true;
                self.stage.plane.close(&mut self.stage.crowd, QUEUE, self.stage.now);
                self.stage.later(0);
                self.given_before = self.given().count();
            }
        }
        true
    }

    fn hears(&mut self, token: u64, outcome: Result<Reply, Failure>) {
        self.stage.asked = token;
        self.stage.answer(outcome);
    }

    /// Redis does the next call; its token, and what it answers.
    fn done(&mut self) -> (u64, Reply) {
        let (token, script, words) = self.stage.plane.calls.caller.calls.remove(0);
        let numbers: Vec<i64> = words.iter().map(|word| word.parse().expect("a number")).collect();
        match script {
            RECEIVE => {
                self.nonce += 1;
                let free: Vec<i64> = (1..=3).filter(|offset| !self.leased.contains_key(offset)).collect();
                let (mine, left) = free.split_at(free.len().min(numbers[2] as usize));
                let row = |offset: &i64| {
                    let numbers = [*offset, 1, 5000, 35_000].map(Reply::Int).into_iter();
                    numbers.chain([Reply::Bytes(packed(&offset.to_string()))])
                };
                let mut reply =
                    received(5000, if left.is_empty() { -1 } else { 4001 }, mine.iter().flat_map(row).collect(), &[]);
                if let Reply::Array(items) = &mut reply {
                    items[2] = Reply::Int(self.nonce);
                }
                self.leased.extend(mine.iter().map(|offset| (*offset, self.nonce)));
                (token, reply)
            }
            GIVE_BACK => {
                let back = |row: &[i64]| if self.leased.get(&row[0]) == Some(&row[1]) { "OK" } else { "STALE" };
                let words: Vec<&str> = numbers[1..].chunks(3).map(back).collect();
                for (row, _) in numbers[1..].chunks(3).zip(&words).filter(|(_, word)| **word == "OK") {
                    self.leased.remove(&row[0]);
                }
                (token, ok(&words))
            }
            _ => panic!("nobody asks for script {script}"),
        }
    }

    fn given(&self) -> impl Iterator<Item = (u64, &String)> {
        self.stage.crowd.given.iter().flat_map(|(who, bodies)| bodies.iter().map(|body| (*who, body)))
    }

    fn answered(&self) -> impl Iterator<Item = u64> + '_ {
        self.stage.crowd.given.iter().map(|(who, _)| *who).chain(self.stage.crowd.passed.iter().copied())
    }

    fn waiting(&self) -> BTreeSet<u64> {
        let over: BTreeSet<u64> = self.answered().chain(self.stage.crowd.gone.iter().copied()).collect();
        (1..=self.asked).filter(|client| !over.contains(client)).collect()
    }

    /// What holds after each event.
    fn check(&self, history: &[Event]) {
        let mut once = BTreeSet::new();
        assert!(self.answered().all(|client| once.insert(client)), "{history:?}: two answers for one");
        if self.is_closed {
            assert_eq!(self.given().count(), self.given_before, "{history:?}: it is closed and hands out");
            assert!(self.waiting().is_empty(), "{history:?}: it is closed, and somebody waits");
        }
    }

    /// What holds when all that was begun has ended: each message that is leased somebody has, or Python
    /// is to give back.
    fn end(mut self, history: &[Event]) {
        if !self.is_closed {
            self.step(Event::Close);
        }
        while self.step(Event::Answer) {
            self.check(history);
        }
        let mut known: BTreeSet<i64> = self.given().map(|(_, body)| body.parse().expect("an offset")).collect();
        for news in &self.stage.crowd.news {
            if let News::Return { rows, .. } = news {
                known.extend(rows.chunks(3).map(|row| row[0]));
            }
        }
        // What a lost answer has leased nobody knows of: it comes again when its lease ends.
        let is_cut = history.contains(&Event::Cut);
        let lost: Vec<&i64> = self.leased.keys().filter(|offset| !known.contains(offset)).collect();
        assert!(is_cut || lost.is_empty(), "{history:?}: nobody has {lost:?}");
        assert!(self.stage.plane.queues.is_empty(), "{history:?}: a closed queue is kept");
    }
}

/// A history of events that can all happen; None = one of them can't.
fn played(history: &[Event]) -> Option<Model> {
    let mut model = Model::new();
    for event in history {
        if !model.step(*event) {
            return None;
        }
        model.check(history);
    }
    Some(model)
}

#[test]
fn in_no_order_a_closed_queue_hands_out_or_keeps_anything() {
    let (mut histories, mut ended) = (vec![Vec::new()], 0);
    while let Some(history) = histories.pop() {
        let Some(model) = played(&history) else { continue };
        if history.len() < DEPTH {
            histories.extend(EVENTS.map(|event| history.iter().copied().chain([event]).collect()));
        }
        model.end(&history);
        ended += 1;
    }
    assert!(ended > 10_000, "{ended}");
    println!("{ended} histories");
}
