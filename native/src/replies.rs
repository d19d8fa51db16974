//! The heads of good replies, and digests.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use md5::{Digest, Md5};

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]; // 1970 began on a Thursday
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const HEX: &[u8; 16] = b"0123456789abcdef";

/// What the good replies of a dialect begin with: their media type, and the header that has the request's id.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub media: &'static str,
    pub id: &'static str,
}

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

    /// The number of the last reply.
    pub fn last(&self) -> u64 {
        self.number - 1
    }

    /// Writes the head of a good reply of so many bytes.
    pub fn write(&mut self, output: &mut Vec<u8>, head: Head, bytes: usize, closes: bool) {
        // A vector takes all that is written.
        let _ = write!(output, "HTTP/1.1 200 OK\r\ncontent-type: {}\r\n", head.media);
        let _ = write!(output, "{}: ", head.id);
        output.extend_from_slice(&self.prefix);
        let _ = write!(output, "{:012x}\r\ncontent-length: {bytes}\r\n", self.number & 0xffff_ffff_ffff);
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
    hex(&Md5::digest(body).into())
}

pub fn hex(md5: &[u8; 16]) -> Digest32 {
    let mut text = [0; 32];
    for (place, byte) in md5.iter().enumerate() {
        text[2 * place] = HEX[usize::from(byte >> 4)];
        text[2 * place + 1] = HEX[usize::from(byte & 15)];
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
}
