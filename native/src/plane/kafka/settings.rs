//! What Python says at the start: options by librdkafka's names, and Kafka's error codes by their use.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;

use super::lost::Cause;
use super::scram::Hash;
use crate::net::tls::{config, Checks, Trust};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    Plain,
    Scram(Hash),
}

impl Mechanism {
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::Scram(Hash::Sha256) => "SCRAM-SHA-256",
            Self::Scram(Hash::Sha512) => "SCRAM-SHA-512",
        }
    }
}

pub struct Login {
    pub mechanism: Mechanism,
    pub user: String,
    pub password: String,
}

/// Error codes by what they say of an append; `engine/log/kafka_errors.py` has them.
#[derive(Debug, Default)]
pub struct Codes {
    /// Nothing was written, if the broker names no offset.
    pub refused: Vec<i16>,
    /// Of these: it may go better after a look at who leads.
    pub again: Vec<i16>,
    /// Of these: the topic or partition may not exist, so that is tried for a short while only.
    pub missing: Vec<i16>,
    pub unknown_partition: i16,
    pub timed_out: i16,
    pub transport: i16,
    pub tls: i16,
    pub authentication: i16,
    pub unsupported: i16,
    pub resolve: i16,
    pub queue_full: i16,
    pub too_large: i16,
    pub stopped: i16,
}

pub struct Settings {
    pub bootstrap: Vec<(String, u16)>,
    pub client_id: String,
    pub tls: Option<Arc<ClientConfig>>,
    pub login: Option<Login>,
    /// For a connection until it may be used.
    pub connect: Duration,
    /// A connection without requests is closed, before the broker does and a request meets that.
    pub idle: Duration,
    pub metadata_age: Duration,
    /// For an answer; then the connection is closed.
    pub request: Duration,
    pub backoff: (Duration, Duration),
    /// How long a topic may be unknown.
    pub propagation: Duration,
    pub in_flight: usize,
    /// Appends that wait share a batch of at most this.
    pub batch_bytes: usize,
    pub record_bytes: usize,
    pub queued_bytes: usize,
    pub codes: Codes,
}

/// The options, of which each that was used is taken out.
struct Options(HashMap<String, String>);

