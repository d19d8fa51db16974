//! Tests of `head`, `framing`, `body` and `stream`: what is read, what is refused, and that no bytes
//! do harm.

use crate::chance::Chance;
use crate::http::body::{Body, Taken};
use crate::http::framing::Length;
use crate::http::head::{read, Found, HEAD_BYTES};
use crate::http::stream::{requests, End};

/// Of all mutations; another one finds other streams.
const SEED: u64 = 43;
const MUTATIONS: usize = 20_000;

fn refused(text: &str) -> (u16, String) {
    match read(text.as_bytes(), &mut 0) {
        Found::Refused(refusal) => (refusal.status, refusal.text),
        found => panic!("{text:?}: {found:?}"),
    }
}

fn get(lines: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n")
}

#[test]
fn what_may_be_read_in_two_ways_is_refused() {
    for line in [
        "Content-Length: 1\r\nContent-Length: 1",
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: 1, 1",
        "Content-Length: -1",
        "Content-Length: +1",
        "Content-Length: 0x1",
        "Content-Length: 1234567890123456789",
        "Content-Length:",
        "Content-Length: 1\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 1",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: \u{b}chunked",
        "Transfer-Encoding : chunked",
        "A: b\r\n c",
        "A: b\r\n\tc",
        "A: b\nB: c",
        "A: b\rB: c",
        "A : b",
        "A",
        ": b",
        "A: \0",
        "A\u{e9}: b",
        "Host: b",
    ] {
        assert_eq!(refused(&get(line)).0, 400, "{line:?}");
    }
    for first in [
        "GET  / HTTP/1.1",
        "GET / HTTP/1.1 ",
        " GET / HTTP/1.1",
        "GET /\tHTTP/1.1",
        "GET / a HTTP/1.1",
        "GET /\u{e9} HTTP/1.1",
        "GET / http/1.1",
        "GET / HTTP/1.2",
        "GET / HTTP/11",
        "GET a HTTP/1.1",
        "G(T / HTTP/1.1",
        "GET /",
        "GET",
        "",
    ] {
        let text = format!("{first}\r\nHost: a\r\n\r\n");
        if first.is_empty() {
            continue; // an empty line may stand before a head
        }
        assert_eq!(refused(&text).0, 400, "{first:?}");
    }
    assert_eq!(refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").0, 400);
}

#[test]
fn what_no_later_byte_makes_a_head_is_refused_at_once() {
    for text in ["\x16\x03\x01", "GET / HTTP/1.1\n", "GET / HTTP/1.1\r\nA: b\n", "GET /\x00", "(", "GET / HTTP/1.1\rA"]
    {
        assert_eq!(refused(text).0, 400, "{text:?}");
    }
}

#[test]
fn heads_are_bounded() {
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}", "x".repeat(HEAD_BYTES));
    assert_eq!(refused(&long).0, 431);
    assert_eq!(refused(&format!("{long}\r\n\r\n")).0, 431);
    assert_eq!(refused(&get(&["A: b"; 128].join("\r\n"))).0, 431);
    assert!(matches!(read(get(&["A: b"; 127].join("\r\n")).as_bytes(), &mut 0), Found::Head(_)));
}

#[test]
fn targets() {
    for (target, path, query) in [
        ("/a?b=c?d#e", "/a", "b=c?d"),
        ("/a#b?c", "/a", ""),
        ("http://h:1/a/b?c", "/a/b", "c"),
        ("http://h?c", "/", "c"),
        ("http://h", "/", ""),
        ("*", "*", ""),
        ("/http://h", "/http://h", ""),
    ] {
        let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        let Found::Head(head) = read(text.as_bytes(), &mut 0) else { panic!("{target}") };
        assert_eq!(head.path_and_query(), (path.as_bytes(), query.as_bytes()), "{target}");
    }
}

