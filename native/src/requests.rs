//! The plain form of the hot requests of SQS over JSON, and of the native API: which fields, of which
//! type, in which range.
//!
//! What is not in it may still be good, or have an error of its own: Python knows.

use std::collections::HashSet;

use crate::json::{Place, Refused, Scan, Scanner};

/// Entries of a batch of SQS.
pub const MOST_ENTRIES: usize = 10;
/// Handles of an ack of the native API.
pub const MOST_NATIVE: usize = 100;
/// Messages of a send of the native API: what sends more gains nothing here (docs/decisions/0033).
pub const MOST_SENT: usize = 32;
const ENTRY_ID_BYTES: usize = 80;
const HANDLE_BYTES: usize = 1024;
const URL_BYTES: usize = 2048;

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

    fn value_key(self) -> &'static [u8] {
        match self {
            Self::Send | Self::SendBatch => b"MessageBody",
            _ => b"ReceiptHandle",
        }
    }

    fn most_value_bytes(self) -> usize {
        match self {
            Self::Send | Self::SendBatch => usize::MAX, // the queue says how much
            _ => HANDLE_BYTES,
        }
    }
}

/// One entry of a batch; alone, it has no id.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub id: Place,
    pub value: Place,
}

/// A request in the plain form. None = not given; of the native API it has no URL.
#[derive(Debug, Default)]
pub struct Request {
    pub url: Place,
    pub entries: Vec<Entry>,
    pub most: Option<i64>,
    pub wait_s: Option<i64>,
    pub lease_s: Option<i64>,
}

/// Reads the body of a request. Every field is there once at most.
pub fn read(verb: Verb, scanner: &mut Scanner) -> Scan<Request> {
    match verb {
        Verb::NativeSend | Verb::NativeReceive | Verb::NativeAck => native(verb, scanner),
        _ => sqs(verb, scanner),
    }
}

/// Of the native API, whose paths name the queue. What has options of its own is left to Python.
fn native(verb: Verb, scanner: &mut Scanner) -> Scan<Request> {
    let mut found = Request::default();
    scanner.expect(b'{')?;
    if verb == Verb::NativeReceive && scanner.eat(b'}') {
        scanner.expect_end()?;
        return Ok(found);
    }
    loop {
        let key = scanner.key()?;
        match (scanner.text(key), verb) {
            (b"messages", Verb::NativeSend) if found.entries.is_empty() => found.entries = values(verb, scanner)?,
            (b"handles", Verb::NativeAck) if found.entries.is_empty() => found.entries = values(verb, scanner)?,
            (b"max", Verb::NativeReceive) if found.most.is_none() => found.most = Some(number(scanner, 1, 100)?),
            (b"wait_seconds", Verb::NativeReceive) if found.wait_s.is_none() => {
                found.wait_s = Some(number(scanner, 0, 20)?);
            }
            (b"lease_seconds", Verb::NativeReceive) if found.lease_s.is_none() => {
                found.lease_s = Some(number(scanner, 0, 43_200)?);
            }
            _ => return Err(Refused),
        }
        if !scanner.eat(b',') {
            break;
        }
    }
    scanner.expect(b'}')?;
    scanner.expect_end()?;
    if verb != Verb::NativeReceive && found.entries.is_empty() {
        return Err(Refused);
    }
    Ok(found)
}

/// The bodies of messages, `{"body": text}` each, or handles, each of which is there once.
fn values(verb: Verb, scanner: &mut Scanner) -> Scan<Vec<Entry>> {
    let mut found: Vec<Entry> = Vec::new();
    let most = if verb == Verb::NativeSend { MOST_SENT } else { MOST_NATIVE };
    scanner.expect(b'[')?;
    loop {
        let value = if verb == Verb::NativeSend { body(scanner)? } else { some_text(scanner, HANDLE_BYTES)? };
        if found.len() == most {
            return Err(Refused);
        }
        found.push(Entry { id: Place::default(), value });
        if !scanner.eat(b',') {
            break;
        }
    }
    scanner.expect(b']')?;
    if verb == Verb::NativeAck {
        let distinct: HashSet<&[u8]> = found.iter().map(|entry| scanner.text(entry.value)).collect();
        if distinct.len() < found.len() {
            return Err(Refused);
        }
    }
    Ok(found)
}

fn body(scanner: &mut Scanner) -> Scan<Place> {
    scanner.expect(b'{')?;
    let key = scanner.key()?;
    if scanner.text(key) != b"body" {
        return Err(Refused);
    }
    let value = some_text(scanner, usize::MAX)?;
    scanner.expect(b'}')?;
    Ok(value)
}

