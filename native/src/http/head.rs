//! The head of a request, as HTTP/1.1 and HTTP/1.0 have it (RFC 9112). What is not exactly that is
//! refused: two who read one stream must find the same requests in it.

use memchr::{memchr, memmem};

use crate::http::framing::{Framing, Reading};
use crate::http::plain::{Fields, Plain};
use crate::http::refusal::Refusal;
use crate::plane::whys::Why;

/// Of a head.
pub const HEAD_BYTES: usize = 64 * 1024;
/// Header lines: each costs ten times what it has, so many small ones are bounded by their number.
const HEADERS: usize = 128;
const METHOD_BYTES: usize = 32;
const NOT_CR_LF: &str = "A line of the head does not end in CR LF.";
const NOT_HTTP: &str = "The request is not HTTP/1.1.";

/// What the bytes of a connection begin with.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'a> {
    Head(Head<'a>),
    /// Its end has not come.
    Part,
    Refused(Refusal),
}

/// A head. `bytes` is its size, with the empty lines that may stand before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    pub method: &'a [u8],
    pub target: &'a [u8],
    pub framing: Framing,
    /// What makes it a hot request, if its body is in the plain form too; or why it is none.
    pub plain: Result<Plain<'a>, Why>,
    pub bytes: usize,
    lines: &'a [u8],
}

impl<'a> Head<'a> {
    /// Names and values of its headers. A second Host, which says the first one again without its
    /// port, is left out.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let mut has_host = false;
        lines(self.lines).filter_map(move |line| {
            let colon = memchr(b':', line)?;
            let name = &line[..colon];
            if name.eq_ignore_ascii_case(b"host") && std::mem::replace(&mut has_host, true) {
                return None;
            }
            Some((name, trimmed(&line[colon + 1..])))
        })
    }

    /// The path and the query of its target.
    pub fn path_and_query(&self) -> (&'a [u8], &'a [u8]) {
        let target = match memmem::find(self.target, b"://") {
            _ if self.target.starts_with(b"/") => self.target,
            Some(at) => after_authority(&self.target[at + 3..]),
            None if self.method == b"CONNECT" => b"/",
            None => self.target,
        };
        let target = &target[..memchr(b'#', target).unwrap_or(target.len())];
        let (path, query) = match memchr(b'?', target) {
            Some(at) => (&target[..at], &target[at + 1..]),
            None => (target, &b""[..]),
        };
        (if path.is_empty() { b"/" } else { path }, query)
    }
}

fn after_authority(target: &[u8]) -> &[u8] {
    let end = target.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    &target[end.unwrap_or(target.len())..]
}

/// Reads a head. `checked`: how many bytes were looked at when it was a part, 0 at first.
pub fn read<'a>(bytes: &'a [u8], checked: &mut usize) -> Found<'a> {
    let start = empty_lines(bytes);
    let from = start.max(checked.saturating_sub(3)).min(bytes.len());
    let found = match memmem::find(&bytes[from..], b"\r\n\r\n") {
        Some(at) if from + at + 4 > HEAD_BYTES => Err(too_large()),
        Some(at) => whole(&bytes[..from + at + 4], start).map(Some),
        None => may_become(bytes, start, *checked).map(|()| None),
    };
    match found {
        Ok(Some(head)) => Found::Head(head),
        Ok(None) => {
            *checked = bytes.len();
            Found::Part
        }
        Err(refusal) => Found::Refused(refusal),
    }
}

fn too_large() -> Refusal {
    Refusal::too_much(format!("The head of a request may have {HEAD_BYTES} bytes."))
}

/// The size of the empty lines that a stream begins with: some clients end a body by one.
pub fn empty_lines(bytes: &[u8]) -> usize {
    bytes.chunks_exact(2).take_while(|two| two == b"\r\n").count() * 2
}

/// Refuses what no later byte makes a head. `checked` bytes were good before.
fn may_become(bytes: &[u8], start: usize, checked: usize) -> Result<(), Refusal> {
    if bytes.len() > HEAD_BYTES {
        return Err(too_large());
    }
    if bytes.get(start).is_some_and(|first| !is_token(*first) && bytes[start..] != *b"\r") {
        return Err(Refusal::bad(NOT_HTTP));
    }
    for at in checked.max(start)..bytes.len() {
        let before = at.checked_sub(1).map(|before| bytes[before]);
        if (bytes[at] == b'\n') != (before == Some(b'\r')) {
            return Err(Refusal::bad(NOT_CR_LF));
        }
        if !is_text(bytes[at]) && !matches!(bytes[at], b'\r' | b'\n') {
            return Err(Refusal::bad(NOT_HTTP));
        }
    }
    Ok(())
}

