//! For tests: a producer with a poll of its own, which Python turns. What goes in and comes out is
//! MessagePack; a value that may be missing is an array of none or one.

use std::collections::HashMap;
use std::io::Result;
use std::time::{Duration, Instant};

use mio::{Events, Poll};

use super::records::Header;
use super::records::Until;
use super::{Outcome, Producer, Reason, Record, Settings};
use crate::pack::{Packer, Read, Unpacker};

/// The caller's own tokens begin elsewhere.
const TOKENS: std::ops::Range<usize> = 100..164;

#[derive(Default)]
pub struct Trial {
    way: Option<Way>,
    news: Packer,
}

struct Way {
    poll: Poll,
    events: Events,
    producer: Producer,
}

impl Trial {
    /// Does what a call says, and returns the news: whether a broker is reached, why one is not, the
    /// bytes held, and the outcomes. What is wrong with the call is a text in their place.
    pub fn ask(&mut self, call: &[u8]) -> &[u8] {
        self.news.bytes.clear();
        if let Err(wrong) = self.act(&mut Unpacker::new(call)) {
            self.news.bytes.clear();
            self.news.text(wrong.as_bytes());
        }
        &self.news.bytes
    }

    fn act(&mut self, call: &mut Unpacker) -> std::result::Result<(), String> {
        let unread = |_| "the call can't be read".to_owned();
        let name = text(call).map_err(unread)?;
        if name == "open" {
            let settings = Settings::new(read_options(call).map_err(unread)?)?;
            self.way = Some(Way::new(settings).map_err(|error| error.to_string())?);
        }
        let way = self.way.as_mut().ok_or("it is not open")?;
        match name {
            "append" => way.append(call).map_err(unread)?,
            "reach" => way.producer.reach(Instant::now()),
            "stop" => way.producer.stop(Instant::now()),
            "turn" => way.turn(call.uint().map_err(unread)?).map_err(|error| error.to_string())?,
            _ => {}
        }
        tell(&mut way.producer, &mut self.news);
        Ok(())
    }
}

impl Way {
    fn new(settings: Settings) -> Result<Self> {
        let poll = Poll::new()?;
        let producer = Producer::new(settings, poll.registry().try_clone()?, TOKENS, Instant::now())?;
        Ok(Self { poll, events: Events::with_capacity(64), producer })
    }

    fn append(&mut self, call: &mut Unpacker) -> Read<()> {
        let (topic, partition) = (text(call)?, call.uint()? as i32);
        let (token, within_ms) = (call.uint()?, call.uint()?);
        let given = (0..call.array()?).map(|_| Given::read(call)).collect::<Read<Vec<_>>>()?;
        let records = given.iter().map(Given::record);
        let now = Instant::now();
        let deadline = now + Duration::from_millis(within_ms);
        self.producer.append(topic, partition, records, token, Until { sent: deadline, answered: deadline }, now);
        Ok(())
    }

    /// Waits once for sockets, `wait_ms` at most.
    fn turn(&mut self, wait_ms: u64) -> Result<()> {
        let now = Instant::now();
        self.producer.flush(now);
        let due = self.producer.next_tick(now).saturating_duration_since(now);
        match self.poll.poll(&mut self.events, Some(due.min(Duration::from_millis(wait_ms)))) {
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        let now = Instant::now();
        self.events.iter().for_each(|event| self.producer.ready(event.token(), now));
        if self.producer.next_tick(now) <= now || self.events.is_empty() {
            self.producer.tick(now);
        }
        Ok(())
    }
}

fn tell(producer: &mut Producer, news: &mut Packer) {
    news.array(4);
    news.uint(u64::from(producer.is_reached()));
    put_reason(news, producer.trouble().as_ref());
    news.uint(producer.held() as u64);
    let outcomes = producer.outcomes();
    news.array(outcomes.len());
    for (token, outcome) in outcomes {
        news.array(3);
        news.uint(token);
        let (kind, reason) = match &outcome {
            Outcome::Stored { base_offset, log_append_ms } => {
                news.text(b"stored");
                news.array(2);
                news.int(*base_offset);
                news.int(log_append_ms.unwrap_or(-1));
                continue;
            }
            Outcome::NotStored(reason) => ("not_stored", reason),
            Outcome::Unknown(reason) => ("unknown", reason),
        };
        news.text(kind.as_bytes());
        put_reason(news, Some(reason));
    }
}

fn put_reason(news: &mut Packer, reason: Option<&Reason>) {
    news.array(if reason.is_some() { 2 } else { 0 });
    if let Some(reason) = reason {
        news.int(i64::from(reason.code));
        news.text(reason.text.as_bytes());
    }
}

fn read_options(call: &mut Unpacker) -> Read<HashMap<String, String>> {
    (0..call.array()?).map(|_| Ok((text(call)?.to_owned(), text(call)?.to_owned()))).collect()
}

fn text<'a>(call: &mut Unpacker<'a>) -> Read<&'a str> {
    std::str::from_utf8(call.bytes()?).map_err(|_| crate::pack::NotThere)
}

fn optional<'a>(call: &mut Unpacker<'a>) -> Read<Option<&'a [u8]>> {
    (0..call.array()?).try_fold(None, |_, _| call.bytes().map(Some))
}

struct Given<'a> {
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    headers: Vec<Header<'a>>,
    timestamp_ms: i64,
}

impl<'a> Given<'a> {
    fn read(call: &mut Unpacker<'a>) -> Read<Self> {
        let (key, value) = (optional(call)?, optional(call)?);
        let headers = (0..call.array()?).map(|_| Ok((text(call)?, optional(call)?))).collect::<Read<_>>()?;
        Ok(Self { key, value, headers, timestamp_ms: call.uint()? as i64 })
    }

    fn record(&self) -> Record<'_> {
        Record { key: self.key, value: self.value, headers: &self.headers, timestamp_ms: self.timestamp_ms }
    }
}
