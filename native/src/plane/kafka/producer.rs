//! The producer: sockets that are ready, time that passes, and what is sent then.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Registry, Token};

use super::appends::Appends;
use super::link::{Answer, Asked};
use super::lost::{Cause, Lost};
use super::nodes::Nodes;
use super::outcomes::{Outcome, Reason};
use super::partitions::Append;
use super::records::Until;
use super::records::{Record, Records};
use super::settings::Settings;

/// Between two looks at what is slow, and at connections that nobody uses.
const LOOK: Duration = Duration::from_millis(250);
const IDLE: Duration = Duration::from_secs(1);
/// Between two tries while a broker is not reached.
const TRY: Duration = Duration::from_millis(25);
/// A broker that is silent for so long may lead no more.
const SLOW: Duration = Duration::from_secs(1);

pub struct Producer {
    settings: Arc<Settings>,
    appends: Appends,
    nodes: Nodes,
    slow_at: Instant,
    refresh_at: Instant,
    /// Somebody waits for a connection, whatever it is for.
    is_reaching: bool,
    scratch: Vec<u8>,
}

impl Producer {
    /// `tokens`: which of the poll are this one's; a cluster has at most as many brokers, less one.
    pub fn new(
        settings: Settings,
        registry: Registry,
        tokens: std::ops::Range<usize>,
        now: Instant,
    ) -> std::io::Result<Self> {
        let settings = Arc::new(settings);
        Ok(Self {
            nodes: Nodes::new(settings.clone(), registry, tokens, now)?,
            appends: Appends::new(settings.clone()),
            slow_at: now,
            refresh_at: now + settings.metadata_age,
            is_reaching: false,
            scratch: vec![0; 64 * 1024],
            settings,
        })
    }

