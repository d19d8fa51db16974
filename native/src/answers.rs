//! What Python has done: answers to plain requests, and what its protocol does with a connection.
//!
//! A batch is an array of groups `[kind, items]`; see `Answer`. Answers to connections that are no
//! more are dropped; of deliveries, Python is told.

use std::time::Instant;

use crate::net::connection::{Asked, Connection, State, OUTPUT_BYTES};
use crate::net::front::{Front, BAD};
use crate::pack::{NotThere, Read, Unpacker};
use crate::replies::{self, Heads};

/// Kinds of groups.
mod kind {
    /// `[[connection, ids], ...]`
    pub const SENT: u64 = 1;
    /// `[[connection, [[id, handle, digest or "", body], ...]], ...]`
    pub const RECEIVED: u64 = 2;
    /// `[connection, ...]`
    pub const DELETED: u64 = 3;
    /// `[[connection, status line and headers, body], ...]`
    pub const OTHER: u64 = 4;
    /// `[connection, ...]`: the request goes to Python's protocol as it came.
    pub const PASSED: u64 = 5;
    /// `[[what, connection, bytes], ...]` by Python's protocol, in order.
    pub const DONE: u64 = 6;
    /// As OTHER, with messages: Python is told if they could not be given.
    pub const CARRIED: u64 = 7;
}

/// What Python's protocol does.
mod deed {
    pub const WRITE: u64 = 0;
    /// Nothing is under way any more: what comes may be a plain request. Its bytes: see `Front::rest`.
    pub const REST: u64 = 1;
    pub const CLOSE: u64 = 2;
    pub const PAUSE: u64 = 3;
    pub const RESUME: u64 = 4;
    pub const END_OUTPUT: u64 = 5;
    pub const ABORT: u64 = 6;
}

impl Front {
    /// Takes a batch of answers. Returns MORE, UNSENT, BAD as they are.
    pub fn answer(&mut self, batch: &[u8]) -> u32 {
        let now = Instant::now();
        let mut unpacker = Unpacker::new(batch);
        let mut json = Vec::new();
        let read = self.groups(&mut unpacker, &mut json, now);
        let bad = if read.is_ok() && unpacker.is_empty() { 0 } else { BAD };
        self.flags() | bad
    }

    fn groups(&mut self, unpacker: &mut Unpacker, json: &mut Vec<u8>, now: Instant) -> Read<()> {
        for _ in 0..unpacker.array()? {
            if unpacker.array()? != 2 {
                return Err(NotThere);
            }
            let kind = unpacker.uint()?;
            for _ in 0..unpacker.array()? {
                json.clear();
                match kind {
                    kind::SENT => self.sent(unpacker, json, now)?,
                    kind::RECEIVED => self.received(unpacker, json, now)?,
                    kind::DELETED => self.deleted(unpacker.uint()?, json, now),
                    kind::OTHER => self.other(unpacker, now, false)?,
                    kind::CARRIED => self.other(unpacker, now, true)?,
                    kind::PASSED => self.passed(unpacker.uint()?, now),
                    kind::DONE => self.done(unpacker, now)?,
                    _ => return Err(NotThere),
                }
            }
        }
        Ok(())
    }

    fn sent(&mut self, unpacker: &mut Unpacker, json: &mut Vec<u8>, now: Instant) -> Read<()> {
        fields(unpacker, 2)?;
        let id = unpacker.uint()?;
        let ids = (0..unpacker.array()?).map(|_| unpacker.bytes()).collect::<Read<Vec<_>>>()?;
        let Some(asked) = self.asked(id) else { return Ok(()) };
        match (asked.entries.as_slice(), ids.as_slice()) {
            ([(entry_id, digest)], [message_id]) if entry_id.is_empty() => {
                replies::sent(json, message_id, digest, None)
            }
            (entries, ids) => {
                json.extend_from_slice(b"{\"Successful\":[");
                for (place, ((entry_id, digest), message_id)) in entries.iter().zip(ids).enumerate() {
                    json.extend_from_slice(if place == 0 { b"" } else { b"," });
                    replies::sent(json, message_id, digest, Some(entry_id));
                }
                json.extend_from_slice(b"]}");
            }
        }
        self.reply(id, json, now);
        Ok(())
    }

