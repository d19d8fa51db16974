//! Attributes of messages to send, of the names and numbers that no dialect refuses.

use crate::json::{Place, Refused, Scan, Scanner};
use crate::requests::{some_text, Given};

/// Of one message.
const MOST: usize = 10;
const NAME_BYTES: usize = 256;
const LABEL_BYTES: usize = 200;
/// Names that begin so are Python's.
const RESERVED: [&str; 2] = ["aws.", "amazon."];
const DIGITS: usize = 38;

/// How a dialect spells a value with its type.
pub struct Form {
    /// The keys of the type, of a text, and of bytes in base64.
    pub keys: [&'static [u8]; 3],
    /// The types of texts, numbers and bytes.
    pub kinds: [&'static [u8]; 3],
    /// Bytes may be none.
    pub may_be_empty: bool,
}

impl Form {
    /// Reads the value of an attribute, of the types and values that nobody refuses.
    pub fn read(&self, name: Place, scanner: &mut Scanner) -> Scan<Given> {
        let [kind_key, text_key, bytes_key] = self.keys;
        let [string, number, binary] = self.kinds;
        let (mut kind, mut text, mut bytes) = (None, None, None);
        scanner.fields(|scanner, key| {
            match scanner.text(key) {
                key if key == kind_key && kind.is_none() => kind = Some(some_text(scanner, usize::MAX)?),
                key if key == text_key && text.is_none() => text = Some(some_text(scanner, usize::MAX)?),
                key if key == bytes_key && bytes.is_none() => bytes = Some(scanner.bytes()?),
                _ => return Err(Refused),
            }
            Ok(())
        })?;
        let kind = kind.ok_or(Refused)?;
        let word = word(scanner.text(kind)).ok_or(Refused)?;
        let value = match (text, bytes) {
            (Some(text), None) if word == string => text,
            (Some(text), None) if word == number && is_number(scanner.text(text)) => text,
            (None, Some(bytes)) if word == binary && (self.may_be_empty || !scanner.text(bytes).is_empty()) => bytes,
            _ => return Err(Refused),
        };
        Ok(Given { name, kind, value })
    }
}

/// Reads attributes by their names, each of which `read` reads.
pub fn each(scanner: &mut Scanner, read: impl Fn(Place, &mut Scanner) -> Scan<Given>) -> Scan<Vec<Given>> {
    let mut found: Vec<Given> = Vec::new();
    if scanner.is_empty_object() {
        return Ok(found);
    }
    scanner.fields(|scanner, name| {
        let text = scanner.text(name);
        if !is_name(text) || found.len() == MOST || found.iter().any(|other| scanner.text(other.name) == text) {
            return Err(Refused);
        }
        found.push(read(name, scanner)?);
        Ok(())
    })?;
    Ok(found)
}

fn is_name(name: &[u8]) -> bool {
    let is_reserved =
        |start: &&str| name.get(..start.len()).is_some_and(|some| some.eq_ignore_ascii_case(start.as_bytes()));
    (1..=NAME_BYTES).contains(&name.len())
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        && name.first() != Some(&b'.')
        && name.last() != Some(&b'.')
        && !name.windows(2).any(|two| two == b"..")
        && !RESERVED.iter().any(is_reserved)
}

/// The type without its label; None = the label is not letters, digits and dots.
fn word(kind: &[u8]) -> Option<&[u8]> {
    let Some(dot) = memchr::memchr(b'.', kind) else { return Some(kind) };
    let label = &kind[dot + 1..];
    let is_plain = label.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'.');
    (is_plain && (1..=LABEL_BYTES).contains(&label.len())).then_some(&kind[..dot])
}

/// Whether this is a number as most people write it; of others Python knows.
fn is_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, part) = digits.split_at(memchr::memchr(b'.', digits).unwrap_or(digits.len()));
    let is_good = |some: &[u8]| !some.is_empty() && some.iter().all(u8::is_ascii_digit);
    is_good(whole) && (part.is_empty() || is_good(&part[1..])) && digits.len() <= DIGITS
}
