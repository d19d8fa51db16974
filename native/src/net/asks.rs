//! What a connection asks: what the plane may serve is read to its end, all else told to Python. Which lanes
//! the plane serves requests of, and which of their verbs, is as Python has told.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::Instant;

use crate::auth::keys::From;
use crate::auth::sign::{self, Key};
use crate::batch::{Whose, LANES};
use crate::http::body::Body;
use crate::http::framing::Length;
use crate::http::head::{self, Found};
use crate::http::pace::Pace;
use crate::http::plain::{Plain, SMALL_BYTES};
use crate::http::refusal::Refusal;
use crate::json::Scanner;
use crate::net::asked::{Asked, Coming};
use crate::net::connection::{Connection, State};
use crate::net::front::{Front, Reads};
use crate::plane::routes::{Route, MAY_ACK, MAY_EXTEND, MAY_RECEIVE, MAY_RELEASE, MAY_SEND};
use crate::plane::unit::Act;
use crate::plane::whys::Why;
use crate::requests::{self, Form, Verb};

/// Routes are looked through when there are so many: the batch knows half as many lanes.
const MOST: usize = 2 * LANES;

/// The bit of a route that lets the plane serve a verb.
pub fn may(verb: Verb) -> u8 {
    match verb.act() {
        _ if verb.is_send() => MAY_SEND,
        None => MAY_RECEIVE,
        Some(Act::Ack) => MAY_ACK,
        Some(Act::Extend) => MAY_EXTEND,
        Some(Act::Release) => MAY_RELEASE,
    }
}

/// By their lanes.
#[derive(Default)]
pub struct Routes(HashMap<u64, Route>);

impl Routes {
    /// Whether the plane may serve requests of a lane that have this verb.
    pub fn lets(&self, lane: u64, verb: Verb) -> bool {
        self.0.get(&lane).is_some_and(|route| route.verbs & may(verb) > 0)
    }

    /// The route of a lane, while what Python has found holds.
    pub fn of(&self, lane: u64, now: Instant) -> Option<&Route> {
        self.0.get(&lane).filter(|route| route.valid_until.is_none_or(|until| now < until))
    }

    /// Requests of a lane are the plane's from now on. `known`: the lanes that requests may name.
    pub fn learn(&mut self, lane: u64, route: Route, known: impl FnOnce() -> HashSet<u64>) {
        if self.0.len() >= MOST {
            let known = known();
            self.0.retain(|lane, _| known.contains(lane));
        }
        self.0.insert(lane, route);
    }

    /// Forgets a queue, and returns its lanes.
    pub fn forget_queue(&mut self, queue: u64) -> HashSet<u64> {
        let lanes: HashSet<u64> =
            self.0.iter().filter(|(_, route)| route.queue == queue).map(|(lane, _)| *lane).collect();
        self.0.retain(|lane, _| !lanes.contains(lane));
        lanes
    }

    pub fn forget(&mut self) {
        self.0.clear();
    }
}

/// Why a request is not asked.
enum Outcome {
    Part,
    /// It is Python's.
    Other(Why),
    /// It is of a lane of which Python does not let the plane serve such requests (a bit of a route).
    Unrouted(u64, u8),
    Refused(Refusal),
}

impl std::convert::From<Why> for Outcome {
    fn from(why: Why) -> Self {
        Self::Other(why)
    }
}

impl Front {
    /// Asks or tells what has come.
    pub(super) fn serve(&mut self, connection: &mut Connection, now: Instant) {
        if connection.is_closing && connection.asked.is_none() {
            connection.input.clear();
            connection.part_since = None;
            return;
        }
        if let Some(refusal) = connection.refusal.take_if(|_| connection.state == State::Ready) {
            self.refuse(connection, &refusal, now);
        }
        let empty = head::empty_lines(&connection.input);
        if empty > 0 {
            connection.consume(empty);
            connection.checked = connection.checked.saturating_sub(empty);
        }
        if connection.state != State::Ready || connection.input.is_empty() || connection.unsent() > 0 {
            return;
        }
        match self.ask(connection, now) {
            Ok(()) => connection.part_since = None,
            Err(Outcome::Part) => {
                connection.part_since.get_or_insert(now);
            }
            Err(Outcome::Other(why)) => {
                self.planes.whys.note(why);
                self.tell(connection, now);
            }
            Err(Outcome::Unrouted(lane, verb)) => {
                self.planes.whys.note_lane(lane, verb);
                self.tell(connection, now);
            }
            Err(Outcome::Refused(refusal)) => self.refuse(connection, &refusal, now),
        }
    }

