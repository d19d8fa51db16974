//! What was leased and nobody got goes back, uncounted. What Redis can't be told now is Python's, which
//! repeats it.

use std::collections::BTreeSet;
use std::time::Instant;

use super::calls::{encoded, Rows, Values};
use super::calls::{Call, Caller, Script, Trouble, UnderWay};
use super::clients::{Clients, News};
use super::redis::Reply;
use super::tag::Held;
use super::Plane;
use crate::pack::Packer;

/// Rows of one call at most, of three numbers each.
const MOST: usize = 3 * 500;

impl<C: Caller> Plane<C> {
    /// What was leased ahead and whose time is over, and what was leased for who has gone.
    pub(super) fn return_late(&mut self, number: u64, tag: u16, now: Instant) {
        let pause = self.service.limits.pause;
        let Some(list) = self.tag(number, tag) else { return };
        let has_none = list.waiters.is_empty();
        // Who is first wants another lease: nobody gets these before it, and it gets nothing before them.
        let is_unfit = list.waiters.front().is_some_and(|waiter| waiter.lease_ms != list.stock_lease_ms);
        let is_over = has_none && list.pace.is_paused(now);
        let is_late = |held: &&Held| is_unfit || if held.is_ahead { is_over || held.until <= now } else { has_none };
        if list.stock.iter().any(|held| is_late(&held)) {
            list.pace.pause(now + pause);
            // Those behind it too, and those that are being leased: they would come before it.
            list.is_overtaken = list.asked > 0;
            self.empty(number, tag, now);
        }
    }

    /// All that was leased ahead.
    pub(super) fn empty(&mut self, number: u64, tag: u16, now: Instant) {
        let size = self.tag(number, tag).map_or(0, |list| list.stock.len());
        self.take_back(number, tag, size, now);
    }

    fn take_back(&mut self, number: u64, tag: u16, size: usize, now: Instant) {
        let Some(list) = self.tag(number, tag) else { return };
        let mut rows: Vec<Vec<i64>> = vec![Vec::new(); list.known.len()];
        for held in list.stock.drain(..size) {
            rows[held.partition].extend([held.offset as i64, held.nonce as i64, held.since_ms]);
        }
        for (partition, rows) in rows.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            self.give_back((number, tag), partition, rows, now);
        }
    }

    pub(super) fn give_back(&mut self, at: (u64, u16), partition: usize, rows: Vec<i64>, now: Instant) {
        // What is asked from now on is asked behind this, by the same connection.
        if let Some(list) = self.tag(at.0, at.1) {
            list.woken(partition, head_of(&rows), now);
        }
        for some in rows.chunks(MOST) {
            let call = Call::GiveBack { partition, rows: some.to_vec() };
            let encoded = encoded(some);
            let rows = Rows { encoded: &encoded, words: some.len() };
            if self.call(at, partition, Script::GiveBack, Values { rows, ..Values::default() }, call).is_none() {
                self.unreturned.push((at.0, at.1, partition, some.to_vec()));
            }
        }
    }

    /// What could not be given back is Python's.
    pub(super) fn tell_unreturned(&mut self, clients: &mut dyn Clients) {
        for (queue, tag, partition, rows) in self.unreturned.drain(..) {
            clients.tell(News::Return { queue, tag, partition, rows });
        }
    }

    pub(super) fn returned(
        &mut self,
        clients: &mut dyn Clients,
        (queue, tag): (u64, u16),
        partition: usize,
        rows: Vec<i64>,
        told: Result<&[Reply], Trouble>,
    ) {
        let Ok([_, words, ..]) = told else {
            clients.tell(News::Return { queue, tag, partition, rows });
            return;
        };
        // What has ended meanwhile, or was leased anew, has not come back.
        let is_back = |place: usize| words.items().get(place).is_some_and(|word| word.bytes() == b"OK");
        let back: Vec<i64> = rows
            .chunks_exact(3)
            .enumerate()
            .filter(|(place, _)| is_back(*place))
            .flat_map(|(_, row)| row)
            .copied()
            .collect();
        let late = (rows.len() - back.len()) / 3;
        if !back.is_empty() {
            self.unheard.note(queue, partition, head_of(&back));
        }
        clients.tell(News::Returned { queue, tag, partition, rows: back, late });
    }

    /// Queues and tags of which something is on its way back, or will be when its call has ended: it is
    /// leased ahead, or for who has gone.
    pub fn returning(&self, packer: &mut Packer) {
        let is_returning = |one: &&UnderWay| match one.call {
            Call::GiveBack { .. } => true,
            Call::Receive(ref asked) => {
                let queue = self.queues.get(&one.queue).filter(|queue| queue.is_open);
                asked.ahead || queue.and_then(|queue| queue.tags.get(&one.tag)).is_none_or(|tag| tag.waiters.is_empty())
            }
            _ => false,
        };
        let some: BTreeSet<(u64, u16)> =
            self.calls.under_way.values().filter(is_returning).map(|one| (one.queue, one.tag)).collect();
        packer.array(some.len());
        for (queue, tag) in some {
            packer.array(2);
            packer.uint(queue);
            packer.uint(u64::from(tag));
        }
    }
}

/// Since when the first of these rows was visible (ms); 0 = not known.
fn head_of(rows: &[i64]) -> i64 {
    rows.chunks_exact(3).map(|row| row[2]).filter(|due| *due > 0).min().unwrap_or(0)
}
