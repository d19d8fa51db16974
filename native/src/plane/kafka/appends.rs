//! Appends from the call to the outcome: whose turn it is, and what an answer, or none, says.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use super::leaders::{Leaders, News};
use super::outcomes::{Outcome, Outcomes, Reason};
use super::partitions::{Append, Group, Partitions};
use super::records::BATCH_BYTES;
use super::settings::Settings;
use super::wire::Written;

/// A request has no more batches, nor is another added to one of so many bytes.
const BATCHES: usize = 100;
const REQUEST_BYTES: usize = 4 * 1024 * 1024;

pub struct Appends {
    settings: Arc<Settings>,
    pub partitions: Partitions,
    pub leaders: Leaders,
    pub outcomes: Outcomes,
    /// Places of partitions that have something to send, by their leaders' nodes.
    listed: HashMap<usize, VecDeque<usize>>,
    /// No append is late before that.
    pub late_at: Option<Instant>,
}

impl Appends {
    pub fn new(settings: Arc<Settings>) -> Self {
        Self {
            settings,
            partitions: Partitions::default(),
            leaders: Leaders::default(),
            outcomes: Outcomes::default(),
            listed: HashMap::new(),
            late_at: None,
        }
    }

    pub fn begin(&mut self, topic: &str, partition: i32, append: Append, now: Instant) {
        if let Some(reason) = self.hindrance(&append, partition, now) {
            self.outcomes.news.extend(append.token.map(|token| (token, Outcome::NotStored(reason))));
            return;
        }
        self.outcomes.held += append.size();
        self.late_at = Some(self.late_at.map_or(append.until.sent, |at| at.min(append.until.sent)));
        let place = self.partitions.place(topic, partition, now);
        if let Some(partition) = self.partitions.get(place) {
            partition.waiting.push_back(append);
        }
        self.list(place, now);
    }

    fn hindrance(&self, append: &Append, partition: i32, now: Instant) -> Option<Reason> {
        let (codes, held) = (&self.settings.codes, self.outcomes.held);
        let (most, room) = (self.settings.record_bytes, self.settings.queued_bytes);
        let size = append.records.size() + BATCH_BYTES;
        if append.records.is_empty() {
            Some(Reason::new(codes.too_large, "an append has one record at least"))
        } else if size > most {
            Some(Reason::new(codes.too_large, &format!("the records have {size} bytes, {most} are the most")))
        } else if held + append.size() > room {
            Some(Reason::new(codes.queue_full, &format!("{held} bytes wait for Kafka, {room} are the most")))
        } else if partition < 0 {
            Some(Reason::new(codes.unknown_partition, &format!("there is no partition {partition}")))
        } else if append.until.sent <= now {
            Some(Reason::new(codes.timed_out, "its time was over before it came"))
        } else {
            None
        }
    }

    /// Has a partition send what waits there, when its turn comes.
    fn list(&mut self, place: usize, now: Instant) {
        let Some(partition) = self.partitions.get(place) else { return };
        if partition.waiting.is_empty() || partition.under_way.is_some() || partition.is_listed {
            return;
        }
        match partition.leader {
            Some(node) => {
                partition.is_listed = true;
                self.listed.entry(node).or_default().push_back(place);
            }
            None => self.leaders.want_once(&partition.topic, now),
        }
    }

    pub fn has_listed(&self, node: usize) -> bool {
        self.listed.get(&node).is_some_and(|places| !places.is_empty())
    }

    pub fn is_any_listed(&self) -> bool {
        self.listed.values().any(|places| !places.is_empty())
    }

    /// Asks who leads what waits for a node that is not reached.
    pub fn doubt(&mut self, node: usize, now: Instant) {
        for place in self.listed.get(&node).into_iter().flatten() {
            if let Some(partition) = self.partitions.get(*place) {
                self.leaders.want(&partition.topic, now);
            }
        }
    }

    /// Takes the batches of the next request to a node: of each partition that is listed one, those of
    /// a topic side by side.
    pub fn gather(&mut self, node: usize) -> Vec<Group> {
        let (mut groups, mut bytes) = (Vec::new(), 0);
        let Some(listed) = self.listed.get_mut(&node) else { return groups };
        while groups.len() < BATCHES && bytes < REQUEST_BYTES {
            let Some(place) = listed.pop_front() else { break };
            let Some(partition) = self.partitions.get(place) else { continue };
            // It may have another leader by now, or have been listed twice.
            if partition.leader != Some(node)
                || !std::mem::take(&mut partition.is_listed)
                || partition.under_way.is_some()
            {
                continue;
            }
            let appends = partition.take(self.settings.batch_bytes);
            if appends.is_empty() {
                continue;
            }
            bytes += appends.iter().map(Append::size).sum::<usize>();
            partition.under_way = Some(node);
            let (topic, index) = (partition.topic.clone(), partition.index);
            groups.push(Group { place, topic, index, appends, written: None });
        }
        groups.sort_by(|one, next| one.topic.cmp(&next.topic));
        groups
    }

