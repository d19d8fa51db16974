//! What a request of a route asks of the plane, and what a message that is sent has.

use std::time::Instant;

use super::format::record::{Attribute, Mark, Message, Parts, Records};
use super::routes::Route;
use super::unit::Act;
use crate::replies::Digest32;

/// A message that is sent.
pub struct Content<'a> {
    pub body: &'a [u8],
    pub attributes: Vec<Attribute<'a>>,
    pub digest: Digest32,
    /// None = as the route says.
    pub delay_ms: Option<i64>,
}

impl Content<'_> {
    /// Its size as limits count it.
    pub fn size(&self) -> usize {
        let of = |one: &Attribute| one.name.len() + one.kind.len() + one.value.len();
        self.body.len() + self.attributes.iter().map(of).sum::<usize>()
    }
}

/// A message that was read: its record, where in it its parts are, and the body's digest.
#[derive(Debug)]
pub struct Value {
    pub record: Vec<u8>,
    pub parts: Parts,
    pub digest: Digest32,
    /// As limits and quotas count it.
    pub size: usize,
    pub delay_ms: i64,
}

/// Writes the records of one send; `random` names its batch.
pub fn values(records: &Records, route: &Route, contents: &[Content], random: u64) -> Vec<Value> {
    let many = u32::try_from(contents.len()).unwrap_or(u32::MAX);
    let sender = std::str::from_utf8(&route.sender).unwrap_or_default();
    let write = |(index, content): (usize, &Content)| {
        let Content { body, attributes, digest, delay_ms } = content;
        let delay_ms = delay_ms.unwrap_or(route.delay_ms);
        let mark = (many > 1).then(|| Mark { index: index as u32, ..Mark::first(random, many) });
        let mut record = Vec::with_capacity(content.size() + 96);
        let message = Message { body, is_text: true, attributes, delay_ms, lease_ms: None, sender, mark };
        let parts = records.write(&message, &mut record);
        Value { record, parts, digest: *digest, size: content.size(), delay_ms }
    };
    contents.iter().enumerate().map(write).collect()
}

/// Bytes of the records.
pub fn size(values: &[Value]) -> usize {
    values.iter().map(|value| value.record.len()).sum()
}

/// A request of a route.
pub struct Ask {
    pub by: Asker,
    pub what: What,
}

/// Where a request comes from, and since when it is in hand.
#[derive(Clone, Copy)]
pub struct Asker {
    pub connection: u64,
    pub lane: u64,
    pub verb: u8,
    pub began: Instant,
}

pub enum What {
    /// None = as the route says; a lease of -1 = the message's own, else the queue's.
    Receive {
        route: Route,
        most: Option<usize>,
        wait_ms: Option<u64>,
        lease_ms: i64,
    },
    Act {
        route: Route,
        handles: Handles,
    },
    Send {
        route: Route,
        values: Vec<Value>,
    },
    /// The client of the connection has gone.
    Left {
        route: Route,
    },
}

impl What {
    pub fn queue(&self) -> u64 {
        match self {
            Self::Receive { route, .. } | Self::Act { route, .. } | Self::Send { route, .. } | Self::Left { route } => {
                route.queue
            }
        }
    }
}

/// What a request does with a handle. `lease_ms`: of a lease that is extended.
#[derive(Clone, Debug)]
pub struct Held {
    pub handle: Vec<u8>,
    pub lease_ms: i64,
}

/// What a request does with its handles. `tells_each`: its reply says of each what became of it; else it is
/// Python's unless each is OK.
#[derive(Clone, Debug)]
pub struct Handles {
    pub act: Act,
    pub held: Vec<Held>,
    pub tells_each: bool,
}
