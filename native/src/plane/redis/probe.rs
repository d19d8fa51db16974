//! For tests: a connection that does what commands say, one by one. Commands and what comes of them are
//! arrays of Redis' own protocol.

use std::time::{Duration, Instant};

use super::resp::{put_array, put_head, put_number, put_word, Parser};
use super::{Address, Failure, Limits, News, Redis, Reply, Script};
use crate::system::boot_s;

const READ_BYTES: usize = 256 * 1024;
const MOST: usize = 1 << 30;

pub struct Probe {
    poll: Option<mio::Poll>,
    redis: Option<Redis>,
    buffer: Vec<u8>,
    answer: Vec<u8>,
}

impl Default for Probe {
    fn default() -> Self {
        Self { poll: None, redis: None, buffer: vec![0; READ_BYTES], answer: Vec::new() }
    }
}

impl Probe {
    pub fn ask(&mut self, mut command: &[u8]) -> &[u8] {
        self.answer.clear();
        let done = match Parser::new(MOST).next(&mut command) {
            Ok(Some(command)) => self.act(command.items()),
            _ => Err("no command".into()),
        };
        if let Err(reason) = done {
            self.answer.clear();
            self.answer.push(b'-');
            self.answer.extend_from_slice(reason.replace(['\r', '\n'], " ").as_bytes());
            self.answer.extend_from_slice(b"\r\n");
        }
        &self.answer
    }

    fn act(&mut self, words: &[Reply]) -> Result<(), String> {
        let Some((name, words)) = words.split_first() else { return Err("no name".into()) };
        if name.bytes() == b"open" {
            return self.open(words);
        }
        let (Some(redis), Some(poll)) = (&mut self.redis, &mut self.poll) else { return Err("not open".into()) };
        let number = |at: usize| words.get(at).map_or(0, Reply::int);
        let mut value = 0;
        match name.bytes() {
            b"turn" => {
                turn(redis, poll, Duration::from_millis(number(0) as u64), &mut self.buffer)?;
                write_news(redis, &mut self.answer);
                return Ok(());
            }
            b"admit" => redis.admit(number(0) as u64, boot_s() + number(1) as f64 / 1000.0),
            b"shut" => redis.shut(),
            b"leave" => redis.leave(number(0) as u64, "it is left"),
            b"flush" => redis.flush(poll.registry()),
            b"is_open" => value = i64::from(redis.is_open()),
            b"begin" => value = begin(redis, number(0), number(1), number(2) as usize, &words[3..]),
            _ => return Err("no such command".into()),
        }
        put_head(&mut self.answer, b':', value);
        Ok(())
    }

    /// `[options, scripts, limits]`: pairs of name and value, pairs of SHA and text, and milliseconds
    /// and bytes as `Limits` has them.
    fn open(&mut self, words: &[Reply]) -> Result<(), String> {
        let [options, scripts, limits] = words else { return Err("open has three words".into()) };
        let pairs: Vec<_> = pairs(options).collect();
        let address = Address::read(&pairs)?;
        let script = |(sha, source): (&[u8], &[u8])| Script { sha: sha.to_vec(), source: source.to_vec() };
        let [connect, reply, pause, bytes, reply_bytes] = limits.items() else { return Err("no limits".into()) };
        let limits = Limits {
            connect_s: connect.int() as f64 / 1000.0,
            reply_s: reply.int() as f64 / 1000.0,
            back_off_s: vec![pause.int() as f64 / 1000.0],
            bytes: bytes.int() as usize,
            reply_bytes: reply_bytes.int() as usize,
        };
        self.redis = Some(Redis::new(address, self::pairs(scripts).map(script).collect(), limits));
        self.poll = Some(mio::Poll::new().map_err(|error| error.to_string())?);
        put_head(&mut self.answer, b':', 0);
        Ok(())
    }
}

fn pairs(list: &Reply) -> impl Iterator<Item = (&[u8], &[u8])> {
    list.items().chunks_exact(2).map(|pair| (pair[0].bytes(), pair[1].bytes()))
}

/// Begins `count` calls of a script, of tokens from `token` on; how many began. The first of the words
/// are the keys.
fn begin(redis: &mut Redis, token: i64, script: i64, count: usize, words: &[Reply]) -> i64 {
    let mut ready = Vec::new();
    let Some((keys, words)) = words.split_first() else { return 0 };
    put_number(&mut ready, keys.items().len() as i64);
    keys.items().iter().for_each(|key| put_word(&mut ready, key.bytes()));
    let begins = |more: &i64| {
        if !redis.begin((token + more) as u64, script as usize, 1 + keys.items().len(), &ready, words.len()) {
            return false;
        }
        for word in words {
            match word {
                Reply::Int(value) => redis.number(*value),
                word => redis.word(word.bytes()),
            }
        }
        true
    };
    (0..count as i64).take_while(begins).count() as i64
}

fn turn(redis: &mut Redis, poll: &mut mio::Poll, wait: Duration, buffer: &mut [u8]) -> Result<(), String> {
    let (mut events, token) = (mio::Events::with_capacity(16), mio::Token(7));
    redis.tick(poll.registry(), token);
    redis.flush(poll.registry());
    let wake = redis.wake_at().map_or(wait, |at| at.saturating_duration_since(Instant::now()));
    match poll.poll(&mut events, Some(wake.min(wait))) {
        Err(error) if error.kind() != std::io::ErrorKind::Interrupted => return Err(error.to_string()),
        _ => {}
    }
    for event in &events {
        redis.ready(poll.registry(), event.is_readable(), event.is_writable(), buffer);
    }
    Ok(())
}

fn write_news(redis: &mut Redis, output: &mut Vec<u8>) {
    let news = redis.news();
    put_array(output, news.len());
    for item in news {
        let (kind, number, value) = match item {
            News::Greeted { link, info } => ("greeted", link, Reply::Bytes(info)),
            News::Lost { link, reason } => ("lost", link, Reply::Bytes(reason.into_bytes())),
            News::Answer { token, outcome: Ok(reply) } => ("ok", token, reply),
            News::Answer { token, outcome: Err(failure) } => match failure {
                Failure::NotSent => ("not sent", token, Reply::Nothing),
                Failure::Unknown(reason) => ("unknown", token, Reply::Bytes(reason.into_bytes())),
                Failure::Refused(text) => ("refused", token, Reply::Bytes(text.into_bytes())),
            },
        };
        put_array(output, 3);
        put_word(output, kind.as_bytes());
        put_head(output, b':', number as i64);
        write_reply(output, &value);
    }
}

fn write_reply(output: &mut Vec<u8>, reply: &Reply) {
    match reply {
        Reply::Int(value) => put_head(output, b':', *value),
        Reply::Array(items) => {
            put_array(output, items.len());
            items.iter().for_each(|item| write_reply(output, item));
        }
        Reply::Nothing => output.extend_from_slice(b"$-1\r\n"),
        text => put_word(output, text.bytes()),
    }
}
