//! Sends: what is sent to a queue meanwhile goes in one append to Kafka and one call of Redis.
//!
//! What was given to Kafka is never given again: when its outcome is unknown, Python says so. What
//! surely is not there is Python's as it came.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use super::agenda::Agenda;
use super::append::{Appended, Appender};
use super::ask::Asker;
use super::ask::Value;
use super::batches::Send;
use super::calls::Caller;
use super::clients::{Clients, Fault, News};
use super::format::Produced;
use super::kafka::Until;
use super::routes::{Route, COUNTS_BYTES};
use super::whys::Why;
use super::Plane;

/// When the next of them is late that nobody has told so.
fn first_late(sends: &[Send]) -> Option<Instant> {
    sends.iter().filter(|one| !one.is_over).map(|one| one.deadline).min()
}

/// What Kafka was given of a queue, and has not answered.
pub struct Append {
    pub queue: u64,
    pub partition: usize,
    pub sends: Vec<Send>,
}

/// What of all queues is on its way to Kafka.
#[derive(Default)]
pub struct Outgoing {
    /// Queues whose next batch may have its turn.
    pub queues: Agenda<u64>,
    /// By their tokens.
    appending: HashMap<u64, Append>,
    /// When a send of an append is late.
    late: BTreeSet<(Instant, u64)>,
}

impl Outgoing {
    pub fn wake_at(&self) -> Option<Instant> {
        [self.queues.wake_at(), self.late.first().map(|(at, _)| *at)].into_iter().flatten().min()
    }
}

impl<C: Caller> Plane<C> {
    /// A send stands in line, or why it is Python's.
    pub(super) fn send(&mut self, by: Asker, route: &Route, values: Vec<Value>) -> Result<(), Why> {
        let limits = &self.service.limits;
        let Some(queue) = self.queues.get_mut(&route.queue).filter(|queue| queue.is_open) else {
            return Err(Why::Changed);
        };
        if queue.sends.is_full(limits) {
            return Err(Why::Busy);
        }
        let Asker { connection, lane, verb, began } = by;
        let delayed = values.iter().filter(|value| value.delay_ms > 0).count() as u64;
        if delayed > 0 && !self.delays.take(route.queue, delayed, began) {
            return Err(Why::Delay);
        }
        let mut counted = 0;
        if route.verbs & COUNTS_BYTES > 0 {
            counted = values.iter().map(|value| value.size as u64).sum();
            if !self.allowances.take(route.queue, counted, began) {
                self.delays.give_back(route.queue, delayed);
                return Err(Why::Quota);
            }
        }
        let deadline = began + limits.send_timeout;
        queue.sends.push(Send { connection, lane, verb, began, deadline, is_over: false, values, counted, delayed });
        self.out.queues.mark(route.queue);
        Ok(())
    }

    pub(super) fn work_sends(&mut self, clients: &mut dyn Clients, appender: &mut dyn Appender, now: Instant) {
        self.out.queues.wake(now);
        self.answer_late(clients, now);
        while let Some((_, token)) = self.out.late.first().copied().filter(|(at, _)| *at <= now) {
            self.out.late.pop_first();
            self.end_late(clients, token, now);
        }
        for queue in self.allowances.take_low() {
            clients.tell(News::Low { queue });
        }
        for queue in self.delays.take_low() {
            clients.tell(News::LowDelays { queue });
        }
        while let Some(number) = self.out.queues.next() {
            self.commit(clients, appender, number, now);
        }
    }

    /// What Kafka was not given of a queue is Python's.
    pub(super) fn pass_sends(&mut self, clients: &mut dyn Clients, number: u64) {
        let Some(queue) = self.queues.get_mut(&number) else { return };
        for one in queue.sends.take_all() {
            self.allowances.give_back(number, one.counted);
            self.delays.give_back(number, one.delayed);
            self.counts.pass(clients, &one.in_hand(number), Why::Changed);
        }
    }

