//! What Python has done: answers to requests, whole or in parts.
//!
//! A batch is an array of groups `[kind, items]`; see `kind`. Answers to connections that are no
//! more are dropped; of deliveries, Python is told.

use std::time::{Duration, Instant};

use crate::net::asked::Asked;
use crate::net::connection::{Connection, State};
use crate::net::front::{Front, BAD};
use crate::net::output::MOST_BYTES;
use crate::pack::{NotThere, Read, Unpacker};
use crate::replies::{Head, Heads};

/// Kinds of groups.
mod kind {
    /// `[[what, connection, bytes], ...]` in order; see `deed`. They come before what ends a request.
    pub const DONE: u64 = 0;
    /// `[[connection, status line and headers, body], ...]`
    pub const OTHER: u64 = 1;
    /// As OTHER, with messages: Python is told if they could not be given.
    pub const CARRIED: u64 = 2;
    /// `[connection, ...]`: the request is Python's as it came.
    pub const PASSED: u64 = 3;
}

/// What Python does besides whole answers.
mod deed {
    /// Bytes of the reply that has begun.
    pub const WRITE: u64 = 0;
    /// Status line and headers of a reply.
    pub const START: u64 = 1;
    /// The reply is whole.
    pub const END: u64 = 2;
    /// The connection ends after this reply.
    pub const LAST: u64 = 3;
    /// The reply can't become whole: the connection ends.
    pub const CUT: u64 = 4;
    pub const PAUSE: u64 = 5;
    pub const RESUME: u64 = 6;
    /// The client may send the body that it waits to send.
    pub const CONTINUE: u64 = 7;
}

impl Front {
    /// Takes a batch of answers. Returns MORE, UNSENT, BAD as they are.
    pub fn answer(&mut self, batch: &[u8]) -> u32 {
        let now = Instant::now();
        let mut unpacker = Unpacker::new(batch);
        let read = self.groups(&mut unpacker, now);
        let bad = if read.is_ok() && unpacker.is_empty() { 0 } else { BAD };
        self.flags() | bad
    }

    fn groups(&mut self, unpacker: &mut Unpacker, now: Instant) -> Read<()> {
        for _ in 0..unpacker.array()? {
            unpacker.fields(2)?;
            let kind = unpacker.uint()?;
            for _ in 0..unpacker.array()? {
                match kind {
                    kind::OTHER => self.other(unpacker, now, false)?,
                    kind::CARRIED => self.other(unpacker, now, true)?,
                    kind::PASSED => {
                        self.passed(unpacker.uint()?, now);
                    }
                    kind::DONE => self.done(unpacker, now)?,
                    _ => return Err(NotThere),
                }
            }
        }
        Ok(())
    }

    /// The request that a connection has asked.
    pub fn asked(&self, id: u64) -> Option<&Asked> {
        self.slots.get(self.slots.of(id)?)?.asked.as_ref()
    }

    /// Whether nobody is there for the messages that a connection has asked for; then Python is told.
    fn cannot_give(&mut self, id: u64, now: Instant) -> bool {
        let is_gone = self.is_gone(id);
        if is_gone {
            self.unsent.push(id);
            if let Some(slot) = self.slots.of(id) {
                self.turn(slot, now);
            }
        }
        is_gone
    }

    /// Whether nobody is there to hear what a connection has asked.
    pub fn is_gone(&mut self, id: u64) -> bool {
        let Some(connection) = self.slots.of(id).and_then(|slot| self.slots.at(slot)) else { return true };
        connection.asked.is_none() || connection.is_gone()
    }

    /// Writes the good reply to what a connection has asked, and goes on with what it asks next.
    pub fn reply(&mut self, id: u64, head: Head, json: &[u8], now: Instant) {
        self.finish(id, now, |heads, output, closes| {
            heads.write(output, head, json.len(), closes);
            output.extend_from_slice(json);
        });
    }

    fn other(&mut self, unpacker: &mut Unpacker, now: Instant, carries: bool) -> Read<()> {
        unpacker.fields(3)?;
        let (id, head, body) = (unpacker.uint()?, unpacker.bytes()?, unpacker.bytes()?);
        if carries && self.cannot_give(id, now) {
            return Ok(());
        }
        self.finish(id, now, |heads, output, closes| {
            output.extend_from_slice(head);
            heads.end(output, closes);
            output.extend_from_slice(body);
        });
        Ok(())
    }

    fn finish(&mut self, id: u64, now: Instant, write: impl FnOnce(&mut Heads, &mut Vec<u8>, bool)) {
        let Some(slot) = self.slots.of(id) else { return };
        let until = now + self.bounds.last;
        let Some(connection) = self.slots.at(slot) else { return };
        if connection.asked.as_ref().is_none_or(|asked| asked.is_started) {
            return;
        }
        let ends = connection.ends_after_reply();
        write(&mut self.heads, &mut connection.output.bytes, ends);
        connection.answered(ends, until, now);
        self.go_on(slot, now);
    }

    /// A plain request, whose bytes are here still, is told to Python as it came; false = its client has gone.
    pub fn passed(&mut self, id: u64, now: Instant) -> bool {
        let Some(slot) = self.slots.of(id) else { return false };
        let Some(mut connection) = self.slots.lift(slot) else { return false };
        let passed = connection.asked.take_if(|asked| asked.bytes > 0 && !asked.is_started);
        let is_passed = passed.is_some();
        if let Some(asked) = passed {
            connection.waited = asked.began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began));
            connection.state = State::Ready;
            self.tell(&mut connection, now);
        }
        self.settle(connection, slot, now);
        is_passed
    }

    fn done(&mut self, unpacker: &mut Unpacker, now: Instant) -> Read<()> {
        unpacker.fields(3)?;
        let (what, id, bytes) = (unpacker.uint()?, unpacker.uint()?, unpacker.bytes()?);
        let Some(slot) = self.slots.of(id) else { return Ok(()) };
        let until = now + self.bounds.last;
        let Some(connection) = self.slots.at(slot) else { return Ok(()) };
        let ends = connection.ends_after_reply();
        let Some(asked) = &mut connection.asked else { return Ok(()) };
        match what {
            deed::START => {
                asked.is_started = true;
                connection.is_closing |= ends;
                connection.output.bytes.extend_from_slice(bytes);
                self.heads.end(&mut connection.output.bytes, ends);
            }
            deed::WRITE => write(connection, bytes),
            deed::END => connection.answered(ends, until, now),
            deed::LAST => connection.is_closing = true,
            deed::CUT => connection.end(until),
            deed::PAUSE => connection.pause(now),
            deed::RESUME => connection.resume(now),
            deed::CONTINUE => {
                connection.output.bytes.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                if let Some(coming) = &mut connection.coming {
                    coming.waits = false;
                }
            }
            _ => return Err(NotThere),
        }
        self.go_on(slot, now);
        Ok(())
    }
}

fn write(connection: &mut Connection, bytes: &[u8]) {
    connection.output.bytes.extend_from_slice(bytes);
    connection.write();
    connection.is_blocked |= connection.unsent() > MOST_BYTES;
}
