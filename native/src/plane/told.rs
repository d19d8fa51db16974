//! What Python tells of the service and of a queue; the other side is `engine/plane/told.py`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::batches::Sends;
use super::clients::Word;
use super::counts::Bounds;
use super::format::ids::Ids;
use super::format::Formats;
use super::kafka;
use super::queue::Queue;
use super::redis::{Address, Limits as RedisLimits, Redis, Script};
use super::routes::Route;

use super::calls::Template;
use super::limits::Limits;
use super::tag::Tag;
use super::unit::{Acts, OfTag, Unit};
use super::Plane;
use crate::pack::{NotThere, Read, Unpacker};

fn numbers(told: &mut Unpacker) -> Read<Vec<u64>> {
    (0..told.array()?).map(|_| told.uint()).collect()
}

fn texts(told: &mut Unpacker) -> Read<Vec<Vec<u8>>> {
    (0..told.array()?).map(|_| Ok(told.bytes()?.to_vec())).collect()
}

fn words(told: &mut Unpacker) -> Read<Vec<Word>> {
    let word = |told: &mut Unpacker| {
        told.fields(3)?;
        let mut text = || Ok(told.bytes()?.to_vec());
        Ok(Word { script: text()?, status: text()?, reason: text()? })
    };
    (0..told.array()?).map(|_| word(told)).collect()
}

/// What does not change while the service runs.
pub struct Service {
    pub secret: Vec<u8>,
    pub formats: Formats,
    pub limits: Limits,
    pub bounds: Bounds,
    /// Of times of messages.
    pub times_ms: Vec<u64>,
    /// Messages with attributes of these names are Python's.
    pub reserved: Vec<Vec<u8>>,
    /// What may become of a handle; the first is success.
    pub words: Arc<[Word]>,
}

/// `[secret, formats, [limit, ...], [bounds of meters us], [bounds of metrics us], [bounds of times
/// of messages ms], [reserved name, ...], [[word of a script, status, reason], ...]]`
pub fn service(told: &mut Unpacker) -> Read<Service> {
    told.fields(8)?;
    let secret = told.bytes()?.to_vec();
    let (formats, limits) = (Formats::read(told)?, Limits::read(told)?);
    let bounds = Bounds { meters_us: numbers(told)?, metrics_us: numbers(told)? };
    let times_ms = numbers(told)?;
    let (reserved, words) = (texts(told)?, Arc::from(words(told)?));
    Ok(Service { secret, formats, limits, bounds, times_ms, reserved, words })
}

/// A plane with a connection that is to be made, and the way to Kafka; fails with the reason for which there is
/// none.
pub fn started(told: &mut Unpacker) -> Result<(Plane<Redis>, kafka::Settings), String> {
    if told.array() != Ok(3) {
        return Err("what Python told can't be read".into());
    }
    let (redis, kafka) = (redis(told)?, kafka(told)?);
    Plane::new(redis, told)
        .map(|plane| (plane, kafka))
        .map_err(|_| "what Python told of the service can't be read".into())
}

/// `[number, incarnation, [[tag, may hold, lease ms, bytes of a message, [[receive, probe,
/// ack, give back, extend, release], ...]], ...], topic, mask, is alone, partition to begin with, [load, ...],
/// acks wait for the journal]`
pub fn queue(told: &mut Unpacker, secret: &[u8], now: Instant) -> Read<(u64, Queue)> {
    told.fields(9)?;
    let number = told.uint()?;
    let incarnation: [u8; 6] = told.bytes()?.try_into().map_err(|_| NotThere)?;
    let (mut units, mut tags): (Vec<Unit>, Vec<Tag>) = (Vec::new(), Vec::new());
    for _ in 0..told.array()? {
        told.fields(5)?;
        let tag = u16::try_from(told.uint()?).map_err(|_| NotThere)?;
        let (may_hold, lease_ms, each_bytes) = (told.uint()? > 0, told.uint()? as i64, told.uint()? as usize);
        let partitions = told.array()?;
        units.resize_with(partitions, Unit::default);
        for (partition, unit) in units.iter_mut().enumerate() {
            told.fields(6)?;
            let ids = Ids::new(secret, &incarnation, partition as u16, tag).ok_or(NotThere)?;
            let (receive, probe) = (Template::read(told)?, Template::read(told)?);
            let (ack, give_back) = (Template::read(told)?, Template::read(told)?);
            let (extend, release) = (Template::read(told)?, Template::read(told)?);
            let acts = [ack, extend, release].map(|call| Acts { call, ..Acts::default() });
            unit.tags.insert(tag, OfTag { ids, receive, probe, give_back, acts });
        }
        tags.push(Tag::new(tag, partitions, may_hold, lease_ms, each_bytes, now));
    }
    let topic = String::from_utf8_lossy(told.bytes()?).into_owned();
    let (mask, is_alone, partition) = (told.bytes()?.to_vec(), told.uint()? > 0, told.uint()? as usize);
    if told.array()? != units.len() || partition >= units.len() {
        return Err(NotThere);
    }
    for unit in &mut units {
        unit.load = Template::read(told)?;
    }
    let is_durable = told.uint()? > 0;
    let sends = Sends::new(topic, mask, is_alone, partition);
    if units.is_empty() || tags.iter().any(|tag| tag.known.len() != units.len()) {
        return Err(NotThere);
    }
    let tags: HashMap<u16, Tag> = tags.into_iter().map(|tag| (tag.number, tag)).collect();
    Ok((number, Queue { units, tags, sends, is_durable, is_watched: false, is_open: true, calls: 0 }))
}

