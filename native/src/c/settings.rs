//! Functions of the interface for what Python tells a front besides answers: bounds, keys, certificates.

use std::time::{Duration, Instant};

use super::{bytes, give, Owned};
use crate::net::bounds::Bounds;
use crate::net::client;

/// Tells the bounds, as many numbers as `Bounds::of` takes. Returns how many those are; of another
/// number none is taken.
///
/// # Safety
/// `front` is one of `front_new`; `numbers` points to so many.
#[no_mangle]
pub unsafe extern "C" fn front_bounds(front: *mut Owned, numbers: *const u64, number: usize) -> usize {
    // SAFETY: by this function's contract, and no other reference lives.
    let (owned, numbers) = unsafe { (&*front, std::slice::from_raw_parts(numbers, number)) };
    if let Ok(numbers) = numbers.try_into() {
        owned.front().bounds = Bounds::of(numbers);
    }
    Bounds::NUMBERS
}

/// The key of a signer (`key/day/region`) at an address, as news told them, of 32 bytes; it counts for
/// so many seconds.
///
/// # Safety
/// `front` is one of `front_new`; `signer` points to `size` bytes, `from` to `from_bytes`, `key` to 32.
#[no_mangle]
pub unsafe extern "C" fn front_key(
    front: *mut Owned,
    signer: *const u8,
    size: usize,
    from: *const u8,
    from_bytes: usize,
    key: *const u8,
    seconds: u64,
) {
    // SAFETY: by this function's contract, and no other reference lives.
    let (owned, signer, key) = unsafe { (&*front, bytes(signer, size), bytes(key, 32)) };
    // SAFETY: by this function's contract.
    let from = unsafe { bytes(from, from_bytes) };
    if let Ok(key) = key.try_into() {
        owned.front().keys.learn(signer, from, key, Instant::now() + Duration::from_secs(seconds.min(3600)));
    }
}

/// Has new connections shown a certificate, with its chain, and its key, in PEM; those that are there
/// keep theirs. Returns the size of what is wrong with these, copied into `room`; 0 = nothing. `front`
/// may be null: then it is only looked at them.
///
/// # Safety
/// `front` is one of `front_new` or null; `certificates` points to `size` bytes, `key` to `key_bytes`,
/// `room` to `room_bytes` that may be written.
#[no_mangle]
pub unsafe extern "C" fn front_certify(
    front: *mut Owned,
    certificates: *const u8,
    size: usize,
    key: *const u8,
    key_bytes: usize,
    room: *mut u8,
    room_bytes: usize,
) -> usize {
    // SAFETY: by this function's contract.
    match client::config(unsafe { bytes(certificates, size) }, unsafe { bytes(key, key_bytes) }) {
        Ok(tls) => {
            if !front.is_null() {
                // SAFETY: by this function's contract, and no other reference lives.
                unsafe { &*front }.front().door.tls = Some(tls);
            }
            0
        }
        // SAFETY: by this function's contract.
        Err(wrong) => unsafe { give(&wrong.as_bytes()[..wrong.len().min(room_bytes)], room, room_bytes) },
    }
}

/// Forgets all keys and lanes; requests that wait are passed on. Returns flags as `front_answer`.
///
/// # Safety
/// `front` is one of `front_new`.
#[no_mangle]
pub unsafe extern "C" fn front_forget(front: *mut Owned) -> u32 {
    // SAFETY: by this function's contract, and no other reference lives.
    let mut front = unsafe { &*front }.front();
    front.forget();
    front.rouse();
    front.flags()
}
