//! Base64 with padding and without lines (RFC 4648, 4), as SCRAM and JSON bodies have it.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const VALUES: [u8; 256] = values(LETTERS);

/// What each byte stands for in an alphabet; 255 = nothing.
pub const fn values(letters: &[u8; 64]) -> [u8; 256] {
    let mut values = [255; 256];
    let mut value = 0;
    while value < letters.len() {
        values[letters[value] as usize] = value as u8;
        value += 1;
    }
    values
}

pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().chain([&0; 2]).take(3).fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() { letter as char } else { '=' });
        }
    }
    text
}

/// Returns None for what `encode` would not have written.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut word = 0u32;
        for letter in chunk {
            let value = VALUES[usize::from(*letter)];
            if value > 63 {
                return None;
            }
            word = word << 6 | u32::from(value);
        }
        word <<= 6 * (4 - chunk.len());
        bytes.extend_from_slice(&word.to_be_bytes()[1..chunk.len()]);
    }
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text), Some(bytes.as_bytes().to_vec()));
        }
        for bad in ["Z", "Zg", "Zg=", "Zh==", "Zm9v=", "Zm 9v", "Zm9v\n", "=", "Zm9vY"] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
    }
}
