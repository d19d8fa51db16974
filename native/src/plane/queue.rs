//! A queue that the plane serves.

use std::collections::HashMap;

use super::batches::Sends;
use super::calls::Script;
use super::calls::Template;
use super::tag::Tag;
use super::unit::{Act, OfTag, Unit};

pub struct Queue {
    pub units: Vec<Unit>,
    pub tags: HashMap<u16, Tag>,
    pub sends: Sends,
    /// Acks are answered when the journal has them.
    pub is_durable: bool,
    /// Somebody waits in Python.
    pub is_watched: bool,
    pub is_open: bool,
    /// That are under way.
    pub calls: usize,
}

impl Queue {
    /// How a script is called for a tag of a partition.
    pub fn template(&self, script: Script, partition: usize, tag: u16) -> Option<&Template> {
        let unit = self.units.get(partition)?;
        let of = unit.tags.get(&tag)?;
        Some(match script {
            Script::Receive => &of.receive,
            Script::Probe => &of.probe,
            Script::Ack => &of.acts[Act::Ack as usize].call,
            Script::Extend => &of.acts[Act::Extend as usize].call,
            Script::Release => &of.acts[Act::Release as usize].call,
            Script::GiveBack => &of.give_back,
            Script::Load => &unit.load,
            Script::Drain => return None, // it is of no queue that is served here
        })
    }

    /// Whether it is closed, and nothing of it is under way or waits.
    pub fn is_over(&self) -> bool {
        let has_acts = |of: &OfTag| of.acts.iter().any(|acts| !acts.rows.is_empty());
        let has_acts = self.units.iter().any(|unit| unit.tags.values().any(has_acts));
        !self.is_open && self.calls == 0 && !has_acts && self.sends.is_empty()
    }
}
