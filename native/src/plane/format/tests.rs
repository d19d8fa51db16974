//! Damaged input: it is read as it was before, or not at all, and never ends the process.

use super::ids::{read_handle, Ids};
use super::journal::Journal;
use super::record::{Attribute, Mark, Message, Packed, Records};
use crate::chance::Chance;

const CASES: u64 = 200_000;

/// Cuts, flips, sets, takes out or doubles some bytes.
fn hurt(chance: &mut Chance, bytes: &[u8]) -> Vec<u8> {
    let mut hurt = bytes.to_vec();
    for _ in 0..=chance.below(3) {
        let at = chance.below(hurt.len().max(1));
        match chance.below(5) {
            0 => hurt.truncate(at),
            1 if at < hurt.len() => hurt[at] ^= 1 << chance.below(8),
            2 if at < hurt.len() => hurt[at] = [0, 1, 2, 127, 128, 255][chance.below(6)],
            3 if at < hurt.len() => drop(hurt.remove(at)),
            _ => hurt.extend_from_within(at.min(hurt.len())..),
        }
    }
    hurt
}

fn ids() -> Ids {
    Ids::new(b"secret", &[1, 2, 3, 4, 5, 6], 7, 8).expect("it fits")
}

#[test]
fn a_handle_that_was_altered_is_none() {
    let (ids, mut chance) = (ids(), Chance(1));
    let of = |partition, tag| ((partition, tag) == (7, 8)).then_some(&ids);
    for offset in 0..CASES {
        let handle = ids.handle(offset, offset << 20, 1_700_000_000_000).expect("it fits");
        let hurt = hurt(&mut chance, &handle);
        let found = read_handle(&hurt, of);
        assert_eq!(found.is_some(), hurt == handle, "{}", String::from_utf8_lossy(&hurt));
        assert!(read_handle(&handle, of).is_some_and(|found| found.offset == offset));
    }
}

#[test]
fn what_does_not_fit_is_not_made() {
    let ids = ids();
    assert!(ids.id((1 << 40) - 1).is_some() && ids.id(1 << 40).is_none());
    assert!(ids.handle((1 << 48) - 1, u64::MAX, (1 << 48) - 1).is_some());
    assert!(
        ids.handle(1 << 48, 0, 1).is_none() && ids.handle(0, 0, 1 << 48).is_none() && ids.handle(0, 0, 0).is_none()
    );
    assert!(Ids::new(b"", &[0; 6], 0, 0).is_none() && Ids::new(b"s", &[0; 6], 4096, 0).is_none());
}

#[test]
fn a_damaged_record_is_read_within_its_bounds() {
    let (records, mut chance) = (Records::new([0, 0, 0, 0, 1], 8), Chance(2));
    let attributes = [("a", "string"), ("b", "number.int")].map(|(name, kind)| Attribute { name, kind, value: b"12" });
    let mut read = 0;
    for number in 0..CASES {
        let size = [0, 5, 63, 64, 300][chance.below(5)];
        let message = Message {
            body: &b"text, ".repeat(50)[..size],
            is_text: chance.below(2) == 0,
            attributes: &attributes[..chance.below(3)],
            delay_ms: number as i64,
            lease_ms: (chance.below(2) == 0).then_some(30_000),
            sender: "alice",
            mark: (chance.below(2) == 0).then(|| Mark::first(number, 10)),
        };
        let mut record = Vec::new();
        let parts = records.write(&message, &mut record);
        let whole = records.read(&record).expect("it was written so");
        assert_eq!((&whole.parts, whole.delay_ms, whole.mark), (&parts, number as i64, message.mark));
        let hurt = hurt(&mut chance, &record);
        if let Some(found) = records.read(&hurt) {
            read += 1;
            let mut count = 0;
            found.parts.attributes(&hurt, |_| count += 1);
            assert!(found.parts.body.end <= hurt.len() && count == found.parts.attributes.0);
            assert!(!found.parts.is_text || std::str::from_utf8(&hurt[found.parts.body]).is_ok());
        }
    }
    assert!(read > CASES / 100, "{read} were read");
}

#[test]
fn numbers_have_one_spelling_and_no_more_than_64_bits() {
    let mut long = Vec::new();
    for value in [0, -1, 63, 64, i64::MAX, i64::MIN] {
        long.clear();
        super::avro::long(&mut long, value);
        assert_eq!(super::avro::Cursor::new(&long, 0).long(), Some(value));
        *long.last_mut().expect("it has bytes") |= 0x80;
        long.push(0);
        assert_eq!(super::avro::Cursor::new(&long, 0).long(), None);
    }
    let ten = |last| [&[0xff; 9][..], &[last]].concat();
    assert!(super::avro::Cursor::new(&ten(1), 0).long().is_some());
    assert!(super::avro::Cursor::new(&ten(2), 0).long().is_none());
}

#[test]
fn more_attributes_than_a_message_may_have_are_for_python() {
    let records = Records::new([0; 5], 8);
    let names: Vec<String> = (0..101).map(|number| number.to_string()).collect();
    let all: Vec<_> = names.iter().map(|name| Attribute { name, kind: "string", value: b"" }).collect();
    let message = |attributes| Message {
        body: b"",
        is_text: true,
        attributes,
        delay_ms: 0,
        lease_ms: None,
        sender: "",
        mark: None,
    };
    let read = |attributes| {
        let mut record = Vec::new();
        records.write(&message(attributes), &mut record);
        records.read(&record).is_some()
    };
    assert!(read(&all[..100]) && !read(&all));
    assert!(!read(&[all[1], all[1]]), "a name stands twice");
}

#[test]
fn a_window_entry_without_its_times_is_none() {
    for size in 0..24 {
        assert_eq!(Packed::read(&[0; 24][..size]), None);
    }
    assert!(Packed::read(&[0; 24]).is_some_and(|packed| packed.record.is_empty()));
}

#[test]
fn a_damaged_entry_of_the_journal_is_none_or_an_entry() {
    let journal = Journal::new([0, 0, 0, 0, 2], vec!["leased".into(), "acked".into()], 3);
    let entry = b"\x97\x07\xcf\x00\x00\x01\x8b\xcf\xe5\x68\x00\xa6leased\x00\x92\x01\xcd\x01\x00\x00\xa0";
    let mut chance = Chance(3);
    assert!(journal.values("q", "0102030405ff", 1, [&entry[..]].into_iter()).is_some());
    assert!(journal.values("q", "0102030405ff", 1, [].into_iter()).is_none());
    let mut read = 0;
    for _ in 0..CASES {
        let hurt = hurt(&mut chance, entry);
        let drained = journal.values("q", "0102030405ff", 1, [&entry[..], &entry[..], &hurt[..]].into_iter());
        read += u64::from(drained.is_some_and(|drained| drained.values.len() == 2));
    }
    assert!(read > CASES / 100, "{read} were read");
}