fn sqs(verb: Verb, scanner: &mut Scanner) -> Scan<Request> {
    let mut url = None;
    let mut found = Request::default();
    scanner.expect(b'{')?;
    loop {
        let key = scanner.key()?;
        match (scanner.text(key), verb) {
            (b"QueueUrl", _) if url.is_none() => url = Some(some_text(scanner, URL_BYTES)?),
            (b"Entries", Verb::SendBatch | Verb::DeleteBatch) if found.entries.is_empty() => {
                found.entries = entries(verb, scanner)?;
            }
            (b"MaxNumberOfMessages", Verb::Receive) if found.most.is_none() => {
                found.most = Some(number(scanner, 1, 10)?)
            }
            (b"WaitTimeSeconds", Verb::Receive) if found.wait_s.is_none() => {
                found.wait_s = Some(number(scanner, 0, 20)?)
            }
            (b"VisibilityTimeout", Verb::Receive) if found.lease_s.is_none() => {
                found.lease_s = Some(number(scanner, 0, 43_200)?);
            }
            (name, Verb::Send | Verb::Delete) if name == verb.value_key() && found.entries.is_empty() => {
                let value = some_text(scanner, verb.most_value_bytes())?;
                found.entries.push(Entry { id: Place::default(), value });
            }
            _ => return Err(Refused),
        }
        if !scanner.eat(b',') {
            break;
        }
    }
    scanner.expect(b'}')?;
    scanner.expect_end()?;
    found.url = url.ok_or(Refused)?;
    if verb != Verb::Receive && found.entries.is_empty() {
        return Err(Refused);
    }
    Ok(found)
}

fn entries(verb: Verb, scanner: &mut Scanner) -> Scan<Vec<Entry>> {
    let mut found: Vec<Entry> = Vec::with_capacity(MOST_ENTRIES);
    scanner.expect(b'[')?;
    loop {
        let one = entry(verb, scanner)?;
        let again = found.iter().any(|other| {
            scanner.text(other.id) == scanner.text(one.id)
                // Two of one handle are one to the engine, and two answers.
                || (verb == Verb::DeleteBatch && scanner.text(other.value) == scanner.text(one.value))
        });
        if again || found.len() == MOST_ENTRIES {
            return Err(Refused);
        }
        found.push(one);
        if !scanner.eat(b',') {
            break;
        }
    }
    scanner.expect(b']')?;
    Ok(found)
}

fn entry(verb: Verb, scanner: &mut Scanner) -> Scan<Entry> {
    let (mut id, mut value) = (None, None);
    scanner.expect(b'{')?;
    loop {
        let key = scanner.key()?;
        match scanner.text(key) {
            b"Id" if id.is_none() => id = Some(entry_id(scanner)?),
            name if name == verb.value_key() && value.is_none() => {
                value = Some(some_text(scanner, verb.most_value_bytes())?);
            }
            _ => return Err(Refused),
        }
        if !scanner.eat(b',') {
            break;
        }
    }
    scanner.expect(b'}')?;
    Ok(Entry { id: id.ok_or(Refused)?, value: value.ok_or(Refused)? })
}

fn entry_id(scanner: &mut Scanner) -> Scan<Place> {
    let place = some_text(scanner, ENTRY_ID_BYTES)?;
    let legal = scanner.text(place).iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if legal {
        Ok(place)
    } else {
        Err(Refused)
    }
}

/// A string that is not empty.
fn some_text(scanner: &mut Scanner, most: usize) -> Scan<Place> {
    let place = scanner.string()?;
    if (1..=most).contains(&scanner.text(place).len()) {
        Ok(place)
    } else {
        Err(Refused)
    }
}

