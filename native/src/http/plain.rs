//! The plain form of a hot request's head: what the library takes to Python by itself.
//!
//! What is not plain goes to Python as it came, which knows all forms.

use crate::http::framing::{Framing, Length};
use crate::plane::whys::Why;
use crate::requests::Verb;

/// Of the body. What is longer is Python's, which knows whose it is before it reads it, and who gives
/// way when there is no room.
pub const BODY_BYTES: usize = 256 * 1024;
/// Of the path, the host and a signature's region each: lanes keep these of strangers' requests.
const LANE_BYTES: usize = 512;
const CREDENTIAL: &[u8] = b"AWS4-HMAC-SHA256 Credential=";

/// Of a plain head. `whose` is the key id, day and region of the signature ("" = not signed),
/// `forwarded` the last X-Forwarded-For ("" = none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain<'a> {
    pub verb: Verb,
    pub path: &'a [u8],
    pub host: &'a [u8],
    pub whose: &'a [u8],
    pub forwarded: &'a [u8],
    pub body_bytes: usize,
}

/// What headers say, read one after the other.
#[derive(Default)]
pub struct Fields<'a> {
    is_other: bool,
    host: Option<&'a [u8]>,
    target: Option<&'a [u8]>,
    whose: Option<&'a [u8]>,
    forwarded: &'a [u8],
    media: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    /// Takes a header.
    pub fn take(&mut self, name: &[u8], value: &'a [u8]) {
        let is_plain = self.is_plain(name, value);
        self.is_other |= !is_plain;
    }

    fn is_plain(&mut self, name: &[u8], value: &'a [u8]) -> bool {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => once(&mut self.host, is_host(value).then_some(value)),
            12 if name.eq_ignore_ascii_case(b"x-amz-target") => once(&mut self.target, Some(value)),
            12 if name.eq_ignore_ascii_case(b"content-type") => once(&mut self.media, Some(value)),
            13 if name.eq_ignore_ascii_case(b"authorization") => once(&mut self.whose, whose(value)),
            15 if name.eq_ignore_ascii_case(b"x-forwarded-for") => {
                self.forwarded = value;
                value.is_ascii()
            }
            _ => value.is_ascii() && !OTHERS.iter().any(|other| name.eq_ignore_ascii_case(other)),
        }
    }

    /// The plain head, or why it is another.
    pub fn plain(&self, method: &[u8], target: &'a [u8], framing: Framing) -> Result<Plain<'a>, Why> {
        let verb = match self.target {
            _ if method != b"POST" => None,
            Some(target) => Verb::of_target(target),
            None => Verb::of_path(target),
        };
        let verb = verb.ok_or(Why::Verb)?;
        // Credentials of the native API are of another kind.
        let is_native = self.whose.is_none() && self.media == Some(b"application/json");
        let is_other = self.is_other || framing.is_old || framing.waits || !is_path(target);
        if is_other || (self.target.is_none() && !is_native) {
            return Err(Why::Head);
        }
        let Length::Bytes(bytes) = framing.length else { return Err(Why::Head) };
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= BODY_BYTES).ok_or(Why::Size)?;
        if bytes == 0 {
            return Err(Why::Fields);
        }
        Ok(Plain {
            verb,
            path: target,
            host: self.host.ok_or(Why::Head)?,
            whose: self.whose.unwrap_or(b""),
            forwarded: self.forwarded,
            body_bytes: bytes,
        })
    }
}

fn is_path(path: &[u8]) -> bool {
    let legal = path.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'.'));
    legal && path.first() == Some(&b'/') && path.len() <= LANE_BYTES
}

/// Headers by which Python does something, or llhttp. (The other `x-forwarded-*` change what URLs begin
/// with, of which no answer here has one.)
const OTHERS: [&[u8]; 10] = [
    b"expect",
    b"proxy-connection",
    b"trailer",
    b"te",
    b"content-encoding",
    b"origin",
    b"sec-fetch-site",
    b"x-amzn-trace-id",
    b"x-http-method-override",
    b"http2-settings",
];

/// Keeps a value that may come once, and must be good.
pub fn once<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let first = place.is_none() && value.is_some();
    if first {
        *place = value;
    }
    first
}

fn is_host(value: &[u8]) -> bool {
    (1..=LANE_BYTES).contains(&value.len())
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(byte))
}

/// Key id and region of a signature, as `key/day/region` from its credential.
fn whose(value: &[u8]) -> Option<&[u8]> {
    let rest = value.strip_prefix(CREDENTIAL)?;
    let mut parts = rest.splitn(4, |byte| *byte == b'/');
    let (key, day, region) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next()?; // the region ends in a slash
    let legal = (1..=128).contains(&key.len())
        && key.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'@'))
        && day.iter().all(u8::is_ascii_digit)
        && day.len() == 8
        && region.len() <= LANE_BYTES
        && region.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-');
    legal.then(|| &rest[..key.len() + day.len() + region.len() + 2])
}