/// Reads `text`, which ends in an empty line.
fn whole(text: &[u8], start: usize) -> Result<Head<'_>, Refusal> {
    let end = memchr(b'\n', &text[start..]).map_or(text.len(), |at| start + at + 1);
    let first = text[start..end].strip_suffix(b"\r\n").ok_or_else(|| Refusal::bad(NOT_HTTP))?;
    let (method, target, is_old) = request_line(first)?;
    let mut reading = Reading::default();
    let mut fields = Fields::default();
    let block = &text[end..text.len() - 2];
    for (place, line) in lines(block).enumerate() {
        if place == HEADERS {
            return Err(Refusal::too_much(format!("A request may have {HEADERS} headers.")));
        }
        let (name, value) = header(line)?;
        reading.take(name, value)?;
        fields.take(name, value);
    }
    let framing = reading.framing(method, is_old)?;
    let plain = fields.plain(method, target, framing);
    Ok(Head { method, target, framing, plain, bytes: text.len(), lines: block })
}

/// Lines without their ends. One that does not end in CR LF keeps what is wrong with it.
fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = block;
    std::iter::from_fn(move || {
        let end = memchr(b'\n', rest)?;
        let line = &rest[..end];
        rest = &rest[end + 1..];
        Some(line.strip_suffix(b"\r").unwrap_or(&rest[..0]))
    })
}

/// Method, target, and whether it is HTTP/1.0.
fn request_line(line: &[u8]) -> Result<(&[u8], &[u8], bool), Refusal> {
    let bad = || Refusal::bad(NOT_HTTP);
    let mut parts = line.split(|byte| *byte == b' ');
    let (method, target) = (parts.next().ok_or_else(bad)?, parts.next().ok_or_else(bad)?);
    let version = parts.next();
    let is_method = (1..=METHOD_BYTES).contains(&method.len()) && method.iter().all(|byte| is_token(*byte));
    let is_target = !target.is_empty() && target.iter().all(u8::is_ascii_graphic);
    if parts.next().is_some() || !is_method || !is_target {
        return Err(bad());
    }
    let is_old = match version {
        Some(b"HTTP/1.1") => false,
        Some(b"HTTP/1.0") => true,
        Some(&[b'H', b'T', b'T', b'P', b'/', major, b'.', minor])
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            let (major, minor) = (char::from(major), char::from(minor));
            return Err(Refusal::bad(format!("The request is not HTTP/1.1, but {major}.{minor}.")));
        }
        None => return Err(Refusal::bad("The request is not HTTP/1.1, but 0.9.")),
        Some(_) => return Err(bad()),
    };
    let is_known = target[0] == b'/' || target == b"*" || method == b"CONNECT" || is_absolute(target);
    if !is_known {
        return Err(Refusal::bad("The target of the request is no path."));
    }
    Ok((method, target, is_old))
}

fn is_absolute(target: &[u8]) -> bool {
    let Some(at) = memmem::find(target, b"://") else { return false };
    at > 0 && target[..at].iter().all(u8::is_ascii_alphanumeric) && !after_scheme_is_empty(&target[at + 3..])
}

fn after_scheme_is_empty(rest: &[u8]) -> bool {
    matches!(rest.first(), None | Some(b'/' | b'?' | b'#'))
}

/// Name and value of a header line, or of a trailer.
pub fn header(line: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    if line.is_empty() {
        return Err(Refusal::bad(NOT_CR_LF));
    }
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(Refusal::bad("A header goes on in a second line."));
    }
    let colon = memchr(b':', line).ok_or_else(|| Refusal::bad("A line of the head has no colon."))?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
        return Err(Refusal::bad("The name of a header has a character that no name has."));
    }
    if !value.iter().all(|byte| is_text(*byte)) {
        return Err(Refusal::bad("The value of a header has a character that no value has."));
    }
    Ok((name, trimmed(value)))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

pub fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | 0x80..)
}

/// Without spaces and tabs at both ends.
pub fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}
