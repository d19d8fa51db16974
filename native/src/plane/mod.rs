//! The plane: serves receives and acks of plain queues, in a thread, by the scripts of `state/lua`.
//!
//! It decides nothing about a message. Python says which queues are plain, how their scripts are
//! called, which Redis is in use and what time it is, and takes each of these back at any time. A
//! request that is not served here is Python's as it came; one whose outcome is unknown is answered by
//! Python. See docs/decisions/0048.

mod acks;
mod allowances;
pub mod clients;
mod clock;
mod counts;
pub mod drains;
#[cfg(test)]
mod drains_tests;
mod receives;
mod returns;
pub mod routes;
pub mod sends;
mod tag;
mod template;
#[cfg(test)]
mod tests;
mod told;
mod unit;
mod waits;
pub mod whys;

pub mod format;
pub mod kafka;
pub mod redis;

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use acks::Acking;
use allowances::Allowances;
use clients::{Clients, News};
use clock::Clock;
use counts::Counts;
use drains::Drains;
use redis::{Failure, Reply};
use routes::Route;
use sends::{Appender, Outgoing, Sends, Value};
use tag::Tag;
use template::{Template, Values};
pub use unit::Kept;
use unit::{Row, Unit};
use waits::Waits;
use whys::Why;

use crate::pack::{Packer, Read, Unpacker};

/// A request of a route.
pub struct Ask {
    pub connection: u64,
    pub lane: u64,
    pub verb: u8,
    pub began: Instant,
    pub what: What,
}

pub enum What {
    /// None = as the route says; a lease of -1 = the message's own, else the queue's.
    Receive {
        route: Route,
        most: Option<usize>,
        wait_ms: Option<u64>,
        lease_ms: i64,
    },
    Ack {
        route: Route,
        handles: Vec<Vec<u8>>,
    },
    Send {
        route: Route,
        values: Vec<Value>,
    },
    /// The client of the connection has gone.
    Left {
        route: Route,
    },
}

/// Scripts, in the order in which Python tells them.
#[derive(Clone, Copy)]
enum Script {
    Receive,
    Probe,
    Ack,
    GiveBack,
    Load,
    Drain,
}

/// What calls scripts: `Redis`, or a test.
pub trait Caller {
    /// Whether calls may begin.
    fn is_open(&self) -> bool;
    /// Begins a call of words that are encoded; false = nothing was sent.
    fn call(&mut self, token: u64, script: usize, words: usize, ready: &[u8]) -> bool;
    /// The moment, by the clock that nobody sets.
    fn now_s(&self) -> f64;
}

/// Reads what requests of a lane have in common.
pub fn read_route(told: &mut Unpacker, now: Instant) -> Read<(u64, Route)> {
    told::route(told, now)
}

/// A plane with a connection that is to be made; fails with the reason for which there is none.
pub fn started(told: &mut Unpacker) -> Result<(Plane<redis::Redis>, kafka::Settings), String> {
    if told.array() != Ok(3) {
        return Err("what Python told can't be read".into());
    }
    let (redis, kafka) = (told::redis(told)?, told::kafka(told)?);
    Plane::new(redis, told)
        .map(|plane| (plane, kafka))
        .map_err(|_| "what Python told of the service can't be read".into())
}

/// A caller with a connection.
pub trait Connected {
    fn news(&mut self) -> std::collections::VecDeque<redis::News>;
}

impl Caller for redis::Redis {
    fn is_open(&self) -> bool {
        redis::Redis::is_open(self)
    }

    fn call(&mut self, token: u64, script: usize, words: usize, ready: &[u8]) -> bool {
        self.begin(token, script, words, ready, 0)
    }

    fn now_s(&self) -> f64 {
        crate::c::boot_s()
    }
}

impl Connected for redis::Redis {
    fn news(&mut self) -> std::collections::VecDeque<redis::News> {
        redis::Redis::news(self)
    }
}

pub struct Queue {
    units: Vec<Unit>,
    tags: HashMap<u16, Tag>,
    sends: Sends,
    /// Somebody waits in Python.
    is_watched: bool,
    is_open: bool,
    /// That are under way.
    calls: usize,
}

/// What is under way.
enum Call {
    Receive { partition: usize, wakes: u64, began: Instant, lease_ms: i64, ahead: bool },
    Probe { partition: usize, wakes: u64 },
    Ack { partition: usize, rows: Vec<Row> },
    GiveBack { partition: usize, rows: Vec<i64> },
    Load,
}

struct UnderWay {
    queue: u64,
    tag: u16,
    call: Call,
}

