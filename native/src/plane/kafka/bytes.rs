//! Kafka's primitive types: a reader that never leaves the bytes that it was given, and writers.

/// The bytes are not what the protocol says.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

pub type Read<T> = Result<T, Malformed>;

/// Reads values in the order in which they stand.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn take(&mut self, bytes: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub fn int8(&mut self) -> Read<i8> {
        self.array().map(i8::from_be_bytes)
    }

    pub fn int16(&mut self) -> Read<i16> {
        self.array().map(i16::from_be_bytes)
    }

    pub fn int32(&mut self) -> Read<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn int64(&mut self) -> Read<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// Returns how many items an array has. Each has a byte at least, so no count exceeds what is there.
    pub fn count(&mut self) -> Read<usize> {
        match self.int32()? {
            -1 => Ok(0),
            count => usize::try_from(count).ok().filter(|count| *count <= self.rest.len()).ok_or(Malformed),
        }
    }

    pub fn optional_text(&mut self) -> Read<Option<&'a str>> {
        match self.int16()? {
            -1 => Ok(None),
            size => {
                let bytes = self.take(usize::try_from(size).map_err(|_| Malformed)?)?;
                std::str::from_utf8(bytes).map(Some).map_err(|_| Malformed)
            }
        }
    }

    pub fn text(&mut self) -> Read<&'a str> {
        self.optional_text()?.ok_or(Malformed)
    }

    pub fn bytes(&mut self) -> Read<&'a [u8]> {
        let size = self.int32()?;
        self.take(usize::try_from(size).map_err(|_| Malformed)?)
    }
}

pub fn put<const N: usize>(output: &mut Vec<u8>, bytes: [u8; N]) {
    output.extend_from_slice(&bytes);
}

/// Writes a text of at most 32,767 bytes; a longer one is cut, which no name of Kafka's is.
pub fn put_text(output: &mut Vec<u8>, text: &str) {
    let bytes = &text.as_bytes()[..text.len().min(i16::MAX as usize)];
    put(output, (bytes.len() as i16).to_be_bytes());
    output.extend_from_slice(bytes);
}

pub fn put_bytes(output: &mut Vec<u8>, bytes: &[u8]) {
    put(output, (bytes.len() as i32).to_be_bytes());
    output.extend_from_slice(bytes);
}

/// Replaces four bytes at `at` by the number of bytes that follow them.
pub fn set_size(output: &mut [u8], at: usize) {
    let size = (output.len() - at - 4) as i32;
    output[at..at + 4].copy_from_slice(&size.to_be_bytes());
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Writes a number of a record: zigzag, seven bits a byte.
pub fn put_varint(output: &mut Vec<u8>, value: i64) {
    let mut left = zigzag(value);
    while left > 0x7f {
        output.push(left as u8 | 0x80);
        left >>= 7;
    }
    output.push(left as u8);
}

pub fn varint_bytes(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_what_is_cut_is_not() {
        let mut written = Vec::new();
        put(&mut written, (-2i64).to_be_bytes());
        put_text(&mut written, "é");
        put_bytes(&mut written, b"xyz");
        put(&mut written, (-1i16).to_be_bytes());
        let read = |bytes: &[u8]| -> Read<(i64, String, Vec<u8>, bool)> {
            let mut reader = Reader::new(bytes);
            let number = reader.int64()?;
            let text = reader.text()?.to_owned();
            Ok((number, text, reader.bytes()?.to_vec(), reader.optional_text()?.is_none() && reader.rest.is_empty()))
        };
        assert_eq!(read(&written), Ok((-2, "é".to_owned(), b"xyz".to_vec(), true)));
        for end in 0..written.len() {
            assert_eq!(read(&written[..end]), Err(Malformed));
        }
    }

    #[test]
    fn a_count_is_no_larger_than_what_is_there() {
        for (bytes, count) in [
            (&b"\0\0\0\x02ab"[..], Ok(2)),
            (b"\0\0\0\x03ab", Err(Malformed)),
            (b"\x7f\xff\xff\xffab", Err(Malformed)),
            (b"\xff\xff\xff\xff", Ok(0)),
            (b"\xff\xff\xff\xfe", Err(Malformed)),
        ] {
            assert_eq!(Reader::new(bytes).count(), count);
        }
    }

    #[test]
    fn varints() {
        for (value, bytes) in [
            (0i64, &b"\0"[..]),
            (-1, b"\x01"),
            (1, b"\x02"),
            (63, b"\x7e"),
            (64, b"\x80\x01"),
            (-65, b"\x81\x01"),
            (i64::MAX, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            (i64::MIN, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ] {
            let mut written = Vec::new();
            put_varint(&mut written, value);
            assert_eq!(written, bytes);
            assert_eq!(varint_bytes(value), bytes.len());
        }
    }
}
