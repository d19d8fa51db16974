//! Receives: who waits is served with what the scripts have leased.

use std::time::{Duration, Instant};

use super::calls::Values;
use super::calls::{Asked, Call, Caller, Script, Trouble};
use super::clients::{Clients, Delivery, News};
use super::leased::leased;
use super::redis::Reply;
use super::tag::{Held, Step};
use super::unit::{Unit, TELL};
use super::whys::Why;
use super::Plane;

/// Python hears of a unit that runs low so often.
const TELL_LOW: Duration = Duration::from_millis(20);

/// A turn that has nothing to do comes no sooner again.
const SHORTEST: Duration = Duration::from_micros(100);

impl<C: Caller> Plane<C> {
    pub(super) fn work_tag(&mut self, clients: &mut dyn Clients, number: u64, tag: u16, now: Instant) {
        self.begin_acts((number, tag));
        self.return_late(number, tag, now);
        self.serve(clients, number, tag, now);
        let limits = self.service.limits.clone();
        let Some(list) = self.open_tag(number, tag) else { return };
        let step = list.next(&limits, now);
        let why = if matches!(step, Step::Full) { Why::Busy } else { Why::Redis };
        let is_made = match step {
            Step::Nothing => true,
            Step::Probe(partitions) => partitions.into_iter().all(|partition| self.probe((number, tag), partition)),
            Step::Receive { partition, most, until_ms, lease_ms, ahead } => {
                let asked = |wakes| Call::Receive(Asked { partition, wakes, began: now, lease_ms, ahead });
                let more_ms = if ahead { limits.ahead.as_millis() as i64 } else { 0 };
                let values = Values { most: most as i64, lease_ms, more_ms, until_ms, ..Values::default() };
                self.ask_partition((number, tag), partition, Script::Receive, values, asked)
            }
            Step::Full => false,
            Step::Empty => {
                clients.tell(News::Refresh { queue: number });
                true
            }
        };
        if !is_made {
            self.pass_all(clients, number, tag, why);
        }
        self.end_waits(clients, number, tag, now);
        if let Some(at) = self.tag(number, tag).and_then(|list| list.wake_at(&limits)) {
            self.tags.set((number, tag), at.max(now + SHORTEST));
        }
    }

    fn probe(&mut self, at: (u64, u16), partition: usize) -> bool {
        let call = |wakes| Call::Probe { partition, wakes };
        self.ask_partition(at, partition, Script::Probe, Values::default(), call)
    }

    /// Asks a partition, which was woken as often as `call` takes; false = the call can't be made.
    fn ask_partition(
        &mut self,
        at: (u64, u16),
        partition: usize,
        script: Script,
        values: Values,
        call: impl FnOnce(u64) -> Call,
    ) -> bool {
        let Some(list) = self.tag(at.0, at.1) else { return false };
        let call = call(list.known[partition].wakes);
        let is_made = self.call(at, partition, script, values, call).is_some();
        if let Some(list) = self.tag(at.0, at.1).filter(|_| is_made) {
            list.asked += 1;
        }
        is_made
    }

    pub(super) fn probed(
        &mut self,
        clients: &mut dyn Clients,
        at: (u64, u16),
        (partition, wakes): (usize, u64),
        told: Result<&[Reply], Trouble>,
        now: Instant,
    ) {
        let Some(list) = self.tag(at.0, at.1) else { return };
        list.asked -= 1;
        list.is_overtaken &= list.asked > 0;
        let known = &mut list.known[partition];
        let Ok([_, at_ms, head_ms, cursor, open, in_flight, _, _, _, hungry, ..]) = told else {
            return known.forget(now);
        };
        known.learn(wakes, head_ms.int(), at_ms.int(), in_flight.count(), now);
        self.tell_seen(clients, at, partition, [open, in_flight, cursor, hungry], now);
    }

    /// What a partition has leased is handed out; what can't be goes back.
    pub(super) fn received(
        &mut self,
        clients: &mut dyn Clients,
        (number, tag): (u64, u16),
        asked: &Asked,
        told: Result<&[Reply], Trouble>,
        now: Instant,
    ) {
        let partition = asked.partition;
        let Some(list) = self.tag(number, tag) else { return };
        list.asked -= 1;
        let is_overtaken = std::mem::take(&mut list.is_overtaken);
        let Ok([_, at_ms, _, head_ms, cursor, open, in_flight, hungry, _, dying, ..]) = told else {
            return list.known[partition].forget(now);
        };
        list.known[partition].learn(asked.wakes, head_ms.int(), at_ms.int(), in_flight.count(), now);
        self.tell_seen(clients, (number, tag), partition, [open, in_flight, cursor, hungry], now);
        if !dying.items().is_empty() {
            clients.tell(News::Dying { queue: number, tag, partition, rows: dying.items().to_vec() });
        }
        let (held, odd) = self.sorted(number, asked, told.unwrap_or_default());
        let is_open = self.open_tag(number, tag).is_some();
        let Some(list) = self.tag(number, tag) else { return };
        list.add(held, asked.lease_ms);
        if !odd.is_empty() {
            list.shut(now);
        }
        if is_open && !is_overtaken {
            self.serve(clients, number, tag, now);
        } else {
            self.empty(number, tag, now);
        }
        if !odd.is_empty() {
            self.give_back((number, tag), partition, odd, now);
            self.pass_all(clients, number, tag, Why::Bodies);
        }
    }

