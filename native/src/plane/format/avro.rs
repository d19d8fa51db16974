//! The binary of Avro, as far as our records need it.

use std::ops::Range;

/// Writes a long, or an int: zigzag, seven bits a byte.
pub fn long(out: &mut Vec<u8>, value: i64) {
    let mut left = ((value << 1) ^ (value >> 63)) as u64;
    while left > 0x7f {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

/// Writes bytes, or a string.
pub fn data(out: &mut Vec<u8>, value: &[u8]) {
    long(out, value.len() as i64);
    out.extend_from_slice(value);
}

/// Reads values in the order in which they stand; None = the value is not there, or is not spelled as
/// we spell it.
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// Reads a number; one in more bytes than it needs is none.
    pub fn long(&mut self) -> Option<i64> {
        let mut found = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return None;
            }
            found |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                let is_short = byte > 0 || shift == 0;
                return is_short.then_some((found >> 1) as i64 ^ -((found & 1) as i64));
            }
        }
        None
    }

    /// Reads where bytes are.
    pub fn data(&mut self) -> Option<Range<usize>> {
        let size = usize::try_from(self.long()?).ok()?;
        let start = self.at;
        let end = start.checked_add(size).filter(|end| *end <= self.bytes.len())?;
        self.at = end;
        Some(start..end)
    }

    /// Reads where a string is.
    pub fn text(&mut self) -> Option<Range<usize>> {
        let place = self.data()?;
        std::str::from_utf8(&self.bytes[place.clone()]).ok()?;
        Some(place)
    }

    /// Reads which branch of a union of null and something is there: whether it is something.
    pub fn is_there(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            2 => Some(true),
            _ => None,
        }
    }
}
