//! Signature Version 4 of a plain request: whether a key that Python has given has made it.
//!
//! The answer is yes, or that Python should look: it has the words for what is wrong, and the rest
//! of what AWS takes. `facade/dialects/sqs/signature.py` has the same rules.

use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, Mac};
use memchr::memchr;
use sha2::{Digest, Sha256};

use crate::http::head::trimmed;
use crate::http::plain::Plain;

/// A signing key: of a secret, for a day and a region.
pub type Key = [u8; 32];

const ALGORITHM: &[u8] = b"AWS4-HMAC-SHA256";
/// Less than the 15 minutes that Python allows: what is near them is Python's to decide.
const SKEW_S: u64 = 14 * 60;
const MOST_HEADERS: usize = 32;

/// Whether `key` has signed the request whose head is `bytes`, now (epoch seconds).
pub fn fits(bytes: &[u8], head: &Plain, body: &[u8], key: &Key, now_s: u64) -> bool {
    Signed::read(bytes, head).is_some_and(|signed| signed.fits(head, body, key, now_s))
}

/// Seconds since 1970.
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

struct Signed<'a> {
    headers: Vec<(&'a [u8], &'a [u8])>,
    names: &'a [u8],
    signature: [u8; 32],
    time: &'a [u8],
}

impl<'a> Signed<'a> {
    /// What is signed, where it is said in the way that SDKs say it.
    fn read(bytes: &'a [u8], head: &Plain) -> Option<Self> {
        let mut headers = Vec::with_capacity(MOST_HEADERS);
        let mut rest = bytes;
        rest = &rest[memchr(b'\n', rest)? + 1..];
        while let Some(end) = memchr(b'\n', rest) {
            let line = rest[..end].strip_suffix(b"\r")?;
            rest = &rest[end + 1..];
            if line.is_empty() {
                break;
            }
            let colon = memchr(b':', line)?;
            headers.push((&line[..colon], trimmed(&line[colon + 1..])));
        }
        if headers.len() > MOST_HEADERS {
            return None;
        }
        let claim = once(&headers, b"authorization")?.strip_prefix(b"AWS4-HMAC-SHA256 Credential=")?;
        let rest = claim.strip_prefix(head.whose)?.strip_prefix(b"/sqs/aws4_request")?;
        let rest = after_comma(rest)?.strip_prefix(b"SignedHeaders=")?;
        let names = &rest[..memchr(b',', rest)?];
        let signature = after_comma(&rest[names.len()..])?.strip_prefix(b"Signature=")?;
        let time = once(&headers, b"x-amz-date")?;
        Some(Self { signature: of_hex(signature)?, names, time, headers })
    }

    fn fits(&self, head: &Plain, body: &[u8], key: &Key, now_s: u64) -> bool {
        let Some((day, region)) = self.scope(head) else { return false };
        if seconds(self.time).is_none_or(|at| now_s.abs_diff(at) > SKEW_S) || &self.time[..8] != day {
            return false;
        }
        let payload = hex(Sha256::digest(body).into());
        // Without one line for the hash of the body, that is signed which the body has.
        if self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"x-amz-content-sha256"))
            && once(&self.headers, b"x-amz-content-sha256") != Some(&payload[..])
        {
            return false;
        }
        let Some(request) = self.request(head.path, &payload) else { return false };
        let Ok(mut made) = Hmac::<Sha256>::new_from_slice(key) else { return false };
        for part in [ALGORITHM, b"\n", self.time, b"\n", day, b"/", region, b"/sqs/aws4_request\n", &request] {
            made.update(part);
        }
        made.verify_slice(&self.signature).is_ok()
    }

    fn scope<'b>(&self, head: &Plain<'b>) -> Option<(&'b [u8], &'b [u8])> {
        let mut parts = head.whose.splitn(3, |byte| *byte == b'/');
        parts.next()?;
        Some((parts.next()?, parts.next()?))
    }

    /// The hash of the canonical request, in hex. None: it is not plain, or leaves out what must be
    /// signed.
    fn request(&self, path: &[u8], payload: &[u8; 64]) -> Option<[u8; 64]> {
        if !is_canonical(path) || !self.signs_enough() {
            return None;
        }
        let mut hash = Sha256::new();
        hash.update(b"POST\n");
        hash.update(path);
        hash.update(b"\n\n");
        for name in self.names.split(|byte| *byte == b';') {
            let value = once(&self.headers, name)?;
            let is_plain = !value.contains(&b'\t') && !value.windows(2).any(|two| two == b"  ");
            // Python looks names up as they are written, and has them in lower case.
            if !is_plain || name.iter().any(u8::is_ascii_uppercase) {
                return None;
            }
            hash.update(name);
            hash.update(b":");
            hash.update(value);
            hash.update(b"\n");
        }
        hash.update(b"\n");
        hash.update(self.names);
        hash.update(b"\n");
        hash.update(payload);
        Some(hex(hash.finalize().into()))
    }

    fn signs_enough(&self) -> bool {
        let signs = |wanted: &[u8]| self.names.split(|byte| *byte == b';').any(|name| name == wanted);
        let has = |wanted: &[u8]| self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        [&b"host"[..], b"x-amz-date", b"x-amz-target"].into_iter().all(signs)
            && (signs(b"x-amz-content-sha256") || !has(b"x-amz-content-sha256"))
    }
}

