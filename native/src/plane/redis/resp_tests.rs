use super::resp::{put_array, put_number, put_word, Broken, Parser, Reply};
use crate::chance::Chance;

const MOST: usize = 1 << 30;

fn read(parser: &mut Parser, mut input: &[u8]) -> Result<Vec<Reply>, Broken> {
    let mut found = Vec::new();
    while let Some(reply) = parser.next(&mut input)? {
        found.push(reply);
    }
    assert!(input.is_empty());
    Ok(found)
}

fn all(input: &[u8]) -> Result<Vec<Reply>, Broken> {
    read(&mut Parser::new(MOST), input)
}

fn text(text: &str) -> Reply {
    Reply::Bytes(text.into())
}

const SAMPLE: &[u8] = b"*3\r\n$2\r\nOK\r\n:-12\r\n*2\r\n$-1\r\n*0\r\n+PONG\r\n-ERR a b\r\n$0\r\n\r\n*-1\r\n\
 :9223372036854775807\r\n$4\r\n\r\n\r\n\r\n";

fn sample() -> Vec<Reply> {
    vec![
        Reply::Array(vec![text("OK"), Reply::Int(-12), Reply::Array(vec![Reply::Nothing, Reply::Array(vec![])])]),
        text("PONG"),
        Reply::Error(b"ERR a b".to_vec()),
        text(""),
        Reply::Nothing,
        Reply::Int(i64::MAX),
        text("\r\n\r\n"),
    ]
}

#[test]
fn replies_are_read_however_they_are_cut() {
    assert_eq!(all(SAMPLE), Ok(sample()));
    for first in 0..SAMPLE.len() {
        for second in first..SAMPLE.len() {
            let (mut parser, mut found) = (Parser::new(MOST), Vec::new());
            for piece in [&SAMPLE[..first], &SAMPLE[first..second], &SAMPLE[second..]] {
                found.extend(read(&mut parser, piece).unwrap());
            }
            assert_eq!(found, sample(), "cut at {first} and {second}");
        }
    }
}

#[test]
fn what_is_no_reply_is_an_error() {
    for wrong in [
        "hello\r\n",
        "\r\n",
        "*\r\n",
        "$\r\n",
        ":\r\n",
        ":1",
        "$-2\r\n",
        "*-2\r\n",
        "$2\r\nabcd",
        ":1\n",
        ":99999999999999999999\r\n",
        "$9223372036854775807\r\n",
        "*9223372036854775807\r\n",
        "%1\r\n",
        ":1 2\r\n",
        "$1x\r\n",
        "*1\r\n\r\n",
    ] {
        let outcome = all(wrong.as_bytes());
        assert!(outcome.is_err() || outcome == Ok(vec![]) && wrong == ":1", "{wrong:?}: {outcome:?}");
    }
}

#[test]
fn a_reply_has_bounds() {
    let nested = |depth: usize| all(&[b"*1\r\n".repeat(depth), b":1\r\n".to_vec()].concat());
    assert!(nested(16).is_ok());
    assert_eq!(nested(17), Err("a reply is nested too deep"));
    let line = |size: usize| [b"+".as_slice(), &vec![b'x'; size], b"\r\n"].concat();
    assert!(all(&line(60_000)).is_ok());
    assert!(all(&line(70_000)).is_err());
    for piece in [1000, 65_000] {
        let mut parser = Parser::new(MOST);
        assert!(line(70_000).chunks(piece).any(|piece| read(&mut parser, piece).is_err()));
    }
    assert!(read(&mut Parser::new(1000), b"$2000\r\n").is_err());
    assert!(read(&mut Parser::new(1000), &[b"*30\r\n".to_vec(), b"$-1\r\n".repeat(30)].concat()).is_ok());
    assert!(read(&mut Parser::new(1000), &[b"*31\r\n".to_vec(), b"$-1\r\n".repeat(31)].concat()).is_err());
    // The bound is of one reply, not of all.
    assert_eq!(
        read(
            &mut Parser::new(1000),
            &b"$900\r\n".iter().chain(&[b'x'; 900]).chain(b"\r\n").copied().collect::<Vec<_>>().repeat(9)
        )
        .unwrap()
        .len(),
        9
    );
}

/// One that reads what it has once more with each piece would take hours.
#[test]
fn a_large_reply_in_small_pieces_is_read_in_linear_time() {
    let (size, count) = (16 << 20, 1 << 20);
    let mut input = format!("*2\r\n${size}\r\n").into_bytes();
    input.resize(input.len() + size, b'x');
    input.extend_from_slice(format!("\r\n*{count}\r\n").as_bytes());
    input.extend_from_slice(&b":1\r\n".repeat(count));
    let (mut parser, mut found) = (Parser::new(MOST), Vec::new());
    for piece in input.chunks(11) {
        found.extend(read(&mut parser, piece).unwrap());
    }
    let [reply] = &found[..] else { panic!("{}", found.len()) };
    assert_eq!((reply.items()[0].bytes().len(), reply.items()[1].items().len()), (size, count));
}

#[test]
fn no_bytes_make_it_panic_and_what_is_read_does_not_depend_on_the_cuts() {
    let mut chance = Chance(0x5eed_1234);
    for _ in 0..100_000 {
        let mut input = SAMPLE.to_vec();
        for _ in 0..=chance.below(4) {
            let at = chance.below(input.len());
            match chance.below(5) {
                0 => input[at] = chance.below(256) as u8,
                1 if input.len() > 1 => drop(input.remove(at)),
                2 => input.insert(at, b"*$:+-\r\n0123456789"[chance.below(17)]),
                3 => input.truncate(at + 1),
                _ => input.extend_from_within(at..),
            }
        }
        let whole = all(&input);
        let (mut parser, mut found, mut failed) = (Parser::new(MOST), Vec::new(), None);
        for piece in input.chunks(1 + chance.below(9)) {
            match read(&mut parser, piece) {
                Ok(more) => found.extend(more),
                Err(reason) => {
                    failed = Some(reason);
                    break;
                }
            }
        }
        match (&whole, failed) {
            (Ok(replies), None) => assert_eq!(replies, &found),
            (Err(_), Some(_)) => {}
            _ => panic!("{:?}: {whole:?}, in pieces {found:?} {failed:?}", String::from_utf8_lossy(&input)),
        }
    }
}

#[test]
fn commands_are_written_as_redis_reads_them() {
    let mut output = Vec::new();
    put_array(&mut output, 3);
    put_word(&mut output, b"a\r\nb");
    put_number(&mut output, i64::MIN);
    put_number(&mut output, 0);
    assert_eq!(output, b"*3\r\n$4\r\na\r\nb\r\n$20\r\n-9223372036854775808\r\n$1\r\n0\r\n");
    assert_eq!(all(&output).unwrap()[0].items()[1], text("-9223372036854775808"));
}

#[test]
fn a_reply_of_another_kind_has_nothing() {
    assert_eq!((Reply::Nothing.int(), text("x").items().len(), Reply::Int(7).bytes().len()), (0, 0, 0));
    assert_eq!((Reply::Int(7).int(), Reply::Error(b"no".to_vec()).bytes()), (7, b"no".as_slice()));
}
