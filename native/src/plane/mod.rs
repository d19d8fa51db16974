//! The plane: the hot verbs of queues, by the scripts of state/lua and the log of Kafka; see issue 44.

pub mod format;
pub mod kafka;
pub mod redis;
