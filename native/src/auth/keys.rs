//! The signing keys that Python has given: each counts for a while, and from one address.
//!
//! Python gives a key for an address from which somebody has proved it lately, whom no wrong secret
//! of others keeps out. Whoever guesses elsewhere finds no key here: that is Python's, which counts.

use std::collections::HashMap;
use std::io::Write;
use std::net::IpAddr;
use std::time::Instant;

use crate::auth::sign::Key;

/// Keys that are remembered; of more all are forgotten. Python knows 20,000 addresses of keys.
const KEYS: usize = 16_384;
/// An address and a port are shorter. What is longer counts as none.
const FROM_BYTES: usize = 64;

/// Where a request comes from: what a proxy that is trusted has told, or else the connection's peer.
#[derive(Clone, Copy, Debug)]
pub enum From<'a> {
    Told(&'a [u8]),
    Peer(IpAddr),
}

impl<'a> From<'a> {
    /// By the value of X-Forwarded-For, of which the last part is the proxy's own.
    pub fn new(forwarded: &'a [u8], peer: IpAddr) -> Self {
        match forwarded {
            [] => Self::Peer(peer),
            told => Self::Told(crate::http::head::trimmed(told.rsplit(|byte| *byte == b',').next().unwrap_or(told))),
        }
    }

    pub fn write(self, text: &mut Vec<u8>) {
        match self {
            Self::Told(told) if told.len() > FROM_BYTES => {}
            Self::Told(told) => text.extend_from_slice(told),
            Self::Peer(peer) => write!(text, "{peer}").expect("a vector takes everything"),
        }
    }
}

#[derive(Default)]
pub struct Keys {
    /// By signer (`key/day/region`) and address, and until when each counts.
    known: HashMap<Vec<u8>, (Key, Instant)>,
    name: Vec<u8>,
}

impl Keys {
    /// Python gives the key of a signer, for requests from an address.
    pub fn learn(&mut self, signer: &[u8], from: &[u8], key: Key, until: Instant) {
        if self.known.len() >= KEYS {
            self.known.clear();
        }
        self.known.insert([signer, from].join(&b'\n'), (key, until));
    }

    /// The key of a signer, if it counts there now.
    pub fn of(&mut self, signer: &[u8], from: From, now: Instant) -> Option<&Key> {
        self.name.clear();
        self.name.extend_from_slice(signer);
        self.name.push(b'\n');
        from.write(&mut self.name);
        self.known.get(&self.name).filter(|(_, until)| *until > now).map(|(key, _)| key)
    }

    pub fn forget(&mut self) {
        self.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SIGNER: &[u8] = b"key/20261126/us-east-1";

    #[test]
    fn a_key_counts_from_one_address_for_a_while() {
        let now = Instant::now();
        let mut keys = Keys::default();
        let (here, there) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        keys.learn(SIGNER, b"127.0.0.1", [7; 32], now + Duration::from_secs(60));
        assert_eq!(keys.of(SIGNER, From::new(b"", here), now), Some(&[7; 32]));
        assert_eq!(keys.of(SIGNER, From::new(b"10.0.0.1, 127.0.0.1", there), now), Some(&[7; 32]));
        assert_eq!(keys.of(SIGNER, From::new(b"", there), now), None);
        assert_eq!(keys.of(SIGNER, From::new(b"127.0.0.1, 127.0.0.2", here), now), None);
        assert_eq!(keys.of(b"other/20261126/us-east-1", From::new(b"", here), now), None);
        assert_eq!(keys.of(SIGNER, From::new(b"", here), now + Duration::from_secs(60)), None);
        keys.forget();
        assert_eq!(keys.of(SIGNER, From::new(b"", here), now), None);
    }

    #[test]
    fn where_a_request_comes_from() {
        let peer = IpAddr::from([127, 0, 0, 1]);
        let long = [b'1'; 100];
        for (forwarded, told) in [
            (&b""[..], &b"127.0.0.1"[..]),
            (b"10.0.0.1", b"10.0.0.1"),
            (b"10.0.0.1 ,\t10.0.0.2 ", b"10.0.0.2"),
            (b"10.0.0.1,", b""),
            (&long, b""),
        ] {
            let mut text = Vec::new();
            From::new(forwarded, peer).write(&mut text);
            assert_eq!(text, told);
        }
    }
}
