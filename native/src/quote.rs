//! Texts as they stand in JSON strings, written as Python's encoder writes them.

use crate::text::{long_character, plain_run};

/// Writes a text of SQS as it stands in a JSON string; false = it is none, and nothing was written.
pub fn allowed(json: &mut Vec<u8>, text: &[u8]) -> bool {
    let start = json.len();
    let mut at = 0;
    while at < text.len() {
        let run = plain_run(&text[at..]);
        json.extend_from_slice(&text[at..at + run]);
        at += run;
        let Some(byte) = text.get(at) else { break };
        let (written, size): (&[u8], usize) = match byte {
            b'"' => (b"\\\"", 1),
            b'\\' => (b"\\\\", 1),
            b'\n' => (b"\\n", 1),
            b'\r' => (b"\\r", 1),
            b'\t' => (b"\\t", 1),
            _ => {
                let size = long_character(&text[at..]);
                (&text[at..at + size], size)
            }
        };
        if size == 0 {
            json.truncate(start);
            return false;
        }
        json.extend_from_slice(written);
        at += size;
    }
    true
}

/// Writes any text, in UTF-8, as it stands in a JSON string.
pub fn text(json: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while !rest.is_empty() {
        let run = rest.iter().take_while(|byte| **byte >= 0x20 && !matches!(byte, b'"' | b'\\')).count();
        json.extend_from_slice(&rest[..run]);
        let Some(byte) = rest.get(run) else { return };
        match byte {
            b'"' | b'\\' => json.extend_from_slice(&[b'\\', *byte]),
            b'\n' => json.extend_from_slice(b"\\n"),
            b'\r' => json.extend_from_slice(b"\\r"),
            b'\t' => json.extend_from_slice(b"\\t"),
            8 => json.extend_from_slice(b"\\b"),
            12 => json.extend_from_slice(b"\\f"),
            _ => json.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        rest = &rest[run + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_quoted() {
        let mut json = Vec::new();
        text(&mut json, "a\",\"Body\":\"\\\n\r\t\u{8}\u{c}\u{1f}é\u{7f}".as_bytes());
        assert_eq!(json, (r#"a\",\"Body\":\"\\\n\r\t\b\f\u001fé"#.to_string() + "\u{7f}").as_bytes());
    }

    #[test]
    fn what_is_no_text_of_sqs_is_not_written() {
        for bad in [&b"\xff\x00"[..], b"a\x01", b"\xef\xbf\xbf"] {
            let mut json = b"before".to_vec();
            assert!(!allowed(&mut json, bad));
            assert_eq!(json, b"before");
        }
        let mut json = Vec::new();
        assert!(allowed(&mut json, "a\"\\\n\r\té€😀\u{7f}".as_bytes()));
        assert_eq!(json, "a\\\"\\\\\\n\\r\\té€😀\u{7f}".as_bytes());
    }
}
