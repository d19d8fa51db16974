//! The dialects whose hot requests are read and answered here: one module each, with a reader of requests and
//! a writer of replies. What they do not know is Python's.

pub mod emq;
mod given;
pub mod native;
#[cfg(test)]
mod random_tests;
pub mod sqs;
pub mod tried;

use crate::json::Scanner;
use crate::plane::ask::Content;
use crate::plane::clients::{Delivery, Word};
use crate::replies::{digest, Digest32, Head};
use crate::requests::{Dialect, Entry, Request, Verb};
use sqs::Names;

/// What the reply to a request repeats of it.
#[derive(Debug)]
pub struct Repeats {
    pub verb: Verb,
    entries: Vec<Repeated>,
    names: Names,
    /// Of EMQ.
    pub call: Option<emq::Call>,
}

/// Of one entry of a request: its id, or its handle where answers have that, the digests of its body and of its
/// attributes, and the bytes of its body.
#[derive(Debug)]
pub struct Repeated {
    pub id: Vec<u8>,
    pub digest: Digest32,
    pub bytes: u32,
    pub attributes: Option<Digest32>,
}

impl Repeats {
    pub fn new(verb: Verb, request: &mut Request, scanner: &Scanner) -> Self {
        let (has_handles, is_sqs) =
            (verb.act().is_some() && verb.dialect() != Dialect::Sqs, verb.dialect() == Dialect::Sqs);
        let repeated = |entry: &Entry| Repeated {
            id: scanner.text(if has_handles { entry.value } else { entry.id }).to_vec(),
            digest: if verb.is_send() { digest(scanner.text(entry.value)) } else { [0; 32] },
            bytes: u32::try_from(scanner.text(entry.value).len()).unwrap_or(u32::MAX),
            attributes: if is_sqs { sqs::digest_of(&entry.attributes, scanner) } else { None },
        };
        Self {
            verb,
            entries: request.entries.iter().map(repeated).collect(),
            names: std::mem::take(&mut request.names),
            call: request.call.take(),
        }
    }

    /// The messages of a send, which `new` has read.
    pub fn contents<'a>(&self, request: &Request, scanner: &'a Scanner) -> Vec<Content<'a>> {
        let content = |(entry, repeated): (&Entry, &Repeated)| Content {
            body: scanner.text(entry.value),
            attributes: entry.attributes.iter().filter_map(|one| one.read(scanner)).collect(),
            digest: repeated.digest,
            delay_ms: entry.delay_s.map(|seconds| seconds * 1000),
        };
        request.entries.iter().zip(&self.entries).map(content).collect()
    }

    /// What a good reply begins with.
    pub fn head(&self) -> Head {
        match &self.call {
            Some(call) => call.head(),
            None if self.verb.dialect() == Dialect::Native => native::HEAD,
            None => sqs::HEAD,
        }
    }

    /// Writes the reply to a receive.
    pub fn received(&self, out: &mut Vec<u8>, messages: &[Delivery]) {
        match &self.call {
            Some(call) => emq::received(out, call, messages),
            None if self.verb.dialect() == Dialect::Native => native::received(out, messages),
            None => sqs::received(out, &self.names, messages),
        }
    }

    /// Writes the reply to a send that Kafka has since `at_ms`.
    pub fn sent(&self, out: &mut Vec<u8>, ids: &[[u8; 36]], at_ms: u64) {
        match &self.call {
            Some(call) => emq::sent(out, call, self.verb, &self.entries, ids, at_ms),
            None if self.verb.dialect() == Dialect::Native => native::sent(out, &self.entries, ids, at_ms),
            None => sqs::sent(out, &self.entries, ids),
        }
    }

    /// Writes the reply to a request on handles; `results`: what became of each, and when its
    /// message is visible next (ms), 0 = that is not told.
    pub fn acted(&self, out: &mut Vec<u8>, results: &[(&Word, u64)]) {
        match &self.call {
            Some(call) => emq::acked(out, call, self.verb, &self.entries),
            None if self.verb.dialect() == Dialect::Native => native::acted(out, &self.entries, results),
            None => sqs::done(out, &self.entries),
        }
    }
}
