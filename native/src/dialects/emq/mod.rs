//! EMQ: calls of Thrift over HTTP, in any of its three protocols.

mod reader;
mod replies;
mod requests;
mod writer;

use crate::replies::Head;
use crate::requests::Verb;

pub use replies::{acked, received, sent};
pub use requests::read;

/// Where calls for messages go.
pub const PATH: &[u8] = b"/v1/api/message";

/// How a call is written, and its answer. `Bare` is JSON by the name that says no protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Binary,
    Compact,
    Json,
    Bare,
}

const MEDIA: [(Protocol, &str); 4] = [
    (Protocol::Binary, "application/x-thrift-binary"),
    (Protocol::Compact, "application/x-thrift-compact"),
    (Protocol::Json, "application/x-thrift-json"),
    (Protocol::Bare, "application/x-thrift"),
];

impl Protocol {
    pub fn of_media(media: &[u8]) -> Option<Self> {
        MEDIA.iter().find(|(_, name)| name.as_bytes() == media).map(|(protocol, _)| *protocol)
    }

    pub fn media(self) -> &'static str {
        MEDIA[self as usize].1
    }
}

/// What an answer repeats of its call. `query`: of its target, which only Python reads.
#[derive(Clone, Debug)]
pub struct Call {
    pub protocol: Protocol,
    pub seqid: i32,
    /// As the client calls it.
    pub queue: Vec<u8>,
    pub query: Vec<u8>,
}

impl Call {
    pub fn head(&self) -> Head {
        Head { media: self.protocol.media(), id: "x-request-id" }
    }
}

const METHODS: [(Verb, &str); 5] = [
    (Verb::EmqSend, "sendMessage"),
    (Verb::EmqSendBatch, "sendMessageBatch"),
    (Verb::EmqReceive, "receiveMessage"),
    (Verb::EmqDelete, "deleteMessage"),
    (Verb::EmqDeleteBatch, "deleteMessageBatch"),
];

fn verb_of(method: &[u8]) -> Option<Verb> {
    METHODS.iter().find(|(_, name)| name.as_bytes() == method).map(|(verb, _)| *verb)
}

fn method_of(verb: Verb) -> &'static str {
    METHODS.iter().find(|(other, _)| *other == verb).map_or("", |(_, name)| name)
}

/// The types of values that calls and answers of hot requests have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    I32,
    I64,
    Text,
    Struct,
    Map,
    List,
}

/// Each with its number in the binary and in the compact protocol, and its word in JSON.
const KINDS: [(Kind, u8, u8, &str); 6] = [
    (Kind::I32, 8, 5, "i32"),
    (Kind::I64, 10, 6, "i64"),
    (Kind::Text, 11, 8, "str"),
    (Kind::Struct, 12, 12, "rec"),
    (Kind::Map, 13, 11, "map"),
    (Kind::List, 15, 9, "lst"),
];

impl Kind {
    fn of_code(protocol: Protocol, code: u8) -> Option<Self> {
        KINDS.iter().find(|(kind, ..)| kind.code(protocol) == code).map(|(kind, ..)| *kind)
    }

    fn code(self, protocol: Protocol) -> u8 {
        let (_, binary, compact, _) = KINDS[self as usize];
        if protocol == Protocol::Compact {
            compact
        } else {
            binary
        }
    }

    fn of_word(word: &[u8]) -> Option<Self> {
        KINDS.iter().find(|(.., name)| name.as_bytes() == word).map(|(kind, ..)| *kind)
    }

    fn word(self) -> &'static str {
        KINDS[self as usize].3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_order_of_their_enums() {
        assert!(MEDIA.iter().enumerate().all(|(place, (protocol, _))| *protocol as usize == place));
        assert!(KINDS.iter().enumerate().all(|(place, (kind, ..))| *kind as usize == place));
    }
}
