//! A partition of a queue: how its scripts are called, and the bodies that are kept of it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::calls::Template;
use super::format::ids::Ids;
use super::format::record::{Attribute, Parts};
use crate::replies::Digest32;

/// Python hears of traffic on a unit so often.
pub const TELL: Duration = Duration::from_millis(100);

/// A message whose record is here.
#[derive(Debug)]
pub struct Kept {
    pub record: Vec<u8>,
    pub parts: Parts,
    pub digest: Digest32,
    pub sent_at_ms: u64,
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

/// What the holder of a handle does; each has a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Ack,
    Extend,
    Release,
}

impl Act {
    pub const ALL: [Self; 3] = [Self::Ack, Self::Extend, Self::Release];
}

/// One handle that waits for its call: offset, nonce, a new lease, when the delivery began (0 = not
/// known), which request, which place in it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub offset: u64,
    pub nonce: u64,
    pub lease_ms: i64,
    pub at_ms: u64,
    pub request: u64,
    pub place: usize,
}

/// The handles that wait for calls of one script.
#[derive(Default)]
pub struct Acts {
    pub call: Template,
    pub rows: VecDeque<Row>,
    pub is_under_way: bool,
}

/// What is of one tag in a partition.
pub struct OfTag {
    pub ids: Ids,
    pub receive: Template,
    pub probe: Template,
    pub give_back: Template,
    /// By `Act`.
    pub acts: [Acts; Act::ALL.len()],
}

#[derive(Default)]
pub struct Unit {
    pub tags: HashMap<u16, OfTag>,
    pub load: Template,
    /// Python has heard of sends to it then.
    told: Option<Instant>,
    /// By offset, with how many tags have not acked it.
    pub bodies: HashMap<u64, (Arc<Kept>, u16)>,
}

impl Unit {
    /// There is traffic on it; whether Python is to hear of that now.
    pub fn is_to_tell(&mut self, now: Instant) -> bool {
        let is_to_tell = self.told.is_none_or(|told| told + TELL <= now);
        self.told = if is_to_tell { Some(now) } else { self.told };
        is_to_tell
    }

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
