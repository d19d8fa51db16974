//! What a connection asks: what the plane may serve is read to its end, all else told to Python.

use std::time::Instant;

use crate::auth::keys::From;
use crate::auth::sign;
use crate::batch::Whose;
use crate::http::body::Body;
use crate::http::framing::Length;
use crate::http::head::{self, Found};
use crate::http::pace::Pace;
use crate::http::refusal::Refusal;
use crate::json::Scanner;
use crate::net::connection::{Asked, Coming, Connection, State, TURN_BYTES};
use crate::net::front::{Front, Reads};
use crate::net::planes::may;
use crate::plane::whys::Why;
use crate::requests;

/// Connections that Python reads after one look; others follow after the next.
const READS: usize = 8;

enum Outcome {
    Asked,
    Part,
    /// It is Python's.
    Other(Why),
    /// It is of a lane of which Python does not let the plane serve such requests (a bit of a route).
    Unrouted(u64, u8),
    Refused(Refusal),
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
            Outcome::Asked => connection.part_since = None,
            Outcome::Part => {
                connection.part_since.get_or_insert(now);
            }
            Outcome::Other(why) => {
                self.planes.whys.note(why);
                self.tell(connection, now);
            }
            Outcome::Unrouted(lane, verb) => {
                self.planes.whys.note_lane(lane, verb);
                self.tell(connection, now);
            }
            Outcome::Refused(refusal) => self.refuse(connection, &refusal, now),
        }
    }

    fn ask(&mut self, connection: &mut Connection, now: Instant) -> Outcome {
        let found = match head::read(&connection.input, &mut connection.checked) {
            Found::Head(found) => found,
            Found::Part => return Outcome::Part,
            Found::Refused(refusal) => return Outcome::Refused(refusal),
        };
        connection.checked = 0;
        let plain = match found.plain {
            Ok(_) if self.reads == Reads::Nothing => return Outcome::Other(Why::Off),
            Ok(_) if self.held.asked > self.bounds.asked_bytes => return Outcome::Other(Why::Busy),
            Ok(plain) => plain,
            Err(why) => return Outcome::Other(why),
        };
        // Before the body: of a stranger none is kept here.
        let mut key = None;
        if self.reads == Reads::Signed {
            let from = From::new(if self.trusts_proxy { plain.forwarded } else { b"" }, connection.peer);
            key = self.keys.of(plain.whose, from, now);
            if key.is_none() {
                if !plain.whose.is_empty() {
                    self.batch.signer(plain.whose, from);
                }
                return Outcome::Other(Why::Key);
            }
        }
        let end = found.bytes + plain.body_bytes;
        let Some(body) = connection.input.get(found.bytes..end) else { return Outcome::Part };
        let mut scanner = Scanner::new(body, &mut self.scratch);
        let Ok(mut request) = requests::read(plain.verb, &mut scanner) else { return Outcome::Other(Why::Fields) };
        let whose = Whose { host: plain.host, path: plain.path, signer: plain.whose };
        let url = scanner.text(request.url);
        let known = self.batch.known_lane(whose, url);
        if let Some(lane) = known.filter(|lane| !self.planes.lets(*lane, plain.verb)) {
            return Outcome::Unrouted(lane, may(plain.verb));
        }
        if key.is_some_and(|key| !sign::fits(&connection.input[..found.bytes], &plain, body, key, sign::now_s())) {
            return Outcome::Other(Why::Key);
        }
        let Some(lane) = known else {
            // Python hears of it, and may let the plane serve the next.
            return Outcome::Unrouted(self.batch.lane(whose, url), may(plain.verb));
        };
        let (asked, ask) = match self.planes.ask(connection.id, lane, plain.verb, &mut request, &scanner, now) {
            Ok(found) => found,
            Err(why) => return Outcome::Other(why),
        };
        self.planes.asks.push_back(ask);
        connection.asked = Some(Asked { bytes: end, began: Some(now), ..asked });
        connection.is_closing |= !found.framing.keeps;
        connection.state = State::Asked;
        Outcome::Asked
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

    /// Has Python read the body of what is its own: bytes that we had read would be copied more often.
    pub(super) fn offer(&mut self, connection: &mut Connection, slot: usize) {
        if !connection.wants_turn() {
            return;
        }
        if self.batch.reads() >= READS {
            self.take_turn(connection, slot);
            return;
        }
        connection.is_offered = true;
        self.batch.read(connection.id);
    }

    /// Python reads a body into `room`; how many bytes, and whether all of it has come. 0 = there is
    /// nothing now. If there is more, the connection stands behind those that had no turn in the last
    /// look.
    pub fn receive(&mut self, slot: usize, room: &mut [u8]) -> (usize, bool) {
        let now = Instant::now();
        let Some(mut connection) = self.slots.lift(slot) else { return (0, false) };
        connection.is_offered = false;
        if connection.state != State::Asked || connection.coming.is_none() || !connection.wants_turn() {
            self.slots.put_back(slot, connection);
            self.turn(slot, now);
            return (0, false);
        }
        let found = self.receive_body(&mut connection, room, now);
        self.settle(connection, slot, now);
        found
    }

    fn receive_body(&mut self, connection: &mut Connection, room: &mut [u8], now: Instant) -> (usize, bool) {
        let Some(mut coming) = connection.coming.take() else { return (0, false) };
        let most = coming.body.most(room.len());
        let size = connection.receive(&mut room[..most]);
        if size > 0 {
            connection.idle_since = now;
            coming.pace.came(size);
        }
        match coming.body.take(&mut room[..size]) {
            Ok(taken) if coming.body.is_whole() => {
                connection.input.extend_from_slice(&room[taken.used..size]);
                connection.hear_end();
                (taken.body, true)
            }
            Ok(taken) => {
                connection.coming = Some(coming);
                (taken.body, false)
            }
            Err(refusal) => {
                self.refuse(connection, &refusal, now);
                (0, false)
            }
        }
    }

    /// Reads what nobody wants any more.
    pub(super) fn drop_input(&mut self, connection: &mut Connection, now: Instant) {
        let mut left = TURN_BYTES;
        while left > 0 && connection.wants_turn() {
            let size = connection.receive(&mut self.buffer);
            left = left.saturating_sub(size);
            let Some(coming) = &mut connection.coming else { continue };
            coming.pace.came(size);
            match coming.body.take(&mut self.buffer[..size]) {
                Ok(taken) if coming.body.is_whole() => {
                    connection.input.extend_from_slice(&self.buffer[taken.used..size]);
                    connection.coming = None;
                    connection.state = State::Ready;
                    connection.idle_since = now;
                    return self.serve(connection, now);
                }
                Ok(_) => {}
                Err(_) => self.end(connection, now),
            }
        }
    }

    /// No key counts any more, and lanes are told again.
    pub fn forget(&mut self) {
        self.keys.forget();
        self.batch.forget_lanes();
        self.forget_routes();
    }
}
