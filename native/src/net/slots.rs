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

fn slot_of(id: u64) -> usize {
    (id & u64::from(u32::MAX)) as usize
}

impl Slots {
    /// The id of the next connection that is added.
    pub fn next_id(&mut self) -> u64 {
        if self.free.is_empty() {
            self.free.push(self.slots.len());
            self.slots.push(Slot::default());
        }
        let slot = self.free[self.free.len() - 1];
        u64::from(self.slots[slot].turn.wrapping_add(1)) << 32 | slot as u64
    }

    /// Keeps a new connection, whose id is `next_id`; returns its slot.
    pub fn add(&mut self, connection: Connection) -> usize {
        debug_assert_eq!(connection.id, self.next_id());
        let slot = slot_of(connection.id);
        self.free.pop();
        let place = &mut self.slots[slot];
        place.turn = (connection.id >> 32) as u32;
        place.is_taken = true;
        place.connection = Some(connection);
        slot
    }

    pub fn at(&mut self, slot: usize) -> Option<&mut Connection> {
        self.slots.get_mut(slot)?.connection.as_mut()
    }

    pub fn get(&self, slot: usize) -> Option<&Connection> {
        self.slots.get(slot)?.connection.as_ref()
    }

    /// The slot of a connection that is still there.
    pub fn of(&self, id: u64) -> Option<usize> {
        let slot = slot_of(id);
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
