//! The plain form of the hot requests of SQS over JSON: which fields, of which type, in which range.

use super::attributes;
use super::names::Field;
use crate::json::{Place, Refused, Scan, Scanner};
use crate::requests::{number, some_text, Entry, Given, Request, Verb};

/// Entries of a batch.
const MOST_ENTRIES: usize = 10;
const ENTRY_ID_BYTES: usize = 80;
const HANDLE_BYTES: usize = 1024;
const URL_BYTES: usize = 2048;
const MOST_DELAY_S: i64 = 900;
const MOST_LEASE_S: i64 = 43_200;

fn value_key(verb: Verb) -> &'static [u8] {
    match verb {
        Verb::Send | Verb::SendBatch => b"MessageBody",
        _ => b"ReceiptHandle",
    }
}

fn most_value_bytes(verb: Verb) -> usize {
    match verb {
        Verb::Send | Verb::SendBatch => usize::MAX, // the queue says how much
        _ => HANDLE_BYTES,
    }
}

/// Reads the body of a request.
pub fn read(verb: Verb, scanner: &mut Scanner) -> Scan<Request> {
    let mut url = None;
    let (mut found, mut alone) = (Request::default(), Parts::default());
    scanner.fields(|scanner, key| {
        match (scanner.text(key), verb) {
            (b"QueueUrl", _) if url.is_none() => url = Some(some_text(scanner, URL_BYTES)?),
            (b"MessageAttributes", Verb::Send) if alone.attributes.is_none() => {
                alone.attributes = Some(attributes::read(scanner)?);
            }
            (b"DelaySeconds", Verb::Send) if alone.delay_s.is_none() => {
                alone.delay_s = Some(number(scanner, 0, MOST_DELAY_S)?);
            }
            (b"Entries", Verb::SendBatch | Verb::DeleteBatch | Verb::ChangeBatch) if found.entries.is_empty() => {
                found.entries = entries(verb, scanner)?;
            }
            (b"MaxNumberOfMessages", Verb::Receive) if found.most.is_none() => {
                found.most = Some(number(scanner, 1, 10)?)
            }
            (b"WaitTimeSeconds", Verb::Receive) if found.wait_s.is_none() => {
                found.wait_s = Some(number(scanner, 0, 20)?)
            }
            (b"VisibilityTimeout", Verb::Receive) if found.lease_s.is_none() => {
                found.lease_s = Some(number(scanner, 0, MOST_LEASE_S)?);
            }
            (b"AttributeNames", Verb::Receive) => found.names.read_system(Field::Old, scanner)?,
            (b"MessageSystemAttributeNames", Verb::Receive) => found.names.read_system(Field::New, scanner)?,
            (b"MessageAttributeNames", Verb::Receive) => found.names.read_user(scanner)?,
            (b"VisibilityTimeout", Verb::Change) if alone.lease_s.is_none() => {
                alone.lease_s = Some(number(scanner, 0, MOST_LEASE_S)?);
            }
            (name, Verb::Send | Verb::Delete | Verb::Change) if name == value_key(verb) && alone.value.is_none() => {
                alone.value = Some(some_text(scanner, most_value_bytes(verb))?);
            }
            _ => return Err(Refused),
        }
        Ok(())
    })?;
    scanner.expect_end()?;
    found.url = url.ok_or(Refused)?;
    if alone.value.is_some() {
        found.entries.push(alone.entry(verb, Place::default())?);
    }
    if verb != Verb::Receive && found.entries.is_empty() {
        return Err(Refused);
    }
    Ok(found)
}

fn entries(verb: Verb, scanner: &mut Scanner) -> Scan<Vec<Entry>> {
    let mut found: Vec<Entry> = Vec::with_capacity(MOST_ENTRIES);
    scanner.items(|scanner| {
        let one = entry(verb, scanner)?;
        let again = found.iter().any(|other| {
            scanner.text(other.id) == scanner.text(one.id)
                // Two of one handle are one to the engine, and two answers.
                || (verb != Verb::SendBatch && scanner.text(other.value) == scanner.text(one.value))
        });
        if again || found.len() == MOST_ENTRIES {
            return Err(Refused);
        }
        found.push(one);
        Ok(())
    })?;
    Ok(found)
}

/// What an entry has, or a request that is no batch.
#[derive(Default)]
struct Parts {
    value: Option<Place>,
    attributes: Option<Vec<Given>>,
    delay_s: Option<i64>,
    lease_s: Option<i64>,
}

impl Parts {
    fn entry(self, verb: Verb, id: Place) -> Scan<Entry> {
        if self.lease_s.is_some() != matches!(verb, Verb::Change | Verb::ChangeBatch) {
            return Err(Refused);
        }
        let (value, lease_s) = (self.value.ok_or(Refused)?, self.lease_s.unwrap_or(0));
        Ok(Entry { id, value, attributes: self.attributes.unwrap_or_default(), delay_s: self.delay_s, lease_s })
    }
}

