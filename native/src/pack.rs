//! MessagePack, as far as a batch needs it: what `msgspec.msgpack` reads and writes.
//!
//! `Packer` writes requests for Python, `Unpacker` reads its answers. Neither knows what they mean.

use std::time::Duration;

/// Writes values one after the other; an array's items follow its head.
#[derive(Default)]
pub struct Packer {
    pub bytes: Vec<u8>,
}

impl Packer {
    fn head(&mut self, tag: u8, number: u64, bytes: usize) {
        self.bytes.push(tag);
        self.bytes.extend_from_slice(&number.to_be_bytes()[8 - bytes..]);
    }

    pub fn uint(&mut self, value: u64) {
        match value {
            0..=0x7f => self.bytes.push(value as u8),
            0x80..=0xffff => self.head(0xcd, value, 2),
            0x1_0000..=0xffff_ffff => self.head(0xce, value, 4),
            _ => self.head(0xcf, value, 8),
        }
    }

    pub fn int(&mut self, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.uint(value),
            Err(_) => self.head(0xd3, value as u64, 8),
        }
    }

    pub fn array(&mut self, items: usize) {
        match items {
            0..=15 => self.bytes.push(0x90 | items as u8),
            16..=0xffff => self.head(0xdc, items as u64, 2),
            _ => self.head(0xdd, items as u64, 4),
        }
    }

    /// Text; the caller has seen that it is UTF-8.
    pub fn text(&mut self, value: &[u8]) {
        match value.len() {
            0..=31 => self.bytes.push(0xa0 | value.len() as u8),
            32..=255 => self.head(0xd9, value.len() as u64, 1),
            256..=0xffff => self.head(0xda, value.len() as u64, 2),
            _ => self.head(0xdb, value.len() as u64, 4),
        }
        self.bytes.extend_from_slice(value);
    }

    /// Bytes, with letters of ASCII in lower case.
    pub fn lower(&mut self, value: &[u8]) {
        self.binary(value);
        let at = self.bytes.len() - value.len();
        self.bytes[at..].make_ascii_lowercase();
    }

    pub fn binary(&mut self, value: &[u8]) {
        match value.len() {
            0..=255 => self.head(0xc4, value.len() as u64, 1),
            256..=0xffff => self.head(0xc5, value.len() as u64, 2),
            _ => self.head(0xc6, value.len() as u64, 4),
        }
        self.bytes.extend_from_slice(value);
    }
}

/// What was to be read is not there.
#[derive(Debug, PartialEq, Eq)]
pub struct NotThere;

pub type Read<T> = Result<T, NotThere>;

/// Reads values in the order in which they stand.
#[derive(Clone)]
pub struct Unpacker<'a> {
    rest: &'a [u8],
}

