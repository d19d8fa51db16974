//! Where connections are kept: by slot, and by an id that no later connection of the slot has.

use crate::net::connection::Connection;

#[derive(Default)]
struct Slot {
    /// How often the slot was used.
    turn: u32,
    connection: Option<Connection>,
    is_taken: bool,
}

#[derive(Default)]
pub struct Slots {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

impl Slots {
    /// The slot that the next `add` takes.
    pub fn next(&mut self) -> usize {
        if self.free.is_empty() {
            self.free.push(self.slots.len());
            self.slots.push(Slot::default());
        }
        self.free[self.free.len() - 1]
    }

    /// Keeps a new connection, which is made with its id; returns that.
    pub fn add(&mut self, made: impl FnOnce(u64) -> Connection) -> u64 {
        let slot = self.next();
        self.free.pop();
        let place = &mut self.slots[slot];
        place.turn = place.turn.wrapping_add(1);
        place.is_taken = true;
        let id = u64::from(place.turn) << 32 | slot as u64;
        place.connection = Some(made(id));
        id
    }

    pub fn at(&mut self, slot: usize) -> Option<&mut Connection> {
        self.slots.get_mut(slot)?.connection.as_mut()
    }

    pub fn get(&self, slot: usize) -> Option<&Connection> {
        self.slots.get(slot)?.connection.as_ref()
    }

    /// The slot of a connection that is still there.
    pub fn of(&self, id: u64) -> Option<usize> {
        let slot = (id & u64::from(u32::MAX)) as usize;
        let connection = self.slots.get(slot)?.connection.as_ref()?;
        (connection.id == id).then_some(slot)
    }

    /// Takes a connection out for a moment: `put_back` or `free` follow.
    pub fn lift(&mut self, slot: usize) -> Option<Connection> {
        self.slots.get_mut(slot)?.connection.take()
    }

    pub fn put_back(&mut self, slot: usize, connection: Connection) {
        self.slots[slot].connection = Some(connection);
    }

    pub fn free(&mut self, slot: usize) {
        if std::mem::take(&mut self.slots[slot].is_taken) {
            self.free.push(slot);
        }
    }

    /// The slots that have a connection.
    pub fn taken(&self) -> Vec<usize> {
        (0..self.slots.len()).filter(|slot| self.slots[*slot].connection.is_some()).collect()
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
