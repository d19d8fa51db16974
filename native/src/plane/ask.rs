//! What a request of a route asks of the plane.

use std::time::Instant;

use super::content::Value;
use super::routes::Route;
use super::unit::Act;

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