fn number(scanner: &mut Scanner, least: i64, most: i64) -> Scan<i64> {
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

    fn is_plain(verb: Verb, body: &str) -> bool {
        let mut scratch = Vec::new();
        read(verb, &mut Scanner::new(body.as_bytes(), &mut scratch)).is_ok()
    }

    #[test]
    fn plain_requests() {
        for (verb, body) in [
            (Verb::Send, r#"{"QueueUrl":"u","MessageBody":"b"}"#),
            (Verb::Send, r#" { "MessageBody" : "b" , "QueueUrl" : "u" } "#),
            (
                Verb::SendBatch,
                r#"{"QueueUrl":"u","Entries":[{"Id":"0","MessageBody":"b"},{"MessageBody":"b","Id":"1-_x"}]}"#,
            ),
            (Verb::Receive, r#"{"QueueUrl":"u"}"#),
            (
                Verb::Receive,
                r#"{"QueueUrl":"u","MaxNumberOfMessages":10,"WaitTimeSeconds":20,"VisibilityTimeout":43200}"#,
            ),
            (Verb::Delete, r#"{"QueueUrl":"u","ReceiptHandle":"h"}"#),
            (Verb::DeleteBatch, r#"{"QueueUrl":"u","Entries":[{"Id":"0","ReceiptHandle":"h"}]}"#),
        ] {
            assert!(is_plain(verb, body), "{body}");
        }
    }

    #[test]
    fn requests_that_are_left_to_python() {
        let eleven = (0..11).map(|n| format!(r#"{{"Id":"{n}","MessageBody":"b"}}"#)).collect::<Vec<_>>().join(",");
        for (verb, body) in [
            (Verb::Send, r#"{"QueueUrl":"u"}"#),
            (Verb::Send, r#"{"MessageBody":"b"}"#),
            (Verb::Send, r#"{"QueueUrl":"u","MessageBody":""}"#),
            (Verb::Send, r#"{"QueueUrl":"","MessageBody":"b"}"#),
            (Verb::Send, r#"{"QueueUrl":"u","MessageBody":"b","DelaySeconds":1}"#),
            (Verb::Send, r#"{"QueueUrl":"u","MessageBody":"b","MessageBody":"c"}"#),
            (Verb::Send, r#"{"QueueUrl":"u","QueueUrl":"v","MessageBody":"b"}"#),
            (Verb::Send, r#"{"QueueUrl":"u","MessageBody":null}"#),
            (Verb::Send, r#"{"QueueUrl":"u","MessageBody":"b",}"#),
            (Verb::Send, r#"{"QueueUrl":"u","MessageBody":"b"} x"#),
            (Verb::Send, r#"{}"#),
            (Verb::SendBatch, r#"{"QueueUrl":"u","Entries":[]}"#),
            (
                Verb::SendBatch,
                r#"{"QueueUrl":"u","Entries":[{"Id":"0","MessageBody":"b"},{"Id":"0","MessageBody":"b"}]}"#,
            ),
            (Verb::SendBatch, r#"{"QueueUrl":"u","Entries":[{"Id":"a b","MessageBody":"b"}]}"#),
            (Verb::SendBatch, r#"{"QueueUrl":"u","Entries":[{"Id":"é","MessageBody":"b"}]}"#),
            (Verb::SendBatch, r#"{"QueueUrl":"u","Entries":[{"MessageBody":"b"}]}"#),
            (Verb::SendBatch, &format!(r#"{{"QueueUrl":"u","Entries":[{eleven}]}}"#)),
            (Verb::Receive, r#"{"QueueUrl":"u","MaxNumberOfMessages":0}"#),
            (Verb::Receive, r#"{"QueueUrl":"u","MaxNumberOfMessages":11}"#),
            (Verb::Receive, r#"{"QueueUrl":"u","WaitTimeSeconds":21}"#),
            (Verb::Receive, r#"{"QueueUrl":"u","VisibilityTimeout":-1}"#),
            (Verb::Receive, r#"{"QueueUrl":"u","AttributeNames":["All"]}"#),
            (
                Verb::DeleteBatch,
                r#"{"QueueUrl":"u","Entries":[{"Id":"0","ReceiptHandle":"h"},{"Id":"1","ReceiptHandle":"h"}]}"#,
            ),
        ] {
            assert!(!is_plain(verb, body), "{body}");
        }
    }

    #[test]
    fn plain_requests_of_the_native_api() {
        let hundred = (0..100).map(|n| format!(r#""{n}""#)).collect::<Vec<_>>().join(",");
        for (verb, body) in [
            (Verb::NativeSend, r#"{"messages":[{"body":"a"},{"body":"a"}]}"#),
            (Verb::NativeReceive, "{}"),
            (Verb::NativeReceive, r#"{"max":100,"wait_seconds":20,"lease_seconds":43200}"#),
            (Verb::NativeAck, &format!(r#"{{"handles":[{hundred}]}}"#)),
        ] {
            assert!(is_plain(verb, body), "{body}");
        }
        for (verb, body) in [
            (Verb::NativeSend, r#"{"messages":[]}"#),
            (Verb::NativeSend, r#"{"messages":[{}]}"#),
            (Verb::NativeSend, r#"{"messages":[{"body":""}]}"#),
            (Verb::NativeSend, r#"{"messages":[{"body":"a","group":"g"}]}"#),
            (Verb::NativeSend, r#"{"messages":[{"body_base64":"aa=="}]}"#),
            (Verb::NativeSend, r#"{"messages":[{"body":"a"}],"messages":[{"body":"a"}]}"#),
            (Verb::NativeSend, "{}"),
            (Verb::NativeSend, &format!(r#"{{"messages":[{}]}}"#, vec![r#"{"body":"a"}"#; 33].join(","))),
            (Verb::NativeReceive, r#"{"max":0}"#),
            (Verb::NativeReceive, r#"{"max":101}"#),
            (Verb::NativeReceive, r#"{"max":1.0}"#),
            (Verb::NativeReceive, r#"{"wait_seconds":0.5}"#),
            (Verb::NativeReceive, r#"{"wait_seconds":21}"#),
            (Verb::NativeReceive, r#"{"lease_seconds":43201}"#),
            (Verb::NativeReceive, r#"{"tag":"t"}"#),
            (Verb::NativeAck, r#"{"handles":["a","a"]}"#),
            (Verb::NativeAck, r#"{"handles":["a",1]}"#),
            (Verb::NativeAck, &format!(r#"{{"handles":[{hundred},"100"]}}"#)),
            (Verb::NativeAck, "{}"),
        ] {
            assert!(!is_plain(verb, body), "{body}");
        }
    }

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
