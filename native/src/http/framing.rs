//! What a head says of the body that follows it, and of its connection.

use crate::http::refusal::Refusal;

/// Digits of a length.
const LENGTH_DIGITS: usize = 18;

/// How a request's body is told from what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Bytes(u64),
    Chunked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    pub length: Length,
    /// It is HTTP/1.0.
    pub is_old: bool,
    /// The connection goes on after it.
    pub keeps: bool,
    /// The client waits for "100 Continue" before it sends the body.
    pub waits: bool,
}

/// Reads headers one after the other.
#[derive(Default)]
pub struct Reading<'a> {
    host: Option<&'a [u8]>,
    says_host_again: bool,
    hosts: usize,
    length: Option<u64>,
    is_chunked: bool,
    closes: bool,
    waits: bool,
}

impl<'a> Reading<'a> {
    pub fn take(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Refusal> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.host(value)?,
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = length(value).ok_or_else(|| Refusal::bad("The header Content-Length is no length."))?;
                if !once(&mut self.length, Some(length)) {
                    return Err(Refusal::bad("The header Content-Length is there twice."));
                }
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Refusal::bad("The header Transfer-Encoding is not chunked, once."));
                }
                self.is_chunked = true;
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                let mut words = value.split(|byte| *byte == b',').map(crate::http::head::trimmed);
                self.closes |= words.any(|word| word.eq_ignore_ascii_case(b"close"));
            }
            // It is answered as if no other protocol were offered; what comes after it may be in that.
            7 if name.eq_ignore_ascii_case(b"upgrade") => self.closes = true,
            6 if name.eq_ignore_ascii_case(b"expect") => self.waits |= value.eq_ignore_ascii_case(b"100-continue"),
            _ => {}
        }
        Ok(())
    }

    /// A request has one (RFC 9112, 3.2), but EMQ's Python clients send a second one, which is the
    /// first without its port.
    fn host(&mut self, value: &'a [u8]) -> Result<(), Refusal> {
        if let (1, false, Some(first)) = (self.hosts, self.says_host_again, self.host) {
            let port = first.strip_prefix(value).and_then(|rest| rest.strip_prefix(b":"));
            if port.is_some_and(|port| !port.is_empty() && port.iter().all(u8::is_ascii_digit)) {
                self.says_host_again = true;
                return Ok(());
            }
        }
        self.hosts += 1;
        self.host = Some(value);
        if !value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._~!$&'()*+,;=%:[]-".contains(byte)) {
            return Err(Refusal::bad("The header Host is not a name and a port."));
        }
        Ok(())
    }

    /// What all headers of a request say together.
    pub fn framing(self, method: &[u8], is_old: bool) -> Result<Framing, Refusal> {
        if self.is_chunked && (is_old || self.length.is_some()) {
            return Err(Refusal::bad("The length of the body is told in two ways, or in one that HTTP/1.0 has not."));
        }
        if self.hosts > 1 || (self.hosts == 0 && !is_old) {
            let hosts = self.hosts;
            return Err(Refusal::bad(format!("A request of HTTP/1.1 has one header Host, this one has {hosts}.")));
        }
        let length = if self.is_chunked { Length::Chunked } else { Length::Bytes(self.length.unwrap_or(0)) };
        Ok(Framing {
            length,
            is_old,
            keeps: !is_old && !self.closes && method != b"CONNECT",
            waits: !is_old && self.waits && length != Length::Bytes(0),
        })
    }
}

fn length(value: &[u8]) -> Option<u64> {
    let legal = (1..=LENGTH_DIGITS).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    legal.then(|| value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// Keeps a value that may come once, and must be good.
pub fn once<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let first = place.is_none() && value.is_some();
    if first {
        *place = value;
    }
    first
}
