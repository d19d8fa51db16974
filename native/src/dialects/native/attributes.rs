//! Attributes of messages to send in the native API: a text, or a type with its value.

use crate::dialects::given;
use crate::json::{Place, Refused, Scan, Scanner};
use crate::requests::{some_text, Given};

/// Of what is a text.
const TEXT: &[u8] = b"string";

/// Reads the attributes of a message, of the names, types and values that nobody refuses.
pub fn read(scanner: &mut Scanner) -> Scan<Vec<Given>> {
    given::each(scanner, given)
}

fn given(name: Place, scanner: &mut Scanner) -> Scan<Given> {
    if !scanner.eat(b'{') {
        let value = some_text(scanner, usize::MAX)?;
        return Ok(Given { name, kind: scanner.keep(TEXT), value });
    }
    let (mut kind, mut text, mut bytes) = (None, None, None);
    loop {
        let key = scanner.key()?;
        match scanner.text(key) {
            b"type" if kind.is_none() => kind = Some(some_text(scanner, usize::MAX)?),
            b"value" if text.is_none() => text = Some(some_text(scanner, usize::MAX)?),
            b"value_base64" if bytes.is_none() => bytes = Some(scanner.bytes()?),
            _ => return Err(Refused),
        }
        if !scanner.eat(b',') {
            break;
        }
    }
    scanner.expect(b'}')?;
    let kind = kind.ok_or(Refused)?;
    let value = match (given::word(scanner.text(kind)).ok_or(Refused)?, text, bytes) {
        (b"string", Some(text), None) => text,
        (b"number", Some(text), None) if given::is_number(scanner.text(text)) => text,
        (b"binary", None, Some(bytes)) => bytes,
        _ => return Err(Refused),
    };
    Ok(Given { name, kind, value })
}
