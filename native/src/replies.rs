//! Replies to plain requests: their heads, and the JSON that says what was done.

use std::time::{SystemTime, UNIX_EPOCH};

use md5::{Digest, Md5};

use crate::text::{long_character, plain_run};

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]; // 1970 began on a Thursday
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const HEX: &[u8; 16] = b"0123456789abcdef";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Makes the heads of replies: a number for each, and the date.
pub struct Heads {
    /// What the request ids of this process begin with.
    prefix: Vec<u8>,
    number: u64,
    date_s: u64,
    date: String,
}

impl Heads {
    /// `first`: the number of the first reply.
    pub fn new(prefix: &[u8], first: u64) -> Self {
        Self { prefix: prefix.to_vec(), number: first, date_s: u64::MAX, date: String::new() }
    }

    /// Writes the head of a good reply of so many bytes.
    pub fn write(&mut self, output: &mut Vec<u8>, bytes: usize, closes: bool) {
        output.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\nx-amzn-requestid: ");
        output.extend_from_slice(&self.prefix);
        let rest = format!("{:012x}\r\ncontent-length: {bytes}\r\n", self.number & 0xffff_ffff_ffff);
        output.extend_from_slice(rest.as_bytes());
        self.number += 1;
        self.end(output, closes);
    }

    /// Writes the end of a head.
    pub fn end(&mut self, output: &mut Vec<u8>, closes: bool) {
        if closes {
            output.extend_from_slice(b"connection: close\r\n");
        }
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if now_s != self.date_s {
            self.date_s = now_s;
            self.date = date(now_s);
        }
        output.extend_from_slice(b"date: ");
        output.extend_from_slice(self.date.as_bytes());
        output.extend_from_slice(b"\r\n\r\n");
    }
}

/// A time as HTTP writes it (RFC 9110, 5.6.7).
fn date(epoch_s: u64) -> String {
    let (days, second) = (epoch_s / 86_400, epoch_s % 86_400);
    // Years begin in March here, so that the day of a leap year is the last of its year.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era + u64::from(month >= 10);
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[((month + 2) % 12) as usize],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Hex MD5.
pub type Digest32 = [u8; 32];

/// Hex MD5 of a body.
pub fn digest(body: &[u8]) -> Digest32 {
    let mut text = [0; 32];
    for (place, byte) in Md5::digest(body).iter().enumerate() {
        text[2 * place] = HEX[usize::from(byte >> 4)];
        text[2 * place + 1] = HEX[usize::from(byte & 15)];
    }
    text
}

/// `{"MessageId":...,"MD5OfMessageBody":...}`, of a batch with an `Id`.
pub fn sent(json: &mut Vec<u8>, message_id: &[u8], digest: &[u8], entry_id: Option<&[u8]>) {
    json.extend_from_slice(b"{\"MessageId\":\"");
    json.extend_from_slice(message_id);
    json.extend_from_slice(b"\",\"MD5OfMessageBody\":\"");
    json.extend_from_slice(digest);
    if let Some(id) = entry_id {
        json.extend_from_slice(b"\",\"Id\":\"");
        json.extend_from_slice(id);
    }
    json.extend_from_slice(b"\"}");
}

/// A message that was received. A body that is no text of SQS is shown in base64. The id of a dead
/// letter is a text of its record, which anybody may have written who may write to the topic; all else
/// but the body is ours.
pub fn received(json: &mut Vec<u8>, message_id: &[u8], handle: &[u8], known: &[u8], body: &[u8]) {
    json.extend_from_slice(b"{\"MessageId\":\"");
    string(json, message_id);
    json.extend_from_slice(b"\",\"ReceiptHandle\":\"");
    json.extend_from_slice(handle);
    json.extend_from_slice(b"\",\"MD5OfBody\":\"");
    let at = json.len();
    if known.len() == 32 {
        json.extend_from_slice(known);
    } else {
        json.extend_from_slice(&digest(body));
    }
    json.extend_from_slice(b"\",\"Body\":\"");
    if !escaped(json, body) {
        let shown = base64(body);
        json[at..at + 32].copy_from_slice(&digest(&shown));
        json.extend_from_slice(&shown);
    }
    json.extend_from_slice(b"\"}");
}

/// Writes a text of SQS as it stands in a JSON string; false = it is none, and nothing was written.
fn escaped(json: &mut Vec<u8>, text: &[u8]) -> bool {
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

/// Writes any text of Python as it stands in a JSON string.
fn string(json: &mut Vec<u8>, text: &[u8]) {
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

fn base64(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let shown = place <= three.len();
            text.push(if shown { BASE64[(word >> (18 - 6 * place) & 63) as usize] } else { b'=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (epoch_s, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_795_564_800, "Wed, 25 Nov 2026 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(date(epoch_s), text);
        }
    }

    #[test]
    fn digests() {
        assert_eq!(&digest(b""), b"d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(&digest(b"abc"), b"900150983cd24fb0d6963f7d28e17f72");
    }

    #[test]
    fn base64_of_every_rest() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("\u{ff}", "w78=")]
        {
            assert_eq!(base64(bytes.as_bytes()), text.as_bytes());
        }
    }

    #[test]
    fn a_received_message() {
        let mut json = Vec::new();
        received(&mut json, b"i", b"h", b"", "a\"\\\n\r\té€😀\u{7f}".as_bytes());
        let text = String::from_utf8(json).expect("text");
        assert!(text.starts_with(r#"{"MessageId":"i","ReceiptHandle":"h","MD5OfBody":""#), "{text}");
        assert!(text.ends_with("\",\"Body\":\"a\\\"\\\\\\n\\r\\té€😀\u{7f}\"}"), "{text}");
    }

    #[test]
    fn an_id_may_be_any_text() {
        let mut json = Vec::new();
        received(&mut json, "a\",\"Body\":\"\\\n\r\t\u{8}\u{c}\u{1f}é\u{7f}".as_bytes(), b"h", &[b'0'; 32], b"b");
        let text = String::from_utf8(json).expect("text");
        let id = r#"{"MessageId":"a\",\"Body\":\"\\\n\r\t\b\f\u001fé"#.to_string() + "\u{7f}\",";
        assert!(text.starts_with(&id), "{text}");
    }

    #[test]
    fn a_body_that_is_no_text_is_shown_in_base64() {
        for body in [&b"\xff\x00"[..], b"a\x01", b"\xef\xbf\xbf"] {
            let mut json = Vec::new();
            received(&mut json, b"i", b"h", &[b'0'; 32], body);
            let shown = base64(body);
            let mut wanted = b"{\"MessageId\":\"i\",\"ReceiptHandle\":\"h\",\"MD5OfBody\":\"".to_vec();
            wanted.extend_from_slice(&digest(&shown));
            wanted.extend_from_slice(b"\",\"Body\":\"");
            wanted.extend_from_slice(&shown);
            wanted.extend_from_slice(b"\"}");
            assert_eq!(json, wanted);
        }
    }
}
