//! The plane in a front: which requests are its own, its turns in the thread, and its answers to
//! clients.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hasher};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mio::{Poll, Token, Waker};

use crate::batch::LANES;
use crate::dialects::Repeats;
use crate::json::Scanner;
use crate::net::connection::Asked;
use crate::net::front::{Front, Ready};
use crate::pack::{NotThere, Packer, Read, Unpacker};
use crate::plane::clients::{Clients, Delivery, News, Word};
use crate::plane::drains::Ended;
use crate::plane::format::record::Records;
use crate::plane::format::Produced;
use crate::plane::kafka::{self, Outcome, Producer, Record};
use crate::plane::redis::Redis;
use crate::plane::routes::{Route, MAY_ACK, MAY_RECEIVE, MAY_SEND, MAY_SEND_ATTRIBUTES};
use crate::plane::sends::{self, Appended, Appender, Content, Until, Value};
use crate::plane::whys::{Why, Whys};
use crate::plane::{Ask, Plane, What};
use crate::requests::{Request, Verb};

pub const WAKER: Token = Token(usize::MAX - 1);
pub const REDIS: Token = Token(usize::MAX - 2);
pub const KAFKA: std::ops::Range<usize> = usize::MAX - 1026..usize::MAX - 2;
/// The thread looks after its connections so often, though nothing is heard.
const TICK: Duration = Duration::from_millis(100);
const BUFFER_BYTES: usize = 256 * 1024;
/// Routes are looked through when there are so many: the batch knows half as many lanes.
const MOST_ROUTES: usize = 2 * LANES;

/// The bit of a route that lets the plane serve a verb.
pub fn may(verb: Verb) -> u8 {
    if verb.is_send() {
        MAY_SEND
    } else if verb.is_ack() {
        MAY_ACK
    } else {
        MAY_RECEIVE
    }
}

/// What a front has of the plane.
#[derive(Default)]
pub struct Planes {
    /// Not here while it works.
    pub plane: Option<Box<Plane<Redis>>>,
    pub asks: VecDeque<Ask>,
    /// Why requests went to Python.
    pub whys: Whys,
    routes: HashMap<u64, Route>,
    /// Not here while the plane works.
    kafka: Option<Producer>,
    records: Option<Records>,
    /// What became of a handle, in Python's words.
    words: Arc<[Vec<u8>]>,
    /// The next batch of a send has a name of its own.
    random: u64,
    made: Cell<u64>,
    /// What Python watches while a thread polls, and whether it was told since it last looked.
    pub told: RawFd,
    pub is_told: bool,
    pub stops: bool,
    waker: Option<Waker>,
    buffer: Vec<u8>,
    json: Vec<u8>,
    ticked: Option<Instant>,
}

impl Planes {
    /// Whether the plane may serve requests of a lane that have this verb.
    pub fn lets(&self, lane: u64, verb: Verb) -> bool {
        self.routes.get(&lane).is_some_and(|route| route.verbs & may(verb) > 0)
    }

    /// A request of a route that the plane may serve, and what its answer repeats; or why it is
    /// Python's.
    pub fn ask(
        &self,
        connection: u64,
        lane: u64,
        verb: Verb,
        request: &mut Request,
        scanner: &Scanner,
        now: Instant,
    ) -> Result<(Asked, Ask), Why> {
        let route = self.routes.get(&lane).filter(|route| route.valid_until.is_none_or(|until| now < until));
        let route = route.ok_or(Why::Changed)?;
        let repeats = Repeats::new(verb, request, scanner);
        let what = match verb {
            Verb::Receive | Verb::NativeReceive => What::Receive {
                route: route.clone(),
                most: request.most.map(|most| most as usize),
                wait_ms: request.wait_s.map(|wait| wait as u64 * 1000),
                lease_ms: request.lease_s.map_or(-1, |lease| lease * 1000),
            },
            Verb::Delete | Verb::DeleteBatch | Verb::NativeAck => What::Ack {
                route: route.clone(),
                handles: request.entries.iter().map(|entry| scanner.text(entry.value).to_vec()).collect(),
            },
            Verb::Send | Verb::SendBatch | Verb::NativeSend => What::Send {
                route: route.clone(),
                values: self.values(connection, route, &repeats.contents(request, scanner))?,
            },
        };
        let asked = Asked { repeats: Some(Box::new(repeats)), route: Some(route.clone()), ..Asked::default() };
        Ok((asked, Ask { connection, lane, verb: verb as u8, began: now, what }))
    }

