//! The plain form of a hot request's head: what the library takes to Python by itself.
//!
//! What is not plain goes to Python as it came, which knows all forms.

use memchr::memchr;

use crate::dialects::emq;
use crate::http::framing::{once, Framing, Length};
use crate::plane::whys::Why;
use crate::requests::{Form, Verb};

/// Of the body of a send: a batch of SQS has a MiB, and JSON may need two bytes for one.
pub const SEND_BYTES: usize = 2 * 1024 * 1024;
/// Of other bodies. Sends that are longer are read here only while there is room: Python knows whose
/// they are before it reads them, and who gives way.
pub const SMALL_BYTES: usize = 256 * 1024;
/// Of the path, the query, the host and a signature's region each: lanes keep these of strangers' requests.
const LANE_BYTES: usize = 512;
const CREDENTIAL: &[u8] = b"AWS4-HMAC-SHA256 Credential=";
const EMQ_CREDENTIAL: &[u8] = b"Galaxy-V2 ";
const KEY_BYTES: usize = 128;
/// Where a traceparent has the lower digit of its flags.
const FLAGS: usize = 54;

/// Of a plain head. `whose` is the key id, day and region of the signature, of EMQ the key id ("" = not signed),
/// `forwarded` the last X-Forwarded-For ("" = none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain<'a> {
    pub form: Form,
    pub path: &'a [u8],
    /// Of EMQ, behind the path.
    pub query: &'a [u8],
    pub host: &'a [u8],
    pub whose: &'a [u8],
    pub forwarded: &'a [u8],
    pub body_bytes: usize,
    /// It carries a trace context that is sampled.
    pub is_traced: bool,
}

/// What headers say, read one after the other.
#[derive(Default)]
pub struct Fields<'a> {
    is_other: bool,
    is_traced: bool,
    host: Option<&'a [u8]>,
    target: Option<&'a [u8]>,
    credentials: Option<&'a [u8]>,
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
            // A second one says the first again, or the framing refuses both.
            4 if name.eq_ignore_ascii_case(b"host") => {
                self.host.is_some() || once(&mut self.host, is_host(value).then_some(value))
            }
            11 if name.eq_ignore_ascii_case(b"traceparent") => {
                self.is_traced |= is_sampled(value);
                value.is_ascii()
            }
            12 if name.eq_ignore_ascii_case(b"x-amz-target") => once(&mut self.target, Some(value)),
            12 if name.eq_ignore_ascii_case(b"content-type") => once(&mut self.media, Some(value)),
            13 if name.eq_ignore_ascii_case(b"authorization") => {
                once(&mut self.credentials, value.is_ascii().then_some(value))
            }
            15 if name.eq_ignore_ascii_case(b"x-forwarded-for") => {
                self.forwarded = value;
                value.is_ascii()
            }
            _ => value.is_ascii() && !OTHERS.iter().any(|other| name.eq_ignore_ascii_case(other)),
        }
    }

    /// The plain head, or why it is another.
    pub fn plain(&self, method: &[u8], target: &'a [u8], framing: Framing) -> Result<Plain<'a>, Why> {
        let path = &target[..memchr(b'?', target).unwrap_or(target.len())];
        let protocol = self.media.filter(|_| path == emq::PATH).and_then(emq::Protocol::of_media);
        let form = match (self.target, protocol) {
            _ if method != b"POST" => None,
            (Some(target), _) => Verb::of_target(target).map(Form::Of),
            (None, Some(protocol)) => Some(Form::Thrift(protocol)),
            (None, None) => Verb::of_path(target).map(Form::Of),
        };
        let form = form.ok_or(Why::Verb)?;
        // Only EMQ's clients have a query, which says nothing that a good answer needs.
        let path = if matches!(form, Form::Thrift(_)) { path } else { target };
        let query = target.get(path.len() + 1..).unwrap_or_default();
        let (whose, is_known) = match (self.credentials, form) {
            (None, _) => {
                (Some(&b""[..]), self.target.is_some() || self.media == Some(b"application/json") || protocol.is_some())
            }
            (Some(credentials), Form::Thrift(_)) => (emq_whose(credentials), true),
            // Credentials of the native API are of another kind.
            (Some(credentials), Form::Of(_)) => (whose(credentials), self.target.is_some()),
        };
        let is_other = self.is_other || framing.is_old || framing.waits || !is_path(path) || query.len() > LANE_BYTES;
        let whose = whose.filter(|_| is_known && !is_other).ok_or(Why::Head)?;
        let Length::Bytes(bytes) = framing.length else { return Err(Why::Head) };
        let most = if matches!(form, Form::Of(verb) if verb.is_send()) { SEND_BYTES } else { SMALL_BYTES };
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= most).ok_or(Why::Size)?;
        if bytes == 0 {
            return Err(Why::Fields);
        }
        let (host, forwarded) = (self.host.ok_or(Why::Head)?, self.forwarded);
        Ok(Plain { form, path, query, host, whose, forwarded, body_bytes: bytes, is_traced: self.is_traced })
    }
}

/// Whether the flags of a traceparent say so; what else it says Python reads.
fn is_sampled(value: &[u8]) -> bool {
    let digit = value.get(FLAGS).and_then(|digit| char::from(*digit).to_digit(16));
    digit.is_some_and(|digit| digit & 1 == 1)
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
    let legal = is_key(key)
        && day.iter().all(u8::is_ascii_digit)
        && day.len() == 8
        && region.len() <= LANE_BYTES
        && region.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-');
    legal.then(|| &rest[..key.len() + day.len() + region.len() + 2])
}

/// Key id of a signature of EMQ.
fn emq_whose(value: &[u8]) -> Option<&[u8]> {
    let (key, signature) =
        value.strip_prefix(EMQ_CREDENTIAL)?.split_at_checked(memchr(b':', value)? - EMQ_CREDENTIAL.len())?;
    let legal = signature[1..].iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte));
    (legal && is_key(key)).then_some(key)
}

fn is_key(key: &[u8]) -> bool {
    (1..=KEY_BYTES).contains(&key.len())
        && key.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'@'))
}
