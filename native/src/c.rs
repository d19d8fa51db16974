//! The C interface, whose code is unsafe for what C can't promise.

#![allow(unsafe_code)]

use std::os::fd::FromRawFd;
use std::sync::{Arc, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::net::front::{Front, Reads};
use crate::net::thread::Turns;
use crate::pack::Packer;

mod plane;
mod probes;
mod settings;

/// Raised when the functions or the batches change.
const INTERFACE: u32 = 28;

/// A front and what it has returned a pointer to.
pub struct Owned {
    front: Arc<Turns<Front>>,
    unsent: Packer,
    said: Packer,
    thread: Option<JoinHandle<()>>,
}

impl Owned {
    /// Every call of Python has it for as long as it takes, and so has each turn of the thread.
    fn front(&self) -> MutexGuard<'_, Front> {
        self.front.take()
    }
}

/// The number of this interface, which the loader compares with its own.
#[no_mangle]
pub extern "C" fn front_interface() -> u32 {
    INTERFACE
}

/// A front that accepts on a socket that listens, which it owns from now on; null when the system
/// refuses. `prefix`: what request ids begin with. `reads`: 0 = every request goes the long way, 1 =
/// plain ones are read, 2 = plain ones that are signed by a key that is known for where they come from, 3 =
/// these too, and a proxy tells where that is.
///
/// # Safety
/// `prefix` points to `prefix_bytes` bytes; nobody else owns `descriptor`.
#[no_mangle]
pub unsafe extern "C" fn front_new(
    descriptor: i32,
    prefix: *const u8,
    prefix_bytes: usize,
    reads: u32,
    most: u64,
) -> *mut Owned {
    crate::panics::tell();
    // SAFETY: the caller gives the descriptor away.
    let listener = unsafe { std::net::TcpListener::from_raw_fd(descriptor) };
    // SAFETY: by this function's contract.
    let prefix = unsafe { bytes(prefix, prefix_bytes) };
    let trusts_proxy = reads == 3;
    let reads = match reads {
        0 => Reads::Nothing,
        1 => Reads::All,
        _ => Reads::Signed,
    };
    match Front::new(listener, prefix, reads, trusts_proxy, most as usize) {
        Ok(front) => Box::into_raw(Box::new(Owned {
            front: Arc::new(Turns::new(front)),
            unsent: Packer::default(),
            said: Packer::default(),
            thread: None,
        })),
        Err(_) => std::ptr::null_mut(),
    }
}

/// Ends a front: all connections are closed.
///
/// # Safety
/// `front` is one of `front_new`, and is used no more.
#[no_mangle]
pub unsafe extern "C" fn front_free(front: *mut Owned) {
    // SAFETY: by this function's contract it is a box that nobody else has.
    let owned = unsafe { Box::from_raw(front) };
    if let Some(thread) = owned.thread {
        let mut front = owned.front.take();
        front.planes.stops = true;
        front.rouse();
        drop(front);
        // It ends at its next turn; a panic in it has ended the process.
        let _ = thread.join();
    }
}

/// The descriptor that is readable when `front_look` has something to do.
///
/// # Safety
/// `front` is one of `front_new`.
#[no_mangle]
pub unsafe extern "C" fn front_descriptor(front: *mut Owned) -> i32 {
    // SAFETY: by this function's contract, and no other reference lives.
    unsafe { &*front }.front().descriptor()
}

/// Reads what is ready, and returns all news as MessagePack, of `size` bytes; null = there are none.
/// `flags`: 1 = call again at once.
///
/// # Safety
/// `front` is one of `front_new`; `size` and `flags` point to a number each.
#[no_mangle]
pub unsafe extern "C" fn front_look(front: *mut Owned, size: *mut usize, flags: *mut u32) -> *const u8 {
    // SAFETY: by this function's contract, and no other reference lives.
    let (owned, size, flags) = unsafe { (&mut *front, &mut *size, &mut *flags) };
    let mut front = owned.front();
    front.look();
    // What was told is no reason to call again. Only this function replaces it.
    let news = front.batch.take();
    *size = news.len();
    let pointer = if news.is_empty() { std::ptr::null() } else { news.as_ptr() };
    *flags = front.flags();
    pointer
}

/// Reads the body that a connection sends into `room`, of `size` bytes. Returns how many came; `flags`:
/// 1 = all of it has come.
///
/// # Safety
/// `front` is one of `front_new`; `room` points to `size` bytes that may be written, `flags` to a
/// number.
#[no_mangle]
pub unsafe extern "C" fn front_receive(
    front: *mut Owned,
    connection: u64,
    room: *mut u8,
    size: usize,
    flags: *mut u32,
) -> usize {
    // SAFETY: by this function's contract, and no other reference lives.
    let (owned, room) = unsafe { (&*front, std::slice::from_raw_parts_mut(room, size)) };
    let mut front = owned.front();
    let (came, is_whole) = front.slots.of(connection).map_or((0, false), |slot| front.receive(slot, room));
    front.rouse();
    // SAFETY: by this function's contract.
    unsafe { *flags = u32::from(is_whole) };
    came
}

