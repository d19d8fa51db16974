//! One batch of news for Python, as MessagePack: an array of `[kind, items]`.
//!
//! A lane is a number that stands for all that requests have in common: host, path, signer and queue
//! URL; it is told once, before its first use.

use std::collections::{HashMap, HashSet};

use crate::auth::keys::From;
use std::net::SocketAddr;
use std::time::Duration;

use crate::http::head::Head;
use crate::pack::Packer;
use crate::requests::Dialect;

/// Lanes that are remembered; of more all are forgotten, and told again.
pub const LANES: usize = 4096;

/// Kinds of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// `[[number, dialect, host, path, signer, url], ...]`
    Lanes = 0,
    /// `[[connection, ends, flags, waited us, method, path, query, [name, value, ...], body], ...]`: requests that
    /// Python answers, with what has come of their bodies. `ends` = [] or [host, port, peer's host,
    /// peer's port]; `flags`: 1 = more of the body comes, 2 = it is HTTP/1.0, 4 = the client waits for
    /// "100 Continue".
    Requests = 6,
    /// `[connection, ...]` that are closed.
    Gone = 7,
    /// `[connection, ...]` whose output has left.
    Drained = 9,
    /// `[[signer, address], ...]` whose keys are not known.
    Signers = 10,
    /// `[connection, ...]` of whose bodies Python is to read: `Front::receive`.
    Reads = 11,
    /// Of the plane; see `net/news.rs`.
    Plane = 15,
}

#[derive(Default)]
struct List {
    items: usize,
    packer: Packer,
}

/// Collects news until they are taken.
#[derive(Default)]
pub struct Batch {
    lanes: HashMap<Vec<u8>, u64>,
    next_lane: u64,
    told: List,
    requests: List,
    gone: List,
    drained: List,
    signers: List,
    reads: List,
    plane: List,
    taken: Vec<u8>,
}

/// What a lane stands for, but the queue's URL.
#[derive(Clone, Copy)]
pub struct Whose<'a> {
    pub dialect: Dialect,
    pub host: &'a [u8],
    pub path: &'a [u8],
    pub signer: &'a [u8],
}

impl Whose<'_> {
    fn key(self, url: &[u8]) -> Vec<u8> {
        [&[self.dialect as u8][..], self.host, self.path, self.signer, url].join(&b'\n')
    }
}

impl Batch {
    /// The number of a lane that was told, and not forgotten since.
    pub fn known_lane(&self, whose: Whose, url: &[u8]) -> Option<u64> {
        self.lanes.get(&whose.key(url)).copied()
    }

    /// The number of a lane; a new one is told.
    pub fn lane(&mut self, whose: Whose, url: &[u8]) -> u64 {
        let key = whose.key(url);
        if let Some(lane) = self.lanes.get(&key) {
            return *lane;
        }
        if self.lanes.len() >= LANES {
            self.lanes.clear();
        }
        let lane = self.next_lane;
        self.next_lane += 1;
        self.lanes.insert(key, lane);
        self.told.items += 1;
        let packer = &mut self.told.packer;
        packer.array(6);
        packer.uint(lane);
        packer.uint(whose.dialect as u64);
        for part in [whose.host, whose.path, whose.signer] {
            packer.binary(part);
        }
        packer.text(url);
        lane
    }

    /// Adds a request that Python answers. `ends`: of a connection that is new to Python, both
    /// ends' addresses.
    pub fn request(
        &mut self,
        id: u64,
        ends: Option<[Option<SocketAddr>; 2]>,
        head: &Head,
        body: &[u8],
        is_whole: bool,
        waited: Duration,
    ) {
        self.requests.items += 1;
        let packer = &mut self.requests.packer;
        packer.array(9);
        packer.uint(id);
        match ends {
            Some(ends) => {
                packer.array(4);
                for end in ends {
                    let host = end.map_or_else(String::new, |end| end.ip().to_canonical().to_string());
                    packer.text(host.as_bytes());
                    packer.uint(end.map_or(0, |end| u64::from(end.port())));
                }
            }
            None => packer.array(0),
        }
        let (path, query) = head.path_and_query();
        let framing = head.framing;
        packer.uint(u64::from(!is_whole) | u64::from(framing.is_old) << 1 | u64::from(framing.waits) << 2);
        packer.uint(waited.as_micros() as u64);
        for part in [head.method, path, query] {
            packer.binary(part);
        }
        packer.array(2 * head.headers().count());
        for (name, value) in head.headers() {
            packer.lower(name);
            packer.binary(value);
        }
        packer.binary(body);
    }

    /// How many bytes it has of requests that Python answers.
    pub fn told_bytes(&self) -> usize {
        self.requests.packer.bytes.len()
    }

    /// Python is to read a connection.
    pub fn read(&mut self, id: u64) {
        self.reads.items += 1;
        self.reads.packer.uint(id);
    }

    /// How many connections Python is to read.
    pub fn reads(&self) -> usize {
        self.reads.items
    }

    pub fn gone(&mut self, id: u64) {
        self.gone.items += 1;
        self.gone.packer.uint(id);
    }

    /// A request from there is signed by somebody whose key is not known.
    pub fn signer(&mut self, signer: &[u8], from: From) {
        self.signers.items += 1;
        let packer = &mut self.signers.packer;
        packer.array(2);
        packer.binary(signer);
        let mut address = Vec::new();
        from.write(&mut address);
        packer.binary(&address);
    }

    /// Lanes are told again before they are used.
    pub fn forget_lanes(&mut self) {
        self.lanes.clear();
    }

    /// Lanes that requests may name.
    pub fn known_lanes(&self) -> HashSet<u64> {
        self.lanes.values().copied().collect()
    }

    /// Some lanes are told again before they are used.
    pub fn forget_these(&mut self, lanes: &HashSet<u64>) {
        self.lanes.retain(|_, lane| !lanes.contains(lane));
    }

    /// News of the plane, which `write` writes as one item.
    pub fn plane(&mut self, write: impl FnOnce(&mut Packer)) {
        self.plane.items += 1;
        write(&mut self.plane.packer);
    }

    pub fn drained(&mut self, id: u64) {
        self.drained.items += 1;
        self.drained.packer.uint(id);
    }

    pub fn is_empty(&self) -> bool {
        [&self.told, &self.requests, &self.reads, &self.plane, &self.gone, &self.drained, &self.signers]
            .iter()
            .all(|list| list.items == 0)
    }

    /// All news since the last call; empty = there are none. Good until the next call.
    pub fn take(&mut self) -> &[u8] {
        let mut whole = Packer { bytes: std::mem::take(&mut self.taken) };
        whole.bytes.clear();
        whole.bytes.shrink_to(1 << 20);
        if !self.is_empty() {
            let lists = [
                (Kind::Lanes, &mut self.told),
                (Kind::Requests, &mut self.requests),
                (Kind::Reads, &mut self.reads),
                (Kind::Plane, &mut self.plane),
                (Kind::Drained, &mut self.drained),
                (Kind::Gone, &mut self.gone),
                (Kind::Signers, &mut self.signers),
            ];
            whole.array(lists.iter().filter(|(_, list)| list.items > 0).count());
            lists.into_iter().for_each(|list| write_list(&mut whole, list));
        }
        self.taken = whole.bytes;
        &self.taken
    }
}

fn write_list(whole: &mut Packer, (kind, list): (Kind, &mut List)) {
    if list.items > 0 {
        whole.array(2);
        whole.uint(kind as u64);
        whole.array(list.items);
        whole.bytes.append(&mut list.packer.bytes);
        list.packer.bytes.shrink_to(1 << 20);
        list.items = 0;
    }
}
