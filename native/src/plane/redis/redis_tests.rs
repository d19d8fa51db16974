//! The connection against a server of the test, which can say what no Redis says.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::{Address, Failure, Limits, News, Redis, Reply, Script};

struct Rig {
    listener: TcpListener,
    redis: Redis,
    poll: mio::Poll,
    news: Vec<News>,
}

impl Rig {
    fn new(login: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let mut options = vec![(b"port".as_slice(), port.as_bytes())];
        if login {
            options.extend([(b"username".as_slice(), b"u".as_slice()), (b"password", b"p"), (b"db", b"3")]);
        }
        let script = Script { sha: vec![b'a'; 40], source: b"return 1".to_vec() };
        let limits =
            Limits { connect_s: 5.0, reply_s: 5.0, back_off_s: vec![0.01], bytes: 64 << 20, reply_bytes: 1 << 20 };
        let redis = Redis::new(Address::read(&options).unwrap(), vec![script], limits);
        Self { listener, redis, poll: mio::Poll::new().unwrap(), news: Vec::new() }
    }

    fn turn(&mut self) {
        let (mut events, mut buffer) = (mio::Events::with_capacity(8), vec![0; 65_536]);
        self.redis.tick(self.poll.registry(), mio::Token(1));
        self.redis.flush(self.poll.registry());
        self.poll.poll(&mut events, Some(Duration::from_millis(5))).unwrap();
        for event in &events {
            self.redis.ready(self.poll.registry(), event.is_readable(), event.is_writable(), &mut buffer);
        }
        self.news.extend(self.redis.news());
    }

    fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !done(self) {
            assert!(Instant::now() < end);
            self.turn();
        }
    }

    /// What the server gets, of so many bytes.
    fn read(&mut self, peer: &mut TcpStream, size: usize) -> Vec<u8> {
        peer.set_nonblocking(true).unwrap();
        let mut found = Vec::new();
        self.until(|_| {
            let mut room = vec![0; (size - found.len()).min(1 << 20)];
            if let Ok(size) = peer.read(&mut room) {
                found.extend_from_slice(&room[..size]);
            }
            found.len() == size
        });
        peer.set_nonblocking(false).unwrap();
        found
    }

    fn accept(&mut self) -> TcpStream {
        self.turn();
        let (mut peer, _) = self.listener.accept().unwrap();
        assert_eq!(self.read(&mut peer, INFO.len()), INFO);
        peer
    }

    /// A link that is greeted and admitted, with its script loaded.
    fn open(&mut self) -> TcpStream {
        let mut peer = self.accept();
        peer.write_all(b"$3\r\nx:y\r\n").unwrap();
        self.until(|rig| rig.news.iter().any(|news| matches!(news, News::Greeted { info, .. } if info == b"x:y")));
        self.redis.admit(self.redis.links, crate::system::boot_s() + 600.0);
        assert_eq!(self.read(&mut peer, LOAD.len()), LOAD);
        peer.write_all(b"$1\r\na\r\n").unwrap();
        self.news.clear();
        peer
    }

    fn begin(&mut self, token: u64, word: &[u8]) {
        assert!(self.redis.begin(token, 0, 1, b"$1\r\n0\r\n", 1));
        self.redis.word(word);
    }

    fn outcomes(&self) -> Vec<(u64, &Result<Reply, Failure>)> {
        self.news
            .iter()
            .filter_map(|news| if let News::Answer { token, outcome } = news { Some((*token, outcome)) } else { None })
            .collect()
    }

    fn lost(&self) -> Option<&str> {
        self.news
            .iter()
            .find_map(|news| if let News::Lost { reason, .. } = news { Some(reason.as_str()) } else { None })
    }
}

const INFO: &[u8] = b"*1\r\n$4\r\nINFO\r\n";
const LOAD: &[u8] = b"*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$8\r\nreturn 1\r\n";

fn call(word: &str) -> Vec<u8> {
    let sha = "a".repeat(40);
    format!("*4\r\n$7\r\nEVALSHA\r\n$40\r\n{sha}\r\n$1\r\n0\r\n${}\r\n{word}\r\n", word.len()).into_bytes()
}

