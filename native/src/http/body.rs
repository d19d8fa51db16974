//! The body of a request, as its bytes come: of a stated length, or in chunks (RFC 9112, 7.1).

use crate::http::framing::Length;
use crate::http::head::{header, is_text, HEAD_BYTES};
use crate::http::refusal::Refusal;

/// Hex digits of the size of a chunk.
const SIZE_DIGITS: usize = 15;

/// What is still to come of a body.
#[derive(Debug, PartialEq, Eq)]
pub enum Body {
    Bytes(u64),
    Chunks(Chunks),
}

/// What comes next of a body in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A digit of a size; so many have come.
    Size(usize),
    /// What stands between a size and the end of its line, which nobody needs.
    Extension,
    /// The second byte of the end of a size's line.
    SizeEnd,
    Data,
    /// The first and the second byte of the end of a chunk.
    DataCr,
    DataLf,
    /// A header after the last chunk.
    Trailer,
    Nothing,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Chunks {
    next: Next,
    /// Of the chunk that comes.
    left: u64,
    /// Bytes since the last one of the body.
    beside: usize,
    trailer: Vec<u8>,
}

/// How many of the bytes that came are the body's, which now stand first, and how many belong to the
/// request in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub body: usize,
    pub used: usize,
}

impl Body {
    pub fn new(length: Length) -> Self {
        match length {
            Length::Bytes(bytes) => Self::Bytes(bytes),
            Length::Chunked => Self::Chunks(Chunks { next: Next::Size(0), left: 0, beside: 0, trailer: Vec::new() }),
        }
    }

    /// Whether all of it has come.
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Bytes(left) => *left == 0,
            Self::Chunks(chunks) => chunks.next == Next::Nothing,
        }
    }

    /// How many bytes may be read without reading what follows it.
    pub fn most(&self, room: usize) -> usize {
        match self {
            Self::Bytes(left) => usize::try_from(*left).map_or(room, |left| left.min(room)),
            Self::Chunks(_) => room,
        }
    }

    /// Takes what has come, and moves the bytes of the body to the front.
    pub fn take(&mut self, bytes: &mut [u8]) -> Result<Taken, Refusal> {
        match self {
            Self::Bytes(left) => {
                let size = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left -= size as u64;
                Ok(Taken { body: size, used: size })
            }
            Self::Chunks(chunks) => chunks.take(bytes),
        }
    }
}

impl Chunks {
    fn take(&mut self, bytes: &mut [u8]) -> Result<Taken, Refusal> {
        let mut taken = Taken::default();
        while taken.used < bytes.len() && self.next != Next::Nothing {
            if self.next == Next::Data {
                let came = bytes.len() - taken.used;
                let size = usize::try_from(self.left).map_or(came, |left| left.min(came));
                bytes.copy_within(taken.used..taken.used + size, taken.body);
                taken.body += size;
                taken.used += size;
                self.left -= size as u64;
                self.beside = 0;
                if self.left == 0 {
                    self.next = Next::DataCr;
                }
                continue;
            }
            self.byte(bytes[taken.used])?;
            taken.used += 1;
            self.beside += 1;
            if self.beside > HEAD_BYTES {
                return Err(Refusal::too_much(format!(
                    "What comes beside a request's body may have {HEAD_BYTES} bytes."
                )));
            }
        }
        Ok(taken)
    }

    /// Takes a byte that is none of the body.
    fn byte(&mut self, byte: u8) -> Result<(), Refusal> {
        self.next = match (self.next, byte) {
            (Next::Size(1..), b';') => Next::Extension,
            (Next::Size(1..), b'\r') => Next::SizeEnd,
            (Next::Size(digits), _) if digits < SIZE_DIGITS => {
                let digit = char::from(byte).to_digit(16).ok_or_else(bad)?;
                self.left = self.left << 4 | u64::from(digit);
                Next::Size(digits + 1)
            }
            (Next::Extension, b'\r') => Next::SizeEnd,
            (Next::Extension, _) if is_text(byte) => Next::Extension,
            (Next::SizeEnd, b'\n') if self.left > 0 => Next::Data,
            (Next::SizeEnd, b'\n') => Next::Trailer,
            (Next::DataCr, b'\r') => Next::DataLf,
            (Next::DataLf, b'\n') => Next::Size(0),
            (Next::Trailer, _) => {
                self.trailer.push(byte);
                return self.trailer();
            }
            _ => return Err(bad()),
        };
        Ok(())
    }

    /// Trailers may be ignored (RFC 9112, 7.1.2), but each is a header, and none says how long a
    /// message is.
    fn trailer(&mut self) -> Result<(), Refusal> {
        match self.trailer.as_slice() {
            [.., b'\n'] => {
                let line = self.trailer.strip_suffix(b"\r\n").ok_or_else(bad)?;
                if line.is_empty() {
                    self.next = Next::Nothing;
                } else if is_framing(header(line)?.0) {
                    return Err(bad());
                }
                self.trailer.clear();
                Ok(())
            }
            [.., b'\r', _] => Err(bad()),
            _ => Ok(()),
        }
    }
}

fn is_framing(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"content-length") || name.eq_ignore_ascii_case(b"transfer-encoding")
}

fn bad() -> Refusal {
    Refusal::bad("The body of the request is not in chunks as HTTP/1.1 has them.")
}