    fn ask(&mut self, connection: &mut Connection, now: Instant) -> Result<(), Outcome> {
        let found = match head::read(&connection.input, &mut connection.checked) {
            Found::Head(found) => found,
            Found::Part => return Err(Outcome::Part),
            Found::Refused(refusal) => return Err(Outcome::Refused(refusal)),
        };
        connection.checked = 0;
        let plain = found.plain?;
        if plain.is_traced && self.bounds.is_traced {
            return Err(Why::Head.into());
        }
        // Before the body: of a stranger none is kept here.
        let key = self.key(&plain, connection.peer, now)?;
        let end = found.bytes + plain.body_bytes;
        let Some(body) = connection.input.get(found.bytes..end) else {
            let has_room = plain.body_bytes <= SMALL_BYTES || self.held.part <= self.bounds.part_bytes / 2;
            return Err(if has_room { Outcome::Part } else { Why::Size.into() });
        };
        let mut scanner = Scanner::new(body, &mut self.scratch);
        let (verb, mut request) = requests::read(plain.form, &mut scanner)?;
        if let Some(call) = &mut request.call {
            call.query = plain.query.to_vec();
        }
        let whose = Whose { dialect: verb.dialect(), host: plain.host, path: plain.path, signer: plain.whose };
        let url = scanner.text(request.url);
        let known = self.batch.known_lane(whose, url);
        if let Some(lane) = known.filter(|lane| !self.planes.routes.lets(*lane, verb)) {
            return Err(Outcome::Unrouted(lane, may(verb)));
        }
        if key.is_some_and(|key| !sign::fits(&connection.input[..found.bytes], &plain, body, &key, sign::now_s())) {
            return Err(Why::Key.into());
        }
        let asked = if let Some(lane) = known {
            let (asked, ask) = self.planes.ask(connection.id, lane, verb, &mut request, &scanner, now)?;
            self.planes.asks.push_back(ask);
            connection.is_closing |= !found.framing.keeps;
            asked
        } else {
            // Python hears of it, and says what the plane may serve; then this one is asked again.
            self.planes.unlearnt.entry(self.batch.lane(whose, url)).or_default().push(connection.id);
            Asked { is_unlearnt: true, ..Asked::default() }
        };
        connection.asked = Some(Asked { bytes: end, began: Some(now), ..asked });
        connection.state = State::Asked;
        Ok(())
    }

    /// The key that is to have signed a request, if one is; or why the request is Python's.
    fn key(&mut self, plain: &Plain, peer: IpAddr, now: Instant) -> Result<Option<Key>, Why> {
        if self.reads == Reads::Nothing {
            return Err(Why::Off);
        }
        if self.held.asked > self.bounds.asked_bytes {
            return Err(Why::Busy);
        }
        if self.reads == Reads::All {
            return Ok(None);
        }
        let from = From::new(if self.trusts_proxy { plain.forwarded } else { b"" }, peer);
        let key = self.keys.of(plain.whose, from, now).copied();
        // Whether a client of EMQ has signed, Python finds by its secret.
        if key.is_none() && !plain.whose.is_empty() && !matches!(plain.form, Form::Thrift(_)) {
            self.batch.signer(plain.whose, from);
        }
        key.map(Some).ok_or(Why::Key)
    }

