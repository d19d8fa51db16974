//! What a receive asks to be told of each message beside its body, as `facade/dialects/sqs/messages` reads it.

use crate::json::{Refused, Scan, Scanner};

/// Names of a request; of more is Python's.
const MOST: usize = 64;
const NAME_BYTES: usize = 256;
const EVERYTHING: [&[u8]; 3] = [b"All", b"*", b".*"];
/// The system attributes that messages may have which are handed out here, in their order.
pub const SYSTEM: [&str; 5] =
    ["SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp", "AWSTraceHeader"];

/// The two fields that name system attributes.
#[derive(Clone, Copy)]
pub enum Field {
    Old,
    New,
}

/// Names of attributes; by default none.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Of SYSTEM, as bits.
    system: u8,
    given: u8,
    everything: bool,
    names: Vec<Vec<u8>>,
    prefixes: Vec<Vec<u8>>,
}

impl Names {
    /// Whether nothing but the body is asked for.
    pub fn is_empty(&self) -> bool {
        self.system == 0 && !self.everything && self.names.is_empty() && self.prefixes.is_empty()
    }

    /// Reads one of the fields that name system attributes.
    pub fn read_system(&mut self, field: Field, scanner: &mut Scanner) -> Scan<()> {
        self.begin(1 << field as u8)?;
        let system = &mut self.system;
        each(scanner, |name| {
            *system |= match name {
                b"All" => (1 << SYSTEM.len()) - 1,
                // Others are of messages that are not handed out here, or no names at all.
                _ => SYSTEM.iter().position(|known| known.as_bytes() == name).map_or(0, |place| 1 << place),
            };
        })
    }

    /// Reads the field that names attributes of users.
    pub fn read_user(&mut self, scanner: &mut Scanner) -> Scan<()> {
        self.begin(1 << 7)?;
        each(scanner, |name| {
            if EVERYTHING.contains(&name) {
                self.everything = true;
            } else if let Some(prefix) = name.strip_suffix(b".*") {
                self.prefixes.push(prefix.to_vec());
            } else {
                self.names.push(name.to_vec());
            }
        })
    }

    fn begin(&mut self, field: u8) -> Scan<()> {
        if self.given & field != 0 {
            return Err(Refused);
        }
        self.given |= field;
        Ok(())
    }

    /// Whether the system attribute at a place of SYSTEM is asked for.
    pub fn asks_system(&self, place: usize) -> bool {
        self.system & 1 << place != 0
    }

    /// Whether an attribute of the user is asked for.
    pub fn asks(&self, name: &[u8]) -> bool {
        self.everything
            || self.names.iter().any(|asked| asked == name)
            || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// Reads a list of texts, which may be empty.
fn each(scanner: &mut Scanner, mut seen: impl FnMut(&[u8])) -> Scan<()> {
    scanner.expect(b'[')?;
    if scanner.eat(b']') {
        return Ok(());
    }
    for _ in 0..MOST {
        let place = scanner.string()?;
        let name = scanner.text(place);
        if name.len() > NAME_BYTES {
            return Err(Refused);
        }
        seen(name);
        if !scanner.eat(b',') {
            return scanner.expect(b']');
        }
    }
    Err(Refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(list: &str) -> Names {
        let (mut names, mut scratch) = (Names::default(), Vec::new());
        names.read_user(&mut Scanner::new(list.as_bytes(), &mut scratch)).expect("good");
        names
    }

    #[test]
    fn names_of_users_attributes() {
        for (list, asked, others) in [
            ("[]", &[][..], &["a"][..]),
            (r#"["a","é"]"#, &["a", "é"], &["b", "aa", "A", ""]),
            (r#"["a.*"]"#, &["a", "a.b", "ab", "a.*"], &["b", ""]),
            (r#"["All"]"#, &["a", ""], &[]),
            (r#"[".*"]"#, &["a"], &[]),
            (r#"["*"]"#, &["a"], &[]),
            (r#"["b",""]"#, &["", "b"], &["a"]),
        ] {
            let names = user(list);
            assert!(asked.iter().all(|name| names.asks(name.as_bytes())), "{list}");
            assert!(!others.iter().any(|name| names.asks(name.as_bytes())), "{list}");
        }
    }

    #[test]
    fn names_of_system_attributes() {
        let (mut names, mut scratch) = (Names::default(), Vec::new());
        let mut read = |given, list: &str| {
            names.read_system(given, &mut Scanner::new(list.as_bytes(), &mut scratch)).expect("good");
            (0..SYSTEM.len()).map(|place| names.asks_system(place)).collect::<Vec<_>>()
        };
        assert_eq!(read(Field::Old, r#"["SentTimestamp","SequenceNumber","all"]"#), [false, true, false, false, false]);
        assert_eq!(read(Field::New, r#"["All"]"#), [true; 5]);
    }
}
