//! The plain form of the native API's hot requests, whose paths name the queue. What has options of its own
//! is left to Python.

use std::collections::HashSet;

use super::attributes;
use crate::json::{Refused, Scan, Scanner};
use crate::requests::{number, some_text, Entry, Request, Verb};

/// Handles of an ack of the native API.
const MOST_NATIVE: usize = 100;
/// Messages of a send of the native API: what sends more gains nothing here.
const MOST_SENT: usize = 32;
const HANDLE_BYTES: usize = 1024;
const MOST_LEASE_S: i64 = 43_200;
const MOST_DELAY_S: i64 = 900;

/// Reads the body of a request.
pub fn read(verb: Verb, scanner: &mut Scanner) -> Scan<Request> {
    let (mut found, mut has_delay) = (Request::default(), false);
    if verb == Verb::NativeReceive && scanner.is_empty_object() {
        scanner.expect_end()?;
        return Ok(found);
    }
    scanner.fields(|scanner, key| {
        match (scanner.text(key), verb) {
            (b"messages", Verb::NativeSend) if found.entries.is_empty() => found.entries = values(verb, scanner)?,
            (b"handles", Verb::NativeAck | Verb::NativeRelease) if found.entries.is_empty() => {
                found.entries = values(verb, scanner)?
            }
            (b"entries", Verb::NativeExtend) if found.entries.is_empty() => found.entries = values(verb, scanner)?,
            // Python bounds how many have a delay.
            (b"delay_seconds", Verb::NativeRelease) if !has_delay => {
                number(scanner, 0, 0)?;
                has_delay = true;
            }
            (b"max", Verb::NativeReceive) if found.most.is_none() => found.most = Some(number(scanner, 1, 100)?),
            (b"wait_seconds", Verb::NativeReceive) if found.wait_s.is_none() => {
                found.wait_s = Some(number(scanner, 0, 20)?);
            }
            (b"lease_seconds", Verb::NativeReceive) if found.lease_s.is_none() => {
                found.lease_s = Some(number(scanner, 0, MOST_LEASE_S)?);
            }
            _ => return Err(Refused),
        }
        Ok(())
    })?;
    scanner.expect_end()?;
    if verb != Verb::NativeReceive && found.entries.is_empty() {
        return Err(Refused);
    }
    Ok(found)
}

/// Messages, or handles, each of which is there once.
fn values(verb: Verb, scanner: &mut Scanner) -> Scan<Vec<Entry>> {
    let mut found: Vec<Entry> = Vec::new();
    let most = if verb == Verb::NativeSend { MOST_SENT } else { MOST_NATIVE };
    scanner.items(|scanner| {
        let entry = match verb {
            Verb::NativeSend => message(scanner)?,
            Verb::NativeExtend => extension(scanner)?,
            _ => handle(scanner)?,
        };
        if found.len() == most {
            return Err(Refused);
        }
        found.push(entry);
        Ok(())
    })?;
    if verb != Verb::NativeSend {
        let distinct: HashSet<&[u8]> = found.iter().map(|entry| scanner.text(entry.value)).collect();
        if distinct.len() < found.len() {
            return Err(Refused);
        }
    }
    Ok(found)
}

fn handle(scanner: &mut Scanner) -> Scan<Entry> {
    Ok(Entry { value: some_text(scanner, HANDLE_BYTES)?, ..Entry::default() })
}

fn extension(scanner: &mut Scanner) -> Scan<Entry> {
    let (mut value, mut lease_s) = (None, None);
    scanner.fields(|scanner, key| {
        match scanner.text(key) {
            b"handle" if value.is_none() => value = Some(some_text(scanner, HANDLE_BYTES)?),
            b"lease_seconds" if lease_s.is_none() => lease_s = Some(number(scanner, 0, MOST_LEASE_S)?),
            _ => return Err(Refused),
        }
        Ok(())
    })?;
    Ok(Entry { value: value.ok_or(Refused)?, lease_s: lease_s.ok_or(Refused)?, ..Entry::default() })
}

