//! Functions of the interface that tests call, and workers do not.

use super::{bytes, give, Owned};
use crate::auth::sign;
use crate::http::head::{self, Found};
use crate::http::stream;
use crate::json::Scanner;
use crate::pack::Packer;
use crate::plane::format::tried;
use crate::plane::kafka::trial::Trial;
use crate::plane::redis::probe::Probe;
use crate::requests;

/// For tests: what is read of one request that is whole, copied into `news` of `room` bytes: `[verb, host,
/// path, signer, url, [[id, value, lease s], ...], most, wait s, lease s]` with -1 for what is not given. Returns
/// the size; 0 = it is Python's, or there is no room.
///
/// # Safety
/// `request` points to `size` bytes, `news` to `room` bytes.
#[no_mangle]
pub unsafe extern "C" fn front_read(request: *const u8, size: usize, news: *mut u8, room: usize) -> usize {
    // SAFETY: by this function's contract.
    let request = unsafe { bytes(request, size) };
    let Found::Head(found) = head::read(request, &mut 0) else { return 0 };
    let Ok(plain) = found.plain else { return 0 };
    let Some(body) = request.get(found.bytes..found.bytes + plain.body_bytes) else { return 0 };
    let (mut scratch, mut packer) = (Vec::new(), Packer::default());
    let mut scanner = Scanner::new(body, &mut scratch);
    let Ok((verb, read)) = requests::read(plain.form, &mut scanner) else { return 0 };
    packer.array(9);
    packer.uint(verb as u64);
    [plain.host, plain.path, plain.whose].iter().for_each(|part| packer.binary(part));
    packer.text(scanner.text(read.url));
    packer.array(read.entries.len());
    for entry in &read.entries {
        packer.array(3);
        [entry.id, entry.value].iter().for_each(|place| packer.binary(scanner.text(*place)));
        packer.int(entry.lease_s);
    }
    [read.most, read.wait_s, read.lease_s].iter().for_each(|value| packer.int(value.unwrap_or(-1)));
    // SAFETY: by this function's contract.
    unsafe { give(&packer.bytes, news, room) }
}

/// For tests: whether `key`, of 32 bytes, has signed one request that is whole, by our reading, at
/// `now_s`.
///
/// # Safety
/// `request` points to `size` bytes, `key` to 32 bytes.
#[no_mangle]
pub unsafe extern "C" fn front_fits(request: *const u8, size: usize, key: *const u8, now_s: u64) -> u32 {
    // SAFETY: by this function's contract.
    let (request, key) = unsafe { (bytes(request, size), bytes(key, 32)) };
    let Found::Head(found) = head::read(request, &mut 0) else { return 0 };
    let Ok(plain) = found.plain else { return 0 };
    let Some(body) = request.get(found.bytes..found.bytes + plain.body_bytes) else { return 0 };
    let text = &request[..found.bytes];
    key.try_into().map_or(0, |key| u32::from(sign::fits(text, &plain, body, &key, now_s)))
}

/// For tests: all requests of a stream that comes in pieces of `step` bytes, as `stream::packed`
/// says, copied into `news` of `room` bytes. Returns the size; 0 = there is no room.
///
/// # Safety
/// `bytes` points to `size` bytes, `news` to `room` bytes.
#[no_mangle]
pub unsafe extern "C" fn front_stream(bytes: *const u8, size: usize, step: usize, news: *mut u8, room: usize) -> usize {
    // SAFETY: by this function's contract.
    unsafe { give(&stream::packed(self::bytes(bytes, size), step), news, room) }
}

/// For tests: has the thread of the plane panic, at once.
///
/// # Safety
/// `front` is one of `front_new`.
#[no_mangle]
pub unsafe extern "C" fn front_panic(front: *mut Owned) {
    // SAFETY: by this function's contract, and no other reference lives.
    let mut front = unsafe { &*front }.front();
    front.planes.panics = true;
    front.rouse();
}

/// A connection to Redis for tests; it does what `front_redis_ask` says.
#[no_mangle]
pub extern "C" fn front_redis_new() -> *mut Probe {
    Box::into_raw(Box::default())
}

/// For tests: does one command, an array in Redis' own protocol (see plane/redis/probe.rs), and returns
/// what came of it likewise, of `answer_size` bytes.
///
/// # Safety
/// `probe` is one of `front_redis_new`; `command` points to `size` bytes, `answer_size` to a number.
#[no_mangle]
pub unsafe extern "C" fn front_redis_ask(
    probe: *mut Probe,
    command: *const u8,
    size: usize,
    answer_size: *mut usize,
) -> *const u8 {
    // SAFETY: by this function's contract, and no other reference lives.
    let (probe, command, answer_size) = unsafe { (&mut *probe, bytes(command, size), &mut *answer_size) };
    let answer = probe.ask(command);
    *answer_size = answer.len();
    answer.as_ptr()
}

/// Ends a connection of `front_redis_new`.
///
/// # Safety
/// `probe` is one of `front_redis_new`, and is used no more.
#[no_mangle]
pub unsafe extern "C" fn front_redis_free(probe: *mut Probe) {
    // SAFETY: by this function's contract it is a box that nobody else has.
    drop(unsafe { Box::from_raw(probe) });
}

/// For tests: what the formats of the plane make of a batch of cases, see plane/format/tried.rs, copied
/// into `answers` of `room` bytes. Returns the size; 0 = the batch could not be read, or there is no
/// room.
///
/// # Safety
/// `batch` points to `size` bytes, `answers` to `room` bytes.
#[no_mangle]
pub unsafe extern "C" fn front_formats(batch: *const u8, size: usize, answers: *mut u8, room: usize) -> usize {
    // SAFETY: by this function's contract.
    let Ok(made) = tried::answers(unsafe { bytes(batch, size) }) else { return 0 };
    if made.len() > room {
        return 0;
    }
    // SAFETY: by this function's contract there is room, and ours does not overlap it.
    unsafe { std::ptr::copy_nonoverlapping(made.as_ptr(), answers, made.len()) };
    made.len()
}

/// A way to Kafka for tests; it does what `front_kafka_ask` says.
#[no_mangle]
pub extern "C" fn front_kafka_new() -> *mut Trial {
    Box::into_raw(Box::default())
}

/// For tests: does one call, in MessagePack (see plane/kafka/trial.rs), and returns what came of it, of
/// `news_size` bytes.
///
/// # Safety
/// `trial` is one of `front_kafka_new`; `call` points to `size` bytes, `news_size` to a number.
#[no_mangle]
pub unsafe extern "C" fn front_kafka_ask(
    trial: *mut Trial,
    call: *const u8,
    size: usize,
    news_size: *mut usize,
) -> *const u8 {
    // SAFETY: by this function's contract, and no other reference lives.
    let (trial, call, news_size) = unsafe { (&mut *trial, bytes(call, size), &mut *news_size) };
    let news = trial.ask(call);
    *news_size = news.len();
    news.as_ptr()
}

/// Ends a way of `front_kafka_new`.
///
/// # Safety
/// `trial` is one of `front_kafka_new`, and is used no more.
#[no_mangle]
pub unsafe extern "C" fn front_kafka_free(trial: *mut Trial) {
    // SAFETY: by this function's contract it is a box that nobody else has.
    drop(unsafe { Box::from_raw(trial) });
}