    /// Python has heard of a lane: its requests that wait for that are asked again.
    pub fn learnt(&mut self, lane: u64, now: Instant) {
        for id in self.planes.unlearnt.remove(&lane).unwrap_or_default() {
            let Some(slot) = self.slots.of(id) else { continue };
            let Some(mut connection) = self.slots.lift(slot) else { continue };
            if connection.asked.take_if(|asked| asked.is_unlearnt).is_some() {
                connection.state = State::Ready;
                if connection.is_closing {
                    self.tell(&mut connection, now); // it may ask nothing more
                } else {
                    self.serve(&mut connection, now);
                }
            }
            self.settle(connection, slot, now);
        }
    }

    /// Tells a request whose head is whole to Python, with what has come of its body.
    pub fn tell(&mut self, connection: &mut Connection, now: Instant) {
        let mut input = std::mem::take(&mut connection.input);
        let told = match head::read(&input, &mut 0) {
            Found::Head(found) => self.told(connection, found.bytes, &mut input, now),
            _ => Ok(0), // it was whole when it was read first
        };
        connection.input = input;
        match told {
            Ok(used) => connection.consume(used),
            Err(refusal) => return self.refuse(connection, &refusal, now),
        }
        // What came behind it is bounded with all that is asked.
        if self.held.asked + connection.input.len() > self.bounds.asked_bytes && !connection.input.is_empty() {
            connection.input.clear();
            connection.refusal = Some(Refusal::gave_way());
            self.gave_way += 1;
        }
    }

    fn told(
        &mut self,
        connection: &mut Connection,
        bytes: usize,
        input: &mut [u8],
        now: Instant,
    ) -> Result<usize, Refusal> {
        let (text, came) = input.split_at_mut(bytes);
        let Found::Head(found) = head::read(text, &mut 0) else { return Ok(0) };
        let framing = found.framing;
        let mut body = Body::new(framing.length);
        let taken = body.take(came)?;
        let is_whole = body.is_whole();
        let ends = (!connection.is_known).then(|| connection.stream.ends());
        let waited = std::mem::take(&mut connection.waited);
        self.batch.request(connection.id, ends, &found, &came[..taken.body], is_whole, waited);
        connection.is_known = true;
        connection.is_closing |= !framing.keeps;
        let is_short = matches!(framing.length, Length::Bytes(bytes) if bytes <= self.bounds.let_go_bytes);
        let pace = Pace::new(connection.part_since.take().unwrap_or(now), now);
        connection.coming = (!is_whole).then_some(Coming { body, pace, waits: framing.waits, is_short });
        connection.is_paused = false;
        connection.asked = Some(Asked::default());
        connection.state = State::Asked;
        Ok(bytes + taken.used)
    }

    /// No key counts any more, and lanes are told again.
    pub fn forget(&mut self) {
        self.keys.forget();
        self.batch.forget_lanes();
        self.forget_routes();
    }
}

#[cfg(test)]
mod routes_tests {
    use super::*;
    use crate::batch::Whose;
    use crate::net::front::{Front, Reads};
    use crate::net::numbers::told;
    use crate::pack::{Packer, Unpacker};
    use crate::requests::Dialect;

    #[test]
    fn routes_of_lanes_that_are_forgotten_are_forgotten_too() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut front = Front::new(listener, b"", Reads::All, false, 1).expect("a front");
        for number in 0..3 * LANES {
            let whose = Whose { dialect: Dialect::Sqs, host: b"host", path: b"/", signer: b"" };
            let lane = front.batch.lane(whose, number.to_string().as_bytes());
            let mut told = Packer::default();
            told.array(15);
            [lane, 1, 0, 7, 1, 10, 0, 0].iter().for_each(|number| told.uint(*number));
            told.array(0);
            told.binary(b"me");
            [1000, 1000, 0, 0, 0].iter().for_each(|number| told.uint(*number));
            front.hear(told::ROUTE, &mut Unpacker::new(&told.bytes)).expect("told");
            assert!(front.planes.routes.lets(lane, Verb::Receive));
        }
        assert!(front.planes.routes.0.len() <= MOST);
    }
}
