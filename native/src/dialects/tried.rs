//! For tests: the reply to a request, from what the plane would have found, so that it is compared with
//! Python's.

use super::emq::Protocol;
use super::Repeats;
use crate::json::Scanner;
use crate::pack::{NotThere, Packer, Read, Unpacker};
use crate::plane::clients::{Delivery, Word};
use crate::plane::format::record::Records;
use crate::plane::unit::Kept;
use crate::replies::digest;
use crate::requests::{self, Form, Verb};

/// A message that was leased, and what else of it is told.
struct Leased {
    id: [u8; 36],
    handle: [u8; 52],
    numbers: [u64; 6],
    message: Kept,
}

/// Reads `verb, media, body, [[id, handle, partition, offset, count, first ms, leased until ms, leased ms, sent ms,
/// record], ...], [id, ...], ms of a send, [[status, reason, visible ms], ...]`, where a media type of EMQ counts for
/// the verb, and writes `[reply, [body, [[name, type, value], ...], delay ms or -1] of what is sent, ...]`,
/// or nothing where the request is Python's.
pub fn reply(records: &Records, given: &mut Unpacker, answers: &mut Packer) -> Read<()> {
    let (verb, media, body) = (Verb::of_number(given.uint()?).ok_or(NotThere)?, given.bytes()?, given.bytes()?);
    let form = Protocol::of_media(media).map_or(Form::Of(verb), Form::Thrift);
    let leased = (0..given.array()?).map(|_| leased(records, given)).collect::<Read<Vec<_>>>()?;
    let ids = (0..given.array()?).map(|_| read(given)).collect::<Read<Vec<[u8; 36]>>>()?;
    let at_ms = given.uint()?;
    let results = (0..given.array()?).map(|_| result(given)).collect::<Read<Vec<_>>>()?;
    let mut scratch = Vec::new();
    let mut scanner = Scanner::new(body, &mut scratch);
    let Ok((verb, mut request)) = requests::read(form, &mut scanner) else {
        answers.array(0);
        return Ok(());
    };
    let repeats = Repeats::new(verb, &mut request, &scanner);
    let mut json = Vec::new();
    let contents = if verb.is_send() { repeats.contents(&request, &scanner) } else { Vec::new() };
    if verb.is_send() {
        repeats.sent(&mut json, &ids, at_ms);
    } else if verb.act().is_some() {
        repeats.acted(&mut json, &results.iter().map(|(word, visible_ms)| (word, *visible_ms)).collect::<Vec<_>>());
    } else {
        repeats.received(&mut json, &leased.iter().map(Leased::delivery).collect::<Vec<_>>());
    }
    answers.array(1 + contents.len());
    answers.binary(&json);
    for content in contents {
        answers.array(3);
        answers.binary(content.body);
        answers.array(content.attributes.len());
        for one in &content.attributes {
            answers.array(3);
            [one.name.as_bytes(), one.kind.as_bytes(), one.value].iter().for_each(|part| answers.binary(part));
        }
        answers.int(content.delay_ms.unwrap_or(-1));
    }
    Ok(())
}

fn result(given: &mut Unpacker) -> Read<(Word, u64)> {
    given.fields(3)?;
    let (status, reason) = (given.bytes()?.to_vec(), given.bytes()?.to_vec());
    Ok((Word { status, reason, ..Word::default() }, given.uint()?))
}

fn read<const SIZE: usize>(given: &mut Unpacker) -> Read<[u8; SIZE]> {
    given.bytes()?.try_into().map_err(|_| NotThere)
}

fn leased(records: &Records, given: &mut Unpacker) -> Read<Leased> {
    given.fields(10)?;
    let (id, handle) = (read(given)?, read(given)?);
    let mut numbers = [0; 6];
    for number in &mut numbers {
        *number = given.uint()?;
    }
    let (sent_at_ms, record) = (given.uint()?, given.bytes()?.to_vec());
    let parts = records.read(&record).ok_or(NotThere)?.parts;
    let digest = digest(record.get(parts.body.clone()).ok_or(NotThere)?);
    Ok(Leased { id, handle, numbers, message: Kept { record, parts, digest, sent_at_ms } })
}

impl Leased {
    fn delivery(&self) -> Delivery<'_> {
        let [partition, offset, count, first_ms, leased_until_ms, at_ms] = self.numbers;
        Delivery {
            id: self.id,
            handle: self.handle,
            partition: partition as usize,
            offset,
            count,
            first_ms,
            leased_until_ms,
            at_ms,
            message: &self.message,
        }
    }
}
