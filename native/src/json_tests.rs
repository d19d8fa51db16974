//! Strings and numbers that are read, and those that are left to Python.

use crate::json::{Refused, Scan, Scanner};

fn string(body: &[u8]) -> Scan<Vec<u8>> {
    let mut scratch = Vec::new();
    let mut scanner = Scanner::new(body, &mut scratch);
    let place = scanner.string()?;
    scanner.expect_end()?;
    Ok(scanner.text(place).to_vec())
}

fn integer(body: &[u8]) -> Scan<i64> {
    let mut scratch = Vec::new();
    let mut scanner = Scanner::new(body, &mut scratch);
    let value = scanner.integer()?;
    scanner.expect_end()?;
    Ok(value)
}

#[test]
fn strings() {
    for (body, text) in [
        (r#""""#, ""),
        (r#" "plain" "#, "plain"),
        (r#""a\"b\\c\/d\n\t\r""#, "a\"b\\c/d\n\t\r"),
        (r#""\u00e9\u20AC\ud83d\ude00""#, "é€😀"),
        ("\"long enough to need no escape é\"", "long enough to need no escape é"),
    ] {
        assert_eq!(string(body.as_bytes()), Ok(text.as_bytes().to_vec()), "{body}");
    }
}

#[test]
fn strings_that_are_left_to_python() {
    for body in [
        &b"\"open"[..],
        b"\"\\",
        b"\"\\u12",
        b"\"\n\"",
        b"\"\\b\"",
        b"\"\\u0000\"",
        b"\"\\uffff\"",
        b"\"\\ud800\"",
        b"\"\\ud800\\u0041\"",
        b"\"\\udc00\"",
        b"\"\xff\"",
        b"\"\xef\xbf\xbf\"",
        b"\"\\u+123\"",
        b"x",
        b"",
    ] {
        assert_eq!(string(body), Err(Refused), "{body:?}");
    }
}

#[test]
fn integers() {
    for (body, value) in [("0", 0), ("-0", 0), ("7", 7), ("-12", -12), ("999999999", 999_999_999)] {
        assert_eq!(integer(body.as_bytes()), Ok(value));
    }
    for body in ["", "-", "01", "1.0", "1e3", "1E3", "1234567890", "+1", "\"1\"", "null"] {
        assert_eq!(integer(body.as_bytes()), Err(Refused), "{body}");
    }
}
