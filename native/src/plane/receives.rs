//! Receives: who waits is served with what the scripts have leased.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clients::{Clients, Delivery, News};
use super::redis::Reply;
use super::routes::Route;
use super::tag::{Held, Step, Waiter};
use super::template::Values;
use super::unit::Kept;
use super::whys::Why;
use super::{Ask, Call, Caller, Plane, Script, Trouble};
use crate::plane::format::record::{Attribute, Found, Packed};
use crate::replies::digest;

/// Python hears of traffic on a unit so often, and of one that runs low.
pub const TELL: Duration = Duration::from_millis(100);
const TELL_LOW: Duration = Duration::from_millis(20);
/// Receives of a tag are Python's for so long when a body is not here: at first, and at most.
const SHUT: Duration = Duration::from_millis(250);
const SHUT_MOST: Duration = Duration::from_secs(5);

/// A turn that has nothing to do comes no sooner again.
const SHORTEST: Duration = Duration::from_micros(100);

/// What a receive has asked of a partition.
pub struct Asked {
    pub partition: usize,
    pub wakes: u64,
    pub began: Instant,
    pub lease_ms: i64,
    pub ahead: bool,
}

/// What a script has leased, before anybody looks for its body.
struct Leased<'a> {
    offset: u64,
    count: u64,
    first_ms: u64,
    until_ms: u64,
    packed: &'a [u8],
    /// Since when a message without a body was visible (ms): its place in the line.
    since_ms: i64,
}

impl<C: Caller> Plane<C> {
    /// A receive stands in the wait list, or why it is Python's.
    pub(super) fn wait(
        &mut self,
        ask: &Ask,
        route: &Route,
        most: Option<usize>,
        wait_ms: Option<u64>,
        lease_ms: i64,
        now: Instant,
    ) -> Result<(), Why> {
        if !self.caller.is_open() {
            return Err(Why::Redis);
        }
        let wait_ms = wait_ms.unwrap_or(route.wait_ms);
        let until = (wait_ms > 0).then(|| ask.began + Duration::from_millis(wait_ms));
        let at = (route.queue, route.tag);
        let tag = self.open_tag(at.0, at.1).ok_or(Why::Changed)?;
        if tag.shut_until.is_some_and(|until| until > now) {
            return Err(Why::Bodies);
        }
        if until.is_some() && !self.waits.enter(&route.bounds) {
            return Err(Why::Busy);
        }
        let waiter = Waiter {
            connection: ask.connection,
            verb: ask.verb,
            most: most.unwrap_or(route.some).min(route.most),
            lease_ms,
            until,
            began: ask.began,
            bounds: route.bounds.clone(),
        };
        if let Some(tag) = self.open_tag(at.0, at.1) {
            tag.waiters.push_back(waiter);
        }
        self.dirty.insert(at);
        Ok(())
    }

    /// A client has gone: it waits no more.
    pub(super) fn leave(&mut self, connection: u64, route: &Route) {
        let Some(tag) = self.tag(route.queue, route.tag) else { return };
        let Some(place) = tag.waiters.iter().position(|waiter| waiter.connection == connection) else { return };
        if let Some(waiter) = tag.waiters.remove(place) {
            self.waits.leave(&waiter);
        }
    }

