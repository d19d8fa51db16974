//! The plain form of the hot requests: what is common to the dialects whose requests are read here.
//!
//! What is not in it may still be good, or have an error of its own: Python knows.

use crate::dialects::sqs::Names;
use crate::dialects::{native, sqs};
use crate::json::{Place, Refused, Scan, Scanner};
use crate::plane::format::record::Attribute;

/// What is asked; its number is that of the group in which Python gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verb {
    Send = 1,
    SendBatch = 2,
    Receive = 3,
    Delete = 4,
    DeleteBatch = 5,
    NativeSend = 12,
    NativeReceive = 13,
    NativeAck = 14,
}

impl Verb {
    /// The verb of a value of X-Amz-Target.
    pub fn of_target(target: &[u8]) -> Option<Self> {
        match target.strip_prefix(b"AmazonSQS.")? {
            b"SendMessage" => Some(Self::Send),
            b"SendMessageBatch" => Some(Self::SendBatch),
            b"ReceiveMessage" => Some(Self::Receive),
            b"DeleteMessage" => Some(Self::Delete),
            b"DeleteMessageBatch" => Some(Self::DeleteBatch),
            _ => None,
        }
    }

    /// Whether it is one of the native API.
    pub fn is_native(self) -> bool {
        matches!(self, Self::NativeSend | Self::NativeReceive | Self::NativeAck)
    }

    /// The verb with a number; for tests.
    pub fn of_number(number: u64) -> Option<Self> {
        const ALL: [Verb; 8] = [
            Verb::Send,
            Verb::SendBatch,
            Verb::Receive,
            Verb::Delete,
            Verb::DeleteBatch,
            Verb::NativeSend,
            Verb::NativeReceive,
            Verb::NativeAck,
        ];
        ALL.into_iter().find(|verb| *verb as u64 == number)
    }

    /// Whether handles are settled by it.
    pub fn is_ack(self) -> bool {
        matches!(self, Self::Delete | Self::DeleteBatch | Self::NativeAck)
    }

    /// Whether messages are sent by it.
    pub fn is_send(self) -> bool {
        matches!(self, Self::Send | Self::SendBatch | Self::NativeSend)
    }

    /// The verb of a path of the native API, `/v1/queues/{queue}/...`.
    pub fn of_path(path: &[u8]) -> Option<Self> {
        let rest = path.strip_prefix(b"/v1/queues/")?;
        let slash = memchr::memchr(b'/', rest)?;
        match &rest[slash + 1..] {
            b"messages" => Some(Self::NativeSend),
            b"receive" => Some(Self::NativeReceive),
            b"ack" => Some(Self::NativeAck),
            _ => None,
        }
    }
}

/// One entry of a batch; alone, it has no id.
#[derive(Debug, Default)]
pub struct Entry {
    pub id: Place,
    /// A body, or a handle.
    pub value: Place,
    pub attributes: Vec<Given>,
}

/// An attribute of a message that is sent.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    pub name: Place,
    pub kind: Place,
    pub value: Place,
}

impl Given {
    /// Its name, type and value; None = they are no texts.
    pub fn read<'a>(&self, scanner: &'a Scanner) -> Option<Attribute<'a>> {
        let text = |place| std::str::from_utf8(scanner.text(place)).ok();
        Some(Attribute { name: text(self.name)?, kind: text(self.kind)?, value: scanner.text(self.value) })
    }
}

/// A request in the plain form. None = not given; of the native API it has no URL.
#[derive(Debug, Default)]
pub struct Request {
    pub url: Place,
    pub entries: Vec<Entry>,
    pub most: Option<i64>,
    pub wait_s: Option<i64>,
    pub lease_s: Option<i64>,
    /// What a receive asks to be told of each message beside its body.
    pub names: Names,
}

/// Reads the body of a request. Every field is there once at most.
pub fn read(verb: Verb, scanner: &mut Scanner) -> Scan<Request> {
    if verb.is_native() {
        native::read(verb, scanner)
    } else {
        sqs::read(verb, scanner)
    }
}

/// A string that is not empty.
pub fn some_text(scanner: &mut Scanner, most: usize) -> Scan<Place> {
    let place = scanner.string()?;
    if (1..=most).contains(&scanner.text(place).len()) {
        Ok(place)
    } else {
        Err(Refused)
    }
}

pub fn number(scanner: &mut Scanner, least: i64, most: i64) -> Scan<i64> {
    let value = scanner.integer()?;
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(Refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_by_path() {
        assert_eq!(Verb::of_path(b"/v1/queues/q/messages"), Some(Verb::NativeSend));
        assert_eq!(Verb::of_path(b"/v1/queues//ack"), Some(Verb::NativeAck)); // Python knows names
        for other in ["/v1/queues/q/extend", "/v1/queues/q/messages/1", "/v1/queues/q", "/v2/queues/q/ack", "/ack"] {
            assert_eq!(Verb::of_path(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn verbs_by_target() {
        assert_eq!(Verb::of_target(b"AmazonSQS.SendMessage"), Some(Verb::Send));
        assert_eq!(Verb::of_target(b"AmazonSQS.CreateQueue"), None);
        assert_eq!(Verb::of_target(b"SendMessage"), None);
    }
}