    /// The records of a send, if its route lets it have as many bytes, and attributes.
    fn values(&self, connection: u64, route: &Route, contents: &[Content]) -> Result<Vec<Value>, Why> {
        let is_large = contents.iter().any(|content| content.size() > route.most_message_bytes)
            || contents.iter().map(Content::size).sum::<usize>() > route.most_send_bytes;
        let is_plain = contents.iter().all(|content| content.attributes.is_empty());
        if is_large {
            return Err(Why::Size);
        }
        if !is_plain && route.verbs & MAY_SEND_ATTRIBUTES == 0 {
            return Err(Why::Attributes);
        }
        let random = self.random ^ connection.rotate_left(17) ^ self.made.get();
        self.made.set(self.made.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        Ok(sends::values(self.records.as_ref().ok_or(Why::Off)?, route, contents, random))
    }

    /// The client of a request of the plane has gone.
    pub fn left(&mut self, connection: u64, route: Route, now: Instant) {
        self.asks.push_back(Ask { connection, lane: 0, verb: 0, began: now, what: What::Left { route } });
    }
}

impl Front {
    /// Adds the plane, which a thread runs from now on; returns what that thread polls.
    pub fn add_plane(&mut self, plane: Plane<Redis>, kafka: kafka::Settings, told: RawFd) -> std::io::Result<Poll> {
        let mut producer = Producer::new(kafka, self.registry.try_clone()?, KAFKA, Instant::now())?;
        producer.reach(Instant::now());
        self.planes.kafka = Some(producer);
        self.planes.records = Some(plane.records().clone());
        self.planes.words = plane.words();
        // Different for each process, and for each front of one.
        self.planes.random = RandomState::new().build_hasher().finish();
        self.planes.waker = Some(Waker::new(&self.registry, WAKER)?);
        self.planes.plane = Some(Box::new(plane));
        self.planes.told = told;
        self.planes.buffer = vec![0; BUFFER_BYTES];
        self.poll.take().ok_or_else(|| std::io::ErrorKind::Other.into())
    }

    /// One turn of the thread; whether Python has something to hear that it was not told of.
    pub fn turn_of_thread(&mut self, ready: &[Ready]) -> bool {
        let now = Instant::now();
        self.handle(ready, now);
        let redis = ready.iter().filter(|one| one.token == REDIS);
        let redis = redis
            .fold((false, false), |(read, write), one| (read | one.is_readable | one.has_end, write | one.is_writable));
        if let Some(kafka) = &mut self.planes.kafka {
            ready.iter().filter(|one| KAFKA.contains(&one.token.0)).for_each(|one| kafka.ready(one.token, now));
        }
        self.run_plane(redis, now);
        let has_news = !self.batch.is_empty() || !self.unsent.is_empty();
        let tells = has_news && !self.planes.is_told;
        self.planes.is_told |= tells;
        tells
    }

    /// How long the thread may wait; None = there is no plane any more.
    pub fn patience(&self) -> Option<Duration> {
        if self.has_turns() || !self.planes.asks.is_empty() {
            return Some(Duration::ZERO);
        }
        let plane = self.planes.plane.as_ref()?;
        let kafka = self.planes.kafka.as_ref().map(|kafka| kafka.next_tick(Instant::now()));
        let wake_at = [plane.wake_at(), plane.caller.wake_at(), kafka].into_iter().flatten().min();
        let patience = wake_at.map_or(TICK, |at| at.saturating_duration_since(Instant::now()));
        Some(patience.min(TICK))
    }

    /// Has the thread look again, if there is one and something to do for it.
    pub fn rouse(&self) {
        if let Some(waker) = &self.planes.waker {
            if self.planes.stops || self.has_turns() || !self.planes.asks.is_empty() {
                // One that is full wakes it too.
                let _ = waker.wake();
            }
        }
    }