#[test]
fn the_greeting_is_all_that_is_sent_before_python_has_judged() {
    let mut rig = Rig::new(true);
    rig.turn();
    let (mut peer, _) = rig.listener.accept().unwrap();
    let greeting = b"*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*1\r\n$4\r\nINFO\r\n";
    assert_eq!(rig.read(&mut peer, greeting.len()), greeting);
    peer.write_all(b"+OK\r\n+OK\r\n$0\r\n\r\n").unwrap();
    rig.until(|rig| !rig.news.is_empty());
    assert!(!rig.redis.begin(1, 0, 1, b"$1\r\n0\r\n", 0));
    peer.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    rig.turn();
    assert!(peer.read(&mut [0; 10]).is_err(), "nothing more has come");
}

#[test]
fn what_no_redis_says_ends_the_link_and_each_call() {
    for wrong in ["hello\r\n", ":1\r\n:2\r\n:3\r\n", "$2000000\r\n", "*1\r\n*1\r\n*x\r\n"] {
        let mut rig = Rig::new(false);
        let mut peer = rig.open();
        rig.begin(1, b"x");
        rig.begin(2, b"y");
        let sent = [call("x"), call("y")].concat();
        assert_eq!(rig.read(&mut peer, sent.len()), sent);
        peer.write_all(wrong.as_bytes()).unwrap();
        rig.until(|rig| rig.lost().is_some());
        assert_eq!(rig.outcomes().len(), 2, "{wrong:?}");
        let again = rig.accept();
        drop(again);
    }
}

#[test]
fn a_reply_before_its_command_was_written_counts_for_nothing() {
    let mut rig = Rig::new(false);
    let mut peer = rig.open();
    let long = vec![b'x'; 32 << 20];
    rig.begin(1, &long);
    rig.turn();
    peer.write_all(b":1\r\n").unwrap();
    rig.until(|rig| rig.lost().is_some());
    assert_eq!(rig.outcomes(), [(1, &Err(Failure::NotSent))], "Redis does not have all of it");
}

#[test]
fn a_command_that_is_half_written_does_not_follow_when_its_time_is_over() {
    for is_shut in [true, false] {
        let mut rig = Rig::new(false);
        let _peer = rig.open();
        rig.begin(1, b"x");
        rig.begin(2, &vec![b'x'; 32 << 20]);
        rig.begin(3, b"y");
        rig.turn();
        if is_shut {
            rig.redis.shut();
        } else {
            rig.redis.until = crate::system::boot_s() - 1.0;
        }
        rig.until(|rig| rig.lost().is_some());
        let (first, others) = (&rig.outcomes()[..], Err(Failure::NotSent));
        assert!(first.iter().any(|(token, outcome)| *token == 1 && matches!(outcome, Err(Failure::Unknown(_)))));
        assert!(first.contains(&(2, &others)) && first.contains(&(3, &others)));
    }
}

#[test]
fn a_partial_write_keeps_the_rest() {
    let mut rig = Rig::new(false);
    let mut peer = rig.open();
    let long = "x".repeat(20 << 20);
    rig.begin(1, long.as_bytes());
    rig.begin(2, b"y");
    let sent = [call(&long), call("y")].concat();
    assert!(rig.read(&mut peer, sent.len()) == sent);
    peer.write_all(b":1\r\n:2\r\n").unwrap();
    rig.until(|rig| rig.outcomes().len() == 2);
    assert_eq!(rig.outcomes(), [(1, &Ok(Reply::Int(1))), (2, &Ok(Reply::Int(2)))]);
}

