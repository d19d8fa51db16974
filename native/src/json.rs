//! The part of JSON that hot requests use. Whatever else a body has is left to Python, which reads
//! all of JSON; so `Refused` is no error of the client's.

use crate::base64;
use crate::text::{is_allowed, long_character, plain_run};

/// This is not in the plain form.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused;

pub type Scan<T> = Result<T, Refused>;

/// A string's text: where it stands in the body, or unescaped in the scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Body(usize, usize),
    Scratch(usize, usize),
}

impl Default for Place {
    /// An empty text.
    fn default() -> Self {
        Self::Body(0, 0)
    }
}

/// Reads one body. Strings that need it are unescaped into a scratch of its own.
pub struct Scanner<'a> {
    body: &'a [u8],
    at: usize,
    scratch: &'a mut Vec<u8>,
}

impl<'a> Scanner<'a> {
    /// `scratch` is emptied.
    pub fn new(body: &'a [u8], scratch: &'a mut Vec<u8>) -> Self {
        scratch.clear();
        Self { body, at: 0, scratch }
    }

    pub fn text(&self, place: Place) -> &[u8] {
        match place {
            Place::Body(from, to) => &self.body[from..to],
            Place::Scratch(from, to) => &self.scratch[from..to],
        }
    }

    /// The next bytes as they stand.
    pub fn take(&mut self, size: usize) -> Scan<Place> {
        let end = self.at.checked_add(size).filter(|end| *end <= self.body.len()).ok_or(Refused)?;
        let place = Place::Body(self.at, end);
        self.at = end;
        Ok(place)
    }

    /// Nothing is left, not even space.
    pub fn is_at_end(&self) -> bool {
        self.at == self.body.len()
    }

    fn skip_space(&mut self) {
        while matches!(self.body.get(self.at), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    /// Whether `byte` comes next.
    pub fn is_next(&mut self, byte: u8) -> bool {
        self.skip_space();
        self.body.get(self.at) == Some(&byte)
    }

    /// Whether `byte` comes next; then it is behind us.
    pub fn eat(&mut self, byte: u8) -> bool {
        let found = self.is_next(byte);
        self.at += usize::from(found);
        found
    }

    pub fn expect(&mut self, byte: u8) -> Scan<()> {
        self.eat(byte).then_some(()).ok_or(Refused)
    }

    /// Nothing but space is left.
    pub fn expect_end(&mut self) -> Scan<()> {
        self.skip_space();
        self.is_at_end().then_some(()).ok_or(Refused)
    }

    /// A key and its colon.
    pub fn key(&mut self) -> Scan<Place> {
        let key = self.string()?;
        self.expect(b':')?;
        Ok(key)
    }

    /// Whether an object without fields comes next; then it is behind us.
    pub fn is_empty_object(&mut self) -> bool {
        let at = self.at;
        let found = self.eat(b'{') && self.eat(b'}');
        self.at = if found { self.at } else { at };
        found
    }

    /// The fields of an object of one at least: `read` takes the value of each key.
    pub fn fields(&mut self, mut read: impl FnMut(&mut Self, Place) -> Scan<()>) -> Scan<()> {
        self.expect(b'{')?;
        self.each(b'}', |scanner| {
            let key = scanner.key()?;
            read(scanner, key)
        })
    }

    /// The items of a list of one at least: `read` takes each.
    pub fn items(&mut self, read: impl FnMut(&mut Self) -> Scan<()>) -> Scan<()> {
        self.expect(b'[')?;
        self.each(b']', read)
    }

    fn each(&mut self, end: u8, mut read: impl FnMut(&mut Self) -> Scan<()>) -> Scan<()> {
        loop {
            read(self)?;
            if !self.eat(b',') {
                return self.expect(end);
            }
        }
    }

    /// A string of characters that SQS allows in a message.
    pub fn string(&mut self) -> Scan<Place> {
        self.expect(b'"')?;
        let from = self.at;
        self.at += plain_run(&self.body[from..]);
        if self.body.get(self.at) == Some(&b'"') {
            self.at += 1;
            return Ok(Place::Body(from, self.at - 1));
        }
        let start = self.scratch.len();
        self.scratch.extend_from_slice(&self.body[from..self.at]);
        loop {
            match *self.body.get(self.at).ok_or(Refused)? {
                b'"' => {
                    self.at += 1;
                    return Ok(Place::Scratch(start, self.scratch.len()));
                }
                b'\\' => self.escape()?,
                0x80.. => {
                    let size = long_character(&self.body[self.at..]);
                    self.copy(size)?;
                }
                _ => {
                    // Control characters stand in JSON escaped only: a run of nothing.
                    let size = plain_run(&self.body[self.at..]);
                    self.copy(size)?;
                }
            }
        }
    }

    /// A string of bytes in base64.
    pub fn bytes(&mut self) -> Scan<Place> {
        let place = self.string()?;
        let text = std::str::from_utf8(self.text(place)).map_err(|_| Refused)?;
        let bytes = base64::decode(text).ok_or(Refused)?;
        Ok(self.keep(&bytes))
    }

    /// The place of a text that does not stand in the body as it is meant.
    pub fn keep(&mut self, text: &[u8]) -> Place {
        let start = self.scratch.len();
        self.scratch.extend_from_slice(text);
        Place::Scratch(start, self.scratch.len())
    }

    fn copy(&mut self, size: usize) -> Scan<()> {
        if size == 0 {
            return Err(Refused);
        }
        self.scratch.extend_from_slice(&self.body[self.at..self.at + size]);
        self.at += size;
        Ok(())
    }

    fn escape(&mut self) -> Scan<()> {
        let escaped = *self.body.get(self.at + 1).ok_or(Refused)?;
        self.at += 2;
        let byte = match escaped {
            b'"' | b'\\' | b'/' => escaped,
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'u' => return self.unicode_escape(),
            _ => return Err(Refused), // \b and \f are characters that SQS does not allow
        };
        self.scratch.push(byte);
        Ok(())
    }

    fn unicode_escape(&mut self) -> Scan<()> {
        let first = self.four_digits()?;
        let code = match first {
            0xd800..=0xdbff => {
                if self.body.get(self.at..self.at + 2) != Some(b"\\u") {
                    return Err(Refused);
                }
                self.at += 2;
                match self.four_digits()? {
                    second @ 0xdc00..=0xdfff => 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                    _ => return Err(Refused),
                }
            }
            _ => first,
        };
        let character = char::from_u32(code).filter(|one| is_allowed(*one)).ok_or(Refused)?;
        self.scratch.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn four_digits(&mut self) -> Scan<u32> {
        let digits = self.body.get(self.at..self.at + 4).ok_or(Refused)?;
        self.at += 4;
        digits.iter().try_fold(0, |sum, digit| Ok(sum << 4 | char::from(*digit).to_digit(16).ok_or(Refused)?))
    }

    /// A whole number of up to nine digits, without a fraction or an exponent.
    pub fn integer(&mut self) -> Scan<i64> {
        self.skip_space();
        let minus = self.body.get(self.at) == Some(&b'-');
        self.at += usize::from(minus);
        let digits = self.body[self.at..].iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
        let text = &self.body[self.at..self.at + digits];
        if digits == 0 || digits > 9 || (digits > 1 && text[0] == b'0') {
            return Err(Refused);
        }
        self.at += digits;
        if matches!(self.body.get(self.at), Some(b'.' | b'e' | b'E')) {
            return Err(Refused);
        }
        let value = text.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        Ok(if minus { -value } else { value })
    }
}
