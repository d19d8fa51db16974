//! What waits for each partition, and who leads it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use super::records::Records;
use super::records::Until;
use super::wire::Written;

/// Records that one call has appended.
pub struct Append {
    /// None = it was answered, because its time is over.
    pub token: Option<u64>,
    pub records: Records,
    pub until: Until,
    /// It has a batch of its own, for one that it shared was refused.
    pub is_alone: bool,
}

impl Append {
    /// What it counts in the bound of all that is held.
    pub fn size(&self) -> usize {
        self.records.size() + std::mem::size_of::<Self>()
    }

    /// Whether it is too late to send it; None = that it is for all.
    pub fn is_late(&self, now: Option<Instant>) -> bool {
        now.is_none_or(|now| self.until.sent <= now)
    }
}

/// Appends to one partition that share a batch.
pub struct Group {
    pub place: usize,
    pub topic: Arc<str>,
    pub index: i32,
    pub appends: Vec<Append>,
    pub written: Option<Written>,
}

pub struct Partition {
    pub topic: Arc<str>,
    pub index: i32,
    /// The place of the broker's node.
    pub leader: Option<usize>,
    pub waiting: VecDeque<Append>,
    /// The node that a batch of it is under way to: one at a time, so that the order of the log is that
    /// of the calls. When another broker leads before there is an answer, the next batch goes there:
    /// what the old one has not given to its replicas by then, it never will.
    pub under_way: Option<usize>,
    /// It is in its leader's list.
    pub is_listed: bool,
    /// How often it was refused since it was last written to.
    pub refusals: u32,
    /// Since when nobody knows it.
    pub missing_since: Option<Instant>,
    used: Instant,
}

impl Partition {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_none() && !self.is_listed
    }

    /// Puts appends back, to be sent first. Those that were answered already are given up; returns how
    /// many bytes these had.
    pub fn put_back(&mut self, appends: Vec<Append>, is_alone: bool) -> usize {
        let mut given_up = 0;
        for mut append in appends.into_iter().rev() {
            if append.token.is_some() {
                append.is_alone |= is_alone;
                self.waiting.push_front(append);
            } else {
                given_up += append.size();
            }
        }
        given_up
    }

    /// Takes what waits and was to be sent before `until`; None = all of it.
    pub fn take_late(&mut self, until: Option<Instant>) -> Vec<Append> {
        if !self.waiting.iter().any(|append| append.is_late(until)) {
            return Vec::new();
        }
        let (late, waiting): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(|append| append.is_late(until));
        self.waiting = waiting.into();
        late
    }

    /// Takes what shares the next batch.
    pub fn take(&mut self, batch_bytes: usize) -> Vec<Append> {
        let mut taken: Vec<Append> = Vec::new();
        let mut size = 0;
        while let Some(next) = self.waiting.front() {
            size += next.records.size();
            if !taken.is_empty() && (size > batch_bytes || next.is_alone || taken[0].is_alone) {
                break;
            }
            taken.extend(self.waiting.pop_front());
        }
        taken
    }
}

/// All partitions that something was appended to lately.
#[derive(Default)]
pub struct Partitions {
    all: Vec<Option<Partition>>,
    free: Vec<usize>,
    topics: HashMap<Arc<str>, HashMap<i32, usize>>,
}

impl Partitions {
    /// Returns the place of a partition, which is made when there is none.
    pub fn place(&mut self, topic: &str, index: i32, now: Instant) -> usize {
        if let Some(place) = self.topics.get(topic).and_then(|places| places.get(&index)) {
            if let Some(partition) = self.all[*place].as_mut() {
                partition.used = now;
            }
            return *place;
        }
        let name = self.topics.get_key_value(topic).map_or_else(|| topic.into(), |(name, _)| name.clone());
        let place = self.free.pop().unwrap_or(self.all.len());
        if place == self.all.len() {
            self.all.push(None);
        }
        self.topics.entry(name.clone()).or_default().insert(index, place);
        self.all[place] = Some(Partition {
            topic: name,
            index,
            leader: None,
            waiting: VecDeque::new(),
            under_way: None,
            is_listed: false,
            refusals: 0,
            missing_since: None,
            used: now,
        });
        place
    }

    pub fn get(&mut self, place: usize) -> Option<&mut Partition> {
        self.all.get_mut(place)?.as_mut()
    }

    pub fn places_of(&self, topic: &str) -> Vec<usize> {
        self.topics.get(topic).map_or_else(Vec::new, |places| places.values().copied().collect())
    }

    pub fn iter(&mut self) -> impl Iterator<Item = (usize, &mut Partition)> {
        self.all.iter_mut().enumerate().filter_map(|(place, partition)| Some((place, partition.as_mut()?)))
    }

    pub fn topics(&self) -> impl Iterator<Item = &Arc<str>> {
        self.topics.keys()
    }

    /// Forgets the partitions that were not used since then.
    pub fn forget(&mut self, since: Instant) {
        for (place, slot) in self.all.iter_mut().enumerate() {
            if let Some(partition) = slot.take_if(|partition| partition.is_idle() && partition.used < since) {
                self.free.push(place);
                if let Some(places) = self.topics.get_mut(&partition.topic) {
                    places.remove(&partition.index);
                    if places.is_empty() {
                        self.topics.remove(&partition.topic);
                    }
                }
            }
        }
    }
}