fn entry(verb: Verb, scanner: &mut Scanner) -> Scan<Entry> {
    let (mut id, mut parts) = (None, Parts::default());
    scanner.fields(|scanner, key| {
        match (scanner.text(key), verb) {
            (b"Id", _) if id.is_none() => id = Some(entry_id(scanner)?),
            (b"MessageAttributes", Verb::SendBatch) if parts.attributes.is_none() => {
                parts.attributes = Some(attributes::read(scanner)?);
            }
            (b"DelaySeconds", Verb::SendBatch) if parts.delay_s.is_none() => {
                parts.delay_s = Some(number(scanner, 0, MOST_DELAY_S)?);
            }
            (b"VisibilityTimeout", Verb::ChangeBatch) if parts.lease_s.is_none() => {
                parts.lease_s = Some(number(scanner, 0, MOST_LEASE_S)?);
            }
            (name, _) if name == value_key(verb) && parts.value.is_none() => {
                parts.value = Some(some_text(scanner, most_value_bytes(verb))?);
            }
            _ => return Err(Refused),
        }
        Ok(())
    })?;
    parts.entry(verb, id.ok_or(Refused)?)
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
            (
                Verb::Send,
                concat!(
                    r#"{"QueueUrl":"u","DelaySeconds":900,"MessageAttributes":{"a":{"DataType":"String","#,
                    r#""StringValue":"v"}},"MessageBody":"b"}"#
                ),
            ),
            (
                Verb::SendBatch,
                r#"{"QueueUrl":"u","Entries":[{"Id":"0","MessageBody":"b","MessageAttributes":{},"DelaySeconds":0}]}"#,
            ),
            (Verb::Receive, r#"{"QueueUrl":"u"}"#),
            (
                Verb::Receive,
                r#"{"QueueUrl":"u","MaxNumberOfMessages":10,"WaitTimeSeconds":20,"VisibilityTimeout":43200}"#,
            ),
            (
                Verb::Receive,
                concat!(
                    r#"{"QueueUrl":"u","AttributeNames":["All"],"MessageSystemAttributeNames":[],"#,
                    r#""MessageAttributeNames":["a.*"]}"#
                ),
            ),
            (Verb::Delete, r#"{"QueueUrl":"u","ReceiptHandle":"h"}"#),
            (Verb::DeleteBatch, r#"{"QueueUrl":"u","Entries":[{"Id":"0","ReceiptHandle":"h"}]}"#),
            (Verb::Change, r#"{"QueueUrl":"u","ReceiptHandle":"h","VisibilityTimeout":0}"#),
            (
                Verb::ChangeBatch,
                concat!(
                    r#"{"QueueUrl":"u","Entries":[{"Id":"0","ReceiptHandle":"h","VisibilityTimeout":43200},"#,
                    r#"{"Id":"1","ReceiptHandle":"i","VisibilityTimeout":0}]}"#
                ),
            ),
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
            (Verb::Send, r#"{"QueueUrl":"u","MessageBody":"b","DelaySeconds":901}"#),
            (Verb::Send, r#"{"QueueUrl":"u","MessageBody":"b","DelaySeconds":-1}"#),
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
            (Verb::Receive, r#"{"QueueUrl":"u","AttributeNames":["All"],"AttributeNames":["All"]}"#),
            (Verb::Receive, r#"{"QueueUrl":"u","MessageAttributeNames":["a","b"],"MessageAttributeNames":["c"]}"#),
            (Verb::Receive, r#"{"QueueUrl":"u","MessageSystemAttributeNames":"All"}"#),
            (Verb::Receive, r#"{"QueueUrl":"u","MessageSystemAttributeNames":[1]}"#),
            (Verb::Receive, r#"{"QueueUrl":"u","AttributeNames":["All",]}"#),
            (Verb::Receive, r#"{"QueueUrl":"u","AttributeNames":null}"#),
            (Verb::Receive, &format!(r#"{{"QueueUrl":"u","MessageAttributeNames":[{}]}}"#, ["\"a\""; 65].join(","))),
            (Verb::Send, r#"{"QueueUrl":"u","MessageBody":"b","AttributeNames":["All"]}"#),
            (Verb::Send, r#"{"QueueUrl":"u","MessageBody":"b","DelaySeconds":0,"DelaySeconds":0}"#),
            (Verb::Send, r#"{"QueueUrl":"u","MessageAttributes":{},"DelaySeconds":0}"#),
            (Verb::Delete, r#"{"QueueUrl":"u","ReceiptHandle":"h","MessageAttributes":{}}"#),
            (Verb::DeleteBatch, r#"{"QueueUrl":"u","Entries":[{"Id":"0","ReceiptHandle":"h","DelaySeconds":0}]}"#),
            (
                Verb::DeleteBatch,
                r#"{"QueueUrl":"u","Entries":[{"Id":"0","ReceiptHandle":"h"},{"Id":"1","ReceiptHandle":"h"}]}"#,
            ),
            (Verb::Delete, r#"{"QueueUrl":"u","ReceiptHandle":"h","VisibilityTimeout":1}"#),
            (Verb::Change, r#"{"QueueUrl":"u","ReceiptHandle":"h"}"#),
            (Verb::Change, r#"{"QueueUrl":"u","ReceiptHandle":"h","VisibilityTimeout":43201}"#),
            (Verb::Change, r#"{"QueueUrl":"u","ReceiptHandle":"h","VisibilityTimeout":"1"}"#),
            (Verb::Change, r#"{"QueueUrl":"u","VisibilityTimeout":1}"#),
            (Verb::ChangeBatch, r#"{"QueueUrl":"u","Entries":[{"Id":"0","ReceiptHandle":"h"}]}"#),
            (
                Verb::ChangeBatch,
                concat!(
                    r#"{"QueueUrl":"u","Entries":[{"Id":"0","ReceiptHandle":"h","VisibilityTimeout":1},{"Id":"1","#,
                    r#""ReceiptHandle":"h","VisibilityTimeout":1}]}"#
                ),
            ),
        ] {
            assert!(!is_plain(verb, body), "{body}");
        }
    }
}
