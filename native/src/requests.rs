//! The plain form of the hot requests: what is common to the dialects whose requests are read here.
//!
//! What is not in it may still be good, or have an error of its own: Python knows.

use crate::dialects::sqs::Names;
use crate::dialects::{emq, native, sqs};
use crate::json::{Place, Refused, Scan, Scanner};
use crate::plane::format::record::Attribute;
use crate::plane::unit::Act;
use crate::plane::whys::Why;

/// What is asked; its number is that of the group in which Python gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verb {
    Send = 1,
    SendBatch = 2,
    Receive = 3,
    Delete = 4,
    DeleteBatch = 5,
    Change = 6,
    ChangeBatch = 7,
    NativeSend = 12,
    NativeReceive = 13,
    NativeAck = 14,
    NativeExtend = 15,
    NativeRelease = 16,
    EmqSend = 21,
    EmqSendBatch = 22,
    EmqReceive = 23,
    EmqDelete = 24,
    EmqDeleteBatch = 25,
}

/// Whose verbs they are; its number is that by which Python knows the lanes of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Dialect {
    Sqs = 0,
    Native = 1,
    Emq = 2,
}

/// What a head says of its body: of which verb it is, or that it is a call of EMQ, which names its method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Of(Verb),
    Thrift(emq::Protocol),
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
            b"ChangeMessageVisibility" => Some(Self::Change),
            b"ChangeMessageVisibilityBatch" => Some(Self::ChangeBatch),
            _ => None,
        }
    }

    pub fn dialect(self) -> Dialect {
        match self as u8 {
            number if number < Self::NativeSend as u8 => Dialect::Sqs,
            number if number < Self::EmqSend as u8 => Dialect::Native,
            _ => Dialect::Emq,
        }
    }

    /// The verb with a number; for tests.
    pub fn of_number(number: u64) -> Option<Self> {
        const ALL: [Verb; 17] = [
            Verb::Send,
            Verb::SendBatch,
            Verb::Receive,
            Verb::Delete,
            Verb::DeleteBatch,
            Verb::Change,
            Verb::ChangeBatch,
            Verb::NativeSend,
            Verb::NativeReceive,
            Verb::NativeAck,
            Verb::NativeExtend,
            Verb::NativeRelease,
            Verb::EmqSend,
            Verb::EmqSendBatch,
            Verb::EmqReceive,
            Verb::EmqDelete,
            Verb::EmqDeleteBatch,
        ];
        ALL.into_iter().find(|verb| *verb as u64 == number)
    }

    /// What it does with handles, if it has some.
    pub fn act(self) -> Option<Act> {
        match self {
            Self::Delete | Self::DeleteBatch | Self::NativeAck | Self::EmqDelete | Self::EmqDeleteBatch => {
                Some(Act::Ack)
            }
            Self::Change | Self::ChangeBatch | Self::NativeExtend => Some(Act::Extend),
            Self::NativeRelease => Some(Act::Release),
            _ => None,
        }
    }

    /// Whether its reply has a word for what became of each handle, or does not say.
    pub fn tells_each(self) -> bool {
        !matches!(self, Self::Change | Self::ChangeBatch)
    }

    /// Whether messages are sent by it.
    pub fn is_send(self) -> bool {
        matches!(self, Self::Send | Self::SendBatch | Self::NativeSend | Self::EmqSend | Self::EmqSendBatch)
    }

    /// The verb of a path of the native API, `/v1/queues/{queue}/...`.
    pub fn of_path(path: &[u8]) -> Option<Self> {
        let rest = path.strip_prefix(b"/v1/queues/")?;
        let slash = memchr::memchr(b'/', rest)?;
        match &rest[slash + 1..] {
            b"messages" => Some(Self::NativeSend),
            b"receive" => Some(Self::NativeReceive),
            b"ack" => Some(Self::NativeAck),
            b"extend" => Some(Self::NativeExtend),
            b"release" => Some(Self::NativeRelease),
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
    /// Of a message that says how long it is delayed.
    pub delay_s: Option<i64>,
    /// Of a handle whose lease is to be another.
    pub lease_s: i64,
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

/// A request in the plain form. None = not given; of the native API it has no URL, of EMQ the name of the queue
/// in its place.
#[derive(Debug, Default)]
pub struct Request {
    pub url: Place,
    pub entries: Vec<Entry>,
    pub most: Option<i64>,
    pub wait_s: Option<i64>,
    pub lease_s: Option<i64>,
    /// What a receive asks to be told of each message beside its body.
    pub names: Names,
    /// Of EMQ.
    pub call: Option<emq::Call>,
}

/// Reads the body of a request. Every field is there once at most.
pub fn read(form: Form, scanner: &mut Scanner) -> Result<(Verb, Request), Why> {
    let verb = match form {
        Form::Of(verb) => verb,
        Form::Thrift(protocol) => return emq::read(protocol, scanner),
    };
    let found = if verb.dialect() == Dialect::Native { native::read(verb, scanner) } else { sqs::read(verb, scanner) };
    found.map(|request| (verb, request)).map_err(|_| Why::Fields)
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
        for other in ["/v1/queues/q/kill", "/v1/queues/q/messages/1", "/v1/queues/q", "/v2/queues/q/ack", "/ack"] {
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