    fn received(&mut self, unpacker: &mut Unpacker, json: &mut Vec<u8>, now: Instant) -> Read<()> {
        fields(unpacker, 2)?;
        let id = unpacker.uint()?;
        let messages = unpacker.array()?;
        json.extend_from_slice(if messages == 0 { b"{}" } else { b"{\"Messages\":[" });
        for place in 0..messages {
            fields(unpacker, 4)?;
            let (message_id, handle) = (unpacker.bytes()?, unpacker.bytes()?);
            let (digest, body) = (unpacker.bytes()?, unpacker.bytes()?);
            json.extend_from_slice(if place == 0 { b"" } else { b"," });
            replies::received(json, message_id, handle, digest, body);
        }
        if messages > 0 {
            json.extend_from_slice(b"]}");
            if self.cannot_give(id, now) {
                return Ok(());
            }
        }
        self.reply(id, json, now);
        Ok(())
    }

    fn deleted(&mut self, id: u64, json: &mut Vec<u8>, now: Instant) {
        let Some(asked) = self.asked(id) else { return };
        if asked.entries.iter().all(|(entry_id, _)| entry_id.is_empty()) {
            json.extend_from_slice(b"{}");
        } else {
            json.extend_from_slice(b"{\"Successful\":[");
            for (place, (entry_id, _)) in asked.entries.iter().enumerate() {
                json.extend_from_slice(if place == 0 { b"{\"Id\":\"" } else { b",{\"Id\":\"" });
                json.extend_from_slice(entry_id);
                json.extend_from_slice(b"\"}");
            }
            json.extend_from_slice(b"]}");
        }
        self.reply(id, json, now);
    }

    /// The request that a connection has asked.
    fn asked(&self, id: u64) -> Option<&Asked> {
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
    fn is_gone(&mut self, id: u64) -> bool {
        let Some(connection) = self.slots.of(id).and_then(|slot| self.slots.at(slot)) else { return true };
        connection.asked.is_none() || connection.is_gone()
    }

    /// Writes the good reply to what a connection has asked, and goes on with what it asks next.
    fn reply(&mut self, id: u64, json: &[u8], now: Instant) {
        self.finish(id, now, |heads, output, closes| {
            heads.write(output, json.len(), closes);
            output.extend_from_slice(json);
        });
    }

    fn other(&mut self, unpacker: &mut Unpacker, now: Instant, carries: bool) -> Read<()> {
        fields(unpacker, 3)?;
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
        let Some(connection) = self.slots.at(slot) else { return };
        let Some(asked) = connection.asked.take() else { return };
        connection.consume(asked.bytes);
        connection.state = State::Ready;
        let closes = connection.is_closing;
        let mut output = std::mem::take(&mut connection.output);
        write(&mut self.heads, &mut output, closes);
        self.slots.at(slot).expect("it was there").output = output;
        self.go_on(slot, now);
    }

    /// What a connection has asked is read again, by Python's protocol.
    fn passed(&mut self, id: u64, now: Instant) {
        let Some(slot) = self.slots.of(id) else { return };
        if let Some(connection) = self.slots.at(slot) {
            if connection.asked.take().is_some() {
                connection.state = State::Passed;
                connection.is_closing = false; // its protocol closes it, while we drain too
                self.go_on(slot, now);
            }
        }
    }

    fn done(&mut self, unpacker: &mut Unpacker, now: Instant) -> Read<()> {
        fields(unpacker, 3)?;
        let (what, id, bytes) = (unpacker.uint()?, unpacker.uint()?, unpacker.bytes()?);
        let Some(slot) = self.slots.of(id) else { return Ok(()) };
        let Some(connection) = self.slots.at(slot) else { return Ok(()) };
        match what {
            deed::WRITE => write(connection, bytes),
            deed::REST => self.rest(slot, bytes),
            deed::CLOSE => connection.is_closing = true,
            deed::PAUSE => connection.is_paused = true,
            deed::RESUME => connection.is_paused = false,
            deed::END_OUTPUT => connection.ends_output = true,
            deed::ABORT => connection.is_broken = true,
            _ => return Err(NotThere),
        }
        self.go_on(slot, now);
        Ok(())
    }
}

fn write(connection: &mut Connection, bytes: &[u8]) {
    connection.output.extend_from_slice(bytes);
    connection.write();
    connection.is_blocked |= connection.unsent() > OUTPUT_BYTES;
}

fn fields(unpacker: &mut Unpacker, number: usize) -> Read<()> {
    if unpacker.array()? == number {
        Ok(())
    } else {
        Err(NotThere)
    }
}
