//! What a connection tells its caller.

use super::resp::Reply;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// Redis surely did nothing of it, and will not.
    NotSent,
    /// It was sent, and there is no reply that counts.
    Unknown(String),
    /// Redis answered with this error.
    Refused(String),
}

pub enum News {
    /// A new connection, on which nothing but the greeting was sent: what INFO says of its server.
    Greeted { link: u64, info: Vec<u8> },
    /// A connection is no more, or (once for each reason in turn) none can be made.
    Lost { link: u64, reason: String },
    /// Each call that was begun has one.
    Answer { token: u64, outcome: Result<Reply, Failure> },
}
