//! What requests have in common that Python has looked up: which queue, which tag, who may wait.

use std::sync::Arc;
use std::time::Instant;

/// So many receives of one may wait here.
pub type Bound = (Vec<u8>, usize);

/// A lane of which the plane serves requests.
#[derive(Clone, Debug)]
pub struct Route {
    pub queue: u64,
    pub tag: u16,
    /// Which verbs Python has allowed, as bits.
    pub verbs: u8,
    /// Messages of a receive that does not say, and of any.
    pub some: usize,
    pub most: usize,
    /// How long a receive waits that does not say.
    pub wait_ms: u64,
    /// What Python has found holds until then; None = until it says otherwise.
    pub valid_until: Option<Instant>,
    pub bounds: Arc<[Bound]>,
    /// Who sends; a message, and all of a send, may have so many bytes.
    pub sender: Arc<[u8]>,
    pub most_message_bytes: usize,
    pub most_send_bytes: usize,
    /// How long a message is delayed that does not say, and at most here.
    pub delay_ms: i64,
    pub most_delay_ms: i64,
    /// How long (ms) after a delivery its lease may end that is extended here; 0 = whenever.
    pub most_leased_ms: i64,
}

pub const MAY_SEND: u8 = 1;
pub const MAY_RECEIVE: u8 = 2;
pub const MAY_ACK: u8 = 4;
/// What is sent may have attributes: each tag wants it, whatever they are.
pub const MAY_SEND_ATTRIBUTES: u8 = 8;
/// Bytes of what is sent are counted.
pub const COUNTS_BYTES: u8 = 16;
pub const MAY_EXTEND: u8 = 32;
pub const MAY_RELEASE: u8 = 64;
