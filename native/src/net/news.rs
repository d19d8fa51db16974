//! What the plane tells Python: `[what, ...]`; `engine/plane/news.py` reads it.

use super::numbers::news;
use crate::dialects::emq::Call;
use crate::pack::Packer;
use crate::plane::clients::News;
use crate::plane::ended::Ended;
use crate::plane::redis::Reply;

/// Writes one; `call`: that of EMQ which has failed.
pub fn write(packer: &mut Packer, news: &News, call: Option<&Call>) {
    match news {
        News::Refresh { queue } => numbers(packer, news::REFRESH, &[*queue]),
        News::Suspect { queue } => numbers(packer, news::SUSPECT, &[*queue]),
        News::Low { queue } => numbers(packer, news::LOW, &[*queue]),
        News::LowDelays { queue } => numbers(packer, news::LOW_DELAYS, &[*queue]),
        News::Unloaded { queue } => numbers(packer, news::UNLOADED, &[*queue]),
        News::Used { queue, partition } => numbers(packer, news::USED, &[*queue, *partition as u64]),
        News::Ahead { queue, partition, cursor } => {
            numbers(packer, news::AHEAD, &[*queue, *partition as u64, *cursor]);
        }
        News::Woken { queue, partition, head_ms } => {
            numbers(packer, news::VISIBLE, &[*queue, *partition as u64, *head_ms]);
        }
        News::Written { queue, partition, seq, number } => {
            numbers(packer, news::WRITTEN, &[*queue, *partition as u64, *seq, *number]);
        }
        News::Seen { queue, tag, partition, open, in_flight, cursor, hungry } => {
            let seen = [*queue, u64::from(*tag), *partition as u64, *open, *in_flight, *cursor, u64::from(*hungry)];
            numbers(packer, news::SEEN, &seen);
        }
        News::Returned { queue, tag, partition, rows, late } => {
            write_rows(packer, 6, news::RETURNED, (*queue, *tag, *partition), rows, Packer::int);
            packer.uint(*late as u64);
        }
        News::Return { queue, tag, partition, rows } => {
            write_rows(packer, 5, news::RETURN, (*queue, *tag, *partition), rows, Packer::int);
        }
        News::Refused { queue, partition, rows } => {
            head(packer, 4, news::REFUSED);
            [*queue, *partition as u64].iter().for_each(|number| packer.uint(*number));
            packer.array(rows.len());
            rows.iter().for_each(|number| packer.int(*number));
        }
        News::Dying { queue, tag, partition, rows } => {
            write_rows(packer, 5, news::DYING, (*queue, *tag, *partition), rows, write_item);
        }
        News::Greeted { link, info } => write_text(packer, news::GREETED, *link, info, Packer::binary),
        News::Lost { link, reason } => write_text(packer, news::LOST, *link, reason.as_bytes(), Packer::text),
        News::Closed { queue, reason } => write_text(packer, news::CLOSED, *queue, reason.as_bytes(), Packer::text),
        News::Failed { connection, lane, verb, fault, took, text } => {
            let failed = [*connection, *lane, u64::from(*verb), *fault as u64, took.as_micros() as u64];
            write_failed(packer, failed, text, call);
        }
        News::Drained(ended) => {
            head(packer, 1 + Ended::FIELDS, news::DRAINED);
            ended.write(packer);
        }
    }
}

fn head(packer: &mut Packer, fields: usize, kind: u32) {
    packer.array(fields);
    packer.uint(kind.into());
}

fn numbers(packer: &mut Packer, kind: u32, numbers: &[u64]) {
    head(packer, 1 + numbers.len(), kind);
    numbers.iter().for_each(|number| packer.uint(*number));
}

/// Writes a number, and what is told of it.
fn write_text(packer: &mut Packer, kind: u32, whose: u64, text: &[u8], write: fn(&mut Packer, &[u8])) {
    head(packer, 3, kind);
    packer.uint(whose);
    write(packer, text);
}

/// Writes a queue, a tag and a partition, and rows that are told of it.
fn write_rows<T: Clone>(
    packer: &mut Packer,
    fields: usize,
    kind: u32,
    (queue, tag, partition): (u64, u16, usize),
    rows: &[T],
    write: fn(&mut Packer, T),
) {
    head(packer, fields, kind);
    [queue, u64::from(tag), partition as u64].iter().for_each(|number| packer.uint(*number));
    packer.array(rows.len());
    rows.iter().for_each(|row| write(packer, row.clone()));
}

fn write_item(packer: &mut Packer, item: Reply) {
    match item {
        Reply::Int(number) => packer.int(number),
        other => packer.binary(other.bytes()),
    }
}

/// Writes the lane, the verb, how long it took (us) and the number of its answer, and who has asked.
pub fn write_served(packer: &mut Packer, numbers: [u64; 4], peer: &str) {
    head(packer, 6, news::SERVED);
    numbers.iter().for_each(|number| packer.uint(*number));
    packer.text(peer.as_bytes());
}

fn write_failed(packer: &mut Packer, numbers: [u64; 5], text: &str, call: Option<&Call>) {
    head(packer, 8, news::FAILED);
    numbers.iter().for_each(|number| packer.uint(*number));
    packer.text(text.as_bytes());
    let Some(Call { protocol, seqid, queue, query }) = call else { return packer.array(0) };
    packer.array(4);
    packer.binary(protocol.media().as_bytes());
    packer.int(i64::from(*seqid));
    packer.text(queue);
    packer.binary(query);
}
