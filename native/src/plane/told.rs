//! What Python tells of the service and of a queue; the other side is `engine/plane/told.py`.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::counts::Bounds;
use super::format::ids::Ids;
use super::format::Formats;
use super::kafka;
use super::redis::{Address, Limits as RedisLimits, Redis, Script};
use super::routes::Route;
use super::sends::Sends;
use super::tag::{Limits, Tag};
use super::template::Template;
use super::unit::{OfTag, Unit};
use super::Queue;
use crate::pack::{NotThere, Read, Unpacker};

fn fields(told: &mut Unpacker, count: usize) -> Read<()> {
    (told.array()? == count).then_some(()).ok_or(NotThere)
}

fn millis(told: &mut Unpacker) -> Read<Duration> {
    Ok(Duration::from_millis(told.uint()?))
}

fn numbers(told: &mut Unpacker) -> Read<Vec<u64>> {
    (0..told.array()?).map(|_| told.uint()).collect()
}

fn texts(told: &mut Unpacker) -> Read<Vec<Vec<u8>>> {
    (0..told.array()?).map(|_| Ok(told.bytes()?.to_vec())).collect()
}

/// What does not change while the service runs.
pub struct Service {
    pub secret: Vec<u8>,
    pub formats: Formats,
    pub limits: Limits,
    pub bounds: Bounds,
    /// Messages with attributes of these names are Python's.
    pub reserved: Vec<Vec<u8>>,
    /// What became of a handle, in the order of `Word`.
    pub words: Arc<[Vec<u8>]>,
}

/// `[secret, formats, [limit, ...], [bounds of meters us], [bounds of metrics us], [reserved name, ...],
/// [word, ...]]`
pub fn service(told: &mut Unpacker) -> Read<Service> {
    fields(told, 7)?;
    let secret = told.bytes()?.to_vec();
    let formats = Formats::read(told)?;
    fields(told, 16)?;
    let limits = Limits {
        most_a_call: told.uint()? as usize,
        most_in_flight: told.uint()?,
        look_again: millis(told)?,
        ahead: millis(told)?,
        most_ahead: told.uint()? as usize,
        pause: millis(told)?,
        least_lease_ms: told.uint()? as i64,
        most_waits: told.uint()? as usize,
        most_bytes: told.uint()? as usize,
        most_receive_bytes: told.uint()? as usize,
        batch_records: told.uint()? as usize,
        batch_bytes: told.uint()? as usize,
        run: told.uint()? as usize,
        send_timeout: millis(told)?,
        most_sends: told.uint()? as usize,
        most_waiting_bytes: told.uint()? as usize,
    };
    let bounds = Bounds { meters_us: numbers(told)?, metrics_us: numbers(told)? };
    let (reserved, words) = (texts(told)?, Arc::from(texts(told)?));
    Ok(Service { secret, formats, limits, bounds, reserved, words })
}

/// `[number, incarnation, [[tag, may hold, lease ms, bytes of a message, [[receive, probe,
/// ack, give back], ...]], ...], topic, mask, is alone, partition to begin with, [load, ...]]`
pub fn queue(told: &mut Unpacker, secret: &[u8], now: Instant) -> Read<(u64, Queue)> {
    fields(told, 8)?;
    let number = told.uint()?;
    let incarnation: [u8; 6] = told.bytes()?.try_into().map_err(|_| NotThere)?;
    let (mut units, mut tags): (Vec<Unit>, Vec<Tag>) = (Vec::new(), Vec::new());
    for _ in 0..told.array()? {
        fields(told, 5)?;
        let tag = u16::try_from(told.uint()?).map_err(|_| NotThere)?;
        let (may_hold, lease_ms, each_bytes) = (told.uint()? > 0, told.uint()? as i64, told.uint()? as usize);
        let partitions = told.array()?;
        units.resize_with(partitions, Unit::default);
        for (partition, unit) in units.iter_mut().enumerate() {
            fields(told, 4)?;
            let ids = Ids::new(secret, &incarnation, partition as u16, tag).ok_or(NotThere)?;
            let (receive, probe) = (Template::read(told)?, Template::read(told)?);
            let (ack, give_back) = (Template::read(told)?, Template::read(told)?);
            let acks = VecDeque::new();
            unit.tags.insert(tag, OfTag { ids, receive, probe, ack, give_back, acks, is_acking: false });
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
    let sends = Sends::new(topic, mask, is_alone, partition);
    if units.is_empty() || tags.iter().any(|tag| tag.known.len() != units.len()) {
        return Err(NotThere);
    }
    let tags: HashMap<u16, Tag> = tags.into_iter().map(|tag| (tag.number, tag)).collect();
    Ok((number, Queue { units, tags, sends, is_watched: false, is_open: true, calls: 0 }))
}

/// `[lane, queue, tag, verbs, some, most, wait ms, valid ms or 0, [[whose, most], ...], sender,
/// bytes of a message, bytes of a send]`
pub fn route(told: &mut Unpacker, now: Instant) -> Read<(u64, Route)> {
    fields(told, 12)?;
    let (lane, queue, tag) = (told.uint()?, told.uint()?, told.uint()? as u16);
    let (verbs, some, most, wait_ms) = (told.uint()? as u8, told.uint()? as usize, told.uint()? as usize, told.uint()?);
    let valid_until = Some(millis(told)?).filter(|valid| !valid.is_zero()).map(|valid| now + valid);
    let mut bounds = Vec::new();
    for _ in 0..told.array()? {
        fields(told, 2)?;
        bounds.push((told.bytes()?.to_vec(), told.uint()? as usize));
    }
    let sender = Arc::from(told.bytes()?);
    let (most_message_bytes, most_send_bytes) = (told.uint()? as usize, told.uint()? as usize);
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
        },
    ))
}

/// `[[option, value], ...]`; fails with what the way to Kafka can't do, for people.
pub fn kafka(told: &mut Unpacker) -> Result<kafka::Settings, String> {
    let read = |told: &mut Unpacker| -> Read<HashMap<String, String>> {
        let mut options = HashMap::new();
        for _ in 0..told.array()? {
            fields(told, 2)?;
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
        fields(told, 3)?;
        let mut options = Vec::new();
        for _ in 0..told.array()? {
            fields(told, 2)?;
            options.push((told.bytes()?.to_vec(), told.bytes()?.to_vec()));
        }
        let mut scripts = Vec::new();
        for _ in 0..told.array()? {
            fields(told, 2)?;
            scripts.push(Script { sha: told.bytes()?.to_vec(), source: told.bytes()?.to_vec() });
        }
        fields(told, 5)?;
        let (connect, reply) = (millis(told)?.as_secs_f64(), millis(told)?.as_secs_f64());
        let (bytes, reply_bytes) = (told.uint()? as usize, told.uint()? as usize);
        let back_off_s = numbers(told)?.into_iter().map(|ms| ms as f64 / 1000.0).collect();
        Ok((options, scripts, RedisLimits { connect_s: connect, reply_s: reply, back_off_s, bytes, reply_bytes }))
    };
    let (options, scripts, limits) = read(told).map_err(cut)?;
    let options: Vec<(&[u8], &[u8])> = options.iter().map(|(name, value)| (&name[..], &value[..])).collect();
    Ok(Redis::new(Address::read(&options)?, scripts, limits))
}
