//! For tests: the formats behind one call, so that they are compared with Python's in bulk.
//!
//! A batch is `[Formats, [case, ...]]`, a case `[what, argument, ...]`; what there may be or not is an
//! array of one or none. Each case has one answer; [] = None.

use std::collections::HashMap;

use super::ids::{read_handle, Handle, Ids};
use super::record::{Attribute, Mark, Message, Packed, Records};
use super::{Formats, Produced};
use crate::dialects::tried;
use crate::pack::{NotThere, Packer, Read, Unpacker};

mod what {
    /// `secret, incarnation, [[partition, tag], ...]`: of these are the ids of the cases that follow.
    pub const PLACES: u64 = 0;
    /// `partition, tag, offset, nonce, at_ms`: `[[id], [handle]]`
    pub const MAKE: u64 = 1;
    /// `text`: what it names
    pub const HANDLE: u64 = 2;
    /// `body, is text, attributes, delay, [lease], sender, [[random, index, size]]`: `[record, body's place]`
    pub const WRITE: u64 = 3;
    /// `record`: `[body, is text, attributes, delay, [lease], sender, [[id, index, size]], priority]`
    pub const READ: u64 = 4;
    /// `sent, due, [lease], record`: `[packed]`
    pub const PACK: u64 = 5;
    /// `packed`: `[sent, due, [lease], record]`
    pub const UNPACK: u64 = 6;
    /// `queue, incarnation, partition, entries`: `[values, first time, last seq]`
    pub const JOURNAL: u64 = 7;
    /// `[key], value`: `[[key], value, headers]`
    pub const PRODUCED: u64 = 8;
    /// See `dialects/tried.rs`.
    pub const REPLY: u64 = 9;
}

type Places = HashMap<(u16, u16), Ids>;

/// Answers a batch. An answer is an array of MessagePack.
pub fn answers(batch: &[u8]) -> Read<Vec<u8>> {
    let mut batch = Unpacker::new(batch);
    batch.fields(2)?;
    let formats = Formats::read(&mut batch)?;
    let (mut places, mut answers) = (Places::new(), Packer::default());
    let cases = batch.array()?;
    answers.array(cases);
    for _ in 0..cases {
        batch.array()?;
        match batch.uint()? {
            what::PLACES => places = read_places(&mut batch, &mut answers)?,
            what::MAKE => make(&places, &mut batch, &mut answers)?,
            what::HANDLE => handle(&places, &mut batch, &mut answers)?,
            what::WRITE => write(&formats.records, &mut batch, &mut answers)?,
            what::READ => read(&formats.records, &mut batch, &mut answers)?,
            what::PACK => pack(&mut batch, &mut answers)?,
            what::UNPACK => unpack(&mut batch, &mut answers)?,
            what::JOURNAL => journal(&formats, &mut batch, &mut answers)?,
            what::REPLY => tried::reply(&formats.records, &mut batch, &mut answers)?,
            what::PRODUCED => produced(&mut batch, &mut answers)?,
            _ => return Err(NotThere),
        }
    }
    Ok(answers.bytes)
}

fn short(given: &mut Unpacker) -> Read<u16> {
    given.uint()?.try_into().map_err(|_| NotThere)
}

fn one_or_none<'a, T>(given: &mut Unpacker<'a>, read: impl Fn(&mut Unpacker<'a>) -> Read<T>) -> Read<Option<T>> {
    match given.array()? {
        0 => Ok(None),
        1 => read(given).map(Some),
        _ => Err(NotThere),
    }
}

fn tell<T>(answers: &mut Packer, found: Option<T>, write: impl FnOnce(&mut Packer, T)) {
    answers.array(usize::from(found.is_some()));
    if let Some(found) = found {
        write(answers, found);
    }
}

fn read_places(given: &mut Unpacker, answers: &mut Packer) -> Read<Places> {
    let (secret, incarnation) = (given.bytes()?, given.bytes()?.try_into().map_err(|_| NotThere)?);
    let mut places = Places::new();
    for _ in 0..given.array()? {
        given.fields(2)?;
        let (partition, tag) = (short(given)?, short(given)?);
        if let Some(ids) = Ids::new(secret, incarnation, partition, tag) {
            places.insert((partition, tag), ids);
        }
    }
    answers.array(1);
    answers.uint(places.len() as u64);
    Ok(places)
}

fn make(places: &Places, given: &mut Unpacker, answers: &mut Packer) -> Read<()> {
    let ids = places.get(&(short(given)?, short(given)?)).ok_or(NotThere)?;
    let (offset, nonce, at_ms) = (given.uint()?, given.uint()?, given.uint()?);
    answers.array(2);
    tell(answers, ids.id(offset), |answers, id| answers.text(&id));
    tell(answers, ids.handle(offset, nonce, at_ms), |answers, handle| answers.text(&handle));
    Ok(())
}