pub struct Plane<C: Caller> {
    pub caller: C,
    clock: Clock,
    service: told::Service,
    queues: HashMap<u64, Queue>,
    under_way: HashMap<u64, UnderWay>,
    acks: HashMap<u64, Acking>,
    pub waits: Waits,
    counts: Counts,
    /// Tags at which something may be to do, and those with a time at which there is.
    dirty: BTreeSet<(u64, u16)>,
    timers: BTreeSet<(Instant, u64, u16)>,
    out: Outgoing,
    drains: Drains,
    pub allowances: Allowances,
    /// Of which no call could be begun.
    unreturned: Vec<(u64, u16, usize, Vec<i64>)>,
    unacked: Vec<((u64, u16), usize, Vec<Row>)>,
    next: u64,
    ready: Vec<u8>,
}

impl<C: Caller> Plane<C> {
    pub fn new(caller: C, told: &mut Unpacker) -> Read<Self> {
        let mut service = told::service(told)?;
        let counts = Counts::new(std::mem::take(&mut service.bounds));
        let waits = Waits::new(service.limits.most_waits);
        Ok(Self {
            caller,
            clock: Clock::default(),
            service,
            queues: HashMap::new(),
            under_way: HashMap::new(),
            acks: HashMap::new(),
            waits,
            counts,
            dirty: BTreeSet::new(),
            timers: BTreeSet::new(),
            out: Outgoing::default(),
            drains: Drains::default(),
            allowances: Allowances::default(),
            unreturned: Vec::new(),
            unacked: Vec::new(),
            next: 0,
            ready: Vec::new(),
        })
    }

    // What Python tells.

    pub fn records(&self) -> &format::record::Records {
        &self.service.formats.records
    }

    /// What became of a handle, in Python's words.
    pub fn words(&self) -> std::sync::Arc<[Vec<u8>]> {
        self.service.words.clone()
    }

    pub fn set_clock(&mut self, told: &mut Unpacker) -> Read<()> {
        self.clock = Clock::read(told)?;
        Ok(())
    }

    /// Serves a queue from now on.
    pub fn open(&mut self, told: &mut Unpacker, now: Instant) -> Read<()> {
        let (number, queue) = told::queue(told, &self.service.secret, now)?;
        self.queues.insert(number, queue);
        Ok(())
    }

    /// Serves a queue no more: when this returns nothing of it is handed out any more, what was leased
    /// ahead is on its way back, and who waits is Python's.
    pub fn close(&mut self, clients: &mut dyn Clients, number: u64) {
        let Some(queue) = self.queues.get_mut(&number) else { return };
        queue.is_open = false;
        let tags: Vec<u16> = queue.tags.keys().copied().collect();
        for tag in tags {
            self.empty(number, tag);
            self.pass_all(clients, number, tag, Why::Changed);
        }
        self.pass_sends(clients, number);
        self.tell_unheard(clients, number);
        self.drop_closed(number);
    }

    /// Who waits is Python's: rights may have changed.
    pub fn pass_waiters(&mut self, clients: &mut dyn Clients) {
        for (number, tag) in self.all_tags() {
            self.pass_all(clients, number, tag, Why::Changed);
        }
    }

    /// What was leased ahead of receives goes back, for whoever asks Redis elsewhere, and what is being
    /// leased ahead; for so long nothing is.
    pub fn empty_stock(&mut self, number: u64, tag: u16, pause: Duration, now: Instant) {
        if let Some(list) = self.tag(number, tag) {
            list.pace.pause(now + pause);
        }
        self.empty(number, tag);
    }

    /// Something may be receivable in a partition, since `head_ms` (0 = not known).
    pub fn woken(&mut self, number: u64, partition: usize, head_ms: i64, now: Instant) {
        let Some(queue) = self.queues.get_mut(&number) else { return };
        for (tag, known) in &mut queue.tags {
            known.woken(partition, head_ms, now);
            self.dirty.insert((number, *tag));
        }
    }

