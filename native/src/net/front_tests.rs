//! Tests of `front`: what it holds of its connections is in its sums.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::http::plain::{SEND_BYTES, SMALL_BYTES};
use crate::net::connection::State;
use crate::net::front::{Front, Reads};
use crate::net::output::Held;
use crate::net::stream::Ready;
use crate::pack::Packer;

const ONE: &[u8] =
    b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\nContent-Length: 16\r\n\r\n\
     {\"QueueUrl\":\"u\"}";
const BEHIND: usize = 20_000;

fn listening() -> (Front, SocketAddr) {
    reading(Reads::All)
}

fn reading(reads: Reads) -> (Front, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (Front::new(listener, b"p", reads, false, 10).expect("a front"), address)
}

fn client(address: SocketAddr, says: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(says).expect("room for it");
    stream
}

/// Looks until it is so.
fn look_until(front: &mut Front, is_so: impl Fn(&Front) -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is_so(front) {
        assert!(Instant::now() < end, "it holds {:?}", front.held);
        std::thread::sleep(Duration::from_millis(1));
        front.look();
        front.learnt(0, Instant::now()); // their only lane
    }
}

fn asked(front: &Front) -> Vec<u64> {
    let taken = front.slots.taken();
    let all = taken.iter().filter_map(|slot| front.slots.get(*slot));
    all.filter(|one| one.state == State::Asked).map(|one| one.id).collect()
}

/// Answers as Python does.
fn answer(front: &mut Front, id: u64) {
    let mut packer = Packer::default();
    packer.array(1);
    packer.array(2);
    packer.uint(1);
    packer.array(1);
    packer.array(3);
    packer.uint(id);
    packer.text(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n");
    packer.text(b"{}");
    assert_eq!(front.answer(&packer.bytes) & 4, 0, "it could be read");
}

#[test]
fn what_came_with_a_request_is_counted_until_its_client_has_left() {
    let (mut front, address) = listening();
    let says = [ONE, &vec![b'x'; BEHIND]].concat();
    let mut clients: Vec<_> = (0..3).map(|_| client(address, &says)).collect();
    std::thread::sleep(Duration::from_millis(50)); // so that all of it has come before it is read
    look_until(&mut front, |front| asked(front).len() == 3);
    // The requests themselves were told to Python.
    assert_eq!(front.held, Held { asked: 3 * BEHIND, ..Held::default() });

    let first = asked(&front)[0];
    answer(&mut front, first);
    assert_eq!(front.held, Held { part: BEHIND, asked: 2 * BEHIND, parts: 1 });

    clients.pop();
    look_until(&mut front, |front| asked(front).len() == 1);
    assert_eq!(front.held, Held { part: BEHIND, asked: BEHIND, parts: 1 });
}

#[test]
fn what_the_poll_said_of_a_connection_that_has_ended_is_not_said_of_the_next_one_in_its_slot() {
    let (mut front, address) = listening();
    let first = client(address, ONE);
    look_until(&mut front, |front| !asked(front).is_empty());
    let id = asked(&front)[0];
    drop(first);
    look_until(&mut front, |front| front.slots.taken().is_empty());

    let _second = client(address, ONE);
    look_until(&mut front, |front| !asked(front).is_empty());
    let next = asked(&front)[0];
    assert_eq!((next as u32, next == id), (id as u32, false), "it has the slot");
    let (token, is_readable, has_end) = (mio::Token(id as usize), true, true);
    front.handle(&[Ready { token, is_readable, has_end, is_writable: false }], Instant::now());
    assert_eq!(asked(&front), [next], "its client has not left");
}

#[test]
fn a_part_is_counted_until_it_is_whole() {
    let (mut front, address) = listening();
    let mut one = client(address, &ONE[..50]);
    look_until(&mut front, |front| front.held.part > 0);
    assert_eq!(front.held, Held { part: 50, asked: 0, parts: 1 });
    one.write_all(&ONE[50..]).expect("room for it");
    look_until(&mut front, |front| !asked(front).is_empty());
    assert_eq!(front.held, Held::default());
    let first = asked(&front)[0];
    answer(&mut front, first);
    assert_eq!(front.held, Held::default());
}

#[test]
fn a_part_that_follows_a_whole_request_is_counted_whole() {
    let (mut front, address) = listening();
    let _client = client(address, &[ONE, &ONE[..50]].concat());
    std::thread::sleep(Duration::from_millis(50));
    look_until(&mut front, |front| !asked(front).is_empty());
    let first = asked(&front)[0];
    answer(&mut front, first);
    assert_eq!(front.held, Held { part: 50, asked: 0, parts: 1 });
}

/// The head of a request with a body of so many bytes, signed by a key of this id.
fn head(key: &str, bytes: usize) -> Vec<u8> {
    format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.SendMessage\r\nAuthorization: AWS4-HMAC-SHA256 \
         Credential={key}/20261127/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=00\r\n\
         Content-Length: {bytes}\r\n\r\n"
    )
    .into_bytes()
}

#[test]
fn no_body_of_a_stranger_is_kept() {
    let (mut front, address) = reading(Reads::Signed);
    front.keys.learn(b"known/20261127/us-east-1", b"127.0.0.1", [7; 32], Instant::now() + Duration::from_secs(60));
    let passed = |front: &Front, number: usize| {
        let taken = front.slots.taken();
        taken.iter().filter_map(|slot| front.slots.get(*slot)).filter(|one| one.coming.is_some()).count() == number
    };
    // Without a signature, by a key that is not known here, and by one that is, but too long.
    let _anonymous = client(
        address,
        b"POST /v1/queues/q/messages HTTP/1.1\r\nHost: localhost\r\n\
     Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    );
    let _stranger = client(address, &[head("other", 1000), vec![b' '; 500]].concat());
    let _large = client(address, &[head("known", SEND_BYTES + 1), vec![b' '; 500]].concat());
    look_until(&mut front, |front| passed(front, 3));
    assert_eq!(front.held, Held::default());
    let _known = client(address, &[head("known", 1000), vec![b' '; 500]].concat());
    look_until(&mut front, |front| front.held.part > 500);
    assert!(passed(&front, 3));
}

#[test]
fn a_long_send_is_kept_only_while_there_is_room() {
    let (mut front, address) = listening();
    front.bounds.part_bytes = 2000;
    let parts = |front: &Front| front.held.parts;
    let mut long = client(address, &[head("a", SMALL_BYTES + 1), vec![b' '; 600]].concat());
    look_until(&mut front, |front| parts(front) == 1);
    let _other = client(address, &[head("b", SMALL_BYTES), vec![b' '; 600]].concat());
    look_until(&mut front, |front| parts(front) == 2);
    long.write_all(b" ").expect("room for it");
    look_until(&mut front, |front| parts(front) == 1);
    let coming =
        front.slots.taken().iter().filter_map(|slot| front.slots.get(*slot)).filter(|one| one.coming.is_some()).count();
    assert_eq!((coming, front.gave_way), (1, 0), "Python has it, with what came of it");
}
