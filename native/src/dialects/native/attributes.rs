//! Attributes of messages to send in the native API: a text, or a type with its value.

use crate::dialects::given::{self, Form};
use crate::json::{Place, Scan, Scanner};
use crate::requests::{some_text, Given};

/// Of what is a text.
const TEXT: &[u8] = b"string";
const FORM: Form =
    Form { keys: [b"type", b"value", b"value_base64"], kinds: [TEXT, b"number", b"binary"], may_be_empty: true };

/// Reads the attributes of a message, of the names, types and values that nobody refuses.
pub fn read(scanner: &mut Scanner) -> Scan<Vec<Given>> {
    given::each(scanner, given)
}

fn given(name: Place, scanner: &mut Scanner) -> Scan<Given> {
    if scanner.is_next(b'{') {
        return FORM.read(name, scanner);
    }
    let value = some_text(scanner, usize::MAX)?;
    Ok(Given { name, kind: scanner.keep(TEXT), value })
}