    /// Has the plane do what it can now.
    fn run_plane(&mut self, redis: (bool, bool), now: Instant) {
        let Some(mut plane) = self.planes.plane.take() else { return };
        if redis.0 || redis.1 {
            let mut buffer = std::mem::take(&mut self.planes.buffer);
            plane.caller.ready(&self.registry, redis.0, redis.1, &mut buffer);
            self.planes.buffer = buffer;
        }
        if self.planes.ticked.is_none_or(|at| now >= at + TICK) || plane.caller.wake_at().is_some_and(|at| at <= now) {
            self.planes.ticked = Some(now);
            plane.caller.tick(&self.registry, REDIS);
        }
        let mut kafka = self.planes.kafka.take();
        if let Some(kafka) = kafka.as_mut().filter(|kafka| kafka.next_tick(now) <= now) {
            kafka.tick(now);
        }
        loop {
            plane.hear(self, now);
            if let Some(kafka) = &mut kafka {
                let outcomes: Vec<_> = kafka.outcomes().collect();
                outcomes.into_iter().for_each(|(token, outcome)| plane.appended(self, token, appended(outcome), now));
            }
            while let Some(ask) = self.planes.asks.pop_front() {
                plane.ask(self, ask, now);
            }
            plane.work(self, &mut Kafka(kafka.as_mut()), now);
            plane.caller.flush(&self.registry);
            if let Some(kafka) = &mut kafka {
                kafka.flush(now);
            }
            if self.planes.asks.is_empty() && !plane.is_dirty() {
                break;
            }
        }
        self.planes.kafka = kafka;
        self.planes.plane = Some(plane);
    }

    /// Does something with the plane, if there is one, and what follows from it.
    pub fn with_plane<T>(&mut self, act: impl FnOnce(&mut Plane<Redis>, &mut Self, Instant) -> T) -> Option<T> {
        let mut plane = self.planes.plane.take()?;
        let now = Instant::now();
        let outcome = act(&mut plane, self, now);
        self.planes.plane = Some(plane);
        self.run_plane((false, false), now);
        Some(outcome)
    }

    /// Requests of a lane are the plane's from now on.
    pub fn learn_route(&mut self, told: &mut Unpacker) -> Read<()> {
        let (lane, route) = crate::plane::read_route(told, Instant::now())?;
        if self.planes.routes.len() >= MOST_ROUTES {
            // No request names a lane any more that the batch has forgotten.
            let known = self.batch.known_lanes();
            self.planes.routes.retain(|lane, _| known.contains(lane));
        }
        self.planes.routes.insert(lane, route);
        Ok(())
    }

    /// The plane serves a queue no more.
    pub fn close_queue(&mut self, queue: u64) {
        let lanes: HashSet<u64> =
            self.planes.routes.iter().filter(|(_, route)| route.queue == queue).map(|(lane, _)| *lane).collect();
        self.planes.routes.retain(|lane, _| !lanes.contains(lane));
        self.batch.forget_these(&lanes);
        self.with_plane(|plane, front, _| plane.close(front, queue));
    }

