//! Bodies that come piece by piece: Python reads those that it wants, and the rest is dropped.

use std::time::Instant;

use crate::net::connection::{Connection, State, TURN_BYTES};
use crate::net::front::Front;

/// Connections that Python reads after one look; others follow after the next.
const READS: usize = 8;

impl Front {
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
}