    /// What was leased and can be handed out, and rows of what is to go back: offset, nonce, since when it was
    /// visible (ms).
    fn sorted(&self, number: u64, asked: &Asked, told: &[Reply]) -> (Vec<Held>, Vec<i64>) {
        let (mut held, mut odd) = (Vec::new(), Vec::new());
        let [_, at_ms, nonce, _, _, _, _, _, rows, _, more @ ..] = told else { return (held, odd) };
        let (nonce, at_ms) = (nonce.count(), at_ms.count());
        for one in leased(rows, more, at_ms) {
            let since_ms = one.place_ms();
            match self.kept(number, asked.partition, &one, at_ms) {
                Some(message) if odd.is_empty() => held.push(Held {
                    partition: asked.partition,
                    offset: one.offset,
                    nonce,
                    at_ms,
                    count: one.count,
                    first_ms: one.first_ms,
                    leased_until_ms: one.until_ms,
                    since_ms,
                    message,
                    is_ahead: asked.ahead,
                    until: asked.began + self.service.limits.ahead,
                }),
                // What comes behind one that goes back would come before it.
                _ => odd.extend([one.offset as i64, nonce as i64, since_ms]),
            }
        }
        (held, odd)
    }

    fn serve(&mut self, clients: &mut dyn Clients, number: u64, tag: u16, now: Instant) {
        let (span, limit) = (self.service.limits.ahead / 2, self.service.limits.most_receive_bytes);
        while self.open_tag(number, tag).is_some_and(|list| list.is_served(now)) {
            let Some(queue) = self.queues.get_mut(&number) else { return };
            let (units, Some(list)) = (&queue.units, queue.tags.get_mut(&tag)) else { return };
            let Some(waiter) = list.waiters.pop_front() else { return };
            let mut bytes = 0;
            let fits = list.stock.iter().take(waiter.most).take_while(|held| {
                bytes += held.message.size();
                bytes <= limit
            });
            // One that is larger than an answer may be goes alone.
            let size = fits.count().max(1);
            let messages: Vec<Delivery> =
                list.stock.iter().take(size).filter_map(|held| delivery(held, units, tag)).collect();
            let is_given = messages.len() == size && clients.give(waiter.connection, &messages);
            self.waits.leave(&waiter);
            let took = now.saturating_duration_since(waiter.began);
            if is_given {
                let now_ms = self.calls.now_ms();
                for held in list.stock.drain(..size).filter(|held| held.count == 1) {
                    self.times.note_first(held.message.sent_at_ms, now_ms);
                }
                list.pace.note(size, span, now);
                self.counts.note(waiter.key(number, tag), waiter.lane, size, took);
            } else {
                self.counts.note_gone(number, waiter.lane, waiter.verb, took);
            }
        }
    }

    fn tell_seen(
        &mut self,
        clients: &mut dyn Clients,
        (number, tag): (u64, u16),
        partition: usize,
        seen: [&Reply; 4],
        now: Instant,
    ) {
        let [open, in_flight, cursor, hungry] = seen.map(Reply::count);
        let Some(list) = self.tag(number, tag) else { return };
        let known = &mut list.known[partition];
        let pause = if hungry > 0 { TELL_LOW } else { TELL };
        if known.told.is_none_or(|told| told + pause <= now) {
            known.told = Some(now);
            clients.tell(News::Seen { queue: number, tag, partition, open, in_flight, cursor, hungry: hungry > 0 });
        }
    }
}

fn delivery<'a>(held: &'a Held, units: &[Unit], tag: u16) -> Option<Delivery<'a>> {
    let ids = &units.get(held.partition)?.tags.get(&tag)?.ids;
    Some(Delivery {
        id: ids.id(held.offset)?,
        handle: ids.handle(held.offset, held.nonce, held.at_ms)?,
        partition: held.partition,
        offset: held.offset,
        count: held.count,
        first_ms: held.first_ms,
        leased_until_ms: held.leased_until_ms,
        at_ms: held.at_ms,
        message: &held.message,
    })
}
