//! Receives that were not answered yet, and how many wait in all and of each whom Python bounds.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::counts::{InHand, Key};
use super::routes::Bound;
use crate::pack::Packer;

/// A receive that was not answered yet.
#[derive(Debug)]
pub struct Waiter {
    pub connection: u64,
    pub lane: u64,
    pub verb: u8,
    pub most: usize,
    /// -1 = the message's own, else the queue's.
    pub lease_ms: i64,
    /// None = it does not wait.
    pub until: Option<Instant>,
    pub began: Instant,
    pub bounds: Arc<[Bound]>,
}

impl Waiter {
    /// What it is counted by when it is answered.
    pub fn key(&self, queue: u64, tag: u16) -> Key {
        Key { queue, tag: i64::from(tag), verb: self.verb, more: self.until.is_some(), is_gone: false }
    }

    pub fn in_hand(&self, queue: u64) -> InHand {
        InHand { connection: self.connection, lane: self.lane, queue, verb: self.verb, began: self.began }
    }
}

#[derive(Debug, Default)]
pub struct Waits {
    most: usize,
    all: usize,
    of: HashMap<Vec<u8>, usize>,
}

impl Waits {
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// One more waits; false = as many do as may.
    pub fn enter(&mut self, bounds: &[Bound]) -> bool {
        let is_full = |(whose, most): &Bound| self.of.get(whose).is_some_and(|count| count >= most);
        if self.all >= self.most || bounds.iter().any(is_full) {
            return false;
        }
        self.all += 1;
        for (whose, _) in bounds {
            *self.of.entry(whose.clone()).or_default() += 1;
        }
        true
    }

    /// Tells how many wait in all, and how many of whoever has the most.
    pub fn tell(&self, packer: &mut Packer) {
        packer.array(2);
        packer.uint(self.all as u64);
        packer.uint(self.of.values().max().map_or(0, |most| *most as u64));
    }

    /// A receive waits no more, if it did.
    pub fn leave(&mut self, waiter: &Waiter) {
        if waiter.until.is_none() {
            return;
        }
        self.all -= 1;
        for (whose, _) in waiter.bounds.iter() {
            if let Some(count) = self.of.get_mut(whose) {
                *count -= 1;
                if *count == 0 {
                    self.of.remove(whose);
                }
            }
        }
    }
}