fn taken(text: &str) -> Option<(Vec<u8>, usize, bool)> {
    let (mut body, mut bytes) = (Body::new(Length::Chunked), text.as_bytes().to_vec());
    let Taken { body: size, used } = body.take(&mut bytes).ok()?;
    Some((bytes[..size].to_vec(), used, body.is_whole()))
}

#[test]
fn bodies_in_chunks() {
    for (text, body, used) in [
        ("0\r\n\r\n", "", 5),
        ("4\r\nfour\r\n0\r\n\r\nGET", "four", 14),
        ("4;a=b\r\nfour\r\n00\r\nA: b\r\n\r\n", "four", 25),
        ("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", 35),
    ] {
        assert_eq!(taken(text), Some((body.as_bytes().to_vec(), used, true)), "{text:?}");
    }
    for text in [
        "\r\n",
        "g\r\n",
        "-1\r\n",
        " 1\r\n",
        "1 \r\n",
        "0x1\r\n",
        ";a\r\n",
        "1\n",
        "1\r\r\n",
        "1;a\n",
        "1;\0\r\n",
        "1\r\nab",
        "1\r\na\n",
        "1\r\na\r0",
        "ffffffffffffffff\r\n",
        "00000000000000001\r\n",
        "0\r\n\n",
        "0\r\nA: b\n",
        "0\r\nA : b\r\n",
        "0\r\n b\r\n",
        "0\r\nA\r\n",
        "0\r\n\rA",
        "0\r\nContent-Length: 1\r\n",
        "0\r\ntransfer-encoding: chunked\r\n",
    ] {
        assert_eq!(taken(text), None, "{text:?}");
    }
}

#[test]
fn what_stands_beside_a_body_is_bounded() {
    assert!(taken(&format!("1;{}", "x".repeat(HEAD_BYTES - 2))).is_some());
    assert!(taken(&format!("1;{}", "x".repeat(HEAD_BYTES))).is_none());
    assert!(taken(&format!("0\r\n{}", "A: b\r\n".repeat(HEAD_BYTES / 6 + 1))).is_none());
}

const STREAM: &[u8] = b"POST /a?b HTTP/1.1\r\nHost: localhost:9400\r\nX-Amz-Target: AmazonSQS.SendMessage\r\n\
Content-Length: 4\r\n\r\nfour\
POST /v1/queues/q/messages HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\
Expect: 100-continue\r\n\r\n\
5;a=b\r\nseven\r\n0\r\nA: b\r\n\r\nGET http://h/ HTTP/1.0\r\nHost: h\r\n\r\n";
const PIECES: [&[u8]; 16] = [
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b":",
    b"\0",
    b"0",
    b"f",
    b";",
    b"\xff",
    b"\r\n\r\n",
    b"Content-Length: 9",
    b"HTTP/1.",
    b"Transfer-Encoding: chunked\r\n",
    b"ffffffff",
    b"Host: b\r\n",
];

/// The requests of a stream and its end, without the words, which differ by what came first.
fn found(stream: &[u8], step: usize) -> (Vec<u8>, usize, String) {
    let (found, number, end) = requests(stream, step);
    let end = match end {
        End::Refused(refusal) => refusal.status.to_string(),
        end => format!("{end:?}"),
    };
    (found, number, end)
}

#[test]
fn no_bytes_do_harm_and_where_they_are_cut_changes_nothing() {
    let mut chance = Chance(SEED);
    for _ in 0..MUTATIONS {
        let mut stream = STREAM.to_vec();
        for _ in 0..=chance.below(4) {
            let at = chance.below(stream.len());
            match chance.below(4) {
                0 => stream[at] = chance.below(256) as u8,
                1 if stream.len() > 1 => drop(stream.remove(at)),
                2 => stream.truncate(at + 1),
                _ => drop(stream.splice(at..at, PIECES[chance.below(PIECES.len())].iter().copied())),
            }
        }
        let whole = found(&stream, stream.len());
        for step in [1, 1 + chance.below(40)] {
            assert_eq!(found(&stream, step), whole, "{step} of {:?}", String::from_utf8_lossy(&stream));
        }
    }
}