    /// Takes in what metadata says of a partition.
    pub fn heed(&mut self, news: News, now: Instant) {
        match news {
            News::Led(place) => self.list(place, now),
            News::Refused(place, code) => {
                let waiting = self.partitions.get(place).map(|partition| std::mem::take(&mut partition.waiting));
                for append in waiting.unwrap_or_default() {
                    self.outcomes.answer(append, Outcome::NotStored(Reason::new(code, "")));
                }
            }
        }
    }

    /// Takes in what a broker says of a batch.
    pub fn settle(&mut self, node: usize, group: Group, now: Instant) {
        let (place, is_in_turn) = (group.place, self.take_turn(&group, node));
        let codes = &self.settings.codes;
        match group.written {
            Some(written) if written.error == 0 && written.base_offset >= 0 => self.store(group, written),
            Some(written) if codes.refused.contains(&written.error) && written.base_offset < 0 => {
                self.refuse(group, written.error, is_in_turn, now);
            }
            Some(written) => self.outcomes.answer_all(group, &Outcome::Unknown(Reason::new(written.error, ""))),
            None => {
                let reason = Reason::new(codes.transport, "the broker's answer does not name the partition");
                self.outcomes.answer_all(group, &Outcome::Unknown(reason));
            }
        }
        self.list(place, now);
    }

    /// Ends a batch of a partition. Returns whether its place in the order is still free: no other
    /// batch was sent behind it, to another broker.
    fn take_turn(&mut self, group: &Group, node: usize) -> bool {
        let Some(partition) = self.partitions.get(group.place) else { return false };
        let is_in_turn = partition.under_way == Some(node);
        if is_in_turn {
            partition.under_way = None;
        }
        is_in_turn
    }

    fn store(&mut self, group: Group, written: Written) {
        if let Some(partition) = self.partitions.get(group.place) {
            (partition.refusals, partition.missing_since) = (0, None);
        }
        let log_append_ms = (written.at_ms >= 0).then_some(written.at_ms);
        let mut base_offset = written.base_offset;
        for append in group.appends {
            let records = append.records.len() as i64;
            self.outcomes.answer(append, Outcome::Stored { base_offset, log_append_ms });
            base_offset = base_offset.saturating_add(records);
        }
    }

    /// A broker has refused a batch, and has written nothing of it.
    fn refuse(&mut self, group: Group, code: i16, is_in_turn: bool, now: Instant) {
        let (codes, propagation) = (&self.settings.codes, self.settings.propagation);
        let outcome = Outcome::NotStored(Reason::new(code, ""));
        let found = self.partitions.get(group.place).filter(|_| is_in_turn);
        let Some(partition) = found else { return self.outcomes.answer_all(group, &outcome) };
        let is_gone = codes.missing.contains(&code)
            && now.saturating_duration_since(*partition.missing_since.get_or_insert(now)) >= propagation;
        if codes.again.contains(&code) && !is_gone {
            self.outcomes.held -= partition.put_back(group.appends, false);
            self.leaders.want_again(partition, now);
        } else if group.appends.len() > 1 {
            // The fault may be of one of them.
            self.outcomes.held -= partition.put_back(group.appends, true);
        } else {
            self.outcomes.answer_all(group, &outcome);
        }
    }

    /// Ends a batch that has no answer, for its connection is no more.
    pub fn abandon(&mut self, node: usize, group: Group, may_be_stored: bool, reason: &Reason, now: Instant) {
        let (place, is_in_turn) = (group.place, self.take_turn(&group, node));
        match self.partitions.get(group.place).filter(|_| is_in_turn) {
            _ if may_be_stored => self.outcomes.answer_all(group, &Outcome::Unknown(reason.clone())),
            None => self.outcomes.answer_all(group, &Outcome::NotStored(reason.clone())),
            Some(partition) => self.outcomes.held -= partition.put_back(group.appends, false),
        }
        self.list(place, now);
    }

    /// A node leads nothing any more, as far as is known.
    pub fn lose(&mut self, node: usize, now: Instant) {
        self.listed.remove(&node);
        self.leaders.lose(node);
        for (_, partition) in self.partitions.iter().filter(|(_, partition)| partition.leader == Some(node)) {
            (partition.leader, partition.is_listed) = (None, false);
            if !partition.waiting.is_empty() {
                self.leaders.want(&partition.topic, now);
            }
        }
    }

    /// Answers what waits and was to be sent before `until`; None = all of it.
    pub fn give_up(&mut self, until: Option<Instant>, reason: &Reason) {
        let mut late: Vec<Append> = Vec::new();
        for (_, partition) in self.partitions.iter() {
            late.extend(partition.take_late(until));
        }
        late.into_iter().for_each(|append| self.outcomes.answer(append, Outcome::NotStored(reason.clone())));
    }

    /// Returns when the first of what waits is to be sent.
    pub fn first_deadline(&mut self) -> Option<Instant> {
        self.partitions.iter().flat_map(|(_, partition)| &partition.waiting).map(|append| append.until.sent).min()
    }
}