impl Options {
    fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).filter(|value| !value.is_empty())
    }

    fn number<T: std::str::FromStr>(&mut self, name: &str) -> Result<T, String> {
        let value = self.text(name).ok_or_else(|| format!("{name} is not set"))?;
        value.parse().map_err(|_| format!("{name} is no number: {value}"))
    }

    fn ms(&mut self, name: &str) -> Result<Duration, String> {
        self.number(name).map(Duration::from_millis)
    }

    fn codes(&mut self, name: &str) -> Result<Vec<i16>, String> {
        let value = self.text(name).ok_or_else(|| format!("{name} is not set"))?;
        value.split(',').map(|code| code.parse().map_err(|_| format!("{name} is no list of codes: {value}"))).collect()
    }

    /// Returns one of `words`, the first of which is the default.
    fn word(&mut self, name: &str, words: &[&'static str]) -> Result<&'static str, String> {
        let Some(value) = self.text(name) else { return Ok(words[0]) };
        words
            .iter()
            .find(|word| value.eq_ignore_ascii_case(word))
            .copied()
            .ok_or(format!("unsupported: {name}={value}"))
    }

    /// Returns what is in the PEM, or in the file, that a property names.
    fn pem(&mut self, pem: &str, file: &str) -> Result<Vec<u8>, String> {
        match (self.text(pem), self.text(file)) {
            (Some(text), _) => Ok(text.into_bytes()),
            (None, Some(path)) => std::fs::read(&path).map_err(|error| format!("{file}: {path}: {error}")),
            (None, None) => Ok(Vec::new()),
        }
    }
}

impl Settings {
    /// Returns what is wrong with the options as an error; one that is not known here is `unsupported`.
    pub fn new(options: HashMap<String, String>) -> Result<Self, String> {
        let mut given = Options(options);
        let protocols = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"];
        let protocol = given.word("security.protocol", &protocols)?;
        given.word("client.dns.lookup", &["use_all_dns_ips"])?;
        let tls = tls(&mut given)?;
        let login = login(&mut given, protocol)?;
        let settings = Self {
            bootstrap: bootstrap(&given.text("bootstrap.servers").unwrap_or_default())?,
            client_id: given.text("client.id").unwrap_or_default(),
            tls: if protocol.ends_with("SSL") {
                Some(config(&tls).map_err(|wrong| format!("TLS: {wrong}"))?)
            } else {
                None
            },
            login: login.filter(|_| protocol.starts_with("SASL")),
            connect: given.ms("socket.connection.setup.timeout.ms")?,
            idle: given.ms("connections.max.idle.ms")?,
            metadata_age: given.ms("metadata.max.age.ms")?,
            request: given.ms("request.timeout.ms")?,
            backoff: (given.ms("reconnect.backoff.ms")?, given.ms("reconnect.backoff.max.ms")?),
            propagation: given.ms("topic.metadata.propagation.max.ms")?,
            in_flight: given.number("max.in.flight")?,
            batch_bytes: given.number("batch.size")?,
            record_bytes: given.number("message.max.bytes")?,
            queued_bytes: given.number::<usize>("queue.buffering.max.kbytes")?.saturating_mul(1024),
            codes: Codes::new(&mut given)?,
        };
        match given.0.into_keys().min() {
            Some(name) => Err(format!("unsupported: {name}")),
            None => Ok(settings),
        }
    }

    /// For how long the broker waits for its replicas: less than we wait for the broker.
    pub fn replicas_ms(&self) -> i32 {
        i32::try_from(self.request.as_millis() * 4 / 5).unwrap_or(i32::MAX)
    }
}

impl Codes {
    pub fn of(&self, cause: Cause) -> i16 {
        match cause {
            Cause::Transport | Cause::Idle => self.transport,
            Cause::Tls => self.tls,
            Cause::Authentication => self.authentication,
            Cause::Unsupported => self.unsupported,
            Cause::TimedOut => self.timed_out,
            Cause::Resolve => self.resolve,
            Cause::Stopped => self.stopped,
        }
    }

    fn new(given: &mut Options) -> Result<Self, String> {
        Ok(Self {
            refused: given.codes("codes.refused")?,
            again: given.codes("codes.again")?,
            missing: given.codes("codes.missing")?,
            unknown_partition: given.number("codes.unknown_partition")?,
            timed_out: given.number("codes.timed_out")?,
            transport: given.number("codes.transport")?,
            tls: given.number("codes.tls")?,
            authentication: given.number("codes.authentication")?,
            unsupported: given.number("codes.unsupported")?,
            resolve: given.number("codes.resolve")?,
            queue_full: given.number("codes.queue_full")?,
            too_large: given.number("codes.too_large")?,
            stopped: given.number("codes.stopped")?,
        })
    }
}

fn tls(given: &mut Options) -> Result<Trust, String> {
    let checks = given.word("ssl.endpoint.identification.algorithm", &["https", "none"])?;
    Ok(Trust {
        authorities: given.pem("ssl.ca.pem", "ssl.ca.location")?,
        certificates: given.pem("ssl.certificate.pem", "ssl.certificate.location")?,
        key: given.pem("ssl.key.pem", "ssl.key.location")?,
        checks: if checks == "none" { Checks::Authority } else { Checks::All },
        is_newest: false,
    })
}

fn login(given: &mut Options, protocol: &str) -> Result<Option<Login>, String> {
    if !protocol.starts_with("SASL") {
        for name in ["sasl.mechanism", "sasl.username", "sasl.password"] {
            given.text(name);
        }
        return Ok(None);
    }
    let mechanism = match given.word("sasl.mechanism", &["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])? {
        "PLAIN" => Mechanism::Plain,
        "SCRAM-SHA-256" => Mechanism::Scram(Hash::Sha256),
        "SCRAM-SHA-512" => Mechanism::Scram(Hash::Sha512),
        _ => return Err("sasl.mechanism is not set".to_owned()),
    };
    let mut word = |name: &str| given.text(name).ok_or_else(|| format!("{name} is not set"));
    Ok(Some(Login { mechanism, user: word("sasl.username")?, password: word("sasl.password")? }))
}

/// Reads `host:port[,host:port]`; an address of IPv6 stands in brackets.
fn bootstrap(text: &str) -> Result<Vec<(String, u16)>, String> {
    let split = |place: &str| {
        let (host, port) = place.trim().rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        (!host.is_empty()).then_some((host.to_owned(), port.parse().ok()?))
    };
    let read = |place: &str| split(place).ok_or_else(|| format!("bootstrap.servers: {place:?} is not host:port"));
    text.split(',').map(read).collect()
}
