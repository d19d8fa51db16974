//! A partition of a queue: how its scripts are called, and the bodies that are kept of it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use super::format::ids::Ids;
use super::format::record::{Attribute, Parts};
use super::template::Template;
use crate::replies::Digest32;

/// A message whose record is here.
#[derive(Debug)]
pub struct Kept {
    pub record: Vec<u8>,
    pub parts: Parts,
    pub digest: Digest32,
    pub sent_at_ms: u64,
    pub due_ms: u64,
}

impl Kept {
    pub fn body(&self) -> &[u8] {
        self.record.get(self.parts.body.clone()).unwrap_or_default()
    }

    pub fn sender(&self) -> &[u8] {
        self.record.get(self.parts.sender.clone()).unwrap_or_default()
    }

    /// Tells `seen` its attributes, in their order.
    pub fn attributes<'a>(&'a self, seen: impl FnMut(Attribute<'a>)) {
        self.parts.attributes(&self.record, seen);
    }

    /// About as many bytes as it has in an answer.
    pub fn size(&self) -> usize {
        self.parts.body.len() + self.parts.attributes.1.len()
    }
}

/// One handle of an ack that waits for its call: offset, nonce, which ack, which place in it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub offset: u64,
    pub nonce: u64,
    pub ack: u64,
    pub place: usize,
}

/// What is of one tag in a partition.
pub struct OfTag {
    pub ids: Ids,
    pub receive: Template,
    pub probe: Template,
    pub ack: Template,
    pub give_back: Template,
    pub acks: VecDeque<Row>,
    pub is_acking: bool,
}

#[derive(Default)]
pub struct Unit {
    pub tags: HashMap<u16, OfTag>,
    pub load: Template,
    /// Python has heard of sends to it then.
    pub told: Option<Instant>,
    /// Since when there may be something that Python has not heard of.
    pub unheard_ms: Option<i64>,
    /// By offset, with how many tags have not acked it.
    pub bodies: HashMap<u64, (Arc<Kept>, u16)>,
}

impl Unit {
    /// A tag has done with a message.
    pub fn settle(&mut self, offset: u64) {
        if let Some((_, tags)) = self.bodies.get_mut(&offset) {
            *tags = tags.saturating_sub(1);
            if *tags == 0 {
                self.bodies.remove(&offset);
            }
        }
    }
}
