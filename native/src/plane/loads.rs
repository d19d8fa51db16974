//! Loads: the window gets what Kafka has, and whoever has sent hears of it.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::ask::Value;
use super::batches::Send;
use super::calls::{Call, Caller, Script, Trouble};
use super::calls::{Rows, Values};
use super::clients::{Clients, News};
use super::counts::Key;
use super::format::record::Packed;
use super::redis::{put_number, put_word, Reply};
use super::sends::Append;
use super::Plane;

/// How long an answer waits for Redis, which is not needed for it.
const SOON: Duration = Duration::from_secs(1);

/// Records that Kafka has: where, and who waits for them (connection, if any; lane, verb, since when, messages).
struct Loading {
    queue: u64,
    partition: usize,
    first: u64,
    end: u64,
    at_ms: i64,
    keeps: bool,
    waiting: Vec<(Option<u64>, u64, u8, Instant, usize)>,
}

/// What of all queues is on its way to the window.
#[derive(Default)]
pub struct Loads {
    /// By the tokens of their calls.
    of: HashMap<u64, Loading>,
    /// Until when somebody waits for a call.
    answer_until: VecDeque<(Instant, u64)>,
}

impl Loads {
    pub fn wake_at(&self) -> Option<Instant> {
        self.answer_until.front().map(|(at, _)| *at)
    }
}

impl<C: Caller> Plane<C> {
    /// The window gets what Kafka has, and its bodies are kept. Where that fails the loader brings them.
    pub(super) fn load(&mut self, clients: &mut dyn Clients, append: Append, first: u64, at_ms: u64, now: Instant) {
        let Append { queue, partition, sends } = append;
        let who = |one: &Send| (!one.is_over).then_some(one.connection);
        let waiting = sends.iter().map(|one| (who(one), one.lane, one.verb, one.began, one.values.len())).collect();
        let values: Vec<Value> = sends.into_iter().flat_map(|one| one.values).collect();
        self.counts.note_stored(queue, values.iter().map(|value| value.size as u64).sum());
        let end = first + values.len() as u64;
        let keeps = self.has_room(queue, &values, now);
        let (encoded, words) = self.entries(queue, &values, first, at_ms, keeps);
        if keeps {
            self.keep(queue, partition, values, first, at_ms, now);
        }
        let values = Values { rows: Rows { encoded: &encoded, words }, ..Values::default() };
        let tag = self.queues.get(&queue).and_then(|queue| queue.tags.keys().next().copied()).unwrap_or(0);
        let made = self.call((queue, tag), partition, Script::Load, values, Call::Load);
        let token = made.unwrap_or_else(|| self.calls.number());
        let at_ms = at_ms as i64;
        self.loads.of.insert(token, Loading { queue, partition, first, end, at_ms, keeps, waiting });
        if made.is_some() {
            self.loads.answer_until.push_back((now + SOON, token));
        } else {
            self.loaded(clients, queue, token, Err(Trouble::Other), now);
        }
    }

    /// The entries of the script: one for those of a delay that follow each other, where their bodies are kept here.
    fn entries(&self, queue: u64, values: &[Value], first: u64, at_ms: u64, keeps: bool) -> (Vec<u8>, usize) {
        let mask: &[u8] = self.queues.get(&queue).map_or(b"", |queue| &queue.sends.mask);
        let (mut encoded, mut words) = (Vec::new(), 0);
        let mut entry = |offset: u64, delay_ms: i64, record: &[u8], count: usize| {
            put_number(&mut encoded, offset as i64);
            let mut packed = Vec::with_capacity(24 + record.len());
            Packed { sent_at_ms: at_ms, due_ms: at_ms + delay_ms as u64, lease_ms: None, record }.write(&mut packed);
            put_word(&mut encoded, &packed);
            put_word(&mut encoded, mask);
            (0..4).for_each(|_| put_word(&mut encoded, b""));
            put_number(&mut encoded, count as i64);
            words += 8;
        };
        let mut offset = first;
        for some in values.chunk_by(|one, next| keeps && one.delay_ms == next.delay_ms) {
            entry(offset, some[0].delay_ms, if keeps { b"" } else { &some[0].record }, some.len());
            offset += some.len() as u64;
        }
        (encoded, words)
    }

    /// Whoever waits for Redis for too long is answered without it.
    pub(super) fn answer_late(&mut self, clients: &mut dyn Clients, now: Instant) {
        while let Some((_, token)) = self.loads.answer_until.front().copied().filter(|(at, _)| *at <= now) {
            self.loads.answer_until.pop_front();
            self.answer_sends(clients, token, now);
        }
    }

    /// The window has answered a load, or will not.
    pub(super) fn loaded(
        &mut self,
        clients: &mut dyn Clients,
        queue: u64,
        token: u64,
        told: Result<&[Reply], Trouble>,
        now: Instant,
    ) {
        self.answer_sends(clients, token, now);
        let Some(Loading { partition, first, end, keeps, .. }) = self.loads.of.remove(&token) else { return };
        let head_ms = told.ok().and_then(|reply| reply.get(6)).map_or(0, Reply::int);
        self.wake(clients, queue, partition, head_ms, now);
        let taken = match told {
            Ok([_, cursors, _, taken, ..]) => {
                let cursor = cursors.items().iter().map(Reply::int).max().unwrap_or(0);
                if taken.int() == 0 && cursor > end as i64 {
                    clients.tell(News::Ahead { queue, partition, cursor: cursor as u64 });
                }
                taken.int() > 0
            }
            _ => {
                clients.tell(News::Unloaded { queue });
                false
            }
        };
        let Some(known) = self.queues.get_mut(&queue) else { return };
        if keeps && !taken {
            // The loader will bring them, with their bodies.
            (first..end).for_each(|offset| drop(known.units[partition].bodies.remove(&offset)));
        }
    }

    /// Whoever has sent hears that Kafka has it.
    fn answer_sends(&mut self, clients: &mut dyn Clients, token: u64, now: Instant) {
        let Some(loading) = self.loads.of.get_mut(&token) else { return };
        let (queue, partition, at_ms, mut offset) = (loading.queue, loading.partition, loading.at_ms, loading.first);
        let waiting = std::mem::take(&mut loading.waiting);
        if waiting.is_empty() {
            return;
        }
        let Some(known) = self.queues.get(&queue) else { return };
        let Some(ids) = known.units[partition].tags.values().next().map(|of| &of.ids) else { return };
        for (connection, lane, verb, began, count) in waiting {
            let first = offset;
            offset += count as u64;
            let Some(connection) = connection else { continue };
            let names: Vec<[u8; 36]> = (first..offset).filter_map(|offset| ids.id(offset)).collect();
            clients.sent(connection, &names, at_ms as u64);
            let key = Key { queue, tag: -1, verb, more: count > 1, is_gone: false };
            self.counts.note(key, lane, count, now.saturating_duration_since(began));
        }
        self.end_batch(queue);
    }

    /// Whoever waits for what was sent is served (visible since `head_ms`, 0 = not known); Python hears of it when
    /// somebody waits there.
    fn wake(&mut self, clients: &mut dyn Clients, number: u64, partition: usize, head_ms: i64, now: Instant) {
        self.woken(number, partition, head_ms, now);
        let is_heard = self.queues.get(&number).is_some_and(|queue| queue.is_watched || !queue.is_open);
        if is_heard {
            clients.tell(News::Woken { queue: number, partition, head_ms: head_ms as u64 });
        } else {
            self.unheard.note(number, partition, head_ms);
        }
    }
}