    /// Who shares an append with others, and whose time is over before Kafka has answered, waits no more.
    fn end_late(&mut self, clients: &mut dyn Clients, token: u64, now: Instant) {
        let Some(Append { queue, sends, .. }) = self.out.appending.get_mut(&token) else { return };
        clients.tell(News::Suspect { queue: *queue });
        for one in sends.iter_mut().filter(|one| !one.is_over && one.deadline <= now) {
            one.fail(clients, Fault::MayBeStored, "no answer of Kafka in time", now);
            one.is_over = true;
        }
        self.out.late.extend(first_late(sends).map(|at| (at, token)));
    }

    /// Begins the next batch of a queue, if it is its turn.
    fn commit(&mut self, clients: &mut dyn Clients, appender: &mut dyn Appender, number: u64, now: Instant) {
        let limits = &self.service.limits;
        let Some(queue) = self.queues.get_mut(&number).filter(|queue| queue.is_open) else { return };
        let mut sends = queue.sends.take(limits, now);
        if let Some(at) = queue.sends.linger_until {
            self.out.queues.set(number, at);
        }
        let took_some = !sends.is_empty();
        sends.retain(|one| {
            let is_late = one.deadline <= now;
            if is_late {
                self.allowances.give_back(number, one.counted);
                self.delays.give_back(number, one.delayed);
                one.fail(clients, Fault::NotStored, "", now);
            }
            !is_late
        });
        let deadlines = sends.iter().map(|one| one.deadline);
        let (Some(sent), Some(answered)) = (deadlines.clone().min(), deadlines.max()) else {
            if took_some {
                self.out.queues.mark(number); // all were late, and others may wait behind them
            }
            return;
        };
        let values = sends.iter().flat_map(|one| &one.values);
        let records: Vec<Produced> = values.map(|value| Produced::message(&value.record)).collect();
        let partition = queue.sends.place(records.len(), queue.units.len(), limits);
        queue.sends.is_under_way = true;
        if queue.units[partition].is_to_tell(now) {
            clients.tell(News::Used { queue: number, partition });
        }
        let token = self.calls.number();
        appender.append(&queue.sends.topic, partition, &records, token, Until { sent, answered }, now);
        self.out.late.insert((sent, token));
        self.out.appending.insert(token, Append { queue: number, partition, sends });
    }

    /// Kafka has a batch, or not.
    pub fn appended(&mut self, clients: &mut dyn Clients, token: u64, outcome: Appended, now: Instant) {
        let Some(append) = self.out.appending.remove(&token) else {
            return self.drain_appended(clients, token, outcome);
        };
        if let Some(at) = first_late(&append.sends) {
            self.out.late.remove(&(at, token));
        }
        if let Appended::Stored { first, at_ms } = outcome {
            let number = append.queue;
            self.load(clients, append, first, at_ms, now);
            return self.drop_closed(number);
        }
        let Append { queue: number, sends, .. } = append;
        self.end_batch(number);
        if matches!(outcome, Appended::NotStored(_)) {
            self.allowances.give_back(number, sends.iter().map(|one| one.counted).sum());
            self.delays.give_back(number, sends.iter().map(|one| one.delayed).sum());
        }
        let sends = sends.into_iter().filter(|one| !one.is_over);
        match outcome {
            Appended::Stored { .. } => {}
            Appended::NotStored(text) => {
                for one in sends {
                    if one.deadline > now {
                        self.counts.pass(clients, &one.in_hand(number), Why::Kafka);
                    } else {
                        one.fail(clients, Fault::NotStored, &text, now);
                    }
                }
            }
            Appended::Unknown(text) => {
                clients.tell(News::Suspect { queue: number });
                sends.for_each(|one| one.fail(clients, Fault::MayBeStored, &text, now));
            }
        }
        self.drop_closed(number);
    }

    /// The next batch of a queue has its turn.
    pub(super) fn end_batch(&mut self, number: u64) {
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.sends.is_under_way = false;
            self.out.queues.mark(number);
        }
    }
}
