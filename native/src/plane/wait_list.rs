//! The wait list of a tag: who enters it, who leaves it, and who has waited for long enough.

use std::time::{Duration, Instant};

use super::ask::Asker;
use super::calls::Caller;
use super::clients::Clients;
use super::queue::Queue;
use super::routes::Route;
use super::tag::Tag;
use super::waits::Waiter;
use super::whys::Why;
use super::Plane;
use crate::pack::Packer;

impl<C: Caller> Plane<C> {
    /// A receive stands in the wait list, or why it is Python's.
    pub(super) fn wait(
        &mut self,
        by: Asker,
        route: &Route,
        most: Option<usize>,
        wait_ms: Option<u64>,
        lease_ms: i64,
        now: Instant,
    ) -> Result<(), Why> {
        if !self.calls.caller.is_open() {
            return Err(Why::Redis);
        }
        let wait_ms = wait_ms.unwrap_or(route.wait_ms);
        let until = (wait_ms > 0).then(|| by.began + Duration::from_millis(wait_ms));
        let at = (route.queue, route.tag);
        let tag = self.open_tag(at.0, at.1).ok_or(Why::Changed)?;
        if tag.shut_until.is_some_and(|until| until > now) {
            return Err(Why::Bodies);
        }
        if until.is_some() && !self.waits.enter(&route.bounds) {
            return Err(Why::Busy);
        }
        let waiter = Waiter {
            connection: by.connection,
            lane: by.lane,
            verb: by.verb,
            most: most.unwrap_or(route.some).min(route.most),
            lease_ms,
            until,
            began: by.began,
            bounds: route.bounds.clone(),
        };
        if let Some(tag) = self.open_tag(at.0, at.1) {
            tag.waiters.push_back(waiter);
        }
        self.tags.mark(at);
        Ok(())
    }

    /// A client has gone: it waits no more.
    pub(super) fn leave(&mut self, connection: u64, route: &Route, now: Instant) {
        let Some(tag) = self.tag(route.queue, route.tag) else { return };
        let Some(place) = tag.waiters.iter().position(|waiter| waiter.connection == connection) else { return };
        if let Some(waiter) = tag.waiters.remove(place) {
            self.waits.leave(&waiter);
            let took = now.saturating_duration_since(waiter.began);
            self.counts.note_gone(route.queue, waiter.lane, waiter.verb, took);
        }
    }

    /// Who has waited for long enough hears that there is nothing; what does not wait is Python's,
    /// which asks every partition and the log first.
    pub(super) fn end_waits(&mut self, clients: &mut dyn Clients, number: u64, tag: u16, now: Instant) {
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
                self.counts.pass(clients, &waiter.in_hand(number), Why::Empty);
            } else {
                self.give_nothing(clients, number, tag, &waiter, now);
            }
        }
    }

    /// A receive hears that there is nothing.
    pub(super) fn give_nothing(
        &mut self,
        clients: &mut dyn Clients,
        queue: u64,
        tag: u16,
        waiter: &Waiter,
        now: Instant,
    ) {
        clients.give(waiter.connection, &[]);
        self.counts.note(waiter.key(queue, tag), waiter.lane, 0, now.saturating_duration_since(waiter.began));
    }

    pub(super) fn pass_all(&mut self, clients: &mut dyn Clients, number: u64, tag: u16, why: Why) {
        while let Some(waiter) = self.tag(number, tag).and_then(|tag| tag.waiters.pop_front()) {
            self.waits.leave(&waiter);
            self.counts.pass(clients, &waiter.in_hand(number), why);
        }
    }

    /// Numbers of the queues at which somebody waits.
    pub fn waiting(&self, packer: &mut Packer) {
        let waits = |queue: &Queue| queue.tags.values().any(|tag| !tag.waiters.is_empty());
        let some: Vec<u64> = self.queues.iter().filter(|(_, queue)| waits(queue)).map(|(number, _)| *number).collect();
        packer.array(some.len());
        some.iter().for_each(|number| packer.uint(*number));
    }

    /// How many wait where somebody does: `[[queue, tag, receives], ...]`
    pub fn waiters(&self, packer: &mut Packer) {
        let of_tag = |tag: &Tag| tag.waiters.iter().filter(|waiter| waiter.until.is_some()).count();
        let all = self.queues.iter().flat_map(|(queue, of)| of.tags.values().map(move |tag| (*queue, tag)));
        let some: Vec<_> = all.map(|(queue, tag)| (queue, tag.number, of_tag(tag))).filter(|row| row.2 > 0).collect();
        packer.array(some.len());
        for (queue, tag, receives) in some {
            packer.array(3);
            packer.uint(queue);
            packer.uint(u64::from(tag));
            packer.uint(receives as u64);
        }
    }
}
