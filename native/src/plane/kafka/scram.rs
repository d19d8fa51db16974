//! SCRAM of RFC 5802 and RFC 7677, a client's side: what it says, and whether the server knows the
//! password too.

use hmac::digest::{Digest, KeyInit};
use hmac::{Hmac, Mac};
use sha2::{Sha256, Sha512};

use crate::base64::{decode, encode};

/// What a broker may ask for: Kafka's own bounds. More would hold up all that this thread does.
const ITERATIONS: std::ops::RangeInclusive<u32> = 4_096..=16_384;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        match self {
            Self::Sha256 => mac::<Hmac<Sha256>>(key, parts),
            Self::Sha512 => mac::<Hmac<Sha512>>(key, parts),
        }
    }

    fn digest(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
            Self::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }

    /// Hi of RFC 5802: PBKDF2 of one block.
    fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        match self {
            Self::Sha256 => salted::<Hmac<Sha256>>(password, salt, iterations),
            Self::Sha512 => salted::<Hmac<Sha512>>(password, salt, iterations),
        }
    }
}

fn keyed<M: Mac + KeyInit>(key: &[u8]) -> M {
    <M as Mac>::new_from_slice(key).expect("HMAC takes keys of any length")
}

fn mac<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac: M = keyed(key);
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

fn salted<M: Mac + KeyInit + Clone>(password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
    let begun: M = keyed(password);
    let next = |parts: [&[u8]; 2]| {
        let mut mac = begun.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes()
    };
    let mut last = next([salt, &1u32.to_be_bytes()]);
    let mut sum = last.to_vec();
    for _ in 1..iterations {
        last = next([&last, &[]]);
        xor(&mut sum, &last);
    }
    sum
}

fn xor(sum: &mut [u8], other: &[u8]) {
    sum.iter_mut().zip(other).for_each(|(sum, other)| *sum ^= other);
}

/// One login, from the first word to the server's proof.
#[derive(Debug)]
pub struct Scram {
    hash: Hash,
    nonce: String,
    /// What was said first, without the header.
    bare: String,
    password: Vec<u8>,
    /// What the server has to prove the password by.
    expected: Option<String>,
}

impl Scram {
    /// `nonce`: printable characters without a comma that nobody can guess.
    pub fn new(hash: Hash, user: &str, password: &str, nonce: String) -> Self {
        let bare = format!("n={},r={nonce}", user.replace('=', "=3D").replace(',', "=2C"));
        Self { hash, nonce, bare, password: password.as_bytes().to_vec(), expected: None }
    }

    pub fn first(&self) -> String {
        format!("n,,{}", self.bare)
    }

    /// Returns the answer to the server's first message, or what is wrong with that.
    pub fn prove(&mut self, server: &[u8]) -> Result<String, &'static str> {
        let server = std::str::from_utf8(server).map_err(|_| "the broker's SCRAM message is not UTF-8")?;
        let mut fields = server.split(',');
        let mut field =
            |name: &str| fields.next().and_then(|field| field.strip_prefix(name)).ok_or("bad SCRAM message");
        let (nonce, salt, iterations) = (field("r=")?, field("s=")?, field("i=")?);
        if nonce.len() <= self.nonce.len() || !nonce.starts_with(&self.nonce) {
            return Err("the broker's SCRAM nonce does not begin with ours");
        }
        let salt = decode(salt).ok_or("the broker's SCRAM salt is not base64")?;
        let iterations = iterations.parse().ok().filter(|iterations| ITERATIONS.contains(iterations));
        let iterations = iterations.ok_or("the broker asks for fewer than 4096 or more than 16384 SCRAM iterations")?;
        let salted = self.hash.salted(&self.password, &salt, iterations);
        let end = format!("c=biws,r={nonce}");
        let said = [self.bare.as_bytes(), b",", server.as_bytes(), b",", end.as_bytes()];
        let mut proof = self.hash.hmac(&salted, &[b"Client Key"]);
        let signature = self.hash.hmac(&self.hash.digest(&proof), &said);
        xor(&mut proof, &signature);
        let server_key = self.hash.hmac(&salted, &[b"Server Key"]);
        self.expected = Some(encode(&self.hash.hmac(&server_key, &said)));
        Ok(format!("{end},p={}", encode(&proof)))
    }

    /// Whether the server's last message proves that it knows the password.
    pub fn is_proven(&self, server: &[u8]) -> bool {
        let shown = server.strip_prefix(b"v=").and_then(|rest| rest.split(|byte| *byte == b',').next());
        self.expected.as_ref().is_some_and(|expected| shown == Some(expected.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7677, 3.
    #[test]
    fn the_exchange_of_rfc_7677() {
        let mut scram = Scram::new(Hash::Sha256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO".to_owned());
        assert_eq!(scram.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        assert!(!scram.is_proven(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
        let server = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        assert_eq!(
            scram.prove(server).unwrap(),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert!(scram.is_proven(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
        assert!(!scram.is_proven(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5="));
        assert!(!scram.is_proven(b"e=invalid-proof"));
    }

    #[test]
    fn names_are_escaped_and_a_bad_first_message_is_refused() {
        let scram = || Scram::new(Hash::Sha512, "a=b,c", "p", "abc".to_owned());
        assert_eq!(scram().first(), "n,,n=a=3Db=2Cc,r=abc");
        for bad in [
            &b""[..],
            b"\xff",
            b"r=abc,s=AAAA,i=4096",
            b"r=xabc,s=AAAA,i=4096",
            b"r=abcd,s=AAA,i=4096",
            b"r=abcd,s=AAAA,i=4095",
            b"r=abcd,s=AAAA,i=16385",
            b"r=abcd,s=AAAA,i=99999999999",
            b"r=abcd,s=AAAA",
            b"m=x,r=abcd,s=AAAA,i=4096",
        ] {
            assert!(scram().prove(bad).is_err(), "{:?}", String::from_utf8_lossy(bad));
        }
        assert!(scram().prove(b"r=abcd,s=AAAA,i=4096,ext=1").is_ok());
    }
}
