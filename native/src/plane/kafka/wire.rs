//! The five requests that an append needs, and their answers, in the versions that Kafka 3 and 4 both
//! have and that are written without tags.

use super::bytes::{put, put_bytes, put_text, set_size, Malformed, Read, Reader};
use super::partitions::Group;
use super::records::put_batch;

/// A kind of request, in the version that is used.
#[derive(Debug, PartialEq, Eq)]
pub struct Api {
    pub name: &'static str,
    key: i16,
    version: i16,
}

pub const PRODUCE: Api = Api { name: "Produce", key: 0, version: 7 };
pub const METADATA: Api = Api { name: "Metadata", key: 3, version: 7 };
pub const HANDSHAKE: Api = Api { name: "SaslHandshake", key: 17, version: 1 };
pub const VERSIONS: Api = Api { name: "ApiVersions", key: 18, version: 0 };
pub const AUTHENTICATE: Api = Api { name: "SaslAuthenticate", key: 36, version: 1 };

/// No answer is larger: those to Metadata are of topics that were named.
pub const ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Begins a request; `set_size(output, at)` ends it.
pub fn begin(output: &mut Vec<u8>, api: &Api, correlation: i32, client_id: &str) -> usize {
    let at = output.len();
    put(output, 0i32.to_be_bytes());
    put(output, api.key.to_be_bytes());
    put(output, api.version.to_be_bytes());
    put(output, correlation.to_be_bytes());
    put_text(output, client_id);
    at
}

/// Writes a request that has one text: the mechanism of SaslHandshake.
pub fn put_handshake(output: &mut Vec<u8>, correlation: i32, client_id: &str, mechanism: &str) {
    let at = begin(output, &HANDSHAKE, correlation, client_id);
    put_text(output, mechanism);
    set_size(output, at);
}

pub fn put_authenticate(output: &mut Vec<u8>, correlation: i32, client_id: &str, token: &[u8]) {
    let at = begin(output, &AUTHENTICATE, correlation, client_id);
    put_bytes(output, token);
    set_size(output, at);
}

pub fn put_versions(output: &mut Vec<u8>, correlation: i32, client_id: &str) {
    let at = begin(output, &VERSIONS, correlation, client_id);
    set_size(output, at);
}

/// Asks for the leaders of topics, none of which is made by that.
pub fn put_metadata<T: AsRef<str>>(output: &mut Vec<u8>, correlation: i32, client_id: &str, topics: &[T]) {
    let at = begin(output, &METADATA, correlation, client_id);
    put(output, (topics.len() as i32).to_be_bytes());
    topics.iter().for_each(|topic| put_text(output, topic.as_ref()));
    output.push(0);
    set_size(output, at);
}

/// Writes an append of groups to the log; groups of a topic stand side by side. The broker waits for
/// its replicas for `timeout_ms`.
pub fn put_produce(output: &mut Vec<u8>, correlation: i32, client_id: &str, timeout_ms: i32, groups: &[Group]) {
    let at = begin(output, &PRODUCE, correlation, client_id);
    put(output, (-1i16).to_be_bytes()); // of no transaction
    put(output, (-1i16).to_be_bytes()); // acks=all
    put(output, timeout_ms.to_be_bytes());
    let topics = || groups.chunk_by(|one, next| one.topic == next.topic);
    put(output, (topics().count() as i32).to_be_bytes());
    for groups in topics() {
        put_text(output, &groups[0].topic);
        put(output, (groups.len() as i32).to_be_bytes());
        for group in groups {
            put(output, group.index.to_be_bytes());
            let size_at = output.len();
            put(output, 0i32.to_be_bytes());
            put_batch(output, group.appends.iter().map(|append| &append.records));
            set_size(output, size_at);
        }
    }
    set_size(output, at);
}