fn handle(places: &Places, given: &mut Unpacker, answers: &mut Packer) -> Read<()> {
    match read_handle(given.bytes()?, |partition, tag| places.get(&(partition, tag))) {
        Some(Handle { partition, tag, offset, nonce, at_ms, until_ms }) => {
            answers.array(6);
            for value in [u64::from(partition), u64::from(tag), offset, nonce, at_ms, until_ms] {
                answers.uint(value);
            }
        }
        None => answers.array(0),
    }
    Ok(())
}

fn write(records: &Records, given: &mut Unpacker, answers: &mut Packer) -> Read<()> {
    let (body, is_text) = (given.bytes()?, given.uint()? != 0);
    let attributes = (0..given.array()?)
        .map(|_| {
            given.fields(3)?;
            Ok(Attribute { name: given.text()?, kind: given.text()?, value: given.bytes()? })
        })
        .collect::<Read<Vec<_>>>()?;
    let (delay_ms, lease_ms, sender) = (given.int()?, one_or_none(given, Unpacker::int)?, given.text()?);
    let mark = one_or_none(given, |given| {
        given.fields(3)?;
        let (random, index, size) = (given.uint()?, given.uint()? as u32, given.uint()? as u32);
        Ok(Mark { index, ..Mark::first(random, size) })
    })?;
    let message = Message { body, is_text, attributes: &attributes, delay_ms, lease_ms, sender, mark };
    let mut record = b"before".to_vec();
    let parts = records.write(&message, &mut record);
    answers.array(2);
    answers.binary(&record[6..]);
    answers.binary(&record[parts.body]);
    Ok(())
}

fn read(records: &Records, given: &mut Unpacker, answers: &mut Packer) -> Read<()> {
    let record = given.bytes()?;
    let Some(found) = records.read(record) else {
        answers.array(0);
        return Ok(());
    };
    let parts = found.parts;
    answers.array(8);
    answers.binary(&record[parts.body.clone()]);
    answers.uint(u64::from(parts.is_text));
    answers.array(parts.attributes.0);
    parts.attributes(record, |attribute| {
        answers.array(3);
        answers.text(attribute.name.as_bytes());
        answers.text(attribute.kind.as_bytes());
        answers.binary(attribute.value);
    });
    answers.int(found.delay_ms);
    tell(answers, found.lease_ms, Packer::int);
    answers.text(&record[parts.sender]);
    tell(answers, found.mark, |answers, mark| {
        answers.array(3);
        answers.text(&mark.id);
        answers.uint(u64::from(mark.index));
        answers.uint(u64::from(mark.size));
    });
    answers.int(found.priority);
    Ok(())
}

fn pack(given: &mut Unpacker, answers: &mut Packer) -> Read<()> {
    let (sent_at_ms, due_ms) = (given.uint()?, given.uint()?);
    let lease_ms = one_or_none(given, Unpacker::int)?;
    let mut packed = Vec::new();
    Packed { sent_at_ms, due_ms, lease_ms, record: given.bytes()? }.write(&mut packed);
    answers.array(1);
    answers.binary(&packed);
    Ok(())
}

fn unpack(given: &mut Unpacker, answers: &mut Packer) -> Read<()> {
    let Some(Packed { sent_at_ms, due_ms, lease_ms, record }) = Packed::read(given.bytes()?) else {
        answers.array(0);
        return Ok(());
    };
    answers.array(4);
    answers.uint(sent_at_ms);
    answers.uint(due_ms);
    tell(answers, lease_ms, Packer::int);
    answers.binary(record);
    Ok(())
}

fn journal(formats: &Formats, given: &mut Unpacker, answers: &mut Packer) -> Read<()> {
    let (queue, incarnation, partition) = (given.text()?, given.text()?, short(given)?);
    let entries = (0..given.array()?).map(|_| given.bytes()).collect::<Read<Vec<_>>>()?;
    let Some(drained) = formats.journal.values(queue, incarnation, partition, entries.into_iter()) else {
        answers.array(0);
        return Ok(());
    };
    answers.array(3);
    answers.array(drained.values.len());
    drained.values.iter().for_each(|value| answers.binary(value));
    answers.int(drained.first_at_ms);
    answers.int(drained.last_seq);
    Ok(())
}

fn produced(given: &mut Unpacker, answers: &mut Packer) -> Read<()> {
    let key = one_or_none(given, Unpacker::bytes)?;
    let value = given.bytes()?;
    let produced = key.map_or_else(|| Produced::message(value), |key| Produced::journal(key, value));
    answers.array(3);
    tell(answers, produced.key, Packer::binary);
    answers.binary(produced.value);
    answers.uint(produced.headers.len() as u64);
    Ok(())
}
