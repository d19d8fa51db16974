//! Calls of Thrift as they come: the part of the three protocols that hot requests use. What is not in it is
//! Python's.

use super::{Kind, Protocol};
use crate::json::{Place, Refused, Scan, Scanner};

/// Version, and that it is a call.
const BINARY_CALL: u32 = 0x8001_0001;
const COMPACT_CALL: [u8; 2] = [0x82, 0x21];
const JSON_VERSION: i64 = 1;
const JSON_CALL: i64 = 1;
/// Of a number of 32 bits.
const VARINT_BYTES: u32 = 5;

/// Reads one message of one protocol.
pub struct Reader<'s, 'a> {
    protocol: Protocol,
    scanner: &'s mut Scanner<'a>,
}

impl<'s, 'a> Reader<'s, 'a> {
    pub fn new(protocol: Protocol, scanner: &'s mut Scanner<'a>) -> Self {
        Self { protocol, scanner }
    }

    pub fn bytes(&self, place: Place) -> &[u8] {
        self.scanner.text(place)
    }

    /// The head of a call: its method and its number.
    pub fn begin(&mut self) -> Scan<(Place, i32)> {
        match self.protocol {
            Protocol::Binary => {
                expect(self.word()? == BINARY_CALL)?;
                Ok((self.text()?, self.word()? as i32))
            }
            Protocol::Compact => {
                expect([self.byte()?, self.byte()?] == COMPACT_CALL)?;
                let seqid = i32::try_from(self.varint()?).map_err(|_| Refused)?;
                Ok((self.text()?, seqid))
            }
            Protocol::Json | Protocol::Bare => {
                self.scanner.expect(b'[')?;
                expect(self.scanner.integer()? == JSON_VERSION)?;
                self.scanner.expect(b',')?;
                let method = self.scanner.string()?;
                self.scanner.expect(b',')?;
                expect(self.scanner.integer()? == JSON_CALL)?;
                self.scanner.expect(b',')?;
                let seqid = self.scanner.integer()? as i32; // it has nine digits at most
                self.scanner.expect(b',')?;
                Ok((method, seqid))
            }
        }
    }

    /// The end of a message, behind which nothing comes.
    pub fn end(&mut self) -> Scan<()> {
        match self.protocol {
            Protocol::Json | Protocol::Bare => {
                self.scanner.expect(b']')?;
                self.scanner.expect_end()
            }
            _ => expect(self.scanner.is_at_end()),
        }
    }

    /// The fields of a struct: `read` takes the value of each, by its number and type.
    pub fn fields(&mut self, mut read: impl FnMut(&mut Reader<'_, 'a>, u8, Kind) -> Scan<()>) -> Scan<()> {
        let protocol = self.protocol;
        match protocol {
            Protocol::Binary => loop {
                let code = self.byte()?;
                if code == 0 {
                    return Ok(());
                }
                let [0, number] = [self.byte()?, self.byte()?] else { return Err(Refused) };
                read(self, number, Kind::of_code(protocol, code).ok_or(Refused)?)?;
            },
            Protocol::Compact => {
                let mut number = 0u8;
                loop {
                    let byte = self.byte()?;
                    if byte == 0 {
                        return Ok(());
                    }
                    expect(byte >> 4 > 0)?;
                    number = number.checked_add(byte >> 4).ok_or(Refused)?;
                    read(self, number, Kind::of_code(protocol, byte & 15).ok_or(Refused)?)?;
                }
            }
            Protocol::Json | Protocol::Bare => self.scanner.fields(|scanner, key| {
                let [digit @ b'1'..=b'9'] = *scanner.text(key) else { return Err(Refused) };
                scanner.expect(b'{')?;
                let word = scanner.key()?;
                let kind = Kind::of_word(scanner.text(word)).ok_or(Refused)?;
                read(&mut Reader::new(protocol, scanner), digit - b'0', kind)?;
                scanner.expect(b'}')
            }),
        }
    }

    /// The structs of a list, `most` at most.
    pub fn structs(&mut self, most: usize, mut read: impl FnMut(&mut Self) -> Scan<()>) -> Scan<()> {
        let is_json = matches!(self.protocol, Protocol::Json | Protocol::Bare);
        let (code, count) = match self.protocol {
            Protocol::Binary => (self.byte()?, self.word()?),
            Protocol::Compact => match self.byte()? {
                byte @ 0xf0.. => (byte & 15, self.varint()?),
                byte => (byte & 15, u32::from(byte >> 4)),
            },
            Protocol::Json | Protocol::Bare => {
                self.scanner.expect(b'[')?;
                let word = self.scanner.string()?;
                let kind = Kind::of_word(self.scanner.text(word)).ok_or(Refused)?;
                self.scanner.expect(b',')?;
                (kind.code(self.protocol), u32::try_from(self.scanner.integer()?).map_err(|_| Refused)?)
            }
        };
        expect(code == Kind::Struct.code(self.protocol) && count as usize <= most)?;
        for _ in 0..count {
            if is_json {
                self.scanner.expect(b',')?;
            }
            read(self)?;
        }
        if is_json {
            self.scanner.expect(b']')?;
        }
        Ok(())
    }

    /// A text of UTF-8.
    pub fn text(&mut self) -> Scan<Place> {
        let size = match self.protocol {
            Protocol::Binary => self.word()?,
            Protocol::Compact => self.varint()?,
            Protocol::Json | Protocol::Bare => return self.scanner.string(),
        };
        let place = self.scanner.take(size as usize)?;
        expect(std::str::from_utf8(self.scanner.text(place)).is_ok())?;
        Ok(place)
    }

    /// A text of one byte at least, and so many at most.
    pub fn some_text(&mut self, most: usize) -> Scan<Place> {
        let place = self.text()?;
        expect((1..=most).contains(&self.scanner.text(place).len()))?;
        Ok(place)
    }

    /// A number of 32 bits in its range.
    pub fn number(&mut self, least: i64, most: i64) -> Scan<i64> {
        let value = match self.protocol {
            Protocol::Binary => i64::from(self.word()? as i32),
            Protocol::Compact => {
                let bits = self.varint()?;
                i64::from((bits >> 1) as i32 ^ -((bits & 1) as i32))
            }
            Protocol::Json | Protocol::Bare => self.scanner.integer()?,
        };
        expect((least..=most).contains(&value))?;
        Ok(value)
    }

    fn byte(&mut self) -> Scan<u8> {
        let place = self.scanner.take(1)?;
        Ok(self.scanner.text(place)[0])
    }

    fn word(&mut self) -> Scan<u32> {
        let place = self.scanner.take(4)?;
        Ok(self.scanner.text(place).iter().fold(0, |word, byte| word << 8 | u32::from(*byte)))
    }

    fn varint(&mut self) -> Scan<u32> {
        let mut value = 0u64;
        for place in 0..VARINT_BYTES {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << (7 * place);
            if byte < 128 {
                return u32::try_from(value).map_err(|_| Refused);
            }
        }
        Err(Refused)
    }
}

fn expect(is_so: bool) -> Scan<()> {
    if is_so {
        Ok(())
    } else {
        Err(Refused)
    }
}
