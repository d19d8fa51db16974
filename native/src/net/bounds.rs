//! The bounds of one front, as Python has told them.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// A handshake of TLS is over within this time of its connection.
    pub handshake: Duration,
    /// A head comes whole within this time of its first byte.
    pub head: Duration,
    /// Of a body, so many bytes come in each such time.
    pub span: Duration,
    pub span_bytes: usize,
    /// What a client still sends is dropped for so long after its last reply.
    pub last: Duration,
    /// Of unfinished requests, and their number.
    pub part_bytes: usize,
    pub parts: usize,
    /// Of requests that are asked, and of what came with them.
    pub asked_bytes: usize,
    /// Of a body that nobody wants any more; with more than that, its connection ends.
    pub let_go_bytes: u64,
    /// Requests that carry a sampled trace context are Python's.
    pub is_traced: bool,
}

impl Bounds {
    /// How many numbers they are.
    pub const NUMBERS: usize = 10;

    /// In the order of the fields; times are in milliseconds.
    pub fn of(numbers: [u64; Self::NUMBERS]) -> Self {
        let [handshake, head, span, span_bytes, last, part_bytes, parts, asked_bytes, let_go_bytes, traced] = numbers;
        Self {
            handshake: Duration::from_millis(handshake),
            head: Duration::from_millis(head),
            span: Duration::from_millis(span),
            span_bytes: span_bytes as usize,
            last: Duration::from_millis(last),
            part_bytes: part_bytes as usize,
            parts: parts as usize,
            asked_bytes: asked_bytes as usize,
            let_go_bytes,
            is_traced: traced > 0,
        }
    }
}

/// Nothing is bounded before Python has told its bounds.
impl Default for Bounds {
    fn default() -> Self {
        Self { is_traced: false, ..Self::of([u64::from(u32::MAX); Self::NUMBERS]) }
    }
}