    /// Somebody waits in Python for messages of a queue, or nobody does any more.
    pub fn watch(&mut self, clients: &mut dyn Clients, number: u64, is_watched: bool) {
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.is_watched = is_watched;
        }
        if is_watched {
            self.tell_unheard(clients, number);
        }
    }

    /// Ends all waits with an empty answer, and gives back what was leased ahead.
    pub fn stop(&mut self, clients: &mut dyn Clients) {
        for (number, tag) in self.all_tags() {
            self.empty(number, tag);
            while let Some(waiter) =
                self.queues.get_mut(&number).and_then(|queue| queue.tags.get_mut(&tag)?.waiters.pop_front())
            {
                self.waits.leave(&waiter);
                clients.give(waiter.connection, &[]);
            }
        }
    }

    /// Numbers of the queues at which somebody waits.
    pub fn waiting(&self, packer: &mut Packer) {
        let some: Vec<u64> = self
            .queues
            .iter()
            .filter(|(_, queue)| queue.tags.values().any(|tag| !tag.waiters.is_empty()))
            .map(|(number, _)| *number)
            .collect();
        packer.array(some.len());
        some.iter().for_each(|number| packer.uint(*number));
    }

    /// Queues and tags of which something is on its way back, or will be when its call has ended: it is
    /// leased ahead, or for who has gone.
    pub fn returning(&self, packer: &mut Packer) {
        let is_returning = |one: &&UnderWay| match one.call {
            Call::GiveBack { .. } => true,
            Call::Receive { ahead, .. } => {
                let queue = self.queues.get(&one.queue).filter(|queue| queue.is_open);
                ahead || queue.and_then(|queue| queue.tags.get(&one.tag)).is_none_or(|tag| tag.waiters.is_empty())
            }
            _ => false,
        };
        let some: BTreeSet<(u64, u16)> =
            self.under_way.values().filter(is_returning).map(|one| (one.queue, one.tag)).collect();
        packer.array(some.len());
        for (queue, tag) in some {
            packer.array(2);
            packer.uint(queue);
            packer.uint(u64::from(tag));
        }
    }

    pub fn take_counts(&mut self, packer: &mut Packer) {
        self.counts.take(packer);
    }

    // What happens.

    /// Takes in what the connection to Redis has to say.
    pub fn hear(&mut self, clients: &mut dyn Clients, now: Instant)
    where
        C: Connected,
    {
        for news in self.caller.news() {
            match news {
                redis::News::Greeted { link, info } => clients.tell(News::Greeted { link, info }),
                redis::News::Lost { link, reason } => clients.tell(News::Lost { link, reason }),
                redis::News::Answer { token, outcome } => self.answered(clients, token, outcome, now),
            }
        }
    }

    pub fn ask(&mut self, clients: &mut dyn Clients, ask: Ask, now: Instant) {
        let taken = match ask.what {
            What::Receive { ref route, most, wait_ms, lease_ms } => {
                self.wait(&ask, route, most, wait_ms, lease_ms, now)
            }
            What::Ack { ref route, ref handles } => self.ack(&ask, route, handles),
            What::Send { ref route, values } => self.send(ask.connection, ask.lane, ask.verb, ask.began, route, values),
            What::Left { ref route } => {
                self.leave(ask.connection, route);
                Ok(())
            }
        };
        if let Err(why) = taken {
            clients.pass(ask.connection, why);
        }
    }

    /// An answer of Redis.
    pub fn answered(&mut self, clients: &mut dyn Clients, token: u64, outcome: Result<Reply, Failure>, now: Instant) {
        let Some(UnderWay { queue, tag, call }) = self.under_way.remove(&token) else {
            return self.drain_shown(clients, token, &outcome);
        };
        if let Some(queue) = self.queues.get_mut(&queue) {
            queue.calls -= 1;
        }
        let told = good(&outcome);
        match call {
            Call::Receive { partition, wakes, began, lease_ms, ahead } => {
                let call = receives::Asked { partition, wakes, began, lease_ms, ahead };
                self.received(clients, queue, tag, &call, told, now);
            }
            Call::Probe { partition, wakes } => self.probed(clients, queue, tag, partition, wakes, told, now),
            Call::Ack { partition, rows } => self.acked(clients, queue, tag, partition, &rows, told, &outcome, now),
            Call::GiveBack { partition, rows } => self.returned(clients, queue, tag, partition, rows, told, now),
            Call::Load => self.loaded(clients, queue, token, told, now),
        }
        if let Err(trouble) = told {
            self.met(clients, queue, tag, trouble);
        }
        self.dirty.insert((queue, tag));
        self.drop_closed(queue);
    }

    /// Does what can be done now.
    pub fn work(&mut self, clients: &mut dyn Clients, appender: &mut dyn Appender, now: Instant) {
        self.work_sends(clients, appender, now);
        self.work_drains(clients, appender, now);
        while let Some(first) = self.timers.first().copied().filter(|(at, _, _)| *at <= now) {
            self.timers.remove(&first);
            if let Some(tag) = self.tag(first.1, first.2) {
                tag.timer = None;
                self.dirty.insert((first.1, first.2));
            }
        }
        while let Some((number, tag)) = self.dirty.pop_first() {
            self.work_tag(clients, number, tag, now);
        }
        self.end_unacked(clients, now);
        self.tell_unreturned(clients);
    }

    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || self.out.is_dirty() || self.drains.is_dirty()
    }

    /// When `work` has something to do though nothing is heard.
    pub fn wake_at(&self) -> Option<Instant> {
        [self.timers.first().map(|(at, _, _)| *at), self.out.wake_at()].into_iter().flatten().min()
    }

    // What the parts share.

    fn all_tags(&self) -> Vec<(u64, u16)> {
        self.queues.iter().flat_map(|(number, queue)| queue.tags.keys().map(|tag| (*number, *tag))).collect()
    }

    fn tag(&mut self, number: u64, tag: u16) -> Option<&mut Tag> {
        self.queues.get_mut(&number)?.tags.get_mut(&tag)
    }

    /// An open queue's tag.
    fn open_tag(&mut self, number: u64, tag: u16) -> Option<&mut Tag> {
        self.queues.get_mut(&number).filter(|queue| queue.is_open)?.tags.get_mut(&tag)
    }

    /// A tag has a turn then, unless it has one sooner.
    fn set_timer(&mut self, number: u64, tag: u16, at: Instant) {
        let Some(list) = self.tag(number, tag).filter(|list| list.timer.is_none_or(|set| at < set)) else { return };
        if let Some(before) = list.timer.replace(at) {
            self.timers.remove(&(before, number, tag));
        }
        self.timers.insert((at, number, tag));
    }

    fn drop_closed(&mut self, number: u64) {
        if self
            .queues
            .get(&number)
            .is_some_and(|queue| !queue.is_open && queue.calls == 0 && !queue.has_acks() && queue.sends.is_empty())
        {
            self.queues.remove(&number);
        }
    }

    /// Begins a call; false = it can't be made.
    fn call(&mut self, at: (u64, u16), partition: usize, script: Script, values: Values, call: Call) -> bool {
        let (number, tag) = at;
        if !self.caller.is_open() || !self.clock.is_set {
            return false;
        }
        let now_ms = self.clock.at_ms(self.caller.now_s());
        let Some(queue) = self.queues.get_mut(&number) else { return false };
        let Some(of) = queue.units.get(partition).and_then(|unit| unit.tags.get(&tag)) else { return false };
        let template: &Template = match script {
            Script::Receive => &of.receive,
            Script::Probe => &of.probe,
            Script::Ack => &of.ack,
            Script::GiveBack => &of.give_back,
            Script::Load => &queue.units[partition].load,
            Script::Drain => return false, // it is of no queue that is served here
        };
        let words = template.fill(
            &mut self.ready,
            &Values { now_ms, keep_ms: self.clock.keep_ms, early_ms: self.clock.early_ms, ..values },
        );
        self.next += 1;
        if !self.caller.call(self.next, script as usize, words, &self.ready) {
            return false;
        }
        queue.calls += 1;
        self.under_way.insert(self.next, UnderWay { queue: number, tag, call });
        true
    }

    /// A call has not done what it should: Python's calls will meet the same, and know what to do.
    fn met(&mut self, clients: &mut dyn Clients, number: u64, tag: u16, trouble: Trouble) {
        match trouble {
            Trouble::Closed(reason) => {
                if self.queues.get(&number).is_some_and(|queue| queue.is_open) {
                    clients.tell(News::Closed { queue: number, reason });
                    self.close(clients, number);
                }
            }
            Trouble::Other => self.pass_all(clients, number, tag, Why::Redis),
        }
    }

    fn pass_all(&mut self, clients: &mut dyn Clients, number: u64, tag: u16, why: Why) {
        while let Some(waiter) = self.tag(number, tag).and_then(|tag| tag.waiters.pop_front()) {
            self.waits.leave(&waiter);
            clients.pass(waiter.connection, why);
        }
    }
}

impl Queue {
    fn has_acks(&self) -> bool {
        self.units.iter().any(|unit| unit.tags.values().any(|of| !of.acks.is_empty()))
    }
}

/// Why a call has not done what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// The queue is not for the plane, by a word of its script.
    Closed(&'static str),
    /// It can be tried again later.
    Other,
}

/// The items of a good reply.
fn good(outcome: &Result<Reply, Failure>) -> Result<&[Reply], Trouble> {
    let Ok(reply) = outcome else { return Err(Trouble::Other) };
    match reply.items() {
        [first, ..] if first.bytes() == b"OK" => Ok(reply.items()),
        [first, ..] => Err([("LOST", &b"LOST"[..]), ("FENCED", b"FENCED"), ("FIFO", b"FIFO"), ("FAIR", b"FAIR")]
            .iter()
            .find(|(_, word)| first.bytes() == *word)
            .map_or(Trouble::Other, |(reason, _)| Trouble::Closed(reason))),
        [] => Err(Trouble::Other),
    }
}
