//! How connections and requests end that do not end by themselves: time, room, refusals, a stop.

use std::time::{Duration, Instant};

use crate::http::refusal::Refusal;
use crate::net::asked::Asked;
use crate::net::connection::{Connection, State};
use crate::net::front::Front;
use crate::net::room;
use crate::plane::whys::Why;

/// What is to be done with a connection at a tick.
enum Due {
    Nothing,
    /// It ends without a word.
    Ends,
    /// Its request is not whole, and goes the long way.
    Told,
    Refused(Refusal),
}

impl Front {
    /// Once or more a second: connections that say nothing, or whose clients read nothing of what
    /// waits for them, are closed; requests that come too slowly are refused, and plain ones that are
    /// not whole after `part` go the long way.
    pub fn tick(&mut self, idle: Duration, part: Duration) -> u32 {
        let now = Instant::now();
        for slot in self.slots.taken() {
            let Some(mut connection) = self.slots.lift(slot) else { continue };
            match self.due(&mut connection, now, idle, part) {
                Due::Nothing => {
                    self.slots.put_back(slot, connection);
                    continue;
                }
                Due::Ends => connection.is_broken = true,
                Due::Told => {
                    self.planes.whys.note(Why::Slow);
                    self.tell(&mut connection, now);
                }
                Due::Refused(refusal) => self.refuse(&mut connection, &refusal, now),
            }
            self.settle(connection, slot, now);
        }
        self.open_door(now);
        self.flags()
    }

    fn due(&self, connection: &mut Connection, now: Instant, idle: Duration, part: Duration) -> Due {
        if connection.last_until.is_some_and(|until| now >= until) && connection.unsent() == 0 {
            return Due::Ends;
        }
        if connection.stream.is_handshaking() {
            let is_late = now - connection.since >= self.bounds.handshake;
            return if is_late { Due::Ends } else { Due::Nothing };
        }
        if let Some(since) = connection.part_since {
            let is_head = connection.checked > 0;
            return match now - since {
                for_ if is_head && for_ >= self.bounds.head => Due::Refused(Refusal::slow(for_.as_secs())),
                for_ if !is_head && for_ >= part => Due::Told,
                _ => Due::Nothing,
            };
        }
        if let Some(coming) = &mut connection.coming {
            if coming.pace.is_slow(now, self.bounds.span, self.bounds.span_bytes) {
                let refusal = Refusal::slow((now - coming.pace.since).as_secs());
                return if connection.state == State::Asked { Due::Refused(refusal) } else { Due::Ends };
            }
        }
        // Python has had time to hear of its lane.
        let is_late = |asked: &mut Asked| asked.is_unlearnt && asked.began.is_some_and(|began| now - began >= part);
        if connection.asked.take_if(is_late).is_some() {
            connection.state = State::Ready;
            return Due::Told;
        }
        let is_unused = connection.state != State::Asked || connection.unsent() > 0;
        if is_unused && now - connection.idle_since >= idle {
            return Due::Ends;
        }
        Due::Nothing
    }

    /// Nothing new is accepted; a connection ends when what it has asked is answered.
    pub fn drain(&mut self) -> u32 {
        if let Some(mut listener) = self.door.listener.take() {
            self.leave(&mut listener);
        }
        let now = Instant::now();
        for slot in self.slots.taken() {
            let Some(mut connection) = self.slots.lift(slot) else { continue };
            connection.is_closing = true;
            match connection.state {
                State::Dropping => self.end(&mut connection, now),
                State::Ready => self.serve(&mut connection, now),
                State::Asked | State::Last => {}
            }
            self.settle(connection, slot, now);
        }
        self.flags()
    }

    /// Says what is wrong with the request that comes, if nothing of a reply was said, and ends the
    /// connection. Python hears that nobody is there for what it has of it.
    pub(super) fn refuse(&mut self, connection: &mut Connection, refusal: &Refusal, now: Instant) {
        let is_started = connection.asked.take().is_some_and(|asked| asked.is_started);
        if connection.is_known && !connection.is_told {
            connection.is_told = true;
            self.batch.gone(connection.id);
        }
        if !is_started {
            let output = &mut connection.output.bytes;
            refusal.write(output);
            self.heads.end(output, true);
            output.extend_from_slice(refusal.text.as_bytes());
        }
        self.end(connection, now);
    }

    /// What was written is the last, and the client may still be sending.
    pub(super) fn end(&mut self, connection: &mut Connection, now: Instant) {
        connection.end(now + self.bounds.last);
        connection.idle_since = now;
        connection.write();
    }

    pub(super) fn has_no_room(&self) -> bool {
        self.held.part > self.bounds.part_bytes || self.held.parts > self.bounds.parts
    }

    /// Has unfinished requests give way until there is room.
    pub(super) fn make_way(&mut self, now: Instant) {
        if std::mem::replace(&mut self.makes_way, true) {
            return;
        }
        for looked in [false, true] {
            if looked && self.has_no_room() {
                self.ways = room::chosen(&self.slots);
            }
            while self.has_no_room() {
                let Some(slot) = self.ways.pop() else { break };
                let Some(mut connection) = self.slots.lift(slot) else { continue };
                if connection.part_since.is_some() {
                    self.gave_way += 1;
                    self.refuse(&mut connection, &Refusal::gave_way(), now);
                }
                self.settle(connection, slot, now);
            }
        }
        self.makes_way = false;
    }
}
