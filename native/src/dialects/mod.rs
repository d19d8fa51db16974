//! The dialects whose hot requests are read and answered here: one module each, with a reader of requests and
//! a writer of replies. What they do not know is Python's.

mod given;
pub mod native;
pub mod sqs;
pub mod tried;

use crate::json::Scanner;
use crate::plane::clients::Delivery;
use crate::plane::sends::Content;
use crate::replies::{digest, Digest32, Head};
use crate::requests::{Entry, Request, Verb};
use sqs::Names;

/// What the reply to a request repeats of it.
#[derive(Debug)]
pub struct Repeats {
    verb: Verb,
    entries: Vec<Repeated>,
    names: Names,
}

/// Of one entry of a request: its id, or its handle in the native API, and the digests of its body and of its
/// attributes.
#[derive(Debug)]
pub struct Repeated {
    pub id: Vec<u8>,
    pub digest: Digest32,
    pub attributes: Option<Digest32>,
}

impl Repeats {
    pub fn new(verb: Verb, request: &mut Request, scanner: &Scanner) -> Self {
        let repeated = |entry: &Entry| Repeated {
            id: scanner.text(if verb == Verb::NativeAck { entry.value } else { entry.id }).to_vec(),
            digest: if verb.is_send() { digest(scanner.text(entry.value)) } else { [0; 32] },
            attributes: if verb.is_native() { None } else { sqs::digest_of(&entry.attributes, scanner) },
        };
        Self {
            verb,
            entries: request.entries.iter().map(repeated).collect(),
            names: std::mem::take(&mut request.names),
        }
    }

    /// The messages of a send, which `new` has read.
    pub fn contents<'a>(&self, request: &Request, scanner: &'a Scanner) -> Vec<Content<'a>> {
        let content = |(entry, repeated): (&Entry, &Repeated)| Content {
            body: scanner.text(entry.value),
            attributes: entry.attributes.iter().filter_map(|one| one.read(scanner)).collect(),
            digest: repeated.digest,
        };
        request.entries.iter().zip(&self.entries).map(content).collect()
    }

    /// What a good reply begins with.
    pub fn head(&self) -> Head {
        if self.verb.is_native() {
            native::HEAD
        } else {
            sqs::HEAD
        }
    }

    /// Writes the reply to a receive.
    pub fn received(&self, json: &mut Vec<u8>, messages: &[Delivery]) {
        if self.verb.is_native() {
            native::received(json, messages);
        } else {
            sqs::received(json, &self.names, messages);
        }
    }

    /// Writes the reply to a send that Kafka has since `at_ms`.
    pub fn sent(&self, json: &mut Vec<u8>, ids: &[[u8; 36]], at_ms: u64) {
        if self.verb.is_native() {
            native::sent(json, &self.entries, ids, at_ms);
        } else {
            sqs::sent(json, &self.entries, ids);
        }
    }

    /// Writes the reply to an ack; `words`: what became of each handle, in Python's words.
    pub fn acked(&self, json: &mut Vec<u8>, words: &[&[u8]]) {
        if self.verb.is_native() {
            native::acked(json, &self.entries, words);
        } else {
            sqs::deleted(json, &self.entries);
        }
    }
}
