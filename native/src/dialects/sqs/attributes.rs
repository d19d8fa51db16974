//! Attributes of messages as SQS has them, and their digests.

use std::borrow::Cow;

use md5::{Digest as _, Md5};

use super::names::Names;
use crate::dialects::given::{self, Form};
use crate::json::{Scan, Scanner};
use crate::plane::format::record::Attribute;
use crate::plane::unit::Kept;
use crate::replies::{hex, Digest32};
use crate::requests::Given;

/// An attribute that is told, with its type in the spelling of SQS.
pub struct Shown<'a> {
    pub name: &'a str,
    pub kind: Cow<'a, str>,
    pub value: &'a [u8],
}

/// The attributes of a message that a receive asks for, in their order.
pub fn shown<'a>(names: &Names, message: &'a Kept) -> Vec<Shown<'a>> {
    let mut shown = Vec::new();
    message.attributes(|Attribute { name, kind, value }| {
        if names.asks(name.as_bytes()) {
            shown.push(Shown { name, kind: spelled(kind), value });
        }
    });
    shown
}

/// The native API says `string` for what SQS calls `String`; labels stay as they are.
fn spelled(kind: &str) -> Cow<'_, str> {
    let (word, label) = kind.split_at(kind.find('.').unwrap_or(kind.len()));
    let mut spelled = word.to_ascii_lowercase();
    if let Some(first) = spelled.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    if spelled == word {
        return Cow::Borrowed(kind);
    }
    Cow::Owned(spelled + label)
}

/// Whether the value of an attribute of this type is bytes.
pub fn is_binary(kind: &str) -> bool {
    kind.starts_with("Binary")
}

/// Hex MD5 of the attributes of a message to send; None = it has none.
pub fn digest_of(given: &[Given], scanner: &Scanner) -> Option<Digest32> {
    let shown = |Attribute { name, kind, value }| Shown { name, kind: Cow::Borrowed(kind), value };
    let attributes: Vec<Shown> = given.iter().filter_map(|one| one.read(scanner)).map(shown).collect();
    (!attributes.is_empty()).then(|| digest_of_shown(&attributes))
}

/// Hex MD5 of attributes, by their names: length and name, length and type, a byte for the kind of
/// value, length and value.
pub fn digest_of_shown(attributes: &[Shown]) -> Digest32 {
    let mut sorted: Vec<&Shown> = attributes.iter().collect();
    sorted.sort_by_key(|one| one.name);
    let mut md5 = Md5::new();
    for Shown { name, kind, value } in sorted {
        for part in [name.as_bytes(), kind.as_bytes()] {
            md5.update((part.len() as u32).to_be_bytes());
            md5.update(part);
        }
        md5.update([if is_binary(kind) { 2 } else { 1 }]);
        md5.update((value.len() as u32).to_be_bytes());
        md5.update(value);
    }
    hex(&md5.finalize().into())
}

const FORM: Form = Form {
    keys: [b"DataType", b"StringValue", b"BinaryValue"],
    kinds: [b"String", b"Number", b"Binary"],
    may_be_empty: false,
};

/// Reads the attributes of a message to send, of the names, types and values that nobody refuses.
pub fn read(scanner: &mut Scanner) -> Scan<Vec<Given>> {
    given::each(scanner, |name, scanner| FORM.read(name, scanner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(attributes: &str) -> Option<Vec<(String, String, Vec<u8>)>> {
        let mut scratch = Vec::new();
        let mut scanner = Scanner::new(attributes.as_bytes(), &mut scratch);
        let found = read(&mut scanner).ok()?;
        scanner.expect_end().ok()?;
        let of = |given: &Given| {
            let Attribute { name, kind, value } = given.read(&scanner)?;
            Some((name.to_owned(), kind.to_owned(), value.to_vec()))
        };
        found.iter().map(of).collect()
    }

    #[test]
    fn attributes_to_send() {
        assert_eq!(reads("{}"), Some(Vec::new()));
        let body = r#"{"a.b-c_1":{"DataType":"String","StringValue":"\u00e9"},
            "n":{"StringValue":"-1.50","DataType":"Number.eur"},"b":{"DataType":"Binary.x.y","BinaryValue":"AP8="}}"#;
        let found =
            [("a.b-c_1", "String", "é".as_bytes()), ("n", "Number.eur", b"-1.50"), ("b", "Binary.x.y", b"\x00\xff")];
        assert_eq!(reads(body), Some(found.map(|(name, kind, value)| (name.into(), kind.into(), value.into())).into()));
    }

    #[test]
    fn attributes_that_are_left_to_python() {
        let eleven = (0..11).map(|n| format!(r#""{n}":{{"DataType":"String","StringValue":"v"}}"#)).collect::<Vec<_>>();
        let good = r#"{"DataType":"String","StringValue":"v"}"#;
        for body in [
            format!("{{{}}}", eleven.join(",")),
            format!(r#"{{"a":{good},"a":{good}}}"#),
            format!(r#"{{"AWS.x":{good}}}"#),
            format!(r#"{{"aMazon.":{good}}}"#),
            format!(r#"{{".a":{good}}}"#),
            format!(r#"{{"a..b":{good}}}"#),
            format!(r#"{{"é":{good}}}"#),
            format!(r#"{{"":{good}}}"#),
            format!(r#"{{"a":{good},}}"#),
            r#"{"a":{}}"#.into(),
            r#"{"a":{"DataType":"String"}}"#.into(),
            r#"{"a":{"StringValue":"v"}}"#.into(),
            r#"{"a":{"DataType":"String","StringValue":""}}"#.into(),
            r#"{"a":{"DataType":"String","StringValue":"v","BinaryValue":"AA=="}}"#.into(),
            r#"{"a":{"DataType":"String","StringValue":"v","StringListValues":[]}}"#.into(),
            r#"{"a":{"DataType":"string","StringValue":"v"}}"#.into(),
            r#"{"a":{"DataType":"String.","StringValue":"v"}}"#.into(),
            r#"{"a":{"DataType":"String._","StringValue":"v"}}"#.into(),
            r#"{"a":{"DataType":"Number","StringValue":"1e3"}}"#.into(),
            r#"{"a":{"DataType":"Number","StringValue":"1."}}"#.into(),
            r#"{"a":{"DataType":"Number","StringValue":"-"}}"#.into(),
            format!(r#"{{"a":{{"DataType":"Number","StringValue":"{}"}}}}"#, "1".repeat(39)),
            r#"{"a":{"DataType":"Binary","BinaryValue":""}}"#.into(),
            r#"{"a":{"DataType":"Binary","BinaryValue":"AB="}}"#.into(),
            r#"{"a":{"DataType":"Binary","StringValue":"AA=="}}"#.into(),
            r#"{"a":null}"#.into(),
            "null".into(),
        ] {
            assert_eq!(reads(&body), None, "{body}");
        }
    }
}
