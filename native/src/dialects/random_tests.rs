//! Requests of all dialects, damaged at random: no bytes do harm, what is read keeps the bounds of its
//! dialect, and its reply can be written.
//!
//! `LW_FUZZ=1000000 cargo +nightly test --target x86_64-unknown-linux-gnu dialects`, with
//! `RUSTFLAGS=-Zsanitizer=address`, is the large size.

use super::emq::Protocol;
use super::Repeats;
use crate::chance::Chance;
use crate::json::Scanner;
use crate::plane::clients::{Delivery, Word};
use crate::plane::format::record::{Message, Records};
use crate::plane::unit::Kept;
use crate::replies::digest;
use crate::requests::{self, Dialect, Form, Verb};

/// Of all mutations; another one finds other bodies.
const SEED: u64 = 44;
const MUTATIONS: usize = 60_000;
/// A good body of each form.
const GOOD: [(Form, &[u8]); 19] = [
    (
        Form::Of(Verb::Send),
        concat!(
            r#"{"QueueUrl":"http://h/0/q","MessageBody":"a\u00e9\ud83d\ude00","DelaySeconds":0,"#,
            r#""MessageAttributes":{"c.d":{"DataType":"String.x","StringValue":"v"},"n":{"DataType":"Number","#,
            r#""StringValue":"-1.5"},"b":{"DataType":"Binary","BinaryValue":"AAE="}}}"#
        )
        .as_bytes(),
    ),
    (
        Form::Of(Verb::SendBatch),
        concat!(
            r#"{"QueueUrl":"u","Entries":[{"Id":"a","MessageBody":"x"},{"Id":"b-_1","MessageBody":"\n\t\"\\\/","#,
            r#""DelaySeconds":900,"MessageAttributes":{"c":{"DataType":"String","StringValue":"e"}}}]}"#
        )
        .as_bytes(),
    ),
    (
        Form::Of(Verb::Receive),
        concat!(
            r#"{"QueueUrl":"u","MaxNumberOfMessages":10,"WaitTimeSeconds":20,"VisibilityTimeout":43200,"#,
            r#""AttributeNames":["All","SentTimestamp"],"MessageSystemAttributeNames":["SenderId"],"#,
            r#""MessageAttributeNames":["All","a.*","x"]}"#
        )
        .as_bytes(),
    ),
    (Form::Of(Verb::Delete), br#"{"QueueUrl":"u","ReceiptHandle":"abc"}"#),
    (
        Form::Of(Verb::DeleteBatch),
        br#"{ "QueueUrl" : "u" , "Entries" : [ {"Id":"a","ReceiptHandle":"h1"} , {"Id":"b","ReceiptHandle":"h2"} ] }"#,
    ),
    (Form::Of(Verb::Change), br#"{"QueueUrl":"u","ReceiptHandle":"abc","VisibilityTimeout":43200}"#),
    (
        Form::Of(Verb::ChangeBatch),
        concat!(
            r#"{"QueueUrl":"u","Entries":[{"Id":"a","ReceiptHandle":"h1","VisibilityTimeout":0},{"Id":"b","#,
            r#""ReceiptHandle":"h2","VisibilityTimeout":9}]}"#
        )
        .as_bytes(),
    ),
    (
        Form::Of(Verb::NativeSend),
        concat!(
            r#"{"messages":[{"body":"a","attributes":{"a":"v","b":{"type":"number.x","value":"1"},"#,
            r#""c":{"type":"binary","value_base64":"AA=="}}},{"body":"e"}]}"#
        )
        .as_bytes(),
    ),
    (Form::Of(Verb::NativeReceive), br#"{"max":100,"wait_seconds":20,"lease_seconds":43200}"#),
    (Form::Of(Verb::NativeAck), br#"{"handles":["a","b","c\u0041"]}"#),
    (
        Form::Thrift(Protocol::Json),
        br#"[1,"sendMessage",1,7,{"1":{"rec":{"1":{"str":"q"},"2":{"str":"x"},"3":{"i32":0}}}}]"#,
    ),
    (
        Form::Thrift(Protocol::Bare),
        concat!(
            r#"[1,"sendMessageBatch",1,7,{"1":{"rec":{"1":{"str":"q"},"2":{"lst":["rec",2,{"1":{"str":"a"},"#,
            r#""2":{"str":"x"}},{"1":{"str":"b"},"2":{"str":"y"}}]}}}}]"#
        )
        .as_bytes(),
    ),
    (
        Form::Thrift(Protocol::Json),
        br#"[1,"receiveMessage",1,7,{"1":{"rec":{"1":{"str":"q"},"2":{"i32":10},"3":{"i32":20}}}}]"#,
    ),
    (Form::Thrift(Protocol::Json), br#"[1,"deleteMessage",1,7,{"1":{"rec":{"1":{"str":"q"},"2":{"str":"h"}}}}]"#),
    (
        Form::Thrift(Protocol::Binary),
        b"\x80\x01\x00\x01\x00\x00\x00\x0bsendMessage\x00\x00\x00\x07\x0c\x00\x01\x0b\x00\x01\x00\x00\x00\x01q\x0b\x00\
         \x02\x00\x00\x00\x01x\x08\x00\x03\x00\x00\x00\x00\x00\x00",
    ),
    (
        Form::Thrift(Protocol::Binary),
        b"\x80\x01\x00\x01\x00\x00\x00\x12deleteMessageBatch\x00\x00\x00\x07\x0c\x00\x01\x0b\x00\x01\x00\x00\x00\x01q\
         \x0f\x00\x02\x0c\x00\x00\x00\x02\x0b\x00\x01\x00\x00\x00\x01a\x00\x0b\x00\x01\x00\x00\x00\x01b\x00\x00\x00",
    ),
    (Form::Thrift(Protocol::Compact), b"\x82\x21\x07\x0ereceiveMessage\x1c\x18\x01q\x15\x14\x15\x28\x00\x00"),
    (
        Form::Thrift(Protocol::Compact),
        b"\x82\x21\x07\x10sendMessageBatch\x1c\x18\x01q\x19\x2c\x18\x01a\x18\x01x\x00\x18\x01b\x18\x01y\x15\x00\x00\
         \x00\x00",
    ),
    (Form::Thrift(Protocol::Compact), b"\x82\x21\x07\x0ddeleteMessage\x1c\x18\x01q\x18\x01h\x00\x00"),
];
const PIECES: [&[u8]; 29] = [
    b"\"",
    b"\\",
    b"\\u",
    b"\\ud83d",
    b"\\ude00",
    b"\\u0000",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b" ",
    b"\n",
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xe2\x82",
    b"\xf0\x9f\x98\x80",
    b"-",
    b"0",
    b"1e9",
    b"99999999999",
    b"null",
    b"{}",
    b"[]",
    b"\"a\":",
    b"\"QueueUrl\":\"u\",",
    b"====",
];

/// A body with something cut, doubled, put in, taken from elsewhere, or other than it was.
fn damaged(chance: &mut Chance, good: &[u8]) -> Vec<u8> {
    let mut body = good.to_vec();
    for _ in 0..chance.below(5) {
        let at = chance.below(body.len() + 1);
        let to = (at + chance.below(24)).min(body.len());
        match chance.below(6) {
            0 if at < body.len() => body[at] = chance.below(256) as u8,
            1 => drop(body.drain(at..to)),
            2 => body.truncate(at),
            3 => {
                let piece = body[at..to].to_vec();
                let place = chance.below(body.len() + 1);
                body.splice(place..place, piece);
            }
            4 => {
                let (_, other) = GOOD[chance.below(GOOD.len())];
                let from = chance.below(other.len());
                let piece = &other[from..(from + chance.below(40)).min(other.len())];
                body.splice(at..at, piece.iter().copied());
            }
            _ => drop(body.splice(at..at, PIECES[chance.below(PIECES.len())].iter().copied())),
        }
    }
    body
}

/// A message that is handed out, of any bytes.
fn kept(chance: &mut Chance) -> Kept {
    let records = Records::new([0; 5], 8);
    let body: Vec<u8> = (0..chance.below(40)).map(|_| chance.below(256) as u8).collect();
    let is_text = std::str::from_utf8(&body).is_ok();
    let message =
        Message { body: &body, is_text, attributes: &[], delay_ms: 0, lease_ms: None, sender: "s\"é", mark: None };
    let mut record = Vec::new();
    let parts = records.write(&message, &mut record);
    Kept { digest: digest(&body), record, parts, sent_at_ms: 1 }
}

/// Entries of a request at most; 0 = a receive.
fn most_entries(verb: Verb) -> usize {
    match verb {
        Verb::Receive | Verb::NativeReceive | Verb::EmqReceive => 0,
        Verb::Send | Verb::Delete | Verb::Change | Verb::EmqSend | Verb::EmqDelete => 1,
        Verb::SendBatch | Verb::DeleteBatch | Verb::ChangeBatch => 10,
        Verb::NativeSend | Verb::EmqSendBatch => 32,
        Verb::NativeAck | Verb::NativeExtend | Verb::NativeRelease | Verb::EmqDeleteBatch => 100,
    }
}

/// Whether a request is read; then all of it can be looked at, and be answered.
fn is_read(form: Form, body: &[u8], messages: &[Delivery]) -> bool {
    let mut scratch = Vec::new();
    let mut scanner = Scanner::new(body, &mut scratch);
    let Ok((verb, mut request)) = requests::read(form, &mut scanner) else { return false };
    let most = most_entries(verb);
    assert!(request.entries.len() <= most && (most == 0) == request.entries.is_empty(), "{verb:?}");
    for (number, range) in [(request.most, 1..=100), (request.wait_s, 0..=20), (request.lease_s, 0..=43_200)] {
        assert!(number.is_none_or(|number| range.contains(&number)), "{verb:?} {number:?}");
    }
    assert_eq!(scanner.text(request.url).is_empty(), verb.dialect() == Dialect::Native);
    for entry in &request.entries {
        assert!(!scanner.text(entry.value).is_empty() && entry.attributes.len() <= 10);
        assert!((0..=43_200).contains(&entry.lease_s) && entry.delay_s.is_none_or(|delay| (0..=900).contains(&delay)));
        assert!([entry.value, entry.id].iter().all(|place| std::str::from_utf8(scanner.text(*place)).is_ok()));
        assert!(entry.attributes.iter().all(|one| one.read(&scanner).is_some()), "names and types are texts");
    }
    let repeats = Repeats::new(verb, &mut request, &scanner);
    let mut reply = Vec::new();
    if verb.is_send() {
        assert_eq!(repeats.contents(&request, &scanner).len(), request.entries.len());
        repeats.sent(&mut reply, &vec![[b'0'; 36]; request.entries.len()], 1_700_000_000_000);
    } else if most > 0 {
        let ok = Word { status: b"ok".to_vec(), ..Word::default() };
        repeats.acted(&mut reply, &vec![(&ok, 1_700_000_000_000); request.entries.len()]);
    } else {
        repeats.received(&mut reply, messages);
    }
    let is_text = !matches!(form, Form::Thrift(Protocol::Binary | Protocol::Compact));
    assert!(!is_text || std::str::from_utf8(&reply).is_ok(), "{verb:?}: {}", String::from_utf8_lossy(&reply));
    true
}

#[test]
fn no_body_does_harm_and_what_is_read_keeps_its_bounds() {
    let size = std::env::var("LW_FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(MUTATIONS);
    let mut chance = Chance(SEED);
    let (mut read, mut refused) = ([0; GOOD.len()], [0; GOOD.len()]);
    for (form, good) in GOOD {
        assert!(is_read(form, good, &[]), "{form:?} {}", String::from_utf8_lossy(good));
    }
    for _ in 0..size {
        let at = chance.below(GOOD.len());
        let from = if chance.below(8) == 0 { chance.below(GOOD.len()) } else { at };
        let body = damaged(&mut chance, GOOD[from].1);
        let message = kept(&mut chance);
        let delivery = Delivery {
            id: [b'0'; 36],
            handle: [b'h'; 52],
            partition: 1,
            offset: 2,
            count: 1,
            first_ms: 1,
            leased_until_ms: 2,
            at_ms: 1,
            message: &message,
        };
        let messages: Vec<Delivery> = (chance.below(3) > 0).then_some(delivery).into_iter().collect();
        let is_read = is_read(GOOD[at].0, &body, &messages);
        (if is_read { &mut read } else { &mut refused })[at] += 1;
    }
    assert!(read.iter().chain(&refused).all(|count| *count > size / 2000), "{read:?} {refused:?}");
}