impl<'a> Unpacker<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, bytes: usize) -> Read<&'a [u8]> {
        if bytes > self.rest.len() {
            return Err(NotThere);
        }
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self, bytes: usize) -> Read<u64> {
        Ok(self.take(bytes)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    pub fn uint(&mut self) -> Read<u64> {
        match self.number(1)? {
            small @ 0..=0x7f => Ok(small),
            0xcc => self.number(1),
            0xcd => self.number(2),
            0xce => self.number(4),
            0xcf => self.number(8),
            _ => Err(NotThere),
        }
    }

    /// A number that may be below nothing.
    pub fn int(&mut self) -> Read<i64> {
        match *self.rest.first().ok_or(NotThere)? {
            0xe0..=0xff => Ok(i64::from(self.number(1)? as i8)),
            head @ 0xd0..=0xd3 => {
                self.number(1)?;
                let bytes = 1 << (head - 0xd0);
                // The sign is in the highest bit of so many bytes.
                let unused = 64 - 8 * bytes as u32;
                Ok((self.number(bytes)? << unused) as i64 >> unused)
            }
            _ => self.uint()?.try_into().map_err(|_| NotThere),
        }
    }

    /// Text, and no bytes.
    pub fn text(&mut self) -> Read<&'a str> {
        if matches!(self.rest.first(), Some(0xc4..=0xc6)) {
            return Err(NotThere);
        }
        std::str::from_utf8(self.bytes()?).map_err(|_| NotThere)
    }

    pub fn array(&mut self) -> Read<usize> {
        match self.number(1)? {
            head @ 0x90..=0x9f => Ok((head & 15) as usize),
            0xdc => Ok(self.number(2)? as usize),
            0xdd => Ok(self.number(4)? as usize),
            _ => Err(NotThere),
        }
    }

    /// An array of so many items, and of no others.
    pub fn fields(&mut self, count: usize) -> Read<()> {
        (self.array()? == count).then_some(()).ok_or(NotThere)
    }

    /// A time in milliseconds.
    pub fn millis(&mut self) -> Read<Duration> {
        Ok(Duration::from_millis(self.uint()?))
    }

    /// Text or bytes.
    pub fn bytes(&mut self) -> Read<&'a [u8]> {
        let size = match self.number(1)? {
            head @ 0xa0..=0xbf => head & 31,
            0xd9 | 0xc4 => self.number(1)?,
            0xda | 0xc5 => self.number(2)?,
            0xdb | 0xc6 => self.number(4)?,
            _ => return Err(NotThere),
        };
        self.take(size as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_read() {
        for size in [0, 1, 31, 32, 255, 256, 65_535, 65_536, 70_000] {
            let value = vec![b'x'; size];
            let mut packer = Packer::default();
            packer.array(size);
            packer.text(&value);
            packer.binary(&value);
            packer.uint(size as u64);
            let mut unpacker = Unpacker::new(&packer.bytes);
            assert_eq!(unpacker.array(), Ok(size));
            assert_eq!(unpacker.bytes(), Ok(&value[..]));
            assert_eq!(unpacker.bytes(), Ok(&value[..]));
            assert_eq!(unpacker.uint(), Ok(size as u64));
            assert!(unpacker.is_empty());
        }
    }

    #[test]
    fn numbers_of_all_sizes() {
        for value in [0, 127, 128, 65_535, 65_536, u64::from(u32::MAX), u64::from(u32::MAX) + 1, u64::MAX] {
            let mut packer = Packer::default();
            packer.uint(value);
            assert_eq!(Unpacker::new(&packer.bytes).uint(), Ok(value));
        }
        let mut packer = Packer::default();
        packer.int(-1);
        assert_eq!(packer.bytes, [0xd3, 255, 255, 255, 255, 255, 255, 255, 255]);
        for (bytes, value) in [
            (&packer.bytes[..], -1),
            (&[0xe0], -32),
            (&[0xd0, 128], -128),
            (&[0xd0, 127], 127),
            (&[0xd1, 255, 254], -2),
            (&[0xd2, 128, 0, 0, 0], i64::from(i32::MIN)),
            (&[0xcd, 1, 0], 256),
            (&[0xd3, 128, 0, 0, 0, 0, 0, 0, 0], i64::MIN),
        ] {
            assert_eq!(Unpacker::new(bytes).int(), Ok(value));
        }
        assert_eq!(Unpacker::new(&[0xcf, 128, 0, 0, 0, 0, 0, 0, 0]).int(), Err(NotThere));
    }

    #[test]
    fn text_is_utf_8_and_no_bytes() {
        assert_eq!(Unpacker::new("\u{a3}été".as_bytes()).text(), Err(NotThere));
        assert_eq!(Unpacker::new(b"\xa3abc").text(), Ok("abc"));
        assert_eq!(Unpacker::new(b"\xa3ab\xff").text(), Err(NotThere));
        assert_eq!(Unpacker::new(b"\xc4\x01a").text(), Err(NotThere));
    }

    #[test]
    fn what_is_cut_is_not_there() {
        let mut packer = Packer::default();
        packer.text(&[b'x'; 300]);
        for end in 0..packer.bytes.len() {
            assert_eq!(Unpacker::new(&packer.bytes[..end]).bytes(), Err(NotThere));
        }
        assert_eq!(Unpacker::new(&[0xc0]).uint(), Err(NotThere));
        assert_eq!(Unpacker::new(&[0xa0]).array(), Err(NotThere));
        assert_eq!(Unpacker::new(&[0x01]).bytes(), Err(NotThere));
    }
}
