//! Message ids and receipt handles, as `schemas/identity.py` makes and reads them.
//!
//! What a digest needs of the secret and the place is computed once, so that an id or a handle costs one
//! block of BLAKE2b and no allocation.

use blake2::digest::consts::{U4, U8};
use blake2::digest::{FixedOutput, Mac};
use blake2::{Blake2b512, Blake2bMac, Digest};

pub const ID_BYTES: usize = 36;
/// Of version 2, which is what receives make.
pub const HANDLE_BYTES: usize = 52;

const PARTITION_BITS: u32 = 12;
const OFFSET_BITS: u32 = 40;
const DIGEST_BITS: u32 = 22;
const VARIANT: u64 = 2 << 62;
const MAX_KEY_BYTES: usize = 64;

/// Version, incarnation, partition, tag.
const HEAD_BYTES: usize = 11;
/// Of an offset and of a time in a handle.
const SHORT_BITS: u32 = 48;
const MAC_BYTES: usize = 8;
const MOST_RAW_BYTES: usize = 45;
const VERSIONS: [u8; 3] = [1, 2, 3];

/// Ids and handles of one partition and tag of a queue.
pub struct Ids {
    id: Blake2bMac<U4>,
    /// An id but for what the offset says.
    id_form: [u8; ID_BYTES],
    /// By version, each with the head of a handle.
    handles: [Blake2bMac<U8>; VERSIONS.len()],
    /// Incarnation, partition, tag.
    place: [u8; HEAD_BYTES - 1],
}

/// What a handle names. `at_ms`: when the delivery began, 0 = it does not say; `until_ms`: it counts only
/// while the lease ends just then, 0 = whenever it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    pub partition: u16,
    pub tag: u16,
    pub offset: u64,
    pub nonce: u64,
    pub at_ms: u64,
    pub until_ms: u64,
}

impl Ids {
    /// Returns None if the secret is empty, or the partition does not fit into an id.
    pub fn new(secret: &[u8], incarnation: &[u8; 6], partition: u16, tag: u16) -> Option<Self> {
        if secret.is_empty() || partition >> PARTITION_BITS != 0 {
            return None;
        }
        let long;
        let key = if secret.len() <= MAX_KEY_BYTES {
            secret
        } else {
            long = Blake2b512::digest(secret);
            &long[..]
        };
        let mut place = [0; HEAD_BYTES - 1];
        place[..6].copy_from_slice(incarnation);
        place[6..8].copy_from_slice(&partition.to_be_bytes());
        place[8..].copy_from_slice(&tag.to_be_bytes());
        let mut id = Blake2bMac::new_with_salt_and_personal(key, &[], b"lw.id").ok()?;
        Mac::update(&mut id, &place[..8]);
        let keyed = Blake2bMac::new_with_salt_and_personal(key, &[], b"lw.handle").ok()?;
        let handles = VERSIONS.map(|version| keyed.clone().chain_update([version]).chain_update(place));
        let mut id_form = [b'-'; ID_BYTES];
        write_hex(&mut id_form[..8], &incarnation[..4]);
        write_hex(&mut id_form[9..13], &incarnation[4..]);
        write_hex(&mut id_form[14..18], &(0x8000 | partition).to_be_bytes());
        Some(Self { id, id_form, handles, place })
    }

    /// Returns the id of a message; None if the offset does not fit.
    pub fn id(&self, offset: u64) -> Option<[u8; ID_BYTES]> {
        if offset >> OFFSET_BITS != 0 {
            return None;
        }
        let digest: [u8; 4] = self.id.clone().chain_update(offset.to_be_bytes()).finalize_fixed().into();
        let digest = u32::from_be_bytes(digest) >> (u32::BITS - DIGEST_BITS);
        let tail = (VARIANT | offset << DIGEST_BITS | u64::from(digest)).to_be_bytes();
        let mut text = self.id_form;
        write_hex(&mut text[19..23], &tail[..2]);
        write_hex(&mut text[24..], &tail[2..]);
        Some(text)
    }

    /// Returns the handle of a delivery that began at `at_ms`; None if offset or time does not fit, or the
    /// time is 0, which is a handle of another version.
    pub fn handle(&self, offset: u64, nonce: u64, at_ms: u64) -> Option<[u8; HANDLE_BYTES]> {
        if offset >> SHORT_BITS != 0 || at_ms >> SHORT_BITS != 0 || at_ms == 0 {
            return None;
        }
        let mut raw = [VERSIONS[1]; HANDLE_BYTES / 4 * 3];
        raw[1..11].copy_from_slice(&self.place);
        raw[11..17].copy_from_slice(&offset.to_be_bytes()[2..]);
        raw[17..25].copy_from_slice(&nonce.to_be_bytes());
        raw[25..31].copy_from_slice(&at_ms.to_be_bytes()[2..]);
        let mac = self.handles[1].clone().chain_update(&raw[HEAD_BYTES..31]).finalize_fixed();
        raw[31..].copy_from_slice(&mac);
        let mut text = [0; HANDLE_BYTES];
        for (three, four) in raw.chunks_exact(3).zip(text.chunks_exact_mut(4)) {
            let bits = usize::from(three[0]) << 16 | usize::from(three[1]) << 8 | usize::from(three[2]);
            for (place, char) in four.iter_mut().enumerate() {
                *char = ALPHABET[bits >> (18 - 6 * place) & 63];
            }
        }
        Some(text)
    }
}

/// Reads a handle that the ids which `of` has for a partition and tag have made.
///
/// None = it is none, or of another life of the queue, of a place that `of` does not have, or of the
/// secret before this one: Python knows.
pub fn read_handle<'a>(text: &[u8], of: impl Fn(u16, u16) -> Option<&'a Ids>) -> Option<Handle> {
    let version = match text.len() {
        44 => 1,
        HANDLE_BYTES => 2,
        60 => 3,
        _ => return None,
    };
    let mut room = [0; MOST_RAW_BYTES];
    let raw = &mut room[..text.len() / 4 * 3];
    for (four, three) in text.chunks_exact(4).zip(raw.chunks_exact_mut(3)) {
        let values = [0, 1, 2, 3].map(|place| VALUES[usize::from(four[place])]);
        if values.iter().any(|value| *value > 63) {
            return None;
        }
        let bits = values.iter().fold(0, |bits, value| bits << 6 | u32::from(*value));
        three.copy_from_slice(&bits.to_be_bytes()[1..]);
    }
    let (signed, mac) = raw.split_at(raw.len() - MAC_BYTES);
    let (head, tail) = signed.split_at(HEAD_BYTES);
    let (partition, tag) = (number(&head[7..9]) as u16, number(&head[9..]) as u16);
    let ids = of(partition, tag)?;
    if usize::from(head[0]) != version || head[1..] != ids.place {
        return None;
    }
    // It compares in a time that does not depend on where they differ.
    ids.handles[version - 1].clone().chain_update(tail).verify_slice(mac).ok()?;
    let (times, nonce) = (&tail[14..], number(&tail[6..14]));
    let (at_ms, until_ms) = times.split_at(times.len().min(6));
    Some(Handle { partition, tag, offset: number(&tail[..6]), nonce, at_ms: number(at_ms), until_ms: number(until_ms) })
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn write_hex(text: &mut [u8], bytes: &[u8]) {
    for (two, byte) in text.chunks_exact_mut(2).zip(bytes) {
        two[0] = HEX[usize::from(byte >> 4)];
        two[1] = HEX[usize::from(byte & 15)];
    }
}

pub const HEX: &[u8; 16] = b"0123456789abcdef";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const VALUES: [u8; 256] = crate::base64::values(ALPHABET);
