//! Good answers of EMQ, field by field as `facade/dialects/emq/messages` has them.

use super::writer::{reply, Writer};
use super::{method_of, Call, Kind};
use crate::dialects::Repeated;
use crate::plane::clients::Delivery;
use crate::plane::format::record::Attribute;
use crate::requests::Verb;

/// The field of a result that has what its method answers.
const SUCCESS: u8 = 0;

/// Writes what a receive is told.
pub fn received(out: &mut Vec<u8>, call: &Call, messages: &[Delivery]) {
    reply(out, call, method_of(Verb::EmqReceive), |result| {
        result.list_field(SUCCESS, Kind::Struct, messages, |writer, one| writer.fields(|fields| message(fields, one)));
    });
}

fn message(fields: &mut Writer, one: &Delivery) {
    let body = one.message.body();
    fields.text_field(1, &one.id);
    fields.text_field(2, &one.handle);
    // The bad bytes of what is no text are replaced.
    fields.text_field(3, String::from_utf8_lossy(body).as_bytes());
    let numbers = [body.len() as u64, one.message.sent_at_ms, one.count, one.first_ms, one.at_ms];
    let [size, sent, count, first, at] = numbers.map(|number| number.to_string().into_bytes());
    let shown = [
        ("senderId", one.message.sender()),
        ("messageLength", &size),
        ("md5OfBody", &one.message.digest),
        ("sendTimestamp", &sent),
        ("receiveCount", &count),
        ("firstReceiveTimestamp", &first),
        ("receiveTimestamp", &at),
    ];
    fields.map_field(4, Kind::Text, &shown, |writer, text| writer.text(text));
    let mut attributes = Vec::new();
    one.message.attributes(|attribute| attributes.push((attribute.name, attribute)));
    if !attributes.is_empty() {
        fields.map_field(5, Kind::Struct, &attributes, |writer, one| {
            writer.fields(|fields| {
                let Attribute { kind, value, .. } = one;
                let is_binary = kind.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("binary"));
                fields.text_field(1, kind.as_bytes());
                if is_binary {
                    fields.bytes_field(3, value);
                } else {
                    fields.text_field(2, value);
                }
            });
        });
    }
}

/// Writes what a send is told that Kafka has since `at_ms`: of one message, or of each of a batch.
pub fn sent(out: &mut Vec<u8>, call: &Call, verb: Verb, entries: &[Repeated], ids: &[[u8; 36]], at_ms: u64) {
    let told = |fields: &mut Writer, first: u8, entry: &Repeated, id: &[u8]| {
        fields.text_field(first, id);
        fields.i32_field(first + 1, entry.bytes);
        fields.text_field(first + 2, &entry.digest);
        fields.i64_field(first + 3, at_ms);
    };
    let both: Vec<(&Repeated, &[u8; 36])> = entries.iter().zip(ids).collect();
    reply(out, call, method_of(verb), |result| {
        result.struct_field(SUCCESS, |fields| match both[..] {
            [(entry, id)] if verb == Verb::EmqSend => told(fields, 1, entry, id),
            _ => fields.list_field(1, Kind::Struct, &both, |writer, (entry, id)| {
                writer.fields(|fields| {
                    fields.text_field(1, &entry.id);
                    told(fields, 2, entry, *id);
                });
            }),
        });
    });
}

/// Writes what a delete is told, of whatever became of its handles: one whose delivery is over is no error.
pub fn acked(out: &mut Vec<u8>, call: &Call, verb: Verb, entries: &[Repeated]) {
    reply(out, call, method_of(verb), |result| {
        if verb == Verb::EmqDeleteBatch {
            result.struct_field(SUCCESS, |fields| {
                fields.list_field(1, Kind::Text, entries, |writer, entry| writer.text(&entry.id));
            });
        }
    });
}
