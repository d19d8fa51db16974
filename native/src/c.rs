//! The C interface, and what we ask of C: the only module with unsafe code, all of it for what C can't
//! promise.

#![allow(unsafe_code)]

use std::os::fd::{FromRawFd, RawFd};
use std::sync::{Arc, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::net::bounds::Bounds;
use crate::net::client;
use crate::net::front::{Front, Reads, Ready, BAD, EVENTS};
use crate::pack::{Packer, Unpacker};
use crate::turns::Turns;

mod probes;

/// Raised when the functions or the batches change.
const INTERFACE: u32 = 16;

/// What tells that the other end has closed its side, which not every system does.
#[cfg(target_os = "linux")]
const LEFT: libc::c_short = libc::POLLRDHUP;
#[cfg(not(target_os = "linux"))]
const LEFT: libc::c_short = 0;

#[cfg(target_os = "linux")]
const BOOT_CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
#[cfg(not(target_os = "linux"))]
const BOOT_CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// A front and what it has returned a pointer to.
pub struct Owned {
    front: Arc<Turns<Front>>,
    unsent: Packer,
    said: Packer,
    thread: Option<JoinHandle<()>>,
    /// Readable when the thread has news; -1 = there is no thread.
    told: RawFd,
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
            told: -1,
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
    let Owned { front, thread, told, .. } = *owned;
    if let Some(thread) = thread {
        let mut inner = front.take();
        inner.planes.stops = true;
        inner.rouse();
        drop(inner);
        // It ends at its next turn; a panic in it has ended the process.
        let _ = thread.join();
    }
    if told >= 0 {
        // SAFETY: the descriptor is ours, and nobody uses it any more.
        unsafe { libc::close(told) };
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
    if owned.told >= 0 {
        let mut count = 0u64;
        // SAFETY: the descriptor is ours, and there is room for its eight bytes.
        unsafe { libc::read(owned.told, (&raw mut count).cast(), 8) };
    }
    let mut front = owned.front();
    front.planes.is_told = false;
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
                unsafe { &*front }.front().tls = Some(tls);
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
        0 => front.refused,
        1 => front.closed,
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

/// Adds the plane, which has a thread of its own from now on; see `plane::started`. Returns why there is
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
    let (plane, kafka) = crate::plane::started(told)?;
    // SAFETY: it only makes a descriptor.
    let descriptor = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
    if descriptor < 0 {
        return Err("the system gives no descriptor".into());
    }
    owned.told = descriptor;
    let mut poll = owned.front().add_plane(plane, kafka, descriptor).map_err(|error| error.to_string())?;
    let shared = owned.front.clone();
    let run = move || {
        let mut events = mio::Events::with_capacity(EVENTS);
        let mut patience = None;
        loop {
            // One that is interrupted is made again.
            let _ = poll.poll(&mut events, patience);
            let mut front = shared.take_turn();
            if front.planes.stops {
                return;
            }
            let ready: Vec<Ready> = events.iter().map(Ready::of).collect();
            let tells = front.turn_of_thread(&ready);
            patience = front.patience();
            drop(front);
            if tells {
                let one = 1u64.to_ne_bytes();
                // SAFETY: the descriptor is ours until this thread has ended, and there are eight bytes.
                unsafe { libc::write(descriptor, one.as_ptr().cast(), 8) };
            }
        }
    };
    let thread = std::thread::Builder::new().name("plane".into()).spawn(run).map_err(|error| error.to_string())?;
    owned.thread = Some(thread);
    Ok(())
}

/// Tells the plane something; see `net::planes::Told`. Returns flags as `front_answer`, BAD when it could
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

/// Asks the plane something, as MessagePack: 0 = what was counted since the last time, 1 = at which queues
/// somebody waits, 2 = of which queues and tags something is on its way back.
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

/// Seconds of the clock that nobody sets and that counts a machine's sleep, where the system tells it,
/// as state/clock/boot.py. Where it can't be read all times are over.
pub fn boot_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes one value, which is ours.
    match unsafe { libc::clock_gettime(BOOT_CLOCK, &raw mut time) } {
        0 => time.tv_sec as f64 + time.tv_nsec as f64 / 1e9,
        _ => f64::INFINITY,
    }
}

/// Whether the other end of a socket has closed its side, or the connection is broken.
pub fn has_ended(socket: RawFd) -> bool {
    let mut asked = libc::pollfd { fd: socket, events: LEFT, revents: 0 };
    // SAFETY: it is one entry, which is ours, and the call does not wait.
    unsafe { libc::poll(&mut asked, 1, 0) > 0 }
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