    /// Begins to append records to a partition, all or none, side by side in the log. Appends to a
    /// partition keep the order of the calls. Call `flush` after the last one of a turn.
    pub fn append<'a>(
        &mut self,
        topic: &str,
        partition: i32,
        records: impl ExactSizeIterator<Item = Record<'a>> + Clone,
        token: u64,
        until: Until,
        now: Instant,
    ) {
        let bytes = records.clone().map(|record| record.size()).sum();
        let mut written = Records::new(records.len(), bytes);
        records.for_each(|record| written.push(&record));
        let append = Append { token: Some(token), records: written, until, is_alone: false };
        self.appends.begin(topic, partition, append, now);
    }

    /// Call it when a socket of `tokens` is ready, for whatever.
    pub fn ready(&mut self, token: Token, now: Instant) {
        match self.nodes.of_token(token) {
            Some(place) => self.turn(place, now),
            None => self.look_up(now),
        }
        self.flush(now);
    }

    fn turn(&mut self, place: usize, now: Instant) {
        let mut answers = Vec::new();
        let turned = self.nodes.turn(place, &mut self.scratch, &mut answers, now);
        let Self { appends, nodes, settings, .. } = self;
        for answer in answers {
            match answer {
                Answer::Opened => self.is_reaching = false,
                Answer::Metadata(metadata) => {
                    let limits = (&settings.codes, settings.propagation);
                    let news = appends.leaders.learn(&metadata, &mut appends.partitions, nodes, limits, now);
                    news.into_iter().for_each(|news| appends.heed(news, now));
                }
                Answer::Produced(groups) => groups.into_iter().for_each(|group| appends.settle(place, group, now)),
            }
        }
        if let Err(lost) = turned {
            self.lose(place, &lost, now);
        }
    }

    fn look_up(&mut self, now: Instant) {
        while let Some((place, lost)) = self.nodes.look_up(now) {
            self.lose(place, &lost, now);
        }
    }

    /// Sends what may be sent now.
    pub fn flush(&mut self, now: Instant) {
        self.ask_leaders(now);
        for place in 0..self.nodes.len() {
            if !self.appends.has_listed(place) {
                continue;
            }
            let sent = match &mut self.nodes.get(place).link {
                None => self.nodes.open(place, now).map_or(Ok(()), |(_, lost)| Err(lost)),
                Some(link) if link.has_room(now) => {
                    let groups = self.appends.gather(place);
                    if !groups.is_empty() {
                        link.ask_produce(groups, now);
                    }
                    link.flush()
                }
                Some(_) => Ok(()),
            };
            if let Err(lost) = sent {
                self.lose(place, &lost, now);
            }
        }
    }

    fn ask_leaders(&mut self, now: Instant) {
        let leaders = &mut self.appends.leaders;
        if !self.is_reaching && leaders.due().is_none_or(|due| due > now) {
            return;
        }
        let failed = match self.nodes.any_ready(leaders.asked()) {
            None => self.nodes.open_any(now),
            Some(place) => {
                let topics = leaders.take(now);
                let Some(link) = self.nodes.get(place).link.as_mut().filter(|_| !topics.is_empty()) else { return };
                link.ask_metadata(&topics, now);
                leaders.note_asked(place, now);
                link.flush().err().map(|lost| (place, lost))
            }
        };
        if let Some((place, lost)) = failed {
            self.lose(place, &lost, now);
        }
    }

    /// A connection is no more, or can't be made.
    fn lose(&mut self, place: usize, lost: &Lost, now: Instant) {
        let link = self.nodes.lose(place, lost, now);
        if let Some(mut link) = link {
            let reason = Reason::new(self.settings.codes.of(lost.cause), &lost.text);
            for request in std::mem::take(&mut link.under_way) {
                let may_be_stored = link.may_have(&request);
                if let Asked::Produce(groups) = request.asked {
                    groups
                        .into_iter()
                        .for_each(|group| self.appends.abandon(place, group, may_be_stored, &reason, now));
                }
            }
        }
        self.appends.lose(place, now);
    }

    /// Looks at what is late or slow. Call it at `next_tick` or before, after `ready` for all that the
    /// poll has found: an answer that is here is never late.
    pub fn tick(&mut self, now: Instant) {
        self.look_up(now);
        for (place, lost) in self.nodes.overdue(now) {
            self.lose(place, &lost, now);
        }
        if self.appends.late_at.is_some_and(|at| at <= now) {
            self.answer_late(now);
        }
        if self.slow_at <= now {
            self.slow_at = now + LOOK;
            for (place, _) in self.nodes.iter().filter(|(_, node)| !node.is_ready()) {
                self.appends.doubt(place, now);
            }
            let Appends { leaders, .. } = &mut self.appends;
            self.nodes.slow(now - SLOW).for_each(|topic| leaders.want(topic, now));
        }
        if self.refresh_at <= now {
            self.refresh_at = now + self.settings.metadata_age;
            let Appends { leaders, partitions, .. } = &mut self.appends;
            partitions.forget(now - self.settings.metadata_age);
            partitions.topics().for_each(|topic| leaders.want(topic, now));
        }
        self.flush(now);
    }

    /// Answers the appends whose time is over. What waits is taken back; what is under way goes on.
    fn answer_late(&mut self, now: Instant) {
        let trouble = self.nodes.trouble().map_or_else(String::new, |(text, _)| format!("; {text}"));
        let code = self.settings.codes.timed_out;
        self.appends.give_up(Some(now), &Reason::new(code, &format!("no broker took it in time{trouble}")));
        let reason = Reason::new(code, &format!("no answer of Kafka in time{trouble}"));
        let mut next = self.appends.first_deadline();
        for append in self.nodes.under_way().filter(|append| append.token.is_some()) {
            if append.until.answered <= now {
                let token = append.token.take();
                self.appends.outcomes.news.extend(token.map(|token| (token, Outcome::Unknown(reason.clone()))));
            } else {
                next = Some(next.map_or(append.until.answered, |at| at.min(append.until.answered)));
            }
        }
        self.appends.late_at = next;
    }

    /// Returns when `tick` is to be called next.
    pub fn next_tick(&self, now: Instant) -> Instant {
        let asks = self.appends.leaders.due();
        let pause = match self.is_reaching || asks.is_some() || self.appends.is_any_listed() {
            true => TRY,
            false if self.held() > 0 => LOOK,
            false => IDLE,
        };
        let soon = [self.appends.late_at, asks.filter(|_| self.is_reached())].into_iter().flatten().min();
        soon.map_or(now + pause, |at| at.min(now + pause))
    }

    /// Connects to any broker, though nothing is appended yet; `is_reached` says when.
    pub fn reach(&mut self, now: Instant) {
        self.is_reaching = !self.is_reached();
        self.flush(now);
    }

    pub fn is_reached(&self) -> bool {
        self.nodes.iter().any(|(_, node)| node.is_ready())
    }

    /// Returns why a broker is not reached now, if one is not.
    pub fn trouble(&self) -> Option<Reason> {
        self.nodes.trouble().map(|(text, lost)| Reason { code: self.settings.codes.of(lost.cause), text })
    }

    /// Returns how many bytes of appends are here: 0 = all have ended.
    pub fn held(&self) -> usize {
        self.appends.outcomes.held
    }

    /// Takes the outcomes that are there.
    pub fn outcomes(&mut self) -> std::vec::Drain<'_, (u64, Outcome)> {
        self.appends.outcomes.news.drain(..)
    }

    /// Closes all connections. Each append that is here gets its outcome; who wants them stored waits
    /// until none is held.
    pub fn stop(&mut self, now: Instant) {
        let stopped = "the producer was stopped";
        for place in 0..self.nodes.len() {
            self.lose(place, &Lost::new(Cause::Stopped, stopped), now);
        }
        self.appends.give_up(None, &Reason::new(self.settings.codes.stopped, stopped));
    }
}