#[test]
fn a_script_that_is_not_known_is_loaded_once_for_all_calls_that_met_that() {
    let mut rig = Rig::new(false);
    let mut peer = rig.open();
    rig.begin(1, b"x");
    rig.begin(2, b"y");
    let sent = [call("x"), call("y")].concat();
    assert_eq!(rig.read(&mut peer, sent.len()), sent);
    peer.write_all(b"-NOSCRIPT No matching script\r\n-NOSCRIPT No matching script\r\n").unwrap();
    let again = [LOAD, &sent].concat();
    assert_eq!(rig.read(&mut peer, again.len()), again);
    peer.write_all(b"$1\r\na\r\n:1\r\n-NOSCRIPT No matching script\r\n").unwrap();
    let again = [LOAD, &call("y")].concat();
    assert_eq!(rig.read(&mut peer, again.len()), again);
    peer.write_all(b"$1\r\na\r\n-OOM full\r\n").unwrap();
    rig.until(|rig| rig.outcomes().len() == 2);
    assert_eq!(rig.outcomes(), [(1, &Ok(Reply::Int(1))), (2, &Err(Failure::Refused("OOM full".into())))]);
}

#[test]
fn a_script_that_can_not_be_loaded_is_not_tried_for_ever() {
    let mut rig = Rig::new(false);
    let mut peer = rig.open();
    rig.begin(1, b"x");
    assert_eq!(rig.read(&mut peer, call("x").len()), call("x"));
    for _ in 0..5 {
        peer.write_all(b"-NOSCRIPT no\r\n").unwrap();
        let again = [LOAD, &call("x")].concat();
        assert_eq!(rig.read(&mut peer, again.len()), again);
        peer.write_all(b"-NOPERM no\r\n").unwrap();
    }
    peer.write_all(b"-NOSCRIPT no\r\n").unwrap();
    rig.until(|rig| !rig.outcomes().is_empty());
    assert_eq!(rig.outcomes(), [(1, &Err(Failure::Refused("NOSCRIPT no".into())))]);
}

#[test]
fn a_call_without_all_of_its_words_is_not_sent_and_harms_no_other() {
    let mut rig = Rig::new(false);
    let mut peer = rig.open();
    assert!(rig.redis.begin(1, 0, 1, b"$1\r\n0\r\n", 2));
    rig.redis.word(b"x");
    rig.begin(2, b"y");
    rig.redis.word(b"too many");
    assert!(rig.redis.begin(3, 0, 1, b"$1\r\n0\r\n", 1));
    assert_eq!(rig.read(&mut peer, call("y").len()), call("y"));
    peer.write_all(b":2\r\n").unwrap();
    rig.until(|rig| rig.outcomes().len() == 3);
    let not_sent = Err(Failure::NotSent);
    assert_eq!(rig.outcomes(), [(1, &not_sent), (3, &not_sent), (2, &Ok(Reply::Int(2)))]);
    assert!(!rig.redis.begin(4, 9, 0, b"", 0), "there is no such script");
}

#[test]
fn calls_end_when_redis_closes_and_what_was_not_written_is_known() {
    let mut rig = Rig::new(false);
    let peer = rig.open();
    rig.begin(1, b"x");
    rig.turn();
    rig.begin(2, b"y");
    drop(peer);
    rig.redis.leave(rig.redis.links, "it is left");
    rig.turn();
    let lost = Failure::Unknown("the connection to Redis was lost before the reply: it is left".into());
    assert_eq!(rig.outcomes(), [(1, &Err(lost)), (2, &Err(Failure::NotSent))]);
    assert_eq!(rig.lost(), Some("it is left"));
}

#[test]
fn random_bytes_end_each_call_once() {
    let mut chance = 0x1234_5678_u64;
    for _ in 0..60 {
        let mut rig = Rig::new(false);
        let mut peer = rig.open();
        (0..10).for_each(|token| rig.begin(token, b"x"));
        assert_eq!(rig.read(&mut peer, 10 * call("x").len()), call("x").repeat(10));
        let said: Vec<u8> = (0..200)
            .map(|_| {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                b"*$:-+01\r\n\r\n:1\r\n"[(chance >> 33) as usize % 15]
            })
            .collect();
        peer.write_all(&said).unwrap();
        drop(peer);
        rig.until(|rig| rig.lost().is_some());
        let mut tokens: Vec<u64> = rig.outcomes().iter().map(|(token, _)| *token).collect();
        tokens.sort_unstable();
        assert_eq!(tokens, (0..10).collect::<Vec<_>>());
    }
}
