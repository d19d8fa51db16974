//! How a queue is closed, and how the plane stops.

use std::time::Instant;

use super::calls::{Caller, Trouble};
use super::clients::{Clients, News};
use super::queue::Queue;
use super::whys::Why;
use super::Plane;

impl<C: Caller> Plane<C> {
    /// Serves a queue no more: when this returns nothing of it is handed out any more, what was leased
    /// ahead is on its way back, and who waits is Python's.
    pub fn close(&mut self, clients: &mut dyn Clients, number: u64, now: Instant) {
        let Some(queue) = self.queues.get_mut(&number) else { return };
        queue.is_open = false;
        let (partitions, tags) = (queue.units.len(), queue.tags.keys().copied().collect::<Vec<u16>>());
        for tag in tags {
            self.empty(number, tag, now);
            self.pass_all(clients, number, tag, Why::Changed);
        }
        self.pass_sends(clients, number);
        for (partition, head_ms) in self.unheard.take_of(number, partitions) {
            clients.tell(News::Woken { queue: number, partition, head_ms: head_ms as u64 });
        }
        self.drop_closed(number);
    }

    /// Who waits is Python's: rights may have changed.
    pub fn pass_waiters(&mut self, clients: &mut dyn Clients) {
        for (number, tag) in self.all_tags() {
            self.pass_all(clients, number, tag, Why::Changed);
        }
    }

    /// Ends all waits with an empty answer, and gives back what was leased ahead.
    pub fn stop(&mut self, clients: &mut dyn Clients, now: Instant) {
        for (number, tag) in self.all_tags() {
            self.empty(number, tag, now);
            while let Some(waiter) = self.tag(number, tag).and_then(|list| list.waiters.pop_front()) {
                self.waits.leave(&waiter);
                self.give_nothing(clients, number, tag, &waiter, now);
            }
        }
    }

    /// A call has not done what it should: Python's calls will meet the same, and know what to do.
    pub(super) fn met(&mut self, clients: &mut dyn Clients, (number, tag): (u64, u16), trouble: Trouble, now: Instant) {
        match trouble {
            Trouble::Closed(reason) => {
                if self.queues.get(&number).is_some_and(|queue| queue.is_open) {
                    clients.tell(News::Closed { queue: number, reason });
                    self.close(clients, number, now);
                }
            }
            Trouble::Other => self.pass_all(clients, number, tag, Why::Redis),
        }
    }

    /// A closed queue is forgotten when nothing of it is under way any more.
    pub(super) fn drop_closed(&mut self, number: u64) {
        if self.queues.get(&number).is_some_and(Queue::is_over) {
            self.queues.remove(&number);
        }
    }

    fn all_tags(&self) -> Vec<(u64, u16)> {
        self.queues.iter().flat_map(|(number, queue)| queue.tags.keys().map(|tag| (*number, *tag))).collect()
    }
}