    pub(super) fn work_tag(&mut self, clients: &mut dyn Clients, number: u64, tag: u16, now: Instant) {
        self.acknowledge((number, tag));
        self.return_late(number, tag, now);
        self.serve(clients, number, tag, now);
        let limits = self.service.limits.clone();
        let Some(list) = self.open_tag(number, tag) else { return };
        let step = list.next(&limits, now);
        let why = if matches!(step, Step::Full) { Why::Busy } else { Why::Redis };
        let is_made = match step {
            Step::Nothing => true,
            Step::Probe(partitions) => self.probe(number, tag, &partitions),
            Step::Receive { partition, most, until_ms, lease_ms, ahead } => {
                self.receive((number, tag), partition, most, until_ms, lease_ms, ahead, now)
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
            self.set_timer(number, tag, at.max(now + SHORTEST));
        }
    }

    /// Who has waited for long enough hears that there is nothing; what does not wait is Python's,
    /// which asks every partition and the log first.
    fn end_waits(&mut self, clients: &mut dyn Clients, number: u64, tag: u16, now: Instant) {
        let mut place = 0;
        while let Some(list) = self.tag(number, tag).filter(|list| list.asked == 0) {
            let Some(waiter) = list.waiters.get(place) else { break };
            if waiter.until.is_some_and(|until| until > now) {
                place += 1;
                continue;
            }
            let Some(waiter) = list.waiters.remove(place) else { break };
            self.waits.leave(&waiter);
            if waiter.until.is_none() {
                clients.pass(waiter.connection, Why::Empty);
            } else if clients.give(waiter.connection, &[]) {
                self.counts.note((number, i64::from(tag), waiter.verb, true), 0, now - waiter.began);
            }
        }
    }

    fn probe(&mut self, number: u64, tag: u16, partitions: &[usize]) -> bool {
        for partition in partitions {
            let Some(list) = self.tag(number, tag) else { return false };
            let wakes = list.known[*partition].wakes;
            list.asked += 1;
            let call = Call::Probe { partition: *partition, wakes };
            if !self.call((number, tag), *partition, Script::Probe, Values::default(), call) {
                if let Some(list) = self.tag(number, tag) {
                    list.asked -= 1;
                }
                return false;
            }
        }
        true
    }

    #[allow(clippy::too_many_arguments)]
    fn receive(
        &mut self,
        at: (u64, u16),
        partition: usize,
        most: usize,
        until_ms: i64,
        lease_ms: i64,
        ahead: bool,
        now: Instant,
    ) -> bool {
        let more_ms = if ahead { self.service.limits.ahead.as_millis() as i64 } else { 0 };
        let Some(list) = self.tag(at.0, at.1) else { return false };
        let wakes = list.known[partition].wakes;
        list.asked += 1;
        let call = Call::Receive { partition, wakes, began: now, lease_ms, ahead };
        let values = Values { most: most as i64, lease_ms, more_ms, until_ms, ..Values::default() };
        let is_made = self.call(at, partition, Script::Receive, values, call);
        if let Some(list) = self.tag(at.0, at.1).filter(|_| !is_made) {
            list.asked -= 1;
        }
        is_made
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn probed(
        &mut self,
        clients: &mut dyn Clients,
        number: u64,
        tag: u16,
        partition: usize,
        wakes: u64,
        told: Result<&[Reply], Trouble>,
        now: Instant,
    ) {
        let Some(list) = self.tag(number, tag) else { return };
        list.asked -= 1;
        let Ok([_, at_ms, head_ms, cursor, open, in_flight, _, _, _, hungry, ..]) = told else {
            return list.forget(partition, now);
        };
        list.learn(partition, wakes, head_ms.int(), at_ms.int(), count(in_flight), now);
        self.tell_seen(clients, number, tag, partition, [open, in_flight, cursor, hungry], now);
    }

    /// What a partition has leased is handed out; what can't be goes back.
    pub(super) fn received(
        &mut self,
        clients: &mut dyn Clients,
        number: u64,
        tag: u16,
        asked: &Asked,
        told: Result<&[Reply], Trouble>,
        now: Instant,
    ) {
        let partition = asked.partition;
        let Some(list) = self.tag(number, tag) else { return };
        list.asked -= 1;
        let Ok([_, at_ms, nonce, head_ms, cursor, open, in_flight, hungry, rows, dying, more @ ..]) = told else {
            return list.forget(partition, now);
        };
        list.learn(partition, asked.wakes, head_ms.int(), at_ms.int(), count(in_flight), now);
        self.tell_seen(clients, number, tag, partition, [open, in_flight, cursor, hungry], now);
        if !dying.items().is_empty() {
            clients.tell(News::Dying { queue: number, tag, partition, rows: dying.items().to_vec() });
        }
        let until = asked.began + self.service.limits.ahead;
        let (nonce, at_ms) = (count(nonce), count(at_ms));
        let mut held = Vec::new();
        let mut odd = Vec::new();
        for one in leased(rows, more, at_ms) {
            match self.kept(number, partition, &one) {
                Some(message) => held.push(Held {
                    partition,
                    offset: one.offset,
                    nonce,
                    at_ms,
                    count: one.count,
                    first_ms: one.first_ms,
                    leased_until_ms: one.until_ms,
                    message,
                    is_ahead: asked.ahead,
                    until,
                }),
                None => {
                    let due_ms = Packed::read(one.packed).map_or(one.since_ms, |packed| packed.due_ms as i64);
                    odd.extend([one.offset as i64, nonce as i64, due_ms]);
                }
            }
        }
        let is_open = self.open_tag(number, tag).is_some();
        let Some(list) = self.tag(number, tag) else { return };
        list.stock_lease_ms = asked.lease_ms;
        if !held.is_empty() {
            list.each_bytes = held.iter().map(|held| held.message.size()).sum::<usize>().div_ceil(held.len());
        }
        list.stock.extend(held);
        if !odd.is_empty() {
            // Who has served for as long as it was shut begins anew.
            let is_long_ago = list.shut_until.is_none_or(|until| until + list.shut_for <= now);
            list.shut_for = if is_long_ago { SHUT } else { (list.shut_for * 2).clamp(SHUT, SHUT_MOST) };
            list.shut_until = Some(now + list.shut_for);
        }
        if is_open {
            self.serve(clients, number, tag, now);
        } else {
            self.empty(number, tag);
        }
        if !odd.is_empty() {
            self.give_back((number, tag), partition, odd);
            self.pass_all(clients, number, tag, Why::Bodies);
        }
    }

    /// A message whose body is here, and of which all can be told here.
    fn kept(&self, number: u64, partition: usize, leased: &Leased) -> Option<Arc<Kept>> {
        if leased.packed.is_empty() {
            // Whether one that comes again is within its retention Python knows.
            let bodies = &self.queues.get(&number)?.units.get(partition)?.bodies;
            let kept = bodies.get(&leased.offset).filter(|_| leased.count == 1).map(|(kept, _)| kept);
            return kept.filter(|kept| self.is_told(kept)).cloned();
        }
        let packed = Packed::read(leased.packed)?;
        let Found { parts, lease_ms, .. } = self.service.formats.records.read(packed.record)?;
        let kept = Kept {
            digest: digest(packed.record.get(parts.body.clone())?),
            record: packed.record.to_vec(),
            parts,
            sent_at_ms: packed.sent_at_ms,
            due_ms: packed.due_ms,
        };
        (lease_ms.is_none() && self.is_told(&kept)).then(|| Arc::new(kept))
    }

    /// Whether the replies of all dialects can have its sender and its attributes.
    fn is_told(&self, message: &Kept) -> bool {
        let mut is_told = !message.sender().is_empty();
        message.attributes(|Attribute { name, kind, value }| {
            let is_reserved = self.service.reserved.iter().any(|reserved| reserved == name.as_bytes());
            let is_binary = kind.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("binary"));
            is_told &= !is_reserved && kind.is_ascii() && (is_binary || std::str::from_utf8(value).is_ok());
        });
        is_told
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
            if is_given {
                list.stock.drain(..size);
                list.pace.note(size, span, now);
                let key = (number, i64::from(tag), waiter.verb, waiter.until.is_some());
                self.counts.note(key, size, now.saturating_duration_since(waiter.began));
            }
        }
    }

