//! The sends of a queue: those that wait, and which of them go together.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::ask::{size, Value};
use super::clients::{Clients, Fault, News};
use super::counts::InHand;
use super::limits::Limits;

/// Who was answered a moment ago sends again in a moment.
const LINGER: Duration = Duration::from_micros(300);
const LINGER_FROM: usize = 4;

/// One send that was not answered yet.
#[derive(Debug)]
pub struct Send {
    pub connection: u64,
    pub lane: u64,
    pub verb: u8,
    pub began: Instant,
    pub deadline: Instant,
    /// It was told that its time is over; what became of it nobody hears.
    pub is_over: bool,
    pub values: Vec<Value>,
    /// Bytes of its queue's allowance.
    pub counted: u64,
    /// Of its queue's allowance of messages with delays.
    pub delayed: u64,
}

impl Send {
    pub fn fail(&self, clients: &mut dyn Clients, fault: Fault, text: &str, now: Instant) {
        let (connection, lane, verb) = (self.connection, self.lane, self.verb);
        let took = now.saturating_duration_since(self.began);
        clients.tell(News::Failed { connection, lane, verb, fault, took, text: text.into() });
    }

    pub fn in_hand(&self, queue: u64) -> InHand {
        InHand { connection: self.connection, lane: self.lane, queue, verb: self.verb, began: self.began }
    }
}

/// What is sent to a queue.
pub struct Sends {
    pub topic: String,
    /// Which tags want a message without attributes, as the script takes it.
    pub mask: Vec<u8>,
    /// The window gets no bodies: this worker is the only one, and keeps them.
    pub is_alone: bool,
    waiting: VecDeque<Send>,
    records: usize,
    bytes: usize,
    pub is_under_way: bool,
    /// Records of the last batch, if several sends shared it.
    last: usize,
    partition: usize,
    /// Records that went there in turn.
    run: usize,
    pub linger_until: Option<Instant>,
}

impl Sends {
    pub fn new(topic: String, mask: Vec<u8>, is_alone: bool, partition: usize) -> Self {
        Self {
            topic,
            mask,
            is_alone,
            waiting: VecDeque::new(),
            records: 0,
            bytes: 0,
            is_under_way: false,
            last: 0,
            partition,
            run: 0,
            linger_until: None,
        }
    }

    /// One more waits.
    pub fn push(&mut self, send: Send) {
        self.records += send.values.len();
        self.bytes += size(&send.values);
        self.waiting.push_back(send);
    }

    /// Whether as many wait as may.
    pub fn is_full(&self, limits: &Limits) -> bool {
        self.waiting.len() >= limits.most_sends || self.bytes >= limits.most_waiting_bytes
    }

    /// Takes all that wait.
    pub fn take_all(&mut self) -> VecDeque<Send> {
        (self.records, self.bytes) = (0, 0);
        std::mem::take(&mut self.waiting)
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && !self.is_under_way
    }

    /// The sends of the next batch; none = it is not its turn.
    pub fn take(&mut self, limits: &Limits, now: Instant) -> Vec<Send> {
        let is_soon = self.records < self.last && self.last >= LINGER_FROM;
        if self.waiting.is_empty() || self.is_under_way {
            return Vec::new();
        }
        if is_soon && now < *self.linger_until.get_or_insert(now + LINGER) {
            return Vec::new();
        }
        self.linger_until = None;
        let (mut sends, mut records, mut bytes) = (Vec::new(), 0, 0);
        while let Some(one) = self.waiting.front().filter(|_| records < limits.batch_records) {
            let more = size(&one.values);
            if records > 0 && bytes + more > limits.batch_bytes {
                break;
            }
            records += one.values.len();
            bytes += more;
            sends.extend(self.waiting.pop_front());
        }
        self.records -= records;
        self.bytes -= bytes;
        self.last = if sends.len() > 1 { records } else { 0 };
        sends
    }

    /// Where the next records go: those of a while to one partition, then to the next.
    pub fn place(&mut self, records: usize, partitions: usize, limits: &Limits) -> usize {
        if self.run >= limits.run {
            self.partition = (self.partition + 1) % partitions;
            self.run = 0;
        }
        self.run += records;
        self.partition
    }
}
