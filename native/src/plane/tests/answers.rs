//! What Redis answers, as a test says it.

use super::*;
use crate::plane::format::record::{Message, Records};

pub(super) fn packed(body: &str) -> Vec<u8> {
    let mut packed = Vec::new();
    [4000u64, 4001].iter().for_each(|time| packed.extend(time.to_be_bytes()));
    packed.extend((-1i64).to_be_bytes());
    let told = Records::new([0; 5], 8);
    let message = Message {
        body: body.as_bytes(),
        is_text: true,
        attributes: &[],
        delay_ms: 0,
        lease_ms: None,
        sender: "me",
        mark: None,
    };
    told.write(&message, &mut packed);
    packed
}

pub(super) fn received(at_ms: i64, head_ms: i64, rows: Vec<Reply>, fresh: &[i64]) -> Reply {
    let mut items = vec![Reply::Bytes(b"OK".to_vec())];
    items.extend([at_ms, 9, head_ms, 50, 5, 1, 0].map(Reply::Int));
    items.push(Reply::Array(rows));
    items.push(Reply::Array(Vec::new()));
    items.push(Reply::Int(35_000));
    items.push(Reply::Array(fresh.iter().map(|offset| Reply::Int(*offset)).collect()));
    let bare = rows_without_bodies(items[8].items()).chain(fresh.iter().copied());
    let since: Vec<String> = bare.map(|offset| (4000 + offset).to_string()).collect();
    items.push(Reply::Bytes(since.join(" ").into_bytes()));
    Reply::Array(items)
}

fn rows_without_bodies(rows: &[Reply]) -> impl Iterator<Item = i64> + '_ {
    rows.chunks(5).filter(|row| row[4].bytes().is_empty()).map(|row| row[0].int())
}

pub(super) fn ok(words: &[&str]) -> Reply {
    let words = words.iter().map(|word| Reply::Bytes(word.as_bytes().to_vec())).collect();
    Reply::Array(vec![Reply::Bytes(b"OK".to_vec()), Reply::Array(words), Reply::Int(1)])
}

pub(super) fn word(word: &str) -> Reply {
    Reply::Array(vec![Reply::Bytes(word.as_bytes().to_vec())])
}

/// What scripts answer that say of each handle when its message is visible next.
pub(super) fn timed(results: &[(&str, i64)]) -> Reply {
    let of = |(word, time): &(&str, i64)| [Reply::Bytes(word.as_bytes().to_vec()), Reply::Int(*time)];
    Reply::Array(vec![Reply::Bytes(b"OK".to_vec()), Reply::Array(results.iter().flat_map(of).collect())])
}