fn message(scanner: &mut Scanner) -> Scan<Entry> {
    let (mut body, mut given, mut delay_s) = (None, None, None);
    scanner.fields(|scanner, key| {
        match scanner.text(key) {
            b"body" if body.is_none() => body = Some(some_text(scanner, usize::MAX)?),
            b"attributes" if given.is_none() => given = Some(attributes::read(scanner)?),
            b"delay_seconds" if delay_s.is_none() => delay_s = Some(number(scanner, 0, MOST_DELAY_S)?),
            _ => return Err(Refused),
        }
        Ok(())
    })?;
    Ok(Entry { value: body.ok_or(Refused)?, attributes: given.unwrap_or_default(), delay_s, ..Entry::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_plain(verb: Verb, body: &str) -> bool {
        let mut scratch = Vec::new();
        read(verb, &mut Scanner::new(body.as_bytes(), &mut scratch)).is_ok()
    }

    #[test]
    fn plain_requests_of_the_native_api() {
        let hundred = (0..100).map(|n| format!(r#""{n}""#)).collect::<Vec<_>>().join(",");
        for (verb, body) in [
            (Verb::NativeSend, r#"{"messages":[{"body":"a"},{"body":"a"}]}"#),
            (
                Verb::NativeSend,
                concat!(
                    r#"{"messages":[{"attributes":{"a":"v","b":{"type":"number.x","value":"1"},"#,
                    r#""c":{"value_base64":"","type":"binary"}},"body":"a"}]}"#
                ),
            ),
            (Verb::NativeSend, r#"{"messages":[{"body":"a","delay_seconds":900}]}"#),
            (Verb::NativeReceive, "{}"),
            (Verb::NativeReceive, r#"{"max":100,"wait_seconds":20,"lease_seconds":43200}"#),
            (Verb::NativeAck, &format!(r#"{{"handles":[{hundred}]}}"#)),
            (Verb::NativeRelease, &format!(r#"{{"handles":[{hundred}],"delay_seconds":0}}"#)),
            (
                Verb::NativeExtend,
                r#"{"entries":[{"handle":"a","lease_seconds":0},{"lease_seconds":43200,"handle":"b"}]}"#,
            ),
        ] {
            assert!(is_plain(verb, body), "{body}");
        }
        for (verb, body) in [
            (Verb::NativeSend, r#"{"messages":[]}"#),
            (Verb::NativeSend, r#"{"messages":[{}]}"#),
            (Verb::NativeSend, r#"{"messages":[{"body":""}]}"#),
            (Verb::NativeSend, r#"{"messages":[{"body":"a","group":"g"}]}"#),
            (Verb::NativeSend, r#"{"messages":[{"body":"a","delay_seconds":0.5}]}"#),
            (Verb::NativeSend, r#"{"messages":[{"body_base64":"aa=="}]}"#),
            (Verb::NativeSend, r#"{"messages":[{"attributes":{"a":"v"}}]}"#),
            (Verb::NativeSend, r#"{"messages":[{"body":"a","attributes":null}]}"#),
            (Verb::NativeSend, r#"{"messages":[{"body":"a","attributes":{"a":1}}]}"#),
            (Verb::NativeSend, r#"{"messages":[{"body":"a","attributes":{"a":{"value":"v"}}}]}"#),
            (Verb::NativeSend, r#"{"messages":[{"body":"a","attributes":{"a":{"type":"number","value":"x"}}}]}"#),
            (Verb::NativeSend, r#"{"messages":[{"body":"a","attributes":{"a":{"type":"binary","value":"x"}}}]}"#),
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
            (Verb::NativeAck, r#"{"handles":["a"],"delay_seconds":0}"#),
            (Verb::NativeRelease, r#"{"delay_seconds":0}"#),
            (Verb::NativeRelease, r#"{"handles":["a"],"delay_seconds":1}"#),
            (Verb::NativeRelease, r#"{"handles":["a","a"]}"#),
            (Verb::NativeExtend, r#"{"entries":[{"handle":"a"}]}"#),
            (Verb::NativeExtend, r#"{"entries":[{"handle":"a","lease_seconds":0.5}]}"#),
            (Verb::NativeExtend, r#"{"entries":[{"handle":"a","lease_seconds":43201}]}"#),
            (Verb::NativeExtend, r#"{"entries":[{"handle":"a","lease_seconds":1},{"handle":"a","lease_seconds":1}]}"#),
            (Verb::NativeExtend, r#"{"handles":["a"]}"#),
        ] {
            assert!(!is_plain(verb, body), "{body}");
        }
    }
}