/// The value of a header that is there once.
fn once<'a>(headers: &[(&'a [u8], &'a [u8])], wanted: &[u8]) -> Option<&'a [u8]> {
    let mut found = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
    match (found.next(), found.next()) {
        (Some((_, value)), None) => Some(value),
        _ => None,
    }
}

fn after_comma(rest: &[u8]) -> Option<&[u8]> {
    Some(trimmed(rest.strip_prefix(b",")?))
}

/// Whether a path (of the characters of a plain head) is the same when it is made canonical.
fn is_canonical(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let is_end = parts.peek().is_none();
        if part == b"." || part == b".." || (part.is_empty() && !is_end) {
            return false;
        }
    }
    true
}

/// Epoch seconds of `20260101T000000Z`.
fn seconds(text: &[u8]) -> Option<u64> {
    if text.len() != 16 || text[8] != b'T' || text[15] != b'Z' {
        return None;
    }
    let number = |from: usize, to: usize| {
        text[from..to]
            .iter()
            .try_fold(0u64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0')))
    };
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = [31, 28 + u64::from(is_leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month = usize::try_from(month).ok().filter(|month| (1..=12).contains(month))?;
    if year < 1970 || !(1..=days[month - 1]).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let before = year - 1;
    let leaps = before / 4 - before / 100 + before / 400 - 477; // 477 until 1969
    let whole = (year - 1970) * 365 + leaps + days[..month - 1].iter().sum::<u64>() + day - 1;
    Some(((whole * 24 + hour) * 60 + minute) * 60 + second)
}

fn of_hex(text: &[u8]) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut made = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (byte, two) in made.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(two[0])? << 4 | digit(two[1])?;
    }
    Some(made)
}

fn hex(bytes: [u8; 32]) -> [u8; 64] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 64];
    for (two, byte) in text.chunks_exact_mut(2).zip(bytes) {
        two.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, expected) in [
            ("19700101T000000Z", Some(0)),
            ("20260101T000000Z", Some(1_767_225_600)),
            ("20240229T235959Z", Some(1_709_251_199)),
            ("20000301T000000Z", Some(951_868_800)),
            ("20250229T000000Z", None),
            ("20261301T000000Z", None),
            ("20260101T240000Z", None),
            ("20260101 000000Z", None),
            ("2026010aT000000Z", None),
            ("19691231T235959Z", None),
        ] {
            assert_eq!(seconds(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn paths() {
        for (path, same) in [
            ("/", true),
            ("/0/orders", true),
            ("/0/orders/", true),
            ("//", false),
            ("/a//b", false),
            ("/a/../b", false),
            ("/./b", false),
        ] {
            assert_eq!(is_canonical(path.as_bytes()), same, "{path}");
        }
    }
}
