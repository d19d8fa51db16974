//! Tests of `plain`: which heads are read here, and which go the long way.

use crate::http::head::{read, Found, Head};
use crate::http::plain::{Plain, SEND_BYTES, SMALL_BYTES};
use crate::requests::{Form, Verb};

const PLAIN: &str =
    "POST / HTTP/1.1\r\nHost: localhost:9400\r\nX-Amz-Target: AmazonSQS.SendMessage\r\nContent-Length: 12\r\n\r\n";

fn with(line: &str) -> String {
    PLAIN.replace("\r\n\r\n", &format!("\r\n{line}\r\n\r\n"))
}

fn head_of(text: &str) -> Head<'_> {
    let Found::Head(head) = read(text.as_bytes(), &mut 0) else { panic!("no head: {text}") };
    head
}

fn plain(text: &str) -> Plain<'_> {
    head_of(text).plain.expect("it is plain")
}

fn is_other(text: &str) -> bool {
    head_of(text).plain.is_err()
}

#[test]
fn a_plain_head() {
    let text = with(
        "Authorization: AWS4-HMAC-SHA256 Credential=key/20261124/us-east-1/sqs/aws4_request, \
     SignedHeaders=host, Signature=0",
    );
    let head = plain(&text);
    assert_eq!((head.form, head.path, head.host), (Form::Of(Verb::Send), &b"/"[..], &b"localhost:9400"[..]));
    assert_eq!((head.whose, head.body_bytes), (&b"key/20261124/us-east-1"[..], 12));
    assert_eq!(head_of(&text).bytes, text.len());
}

#[test]
fn the_last_line_says_for_whom_it_is_forwarded() {
    for (lines, told) in [
        ("X-A: b", ""),
        ("X-Forwarded-For: 10.0.0.1, 10.0.0.2", "10.0.0.1, 10.0.0.2"),
        ("x-forwarded-for: 10.0.0.1\r\nX-FORWARDED-FOR:  10.0.0.2 ", "10.0.0.2"),
        ("X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-For:", ""),
    ] {
        let text = with(lines);
        assert_eq!(plain(&text).forwarded, told.as_bytes());
    }
}

#[test]
fn lines_that_change_nothing() {
    for line in [
        "User-Agent: x",
        "connection: Keep-Alive",
        "Connection: close",
        "X-Amz-Date:20261124T000000Z",
        "Accept-Encoding:\tgzip ",
        "Empty:",
    ] {
        assert!(!is_other(&with(line)), "{line}");
    }
}

#[test]
fn what_lanes_keep_has_a_bound() {
    let most = "a".repeat(512);
    let signed =
        |region: &str| with(&format!("Authorization: AWS4-HMAC-SHA256 Credential=key/20261124/{region}/sqs/x"));
    let path = |path: &str| PLAIN.replace("POST / ", &format!("POST {path} "));
    let host = |host: &str| PLAIN.replace("localhost:9400", host);
    for text in [signed(&most), path(&format!("/{}", &most[1..])), host(&most)] {
        assert!(!is_other(&text), "{text}");
    }
    for text in [signed(&format!("{most}a")), path(&format!("/{most}")), host(&format!("{most}a"))] {
        assert!(is_other(&text), "{text}");
    }
}

#[test]
fn every_part_of_a_plain_head_may_become_one() {
    for end in 0..PLAIN.len() {
        let mut checked = 0;
        for part in 0..=end {
            assert_eq!(read(&PLAIN.as_bytes()[..part], &mut checked), Found::Part, "{part}");
        }
    }
}

#[test]
fn heads_that_are_left_to_python() {
    for line in [
        "X-Amz-Target: AmazonSQS.SendMessage",
        "Expect: 100-continue",
        "X-Amzn-Trace-Id: Root=1",
        "Origin: http://a",
        "Sec-Fetch-Site: none",
        "Authorization: Basic eDp5",
        "Latin: \u{e9}",
    ] {
        assert!(is_other(&with(line)), "{line}");
    }
    for (from, to) in [
        ("POST", "GET"),
        ("POST", "post"),
        ("POST /", "POST *"),
        ("Content-Length: 12", "Transfer-Encoding: chunked"),
        ("/ ", "/?a=b "),
        ("/ ", "/%41 "),
        ("1.1", "1.0"),
        ("SendMessage", "CreateQueue"),
        ("AmazonSQS.", ""),
        ("Content-Length: 12\r\n", ""),
        (": 12", ": 1234567890"),
        (": 12", ": 0"),
        ("localhost:9400", ""),
    ] {
        assert!(is_other(&PLAIN.replacen(from, to, 1)), "{from} {to}");
    }
}

#[test]
fn sends_may_be_longer_than_other_requests() {
    for (verb, most) in
        [("SendMessageBatch", SEND_BYTES), ("ReceiveMessage", SMALL_BYTES), ("DeleteMessageBatch", SMALL_BYTES)]
    {
        let sized = |bytes: usize| PLAIN.replace("SendMessage", verb).replace(": 12", &format!(": {bytes}"));
        assert!(!is_other(&sized(most)), "{verb}");
        assert!(is_other(&sized(most + 1)), "{verb}");
    }
}

#[test]
fn credentials_in_other_forms_are_left_to_python() {
    for value in [
        "AWS4-HMAC-SHA256 SignedHeaders=host, Credential=key/20261124/us-east-1/sqs/aws4_request",
        "AWS4-HMAC-SHA256 Credential=",
        "AWS4-HMAC-SHA256 Credential=key",
        "AWS4-HMAC-SHA256 Credential=key/1/us-east-1/sqs/aws4_request",
        "AWS4-HMAC-SHA256 Credential=a/b/20261124/us-east-1/sqs/aws4_request",
        "AWS4-HMAC-SHA256  Credential=key/20261124/us-east-1/sqs",
    ] {
        assert!(is_other(&with(&format!("Authorization: {value}"))), "{value}");
    }
}

#[test]
fn the_query_of_an_emq_call_is_kept() {
    let lines = "Host: localhost\r\nContent-Type: application/x-thrift-binary\r\nContent-Length: 12\r\n\r\n";
    let call = |query: &str| format!("POST /v1/api/message{query} HTTP/1.1\r\n{lines}");
    for (given, kept) in [("?id=abcdef01&type=x", "id=abcdef01&type=x"), ("?", ""), ("", "")] {
        let text = call(given);
        assert_eq!(plain(&text).query, kept.as_bytes());
    }
    assert!(!is_other(&call(&format!("?id={}", "a".repeat(509)))));
    assert!(is_other(&call(&format!("?id={}", "a".repeat(510)))), "it is Python's, which reads all of it");
}

#[test]
fn a_sampled_context_is_told_of() {
    let parent = |flags: &str| format!("traceParent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}");
    for (line, is_traced) in [
        (parent("01"), true),
        (parent("ff"), true),
        (parent("00"), false),
        (parent("fe"), false),
        (parent("0x"), false),
        (parent("0"), false),
        ("traceparent:".into(), false),
        ("tracestate: a=1".into(), false),
        (format!("{}\r\n{}", parent("01"), parent("00")), true),
    ] {
        let text = with(&line);
        assert_eq!(plain(&text).is_traced, is_traced, "{line}");
    }
}