    fn tell_seen(
        &mut self,
        clients: &mut dyn Clients,
        number: u64,
        tag: u16,
        partition: usize,
        seen: [&Reply; 4],
        now: Instant,
    ) {
        let [open, in_flight, cursor, hungry] = seen.map(count);
        let Some(list) = self.tag(number, tag) else { return };
        let known = &mut list.known[partition];
        let pause = if hungry > 0 { TELL_LOW } else { TELL };
        if known.told.is_none_or(|told| told + pause <= now) {
            known.told = Some(now);
            clients.tell(News::Seen { queue: number, tag, partition, open, in_flight, cursor, hungry: hungry > 0 });
        }
    }
}

fn count(reply: &Reply) -> u64 {
    u64::try_from(reply.int()).unwrap_or(0)
}

/// What was leased, in the order of the offsets: rows of `offset, count, first ms, deadline ms, body`,
/// and in `more` of those that were never leased before the deadline, the offsets, and since when each
/// that has no body was visible. What does not say so was visible `at_ms`.
fn leased<'a>(rows: &'a Reply, more: &'a [Reply], at_ms: u64) -> Vec<Leased<'a>> {
    let (fresh_until_ms, fresh) = (more.first().map_or(0, count), more.get(1).map_or(&[][..], Reply::items));
    let since = more.get(2).map_or(&b""[..], Reply::bytes);
    let mut since = since.split(|byte| *byte == b' ').map(|text| std::str::from_utf8(text).ok()?.parse().ok());
    let mut next = |packed: &[u8]| if packed.is_empty() { since.next().flatten().unwrap_or(at_ms as i64) } else { 0 };
    let mut all = Vec::with_capacity(rows.items().len() / 5 + fresh.len());
    for row in rows.items().chunks_exact(5) {
        let (packed, first_ms, until_ms) = (row[4].bytes(), count(&row[2]), count(&row[3]));
        let since_ms = next(packed);
        all.push(Leased { offset: count(&row[0]), count: count(&row[1]), first_ms, until_ms, packed, since_ms });
    }
    for offset in fresh {
        let (offset, since_ms) = (count(offset), next(b""));
        all.push(Leased { offset, count: 1, first_ms: at_ms, until_ms: fresh_until_ms, packed: b"", since_ms });
    }
    all.sort_by_key(|one| one.offset);
    all
}

fn delivery<'a>(held: &'a Held, units: &[super::Unit], tag: u16) -> Option<Delivery<'a>> {
    let ids = &units.get(held.partition)?.tags.get(&tag)?.ids;
    Some(Delivery {
        id: ids.id(held.offset)?,
        handle: ids.handle(held.offset, held.nonce, held.at_ms)?,
        partition: held.partition,
        offset: held.offset,
        count: held.count,
        first_ms: held.first_ms,
        leased_until_ms: held.leased_until_ms,
        message: &held.message,
    })
}
