//! Which characters SQS allows in a message: #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD |
//! #x10000 to #x10FFFF, in UTF-8.

/// Bytes at the start of `text` that are ASCII from the space on, without the quote and the backslash.
pub fn plain_run(text: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let mut done = 0;
    let (chunks, _) = text.as_chunks::<8>();
    for chunk in chunks {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * u64::from(b'"'));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let found = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word)
            | word;
        if found & HIGHS != 0 {
            // A borrow may mark bytes behind the first one that counts, never one before it.
            return done + (found & HIGHS).trailing_zeros() as usize / 8;
        }
        done += 8;
    }
    done + text[done..].iter().take_while(|byte| is_plain(**byte)).count()
}

fn is_plain(byte: u8) -> bool {
    (0x20..0x80).contains(&byte) && byte != b'"' && byte != b'\\'
}

/// Whether SQS allows a character in a message.
pub fn is_allowed(character: char) -> bool {
    !matches!(character, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// Bytes of the character of two to four bytes that `text` begins with; 0 = it is none, or SQS does
/// not allow it.
pub fn long_character(text: &[u8]) -> usize {
    let size = match text.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => return 0,
    };
    match text.get(..size).map(std::str::from_utf8) {
        Some(Ok(one)) if one.chars().all(is_allowed) => size,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_run_ends_where_a_byte_counts() {
        for end in 0..40 {
            for byte in [b'"', b'\\', 0, b'\n', 0x1f, 0x80, 0xff] {
                for fill in [b' ', b'!', b'#', b'[', b']', b'x', 0x7f] {
                    let mut text = vec![fill; 40];
                    text[end] = byte;
                    assert_eq!(plain_run(&text), end, "{byte} behind {end} of {fill}");
                }
            }
        }
        assert_eq!(plain_run(&[b'x'; 37]), 37);
        assert_eq!(plain_run(b""), 0);
    }

    #[test]
    fn characters_of_several_bytes() {
        for (text, size) in [("é", 2), ("€", 3), ("😀", 4), ("\u{d7ff}", 3), ("\u{e000}", 3), ("\u{fffd}", 3)] {
            assert_eq!(long_character(text.as_bytes()), size);
            assert_eq!(long_character(&text.as_bytes()[..size - 1]), 0, "cut");
        }
        for bad in [
            &b"\xef\xbf\xbe"[..],
            b"\xef\xbf\xbf",
            b"\xed\xa0\x80",
            b"\xc0\x80",
            b"\xe0\x80\x80",
            b"\xf4\x90\x80\x80",
            b"\x80",
            b"a",
        ] {
            assert_eq!(long_character(bad), 0, "{bad:?}");
        }
    }
}