    /// No request is the plane's until its lane is told again, nor those that wait.
    pub fn forget_routes(&mut self) {
        self.planes.routes.clear();
        self.with_plane(|plane, front, _| plane.pass_waiters(front));
    }
}

/// What Python tells; `engine/plane/library.py` has the same numbers.
mod told {
    pub const CLOCK: u32 = 0;
    pub const OPEN: u32 = 1;
    pub const ROUTE: u32 = 2;
    pub const CLOSE: u32 = 3;
    pub const WOKEN: u32 = 4;
    pub const ADMIT: u32 = 5;
    pub const SHUT: u32 = 6;
    pub const EMPTY: u32 = 7;
    pub const STOP: u32 = 8;
    pub const WATCH: u32 = 9;
    pub const LEAVE: u32 = 10;
    pub const RETELL: u32 = 11;
    pub const DRAIN: u32 = 12;
    pub const GRANT: u32 = 13;
}

/// What Python asks; `engine/plane/library.py` has the same numbers.
mod asked {
    pub const COUNTS: u32 = 0;
    pub const WAITING: u32 = 1;
    pub const RETURNING: u32 = 2;
    pub const WHYS: u32 = 3;
    pub const WAITS: u32 = 4;
    pub const ALLOWANCES: u32 = 5;
}

/// What the plane tells; `engine/plane/library.py` has the same numbers.
mod news {
    pub const GREETED: u32 = 0;
    pub const LOST: u32 = 1;
    pub const SEEN: u32 = 2;
    pub const REFRESH: u32 = 3;
    pub const RETURNED: u32 = 4;
    pub const RETURN: u32 = 5;
    pub const CLOSED: u32 = 6;
    pub const DYING: u32 = 7;
    pub const FAILED: u32 = 8;
    pub const SUSPECT: u32 = 9;
    pub const USED: u32 = 10;
    pub const UNLOADED: u32 = 11;
    pub const AHEAD: u32 = 12;
    pub const VISIBLE: u32 = 13;
    pub const DRAINED: u32 = 14;
    pub const LOW: u32 = 15;
}

impl Front {
    /// Takes in what Python tells; without a plane nothing.
    pub fn hear(&mut self, what: u32, told: &mut Unpacker) -> Read<()> {
        match what {
            told::CLOCK => self.with_plane(|plane, _, _| plane.set_clock(told)).unwrap_or(Ok(())),
            told::OPEN => self.with_plane(|plane, _, now| plane.open(told, now)).unwrap_or(Ok(())),
            told::ROUTE => self.learn_route(told),
            told::CLOSE => {
                self.close_queue(told.uint()?);
                Ok(())
            }
            told::WOKEN => {
                told.array()?;
                let (queue, partition, head_ms) = (told.uint()?, told.uint()? as usize, told.uint()? as i64);
                self.with_plane(|plane, _, now| plane.woken(queue, partition, head_ms, now));
                Ok(())
            }
            told::ADMIT => {
                told.array()?;
                let (link, until) = (told.uint()?, told.bytes()?);
                let until = std::str::from_utf8(until).ok().and_then(|until| until.parse().ok()).ok_or(NotThere)?;
                self.with_plane(|plane, _, _| plane.caller.admit(link, until));
                Ok(())
            }
            told::SHUT => {
                self.with_plane(|plane, _, _| plane.caller.shut());
                Ok(())
            }
            told::EMPTY => {
                told.array()?;
                let (queue, tag, pause) = (told.uint()?, told.uint()? as u16, Duration::from_millis(told.uint()?));
                self.with_plane(|plane, _, now| plane.empty_stock(queue, tag, pause, now));
                Ok(())
            }
            told::WATCH => {
                told.array()?;
                let (queue, is_watched) = (told.uint()?, told.uint()? > 0);
                self.with_plane(|plane, front, _| plane.watch(front, queue, is_watched));
                Ok(())
            }
            told::LEAVE => {
                let link = told.uint()?;
                self.with_plane(|plane, _, _| plane.caller.leave(link, "Python has another server"));
                Ok(())
            }
            told::RETELL => {
                let lanes = (0..told.array()?).map(|_| told.uint()).collect::<Read<HashSet<u64>>>()?;
                self.batch.forget_these(&lanes);
                Ok(())
            }
            told::DRAIN => self.with_plane(|plane, _, _| plane.drain(told)).unwrap_or(Err(NotThere)),
            told::GRANT => {
                told.array()?;
                let (queue, bytes, valid) = (told.uint()?, told.uint()?, Duration::from_millis(told.uint()?));
                self.with_plane(|plane, _, now| plane.allowances.grant(queue, bytes, valid, now));
                Ok(())
            }
            told::STOP => {
                self.with_plane(|plane, front, _| plane.stop(front));
                Ok(())
            }
            _ => Err(NotThere),
        }
    }

    /// Answers what Python asks.
    pub fn say(&mut self, what: u32, packer: &mut Packer) {
        if what == asked::WHYS {
            return self.planes.whys.take(packer);
        }
        let Some(plane) = &mut self.planes.plane else { return packer.array(0) };
        match what {
            asked::COUNTS => plane.take_counts(packer),
            asked::WAITING => plane.waiting(packer),
            asked::RETURNING => plane.returning(packer),
            asked::WAITS => plane.waits.tell(packer),
            asked::ALLOWANCES => plane.allowances.take_all(packer, Instant::now()),
            _ => packer.array(0),
        }
    }
}

/// The way to Kafka, if there is one; without it no route lets anybody send.
struct Kafka<'a>(Option<&'a mut Producer>);