/// `[lane, queue, tag, verbs, some, most, wait ms, valid ms or 0, [[whose, most], ...], sender,
/// bytes of a message, bytes of a send, most ms of a delivery's leases or 0,
/// ms of delay, most ms of delay]`
pub fn route(told: &mut Unpacker, now: Instant) -> Read<(u64, Route)> {
    told.fields(15)?;
    let (lane, queue, tag) = (told.uint()?, told.uint()?, told.uint()? as u16);
    let (verbs, some, most, wait_ms) = (told.uint()? as u8, told.uint()? as usize, told.uint()? as usize, told.uint()?);
    let valid_until = Some(told.millis()?).filter(|valid| !valid.is_zero()).map(|valid| now + valid);
    let mut bounds = Vec::new();
    for _ in 0..told.array()? {
        told.fields(2)?;
        bounds.push((told.bytes()?.to_vec(), told.uint()? as usize));
    }
    let sender = Arc::from(told.bytes()?);
    let (most_message_bytes, most_send_bytes) = (told.uint()? as usize, told.uint()? as usize);
    let (most_leased_ms, delay_ms, most_delay_ms) = (told.uint()? as i64, told.uint()? as i64, told.uint()? as i64);
    Ok((
        lane,
        Route {
            queue,
            tag,
            verbs,
            some,
            most,
            wait_ms,
            valid_until,
            bounds: Arc::from(bounds),
            sender,
            most_message_bytes,
            most_send_bytes,
            delay_ms,
            most_delay_ms,
            most_leased_ms,
        },
    ))
}

/// `[[option, value], ...]`; fails with what the way to Kafka can't do, for people.
pub fn kafka(told: &mut Unpacker) -> Result<kafka::Settings, String> {
    let read = |told: &mut Unpacker| -> Read<HashMap<String, String>> {
        let mut options = HashMap::new();
        for _ in 0..told.array()? {
            told.fields(2)?;
            let mut text = || Ok(String::from_utf8_lossy(told.bytes()?).into_owned());
            options.insert(text()?, text()?);
        }
        Ok(options)
    };
    kafka::Settings::new(read(told).map_err(|_| "what Python told of Kafka can't be read".to_owned())?)
}

/// `[[[option, value], ...], [[sha, source], ...], [connect ms, reply ms, bytes, reply bytes, [back-off ms, ...]]]`;
/// fails with what this connection can't do, for people.
pub fn redis(told: &mut Unpacker) -> Result<Redis, String> {
    let cut = |_: NotThere| "what Python told of Redis can't be read".to_owned();
    let read = |told: &mut Unpacker| -> Read<_> {
        told.fields(3)?;
        let mut options = Vec::new();
        for _ in 0..told.array()? {
            told.fields(2)?;
            options.push((told.bytes()?.to_vec(), told.bytes()?.to_vec()));
        }
        let mut scripts = Vec::new();
        for _ in 0..told.array()? {
            told.fields(2)?;
            scripts.push(Script { sha: told.bytes()?.to_vec(), source: told.bytes()?.to_vec() });
        }
        told.fields(5)?;
        let (connect, reply) = (told.millis()?.as_secs_f64(), told.millis()?.as_secs_f64());
        let (bytes, reply_bytes) = (told.uint()? as usize, told.uint()? as usize);
        let back_off_s = numbers(told)?.into_iter().map(|ms| ms as f64 / 1000.0).collect();
        Ok((options, scripts, RedisLimits { connect_s: connect, reply_s: reply, back_off_s, bytes, reply_bytes }))
    };
    let (options, scripts, limits) = read(told).map_err(cut)?;
    let options: Vec<(&[u8], &[u8])> = options.iter().map(|(name, value)| (&name[..], &value[..])).collect();
    Ok(Redis::new(Address::read(&options)?, scripts, limits))
}
