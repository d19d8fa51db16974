//! The plane: serves the hot verbs of plain queues, in a thread, by the scripts of `state/lua`.
//!
//! It decides nothing about a message. Python says which queues are plain, how their scripts are
//! called, which Redis is in use and what time it is, and takes each of these back at any time. A
//! request that is not served here is Python's as it came; one whose outcome is unknown is answered by
//! Python. See docs/decisions/0048.

mod acting;
mod agenda;
mod allowances;
pub mod append;
pub mod ask;
mod batches;
mod bodies;
mod calls;
pub mod clients;
mod clock;
mod closing;
mod counts;
mod drains;
pub mod ended;
pub mod format;
mod handles;
pub mod kafka;
mod known;
mod leased;
mod limits;
mod loads;
mod queue;
mod receives;
pub mod redis;
mod returns;
pub mod routes;
mod sends;
mod tag;
#[cfg(test)]
mod tests;
pub mod told;
pub mod unit;
mod wait_list;
mod waits;
pub mod whys;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use acting::Acting;
use agenda::Agenda;
use allowances::Allowances;
use append::Appender;
use ask::{Ask, Asker, What};
use bodies::Bodies;
use calls::Values;
use calls::{good, Call, Caller, Calls, Script, UnderWay};
use clients::{Clients, News, Word};
use clock::Clock;
use counts::Times;
use counts::{Counts, InHand};
use drains::Drains;
use handles::Uncalled;
use known::Unheard;
use loads::Loads;
use queue::Queue;
use redis::{Failure, Redis, Reply};
use sends::Outgoing;
use tag::Tag;
use waits::Waits;

use crate::pack::{Packer, Read, Unpacker};

pub struct Plane<C> {
    pub calls: Calls<C>,
    service: told::Service,
    queues: HashMap<u64, Queue>,
    /// Tags at which something may be to do.
    tags: Agenda<(u64, u16)>,
    pub waits: Waits,
    acting: Acting,
    out: Outgoing,
    loads: Loads,
    bodies: Bodies,
    drains: Drains,
    counts: Counts,
    pub times: Times,
    pub unheard: Unheard,
    pub allowances: Allowances,
    /// Of messages with delays.
    pub delays: Allowances,
    /// Of which no call could be begun.
    unreturned: Vec<(u64, u16, usize, Vec<i64>)>,
    uncalled: Vec<Uncalled>,
}

impl<C: Caller> Plane<C> {
    pub fn new(caller: C, told: &mut Unpacker) -> Read<Self> {
        let mut service = told::service(told)?;
        let counts = Counts::new(std::mem::take(&mut service.bounds));
        let times = Times::new(std::mem::take(&mut service.times_ms));
        let waits = Waits::new(service.limits.most_waits);
        Ok(Self {
            calls: Calls::new(caller),
            service,
            queues: HashMap::new(),
            tags: Agenda::default(),
            waits,
            acting: Acting::default(),
            out: Outgoing::default(),
            loads: Loads::default(),
            bodies: Bodies::default(),
            drains: Drains::default(),
            counts,
            times,
            unheard: Unheard::default(),
            allowances: Allowances::default(),
            delays: Allowances::default(),
            unreturned: Vec::new(),
            uncalled: Vec::new(),
        })
    }

    // What Python tells.

    pub fn records(&self) -> &format::record::Records {
        &self.service.formats.records
    }

    /// What may become of a handle.
    pub fn words(&self) -> std::sync::Arc<[Word]> {
        self.service.words.clone()
    }

    /// Of how many requests one has a line in the access log; 0 = none has.
    pub fn line_every(&self) -> u64 {
        self.service.limits.line_every
    }

    pub fn set_clock(&mut self, told: &mut Unpacker) -> Read<()> {
        self.calls.clock = Clock::read(told)?;
        Ok(())
    }

    /// Serves a queue from now on.
    pub fn open(&mut self, told: &mut Unpacker, now: Instant) -> Read<()> {
        let (number, queue) = told::queue(told, &self.service.secret, now)?;
        self.queues.insert(number, queue);
        Ok(())
    }

    /// What was leased ahead of receives goes back, for whoever asks Redis elsewhere, and what is being
    /// leased ahead; for so long nothing is.
    pub fn empty_stock(&mut self, number: u64, tag: u16, pause: Duration, now: Instant) {
        if let Some(list) = self.tag(number, tag) {
            list.pace.pause(now + pause);
        }
        self.empty(number, tag, now);
    }

    /// Something may be receivable in a partition, since `head_ms` (0 = not known).
    pub fn woken(&mut self, number: u64, partition: usize, head_ms: i64, now: Instant) {
        let Some(queue) = self.queues.get_mut(&number) else { return };
        for (tag, known) in &mut queue.tags {
            known.woken(partition, head_ms, now);
            self.tags.mark((number, *tag));
        }
    }