impl Appender for Kafka<'_> {
    fn append(&mut self, topic: &str, partition: usize, records: &[Produced], token: u64, until: Until, now: Instant) {
        let Some(producer) = &mut self.0 else { return };
        let records = records.iter().map(|Produced { key, value, headers }| Record {
            key: *key,
            value: Some(value),
            headers,
            timestamp_ms: now_ms(),
        });
        producer.append(topic, partition as i32, records, token, until, now);
    }
}

/// The time of a record that its broker writes over.
fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

fn appended(outcome: Outcome) -> Appended {
    match outcome {
        Outcome::Stored { base_offset, log_append_ms: Some(at_ms) } => {
            Appended::Stored { first: base_offset as u64, at_ms: at_ms as u64 }
        }
        // Without its time the window can't have it: the loader brings it, and whoever sent asks again.
        Outcome::Stored { .. } => Appended::Unknown("the topic does not have the times of its log".into()),
        Outcome::NotStored(reason) => Appended::NotStored(reason.text),
        Outcome::Unknown(reason) => Appended::Unknown(reason.text),
    }
}

impl Front {
    /// Answers what the plane has served by what `write` writes; nothing if nobody asks it any more.
    fn answer_of(&mut self, connection: u64, write: impl FnOnce(&Repeats, &mut Vec<u8>)) {
        let mut json = std::mem::take(&mut self.planes.json);
        json.clear();
        if let Some(repeats) = self.asked(connection).and_then(|asked| asked.repeats.as_deref()) {
            write(repeats, &mut json);
            let head = repeats.head();
            self.reply(connection, head, &json, Instant::now());
        }
        self.planes.json = json;
    }
}

impl Clients for Front {
    fn give(&mut self, connection: u64, messages: &[Delivery]) -> bool {
        if !messages.is_empty() && self.is_gone(connection) {
            return false;
        }
        self.answer_of(connection, |repeats, json| repeats.received(json, messages));
        true
    }

    fn sent(&mut self, connection: u64, ids: &[[u8; 36]], at_ms: u64) {
        self.answer_of(connection, |repeats, json| repeats.sent(json, ids, at_ms));
    }

    fn acked(&mut self, connection: u64, words: &[Word]) {
        let texts = self.planes.words.clone();
        let words: Vec<&[u8]> =
            words.iter().map(|word| texts.get(*word as usize).map_or(&b""[..], |text| text)).collect();
        self.answer_of(connection, |repeats, json| repeats.acked(json, &words));
    }

    fn pass(&mut self, connection: u64, why: Why) {
        self.planes.whys.note(why);
        self.passed(connection, Instant::now());
    }

    fn tell(&mut self, news: News) {
        self.batch.plane(|packer| write_news(packer, &news));
    }
}

