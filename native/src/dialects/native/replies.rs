//! The JSON of good replies of the native API, field by field as `facade/dialects/native/wire/replies.py` has it.

use std::io::Write as _;

use crate::base64;
use crate::dialects::Repeated;
use crate::plane::clients::{Delivery, Word};
use crate::plane::format::record::Attribute;
use crate::quote;

/// Writes what a receive is told.
pub fn received(json: &mut Vec<u8>, messages: &[Delivery]) {
    json.extend_from_slice(b"{\"messages\":[");
    for (place, one) in messages.iter().enumerate() {
        json.extend_from_slice(if place == 0 { b"" } else { b"," });
        message(json, one);
    }
    json.extend_from_slice(b"]}");
}

fn message(json: &mut Vec<u8>, one: &Delivery) {
    json.extend_from_slice(b"{\"id\":\"");
    json.extend_from_slice(&one.id);
    json.extend_from_slice(b"\",\"handle\":\"");
    json.extend_from_slice(&one.handle);
    json.extend_from_slice(b"\",");
    text_or_bytes(json, "body", "body_base64", one.message.body(), one.message.parts.is_text);
    json.extend_from_slice(b",\"attributes\":{");
    let mut is_first = true;
    one.message.attributes(|Attribute { name, kind, value }| {
        json.extend_from_slice(if is_first { b"\"" } else { b",\"" });
        is_first = false;
        quote::text(json, name.as_bytes());
        json.extend_from_slice(b"\":{\"type\":\"");
        quote::text(json, kind.as_bytes());
        json.extend_from_slice(b"\",");
        text_or_bytes(json, "value", "value_base64", value, !is_binary(kind));
        json.push(b'}');
    });
    // A vector takes all that is written.
    let _ = write!(
        json,
        "}},\"sent_at_ms\":{},\"receive_count\":{},\"first_received_at_ms\":{},\"next_visible_at_ms\":{},\
         \"partition\":{},\"offset\":{}",
        one.message.sent_at_ms, one.count, one.first_ms, one.leased_until_ms, one.partition, one.offset
    );
    if let Some(priority) = one.message.parts.priority {
        let _ = write!(json, ",\"priority\":{priority}");
    }
    json.extend_from_slice(b",\"sender\":\"");
    quote::text(json, one.message.sender());
    json.extend_from_slice(b"\"}");
}

/// Whether an attribute of this type is bytes.
fn is_binary(kind: &str) -> bool {
    kind.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("binary"))
}

/// A text under `name`, or under `other` what is none.
fn text_or_bytes(json: &mut Vec<u8>, name: &str, other: &str, value: &[u8], is_text: bool) {
    let is_text = is_text && std::str::from_utf8(value).is_ok();
    let _ = write!(json, "\"{}\":\"", if is_text { name } else { other });
    if is_text {
        quote::text(json, value);
    } else {
        json.extend_from_slice(base64::encode(value).as_bytes());
    }
    json.push(b'"');
}

/// Writes what a send is told of each message.
pub fn sent(json: &mut Vec<u8>, entries: &[Repeated], ids: &[[u8; 36]], at_ms: u64) {
    json.extend_from_slice(b"{\"messages\":[");
    for (place, (entry, id)) in entries.iter().zip(ids).enumerate() {
        json.extend_from_slice(if place == 0 { b"{\"id\":\"" } else { b",{\"id\":\"" });
        json.extend_from_slice(id);
        json.extend_from_slice(b"\",\"body_md5\":\"");
        json.extend_from_slice(&entry.digest);
        let _ = write!(json, "\",\"sent_at_ms\":{at_ms}}}");
    }
    json.extend_from_slice(b"]}");
}

/// Writes what a request on handles is told of each: what became of it, and when its message is visible next (ms), 0
/// = not that.
pub fn acted(json: &mut Vec<u8>, entries: &[Repeated], results: &[(&Word, u64)]) {
    json.extend_from_slice(b"{\"results\":[");
    for (place, (entry, (word, visible_ms))) in entries.iter().zip(results).enumerate() {
        json.extend_from_slice(if place == 0 { b"{\"handle\":\"" } else { b",{\"handle\":\"" });
        quote::text(json, &entry.id);
        json.extend_from_slice(b"\",\"status\":\"");
        quote::text(json, &word.status);
        json.push(b'"');
        if !word.reason.is_empty() {
            json.extend_from_slice(b",\"reason\":\"");
            quote::text(json, &word.reason);
            json.push(b'"');
        }
        if *visible_ms > 0 {
            let _ = write!(json, ",\"next_visible_at_ms\":{visible_ms}");
        }
        json.push(b'}');
    }
    json.extend_from_slice(b"]}");
}
