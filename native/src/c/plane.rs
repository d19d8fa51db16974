//! Functions of the interface for the plane.

use super::{bytes, Owned};
use crate::net::front::BAD;
use crate::net::thread;
use crate::pack::Unpacker;

/// Adds the plane, which has a thread of its own from now on; see `plane::told::started`. Returns why there is
/// none, as text of `why_size` bytes; none = it is there.
///
/// # Safety
/// `front` is one of `front_new`; `told` points to `size` bytes, `why_size` to a number.
#[no_mangle]
pub unsafe extern "C" fn front_plane(
    front: *mut Owned,
    told: *const u8,
    size: usize,
    why_size: *mut usize,
) -> *const u8 {
    // SAFETY: by this function's contract, and no other reference lives.
    let (owned, told, why_size) = unsafe { (&mut *front, bytes(told, size), &mut *why_size) };
    let why = start(owned, &mut Unpacker::new(told)).err().unwrap_or_default();
    owned.said.bytes = why.into_bytes();
    *why_size = owned.said.bytes.len();
    owned.said.bytes.as_ptr()
}

fn start(owned: &mut Owned, told: &mut Unpacker) -> Result<(), String> {
    let (plane, kafka) = crate::plane::told::started(told)?;
    owned.thread = Some(thread::start(&owned.front, plane, kafka).map_err(|error| error.to_string())?);
    Ok(())
}

/// Tells the plane something; see `net::numbers::told`. Returns flags as `front_answer`, BAD when it could
/// not be read.
///
/// # Safety
/// `front` is one of `front_new`; `told` points to `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn front_tell(front: *mut Owned, what: u32, told: *const u8, size: usize) -> u32 {
    // SAFETY: by this function's contract, and no other reference lives.
    let (owned, told) = unsafe { (&*front, bytes(told, size)) };
    let mut front = owned.front();
    let bad = if front.hear(what, &mut Unpacker::new(told)).is_err() { BAD } else { 0 };
    front.rouse();
    front.flags() | bad
}

/// Asks the plane something, as MessagePack; see `net::numbers::asked`.
///
/// # Safety
/// `front` is one of `front_new`; `size` points to a number.
#[no_mangle]
pub unsafe extern "C" fn front_ask(front: *mut Owned, what: u32, size: *mut usize) -> *const u8 {
    // SAFETY: by this function's contract, and no other reference lives.
    let (owned, size) = unsafe { (&mut *front, &mut *size) };
    let mut said = std::mem::take(&mut owned.said);
    said.bytes.clear();
    owned.front().say(what, &mut said);
    owned.said = said;
    *size = owned.said.bytes.len();
    owned.said.bytes.as_ptr()
}