/// `[what, ...]`; `engine/plane/news.py` reads it.
fn write_news(packer: &mut Packer, news: &News) {
    let numbers = |packer: &mut Packer, kind: u32, some: &[i64]| {
        packer.array(1 + some.len());
        packer.uint(kind.into());
        some.iter().for_each(|number| packer.int(*number));
    };
    match news {
        News::Greeted { link, info } => {
            packer.array(3);
            packer.uint(news::GREETED.into());
            packer.uint(*link);
            packer.binary(info);
        }
        News::Lost { link, reason } => {
            packer.array(3);
            packer.uint(news::LOST.into());
            packer.uint(*link);
            packer.text(reason.as_bytes());
        }
        News::Seen { queue, tag, partition, open, in_flight, cursor, hungry } => {
            let seen = [*queue, u64::from(*tag), *partition as u64, *open, *in_flight, *cursor, u64::from(*hungry)];
            numbers(packer, news::SEEN, &seen.map(|number| number as i64));
        }
        News::Refresh { queue } => numbers(packer, news::REFRESH, &[*queue as i64]),
        News::Suspect { queue } => numbers(packer, news::SUSPECT, &[*queue as i64]),
        News::Used { queue, partition } => numbers(packer, news::USED, &[*queue as i64, *partition as i64]),
        News::Low { queue } => numbers(packer, news::LOW, &[*queue as i64]),
        News::Unloaded { queue } => numbers(packer, news::UNLOADED, &[*queue as i64]),
        News::Ahead { queue, partition, cursor } => {
            numbers(packer, news::AHEAD, &[*queue as i64, *partition as i64, *cursor as i64]);
        }
        News::Woken { queue, partition, head_ms } => {
            numbers(packer, news::VISIBLE, &[*queue as i64, *partition as i64, *head_ms as i64]);
        }
        News::Returned { queue, tag, partition, rows, late } => {
            packer.array(6);
            packer.uint(news::RETURNED.into());
            write_rows(packer, [*queue, u64::from(*tag), *partition as u64], rows);
            packer.uint(*late as u64);
        }
        News::Return { queue, tag, partition, rows } => {
            packer.array(5);
            packer.uint(news::RETURN.into());
            write_rows(packer, [*queue, u64::from(*tag), *partition as u64], rows);
        }
        News::Closed { queue, reason } => {
            packer.array(3);
            packer.uint(news::CLOSED.into());
            packer.uint(*queue);
            packer.text(reason.as_bytes());
        }
        News::Dying { queue, tag, partition, rows } => {
            packer.array(5);
            packer.uint(news::DYING.into());
            [*queue, u64::from(*tag), *partition as u64].iter().for_each(|number| packer.uint(*number));
            packer.array(rows.len());
            rows.iter().for_each(|row| match row {
                crate::plane::redis::Reply::Int(number) => packer.int(*number),
                other => packer.binary(other.bytes()),
            });
        }
        News::Drained(ended) => {
            packer.array(1 + Ended::FIELDS);
            packer.uint(news::DRAINED.into());
            ended.write(packer);
        }
        News::Failed { connection, lane, verb, fault, text } => {
            packer.array(6);
            packer.uint(news::FAILED.into());
            [*connection, *lane, u64::from(*verb), *fault as u64].iter().for_each(|number| packer.uint(*number));
            packer.text(text.as_bytes());
        }
    }
}

fn write_rows(packer: &mut Packer, whose: [u64; 3], rows: &[i64]) {
    whose.iter().for_each(|number| packer.uint(*number));
    packer.array(rows.len());
    rows.iter().for_each(|number| packer.int(*number));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Whose;
    use crate::net::front::Reads;

    #[test]
    fn lanes_are_told_again_when_python_says_so() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut front = Front::new(listener, b"", Reads::All, false, 1).expect("a front");
        let whose = Whose { host: b"host", path: b"/", signer: b"" };
        let lanes = [b"a", b"b"].map(|url| front.batch.lane(whose, url));
        let mut told = Packer::default();
        told.array(1);
        told.uint(lanes[0]);
        front.hear(told::RETELL, &mut Unpacker::new(&told.bytes)).expect("told");
        assert_ne!(front.batch.lane(whose, b"a"), lanes[0]);
        assert_eq!(front.batch.lane(whose, b"b"), lanes[1]);
    }

    #[test]
    fn routes_of_lanes_that_are_forgotten_are_forgotten_too() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut front = Front::new(listener, b"", Reads::All, false, 1).expect("a front");
        for number in 0..3 * LANES {
            let whose = Whose { host: b"host", path: b"/", signer: b"" };
            let lane = front.batch.lane(whose, number.to_string().as_bytes());
            let mut told = Packer::default();
            told.array(12);
            [lane, 1, 0, 7, 1, 10, 0, 0].iter().for_each(|number| told.uint(*number));
            told.array(0);
            told.binary(b"me");
            [1000, 1000].iter().for_each(|number| told.uint(*number));
            front.hear(told::ROUTE, &mut Unpacker::new(&told.bytes)).expect("told");
            assert!(front.planes.routes.contains_key(&lane));
        }
        assert!(front.planes.routes.len() <= MOST_ROUTES);
    }
}