    /// Somebody waits in Python for messages of a queue, or nobody does any more.
    pub fn watch(&mut self, number: u64, is_watched: bool) {
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.is_watched = is_watched;
        }
    }

    pub fn take_counts(&mut self, packer: &mut Packer) {
        self.counts.take(packer);
    }

    pub fn take_of_lanes(&mut self, packer: &mut Packer) {
        self.counts.take_of_lanes(packer);
    }

    pub fn take_stored(&mut self, packer: &mut Packer) {
        self.counts.take_stored(packer);
    }

    // What happens.

    pub fn ask(&mut self, clients: &mut dyn Clients, Ask { by, what }: Ask, now: Instant) {
        let queue = what.queue();
        let taken = match what {
            What::Receive { route, most, wait_ms, lease_ms } => self.wait(by, &route, most, wait_ms, lease_ms, now),
            What::Act { route, handles } => self.act(by, &route, &handles),
            What::Send { route, values } => self.send(by, &route, values),
            What::Left { route } => {
                self.leave(by.connection, &route, now);
                Ok(())
            }
        };
        if let Err(why) = taken {
            let Asker { connection, lane, verb, began } = by;
            self.counts.pass(clients, &InHand { connection, lane, queue, verb, began }, why);
        }
    }

    /// An answer of Redis.
    pub fn answered(&mut self, clients: &mut dyn Clients, token: u64, outcome: Result<Reply, Failure>, now: Instant) {
        let Some(UnderWay { queue, tag, call }) = self.calls.under_way.remove(&token) else {
            return self.drain_shown(clients, token, &outcome);
        };
        if let Some(queue) = self.queues.get_mut(&queue) {
            queue.calls -= 1;
        }
        let (at, told) = ((queue, tag), good(&outcome));
        match call {
            Call::Receive(asked) => self.received(clients, at, &asked, told, now),
            Call::Probe { partition, wakes } => self.probed(clients, at, (partition, wakes), told, now),
            Call::Act { act, partition, rows } => self.acted(clients, at, (act, partition, &rows), &outcome, now),
            Call::GiveBack { partition, rows } => self.returned(clients, at, partition, rows, told),
            Call::Load => self.loaded(clients, queue, token, told, now),
        }
        if let Err(trouble) = told {
            self.met(clients, at, trouble, now);
        }
        self.tags.mark(at);
        self.drop_closed(queue);
    }

    /// Does what can be done now.
    pub fn work(&mut self, clients: &mut dyn Clients, appender: &mut dyn Appender, now: Instant) {
        self.work_sends(clients, appender, now);
        self.work_drains(clients, appender, now);
        self.tags.wake(now);
        while let Some((number, tag)) = self.tags.next() {
            self.work_tag(clients, number, tag, now);
        }
        self.end_uncalled(clients, now);
        self.tell_unreturned(clients);
    }

    pub fn is_dirty(&self) -> bool {
        self.tags.is_dirty() || self.out.queues.is_dirty() || self.drains.is_dirty()
    }

    /// When `work` has something to do though nothing is heard.
    pub fn wake_at(&self) -> Option<Instant> {
        [self.tags.wake_at(), self.out.wake_at(), self.loads.wake_at()].into_iter().flatten().min()
    }

    // What the parts share.

    fn tag(&mut self, number: u64, tag: u16) -> Option<&mut Tag> {
        self.queues.get_mut(&number)?.tags.get_mut(&tag)
    }

    /// An open queue's tag.
    fn open_tag(&mut self, number: u64, tag: u16) -> Option<&mut Tag> {
        self.queues.get_mut(&number).filter(|queue| queue.is_open)?.tags.get_mut(&tag)
    }

    /// Begins a call, and returns its number; None = it can't be made.
    fn call(
        &mut self,
        (number, tag): (u64, u16),
        partition: usize,
        script: Script,
        values: Values,
        call: Call,
    ) -> Option<u64> {
        let queue = self.queues.get_mut(&number)?;
        let token = self.calls.begin_now(script, queue.template(script, partition, tag)?, values)?;
        queue.calls += 1;
        self.calls.under_way.insert(token, UnderWay { queue: number, tag, call });
        Some(token)
    }
}

impl Plane<Redis> {
    /// Takes in what the connection to Redis has to say.
    pub fn hear(&mut self, clients: &mut dyn Clients, now: Instant) {
        for news in self.calls.caller.news() {
            match news {
                redis::News::Greeted { link, info } => clients.tell(News::Greeted { link, info }),
                redis::News::Lost { link, reason } => clients.tell(News::Lost { link, reason }),
                redis::News::Answer { token, outcome } => self.answered(clients, token, outcome, now),
            }
        }
    }
}