/// Returns the first of `apis` that a broker does not have in our version, from its answer to
/// ApiVersions.
pub fn missing<'a>(answer: &mut Reader, apis: &[&'a Api]) -> Read<Result<Option<&'a Api>, i16>> {
    match answer.int16()? {
        0 => {}
        error => return Ok(Err(error)),
    }
    let mut ranges = Vec::new();
    for _ in 0..answer.count()? {
        ranges.push((answer.int16()?, answer.int16()?..=answer.int16()?));
    }
    let has = |api: &Api| ranges.iter().any(|(key, versions)| *key == api.key && versions.contains(&api.version));
    Ok(Ok(apis.iter().find(|api| !has(api)).copied()))
}

/// Reads an answer to SaslHandshake: the error, and which mechanisms there are.
pub fn handshake(answer: &mut Reader) -> Read<(i16, String)> {
    let error = answer.int16()?;
    let names = (0..answer.count()?).map(|_| answer.text()).collect::<Read<Vec<_>>>()?;
    Ok((error, names.join(", ")))
}

/// An answer to SaslAuthenticate.
#[derive(Debug, PartialEq, Eq)]
pub struct Authenticated<'a> {
    pub error: i16,
    pub text: &'a str,
    pub token: &'a [u8],
    /// How long it holds; 0 = as long as the connection.
    pub lifetime_ms: i64,
}

pub fn authenticated<'a>(answer: &mut Reader<'a>) -> Read<Authenticated<'a>> {
    let (error, text) = (answer.int16()?, answer.optional_text()?.unwrap_or(""));
    Ok(Authenticated { error, text, token: answer.bytes()?, lifetime_ms: answer.int64()? })
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Id, host, port.
    pub brokers: Vec<(i32, String, u16)>,
    pub topics: Vec<Topic>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Topic {
    pub name: String,
    pub error: i16,
    /// Partition, error, leader's id (-1 = none).
    pub partitions: Vec<(i32, i16, i32)>,
}

pub fn metadata(answer: &mut Reader) -> Read<Metadata> {
    let _throttle_ms = answer.int32()?;
    let mut found = Metadata::default();
    for _ in 0..answer.count()? {
        let (id, host, port) = (answer.int32()?, answer.text()?.to_owned(), answer.int32()?);
        answer.optional_text()?; // rack
        found.brokers.push((id, host, u16::try_from(port).map_err(|_| Malformed)?));
    }
    answer.optional_text()?; // cluster
    answer.int32()?; // controller
    for _ in 0..answer.count()? {
        let (error, name) = (answer.int16()?, answer.text()?.to_owned());
        answer.int8()?; // whether it is internal
        let mut partitions = Vec::new();
        for _ in 0..answer.count()? {
            let error = answer.int16()?;
            partitions.push((answer.int32()?, error, answer.int32()?));
            answer.int32()?; // the leader's epoch
            for _ in 0..3 {
                // replicas, those in sync, those that are away
                let ids = answer.count()?;
                answer.take(ids.checked_mul(4).ok_or(Malformed)?)?;
            }
        }
        found.topics.push(Topic { name, error, partitions });
    }
    Ok(found)
}

/// What a broker says of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub error: i16,
    /// -1 = nothing was written to the broker's log. What was written may have an error too, when its
    /// broker stopped being the leader, or replicas were slow.
    pub base_offset: i64,
    /// -1 = the topic keeps the times of producers.
    pub at_ms: i64,
}

/// Reads an answer to Produce into the groups that were sent. Returns for how many ms the broker reads
/// nothing more of this connection.
pub fn produced(answer: &mut Reader, groups: &mut [Group]) -> Read<i32> {
    for _ in 0..answer.count()? {
        let name = answer.text()?;
        for _ in 0..answer.count()? {
            let (index, error, base_offset) = (answer.int32()?, answer.int16()?, answer.int64()?);
            let at_ms = answer.int64()?;
            answer.int64()?; // where the log begins
            if let Some(group) = groups.iter_mut().find(|group| group.index == index && *group.topic == *name) {
                group.written = Some(Written { error, base_offset, at_ms });
            }
        }
    }
    answer.int32()
}
