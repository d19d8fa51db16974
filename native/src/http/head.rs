//! The plain form of a request's head: `POST /path HTTP/1.1`, lines that end in CR LF, a length.
//!
//! Python's parser (llhttp) takes more than this, and what both take they must understand alike.

use memchr::memchr;

use crate::requests::Verb;

/// Of the head; a longer one is left to Python, which has a bound of its own.
pub const HEAD_BYTES: usize = 16 * 1024;
/// Of the body. What is longer is Python's, which knows whose it is before it reads it, and who gives
/// way when there is no room.
pub const BODY_BYTES: usize = 256 * 1024;
/// Header lines; Python refuses more.
const HEADERS: usize = 128;
/// Of the path, the host and a signature's region each: lanes keep these of strangers' requests.
const LANE_BYTES: usize = 512;
const CREDENTIAL: &[u8] = b"AWS4-HMAC-SHA256 Credential=";

/// What the bytes of a connection begin with.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// A head in the plain form.
    Head(Head<'a>),
    /// It may become one.
    Part,
    /// It is not one.
    Other,
}

/// A plain head. `whose` is the key id, day and region of the signature ("" = not signed), `forwarded`
/// the last X-Forwarded-For ("" = none).
#[derive(Debug, PartialEq, Eq)]
pub struct Head<'a> {
    pub verb: Verb,
    pub path: &'a [u8],
    pub host: &'a [u8],
    pub whose: &'a [u8],
    pub forwarded: &'a [u8],
    pub head_bytes: usize,
    pub body_bytes: usize,
}

/// Reads a head. Pure.
pub fn read(bytes: &[u8]) -> Found<'_> {
    const BEGINS: &[u8] = b"POST /";
    let seen = bytes.len().min(BEGINS.len());
    if bytes[..seen] != BEGINS[..seen] {
        return Found::Other;
    }
    match lines(bytes) {
        Some(Some(head)) => Found::Head(head),
        None if bytes.len() <= HEAD_BYTES => Found::Part,
        _ => Found::Other,
    }
}

/// None = the head's end has not come; Some(None) = the head is not plain.
fn lines(bytes: &[u8]) -> Option<Option<Head<'_>>> {
    let first = line(bytes)?;
    let Some(path) = first.and_then(path_of) else { return Some(None) };
    let mut at = first.map_or(0, <[u8]>::len) + 2;
    let mut fields = Fields::default();
    for _ in 0..=HEADERS {
        let Some(text) = line(&bytes[at..])? else { return Some(None) };
        at += text.len() + 2;
        if at > HEAD_BYTES {
            return Some(None);
        }
        if text.is_empty() {
            return Some(fields.head(path, at));
        }
        if !fields.take(text) {
            return Some(None);
        }
    }
    Some(None)
}

/// The line without its end. None = its end has not come; Some(None) = it does not end in CR LF.
fn line(bytes: &[u8]) -> Option<Option<&[u8]>> {
    let end = memchr(b'\n', bytes)?;
    Some(bytes[..end].strip_suffix(b"\r"))
}

fn path_of(line: &[u8]) -> Option<&[u8]> {
    let path = line.strip_prefix(b"POST ")?.strip_suffix(b" HTTP/1.1")?;
    let legal = path.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'.'));
    (legal && path.first() == Some(&b'/') && path.len() <= LANE_BYTES).then_some(path)
}

#[derive(Default)]
struct Fields<'a> {
    host: Option<&'a [u8]>,
    target: Option<&'a [u8]>,
    whose: Option<&'a [u8]>,
    forwarded: &'a [u8],
    media: Option<&'a [u8]>,
    length: Option<usize>,
}

impl<'a> Fields<'a> {
    /// Takes a header; false = the request is not plain.
    fn take(&mut self, line: &'a [u8]) -> bool {
        let Some(colon) = memchr(b':', line) else { return false };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) || !value.iter().all(|byte| is_text(*byte)) {
            return false;
        }
        let value = trimmed(value);
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => once(&mut self.host, is_host(value).then_some(value)),
            12 if name.eq_ignore_ascii_case(b"x-amz-target") => once(&mut self.target, Some(value)),
            12 if name.eq_ignore_ascii_case(b"content-type") => once(&mut self.media, Some(value)),
            13 if name.eq_ignore_ascii_case(b"authorization") => once(&mut self.whose, whose(value)),
            14 if name.eq_ignore_ascii_case(b"content-length") => once(&mut self.length, length(value)),
            15 if name.eq_ignore_ascii_case(b"x-forwarded-for") => {
                self.forwarded = value;
                true
            }
            10 if name.eq_ignore_ascii_case(b"connection") => value.eq_ignore_ascii_case(b"keep-alive"),
            _ => !OTHERS.iter().any(|other| name.eq_ignore_ascii_case(other)),
        }
    }

    fn head(&self, path: &'a [u8], head_bytes: usize) -> Option<Head<'a>> {
        let verb = match self.target {
            Some(target) => Verb::of_target(target)?,
            // Of the native API; its credentials are of another kind.
            None if self.whose.is_none() && self.media == Some(b"application/json") => Verb::of_path(path)?,
            None => return None,
        };
        Some(Head {
            verb,
            path,
            host: self.host?,
            whose: self.whose.unwrap_or(b""),
            forwarded: self.forwarded,
            head_bytes,
            body_bytes: self.length.filter(|bytes| *bytes <= BODY_BYTES)?,
        })
    }
}

/// Headers by which Python does something, or llhttp. (The other `x-forwarded-*` change what URLs begin
/// with, of which no answer here has one.)
const OTHERS: [&[u8]; 12] = [
    b"expect",
    b"transfer-encoding",
    b"upgrade",
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
fn once<T>(place: &mut Option<T>, value: Option<T>) -> bool {
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

fn length(value: &[u8]) -> Option<usize> {
    let legal = (1..=9).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    legal.then(|| value.iter().fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0')))
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

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t')
}

pub fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}
