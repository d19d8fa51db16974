//! Which broker leads which partition, and when that is asked.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::nodes::{Nodes, ELSEWHERE};
use super::partitions::{Partition, Partitions};
use super::settings::Codes;
use super::wire::{Metadata, Topic};

/// Topics of one request.
const TOPICS: usize = 200;
/// Between two questions about a partition that has no leader, at first and at last.
const PAUSES_MS: (u64, u64) = (10, 500);

#[derive(Default)]
pub struct Leaders {
    /// Places of nodes by brokers' ids.
    brokers: HashMap<i32, usize>,
    /// Topics to be asked about, and when.
    wanted: HashMap<Arc<str>, Instant>,
    /// Who is asked, since when.
    asked: Option<(usize, Instant)>,
}

/// What Kafka says of a partition that waits.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    Led(usize),
    /// Its appends are refused with this code.
    Refused(usize, i16),
}

impl Leaders {
    /// Asks about a topic at `due`, or sooner.
    pub fn want(&mut self, topic: &Arc<str>, due: Instant) {
        match self.wanted.get_mut(topic) {
            Some(known) => *known = due.min(*known),
            None => {
                self.wanted.insert(topic.clone(), due);
            }
        }
    }

    /// Asks about a topic now, unless that will be done anyway, maybe after a pause.
    pub fn want_once(&mut self, topic: &Arc<str>, now: Instant) {
        if !self.wanted.contains_key(topic) {
            self.wanted.insert(topic.clone(), now);
        }
    }

    /// Asks again about a partition after a refusal: at once, then after pauses that grow.
    pub fn want_again(&mut self, partition: &mut Partition, now: Instant) {
        partition.leader = None;
        partition.refusals = partition.refusals.saturating_add(1);
        let (first, last) = PAUSES_MS;
        let pause = match partition.refusals {
            1 => 0,
            refusals => (first << (refusals - 2).min(10)).min(last),
        };
        self.want(&partition.topic, now + Duration::from_millis(pause));
    }

    /// Returns when the next question is due.
    pub fn due(&self) -> Option<Instant> {
        let due = self.wanted.values().min().copied()?;
        Some(self.asked.map_or(due, |(_, since)| due.max(since + ELSEWHERE)))
    }

    /// Returns the topics that are to be asked about now.
    pub fn take(&mut self, now: Instant) -> Vec<Arc<str>> {
        let due = self.wanted.iter_mut().filter(|(_, due)| **due <= now).take(TOPICS);
        due.map(|(topic, due)| {
            *due = now + ELSEWHERE; // with no answer by then, another broker is asked
            topic.clone()
        })
        .collect()
    }

    /// Returns who is asked and has not answered.
    pub fn asked(&self) -> Option<usize> {
        self.asked.map(|(place, _)| place)
    }

    pub fn note_asked(&mut self, place: usize, now: Instant) {
        self.asked = Some((place, now));
    }

    /// The connection to a node is no more.
    pub fn lose(&mut self, place: usize) {
        self.asked = self.asked.filter(|(asked, _)| *asked != place);
    }

    /// Takes in an answer, and returns what is new for partitions that wait.
    pub fn learn(
        &mut self,
        metadata: &Metadata,
        partitions: &mut Partitions,
        nodes: &mut Nodes,
        (codes, propagation): (&Codes, Duration),
        now: Instant,
    ) -> Vec<News> {
        self.asked = None;
        let before = std::mem::take(&mut self.brokers);
        for (id, host, port) in &metadata.brokers {
            let is_used = |place: usize| before.values().chain(self.brokers.values()).any(|used| *used == place);
            if let Some(place) = nodes.place(host, *port, now, is_used) {
                self.brokers.insert(*id, place);
            }
        }
        let mut news = Vec::new();
        for topic in &metadata.topics {
            self.wanted.remove(topic.name.as_str());
            for place in partitions.places_of(&topic.name) {
                if let Some(partition) = partitions.get(place) {
                    news.extend(self.learn_partition(topic, place, partition, (codes, propagation), now));
                }
            }
        }
        news
    }

    fn learn_partition(
        &mut self,
        topic: &Topic,
        place: usize,
        partition: &mut Partition,
        (codes, propagation): (&Codes, Duration),
        now: Instant,
    ) -> Option<News> {
        let found = topic.partitions.iter().find(|(index, ..)| *index == partition.index);
        if let Some(leader) = found.and_then(|(_, _, leader)| self.brokers.get(leader)) {
            partition.is_listed &= partition.leader == Some(*leader);
            partition.under_way = partition.under_way.filter(|node| node == leader);
            (partition.leader, partition.missing_since) = (Some(*leader), None);
            return Some(News::Led(place));
        }
        let error = match (topic.error, found) {
            (0, Some((_, error, _))) => *error,
            (0, None) => codes.unknown_partition,
            (error, _) => error,
        };
        let is_missing = codes.missing.contains(&error) || error == codes.unknown_partition;
        let is_over = match is_missing {
            true => now.saturating_duration_since(*partition.missing_since.get_or_insert(now)) >= propagation,
            false => codes.refused.contains(&error) && !codes.again.contains(&error),
        };
        partition.is_listed = false;
        if is_over {
            (partition.leader, partition.missing_since) = (None, None);
            return Some(News::Refused(place, error));
        }
        partition.leader = None;
        if !partition.waiting.is_empty() {
            self.want_again(partition, now);
        }
        None
    }
}