/// Takes answers as MessagePack. Returns flags: 1 = call `front_look`, 2 = call `front_unsent`,
/// 4 = the batch could not be read to its end.
///
/// # Safety
/// `front` is one of `front_new`; `batch` points to `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn front_answer(front: *mut Owned, batch: *const u8, size: usize) -> u32 {
    // SAFETY: by this function's contract, and no other reference lives.
    let (owned, batch) = unsafe { (&*front, bytes(batch, size)) };
    let mut front = owned.front();
    let flags = front.answer(batch);
    front.rouse();
    flags
}

/// The connections whose messages could not be given, as a MessagePack array, since the last call.
///
/// # Safety
/// `front` is one of `front_new`; `size` points to a number.
#[no_mangle]
pub unsafe extern "C" fn front_unsent(front: *mut Owned, size: *mut usize) -> *const u8 {
    // SAFETY: by this function's contract, and no other reference lives.
    let (owned, size) = unsafe { (&mut *front, &mut *size) };
    let unsent = std::mem::take(&mut owned.front().unsent);
    owned.unsent.bytes.clear();
    owned.unsent.array(unsent.len());
    unsent.iter().for_each(|id| owned.unsent.uint(*id));
    *size = owned.unsent.bytes.len();
    owned.unsent.bytes.as_ptr()
}

/// To be called about twice a second; see `Front::tick`. Returns flags as `front_answer`.
///
/// # Safety
/// `front` is one of `front_new`.
#[no_mangle]
pub unsafe extern "C" fn front_tick(front: *mut Owned, idle_ms: u64, part_ms: u64) -> u32 {
    // SAFETY: by this function's contract, and no other reference lives.
    let mut front = unsafe { &*front }.front();
    let flags = front.tick(Duration::from_millis(idle_ms), Duration::from_millis(part_ms));
    front.rouse();
    flags
}

/// Accepts nothing more, and ends each connection when what it has asked is answered. Returns flags.
///
/// # Safety
/// `front` is one of `front_new`.
#[no_mangle]
pub unsafe extern "C" fn front_drain(front: *mut Owned) -> u32 {
    // SAFETY: by this function's contract, and no other reference lives.
    let mut front = unsafe { &*front }.front();
    let flags = front.drain();
    front.rouse();
    flags
}

/// How many bytes of a connection's output its client has to read before more is written; 0 = more may
/// be.
///
/// # Safety
/// `front` is one of `front_new`.
#[no_mangle]
pub unsafe extern "C" fn front_waiting(front: *mut Owned, connection: u64) -> usize {
    // SAFETY: by this function's contract, and no other reference lives.
    let front = unsafe { &*front }.front();
    let slots = &front.slots;
    slots.of(connection).and_then(|slot| slots.get(slot)).map_or(0, |connection| {
        if connection.is_blocked {
            connection.unsent()
        } else {
            0
        }
    })
}

/// How many connections were closed because there were too many (0) or because they were idle and
/// others came (1), and how many requests that were not whole gave way to others (2).
///
/// # Safety
/// `front` is one of `front_new`.
#[no_mangle]
pub unsafe extern "C" fn front_refused(front: *mut Owned, which: u32) -> u64 {
    // SAFETY: by this function's contract, and no other reference lives.
    let front = unsafe { &*front }.front();
    match which {
        0 => front.door.refused,
        1 => front.door.closed,
        _ => front.gave_way,
    }
}

/// How many connections there are.
///
/// # Safety
/// `front` is one of `front_new`.
#[no_mangle]
pub unsafe extern "C" fn front_connections(front: *mut Owned) -> u64 {
    // SAFETY: by this function's contract, and no other reference lives.
    unsafe { &*front }.front().slots.len() as u64
}

/// # Safety
/// `room` bytes may be written at `place`, which is none of `found`.
unsafe fn give(found: &[u8], place: *mut u8, room: usize) -> usize {
    if found.len() > room {
        return 0;
    }
    // SAFETY: there is room, and ours does not overlap it.
    unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), place, found.len()) };
    found.len()
}

/// # Safety
/// `pointer` points to `size` bytes that do not change meanwhile; it may be null when there are none.
unsafe fn bytes<'a>(pointer: *const u8, size: usize) -> &'a [u8] {
    if size == 0 {
        return &[];
    }
    // SAFETY: by this function's contract.
    unsafe { std::slice::from_raw_parts(pointer, size) }
}
