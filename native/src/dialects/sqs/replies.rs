//! The JSON of good replies of SQS, field by field as `facade/dialects/sqs/messages` has it.

use std::io::Write as _;

use super::attributes::{self, Shown};
use super::names::{Names, SYSTEM};
use super::traces;
use crate::base64;
use crate::dialects::Repeated;
use crate::plane::clients::Delivery;
use crate::quote;
use crate::replies::digest;

/// Of SYSTEM: not every message has it.
const TRACE: &str = "AWSTraceHeader";

/// Writes what a receive is told.
pub fn received(json: &mut Vec<u8>, names: &Names, messages: &[Delivery]) {
    if messages.is_empty() {
        json.extend_from_slice(b"{}");
        return;
    }
    for (place, one) in messages.iter().enumerate() {
        json.extend_from_slice(if place == 0 { b"{\"Messages\":[" } else { b"," });
        message(json, names, one);
    }
    json.extend_from_slice(b"]}");
}

fn message(json: &mut Vec<u8>, names: &Names, one: &Delivery) {
    json.extend_from_slice(b"{\"MessageId\":\"");
    json.extend_from_slice(&one.id);
    json.extend_from_slice(b"\",\"ReceiptHandle\":\"");
    json.extend_from_slice(&one.handle);
    json.extend_from_slice(b"\",\"MD5OfBody\":\"");
    let at = json.len();
    json.extend_from_slice(&one.message.digest);
    json.extend_from_slice(b"\",\"Body\":\"");
    let body = one.message.body();
    if !quote::allowed(json, body) {
        // Bytes that a sender of another dialect gave, and that are no text of SQS.
        let shown = base64::encode(body);
        json[at..at + 32].copy_from_slice(&digest(shown.as_bytes()));
        json.extend_from_slice(shown.as_bytes());
    }
    json.push(b'"');
    if !names.is_empty() {
        system_attributes(json, names, one);
        user_attributes(json, names, one);
    }
    json.push(b'}');
}

fn system_attributes(json: &mut Vec<u8>, names: &Names, one: &Delivery) {
    let mut is_first = true;
    for (place, name) in SYSTEM.iter().enumerate().filter(|(place, _)| names.asks_system(*place)) {
        let trace = if name == &TRACE { traces::header_of(one.message) } else { None };
        if name == &TRACE && trace.is_none() {
            continue;
        }
        json.extend_from_slice(if is_first { b",\"Attributes\":{\"" } else { b"\",\"" });
        is_first = false;
        json.extend_from_slice(name.as_bytes());
        json.extend_from_slice(b"\":\"");
        // A vector takes all that is written.
        let _ = match place {
            0 => {
                quote::text(json, one.message.sender());
                Ok(())
            }
            1 => write!(json, "{}", one.message.sent_at_ms),
            2 => write!(json, "{}", one.count),
            3 => write!(json, "{}", one.first_ms),
            _ => write!(json, "{}", trace.unwrap_or_default()),
        };
    }
    if !is_first {
        json.extend_from_slice(b"\"}");
    }
}

fn user_attributes(json: &mut Vec<u8>, names: &Names, one: &Delivery) {
    let shown = attributes::shown(names, one.message);
    if shown.is_empty() {
        return;
    }
    json.extend_from_slice(b",\"MD5OfMessageAttributes\":\"");
    json.extend_from_slice(&attributes::digest_of_shown(&shown));
    for (place, Shown { name, kind, value }) in shown.iter().enumerate() {
        json.extend_from_slice(if place == 0 { b"\",\"MessageAttributes\":{\"" } else { b"\"},\"" });
        quote::text(json, name.as_bytes());
        json.extend_from_slice(b"\":{\"DataType\":\"");
        quote::text(json, kind.as_bytes());
        if attributes::is_binary(kind) {
            json.extend_from_slice(b"\",\"BinaryValue\":\"");
            json.extend_from_slice(base64::encode(value).as_bytes());
        } else {
            json.extend_from_slice(b"\",\"StringValue\":\"");
            quote::text(json, value);
        }
    }
    json.extend_from_slice(b"\"}}");
}

/// Writes what a send is told: of one message, or of each of a batch.
pub fn sent(json: &mut Vec<u8>, entries: &[Repeated], ids: &[[u8; 36]]) {
    if let ([entry], [id, ..]) = (entries, ids) {
        if entry.id.is_empty() {
            return one_sent(json, id, entry);
        }
    }
    json.extend_from_slice(b"{\"Successful\":[");
    for (place, (entry, id)) in entries.iter().zip(ids).enumerate() {
        json.extend_from_slice(if place == 0 { b"" } else { b"," });
        one_sent(json, id, entry);
    }
    json.extend_from_slice(b"]}");
}

fn one_sent(json: &mut Vec<u8>, id: &[u8], entry: &Repeated) {
    json.extend_from_slice(b"{\"MessageId\":\"");
    json.extend_from_slice(id);
    json.extend_from_slice(b"\",\"MD5OfMessageBody\":\"");
    json.extend_from_slice(&entry.digest);
    if let Some(digest) = &entry.attributes {
        json.extend_from_slice(b"\",\"MD5OfMessageAttributes\":\"");
        json.extend_from_slice(digest);
    }
    if !entry.id.is_empty() {
        json.extend_from_slice(b"\",\"Id\":\"");
        json.extend_from_slice(&entry.id);
    }
    json.extend_from_slice(b"\"}");
}

/// Writes what a request on handles is told, each of which is OK, or is deleted: SQS says nothing else of
/// these, whatever became of them.
pub fn done(json: &mut Vec<u8>, entries: &[Repeated]) {
    if entries.iter().all(|entry| entry.id.is_empty()) {
        json.extend_from_slice(b"{}");
        return;
    }
    for (place, entry) in entries.iter().enumerate() {
        json.extend_from_slice(if place == 0 { b"{\"Successful\":[{\"Id\":\"" } else { b",{\"Id\":\"" });
        json.extend_from_slice(&entry.id);
        json.extend_from_slice(b"\"}");
    }
    json.extend_from_slice(b"]}");
}
