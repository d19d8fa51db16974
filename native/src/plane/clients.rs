//! What the plane needs of whoever owns the connections of clients: `Front`, or a test.

use std::time::Duration;

use super::unit::Kept;
use super::whys::Why;

/// A message for a client.
pub struct Delivery<'a> {
    pub id: [u8; 36],
    pub handle: [u8; 52],
    pub partition: usize,
    pub offset: u64,
    /// How often it was leased, and when first.
    pub count: u64,
    pub first_ms: u64,
    pub leased_until_ms: u64,
    /// When it was leased.
    pub at_ms: u64,
    pub message: &'a Kept,
}

/// What a script says of a handle, and how answers put that: its status, and the reason if it has one.
#[derive(Debug, Default)]
pub struct Word {
    pub script: Vec<u8>,
    pub status: Vec<u8>,
    pub reason: Vec<u8>,
}

/// What became of one handle: the place of its word among those that Python has told, of which the first is that of
/// success; and when its message is visible next (ms), 0 = that is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub word: u8,
    pub visible_ms: u64,
}

impl Done {
    pub fn is_ok(&self) -> bool {
        self.word == 0
    }
}

/// Why a request has not succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// Nobody knows what Redis has done.
    State,
    /// Kafka was not given it, and will not be.
    NotStored,
    /// Kafka may have it.
    MayBeStored,
}

/// For Python.
#[derive(Debug, PartialEq)]
pub enum News {
    /// A connection to Redis, and what INFO says there.
    Greeted {
        link: u64,
        info: Vec<u8>,
    },
    Lost {
        link: u64,
        reason: String,
    },
    /// What a receive saw of a unit.
    Seen {
        queue: u64,
        tag: u16,
        partition: usize,
        open: u64,
        in_flight: u64,
        cursor: u64,
        hungry: bool,
    },
    /// Somebody waits, and the window has nothing: Kafka may have more.
    Refresh {
        queue: u64,
    },
    /// Deliveries that were given back (offset, nonce, due ms), and how many others it was too late for.
    Returned {
        queue: u64,
        tag: u16,
        partition: usize,
        rows: Vec<i64>,
        late: usize,
    },
    /// Deliveries that are to be given back.
    Return {
        queue: u64,
        tag: u16,
        partition: usize,
        rows: Vec<i64>,
    },
    /// Messages that are dying: rows as the script has them.
    Dying {
        queue: u64,
        tag: u16,
        partition: usize,
        rows: Vec<super::redis::Reply>,
    },
    /// The plane serves a queue no more, and why.
    Closed {
        queue: u64,
        reason: &'static str,
    },
    /// A request that was begun and has not succeeded.
    Failed {
        connection: u64,
        lane: u64,
        verb: u8,
        fault: Fault,
        /// How long it was in hand.
        took: Duration,
        text: String,
    },
    /// A send met what it meets when the topic is gone.
    Suspect {
        queue: u64,
    },
    /// Of bytes that may be sent to a queue few are left.
    Low {
        queue: u64,
    },
    /// Of messages with delays that may be sent to a queue few are left.
    LowDelays {
        queue: u64,
    },
    /// There is traffic on a unit.
    Used {
        queue: u64,
        partition: usize,
    },
    /// The window has not got what Kafka has.
    Unloaded {
        queue: u64,
    },
    /// The window is beyond what Kafka has just said.
    Ahead {
        queue: u64,
        partition: usize,
        cursor: u64,
    },
    /// An entry of the journal is in an outbox, of acks that wait until the journal has it.
    Written {
        queue: u64,
        partition: usize,
        seq: u64,
        number: u64,
    },
    /// Handles of a partition that were good for nothing: offset and word of each.
    Refused {
        queue: u64,
        partition: usize,
        rows: Vec<i64>,
    },
    /// A drain has ended.
    Drained(Box<super::ended::Ended>),
    /// Something is visible since then, for who waits in Python.
    Woken {
        queue: u64,
        partition: usize,
        head_ms: u64,
    },
}

pub trait Clients {
    /// Answers a receive; false = its client has gone, and nobody has the messages.
    fn give(&mut self, connection: u64, messages: &[Delivery]) -> bool;

    /// Answers a send that Kafka has since `at_ms`, with the ids of its messages.
    fn sent(&mut self, connection: u64, ids: &[[u8; 36]], at_ms: u64);

    /// Answers a request on handles.
    fn acted(&mut self, connection: u64, done: &[Done]);

    /// Gives a request to Python as it came; false = its client has gone, and nobody answers it.
    fn pass(&mut self, connection: u64, why: Why) -> bool;

    fn tell(&mut self, news: News);
}
