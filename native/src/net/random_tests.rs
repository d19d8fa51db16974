//! A front whose clients and whose Python do anything, in any order: it neither falls nor counts wrong.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::chance::Chance;
use crate::net::bounds::Bounds;
use crate::net::connection::State;
use crate::net::front::{Front, Reads};
use crate::net::output::Held;
use crate::pack::Packer;

/// Of all that is done; another one does other things.
const SEED: u64 = 44;
const STEPS: usize = 30_000;
const MOST: usize = 12;
const PIECES: [&[u8]; 14] = [
    b"POST / HTTP/1.1\r\nHost: a\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\nContent-Length: 16\r\n\r\n\
     {\"QueueUrl\":\"u\"}",
    b"POST / HTTP/1.1\r\nHost: a\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\nContent-Length: 16\r\n\r\n{\"Queue",
    b"Url\":\"u\"}",
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\nExpect: 100-continue\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"5;a\r\nseven\r\n",
    b"0\r\n\r\n",
    b"\r\n",
    b"HEAD /",
    b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    b"\xff\0\n",
];

/// Something that Python may do with a connection, whether it makes sense or not.
fn deed(chance: &mut Chance, id: u64) -> Vec<u8> {
    let mut packer = Packer::default();
    packer.array(1);
    packer.array(2);
    let kind = chance.below(8);
    packer.uint(kind as u64);
    packer.array(1);
    match kind {
        0 => {
            packer.array(3);
            packer.uint(chance.below(8) as u64);
            packer.uint(id);
            packer.binary(b"HTTP/1.1 200 OK\r\n");
        }
        3 | 5 => packer.uint(id),
        1 | 2 => {
            packer.array(2);
            packer.uint(id);
            packer.array(0);
        }
        _ => {
            packer.array(3);
            packer.uint(id);
            packer.binary(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n");
            packer.binary(b"x");
        }
    }
    packer.bytes
}

fn ids(front: &Front) -> Vec<u64> {
    front.slots.taken().iter().filter_map(|slot| front.slots.get(*slot)).map(|one| one.id).collect()
}

/// What all connections hold, added up anew; and that each is in a state that can be.
fn held(front: &Front) -> Held {
    let mut sum = Held::default();
    for slot in front.slots.taken() {
        let Some(one) = front.slots.get(slot) else { continue };
        assert_eq!(one.counted, one.held(), "{one:?}");
        sum.part += one.counted.part;
        sum.asked += one.counted.asked;
        sum.parts += one.counted.parts;
        assert_eq!(one.asked.is_some(), one.state == State::Asked, "{one:?}");
        assert!(one.coming.is_none() || matches!(one.state, State::Asked | State::Dropping), "{one:?}");
        assert!(one.asked.as_ref().is_none_or(|asked| asked.bytes <= one.input.len()), "{one:?}");
    }
    sum
}

fn step(front: &mut Front, clients: &mut Vec<TcpStream>, chance: &mut Chance, address: std::net::SocketAddr) {
    match chance.below(12) {
        0 if clients.len() < MOST => {
            let client = TcpStream::connect(address).expect("a connection");
            client.set_nonblocking(true).expect("a socket");
            clients.push(client);
        }
        1 if !clients.is_empty() => drop(clients.swap_remove(chance.below(clients.len()))),
        2..=6 if !clients.is_empty() => {
            let at = chance.below(clients.len());
            // One that was refused can't be written to.
            let _ = clients[at].write(PIECES[chance.below(PIECES.len())]);
            match clients[at].read(&mut [0; 4096]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Ok(1..) => {}
                _ => drop(clients.swap_remove(at)),
            }
        }
        7 | 8 => {
            let ids = ids(front);
            if !ids.is_empty() {
                let id = ids[chance.below(ids.len())];
                front.answer(&deed(chance, id));
            }
        }
        9 => {
            let taken = front.slots.taken();
            if !taken.is_empty() {
                front.receive(taken[chance.below(taken.len())], &mut [0; 64]);
            }
        }
        10 if chance.below(50) == 0 => {
            front.tick(Duration::from_millis(chance.below(20) as u64), Duration::from_millis(1));
        }
        _ => {
            front.look();
            front.batch.take();
        }
    }
}

#[test]
fn whatever_clients_and_python_do_it_goes_on_and_counts_right() {
    for round in 0..3 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let reads = if round == 1 { Reads::Nothing } else { Reads::All };
        let mut front = Front::new(listener, b"p", reads, false, MOST - 2).expect("a front");
        // 5 ms of each kind, and so little room that some give way.
        front.bounds = Bounds::of([5, 5, 5, 1000, 5, 400, 3, 300, 100, 0]);
        let (mut clients, mut chance) = (Vec::new(), Chance(SEED + round));
        for number in 0..STEPS {
            step(&mut front, &mut clients, &mut chance, address);
            assert_eq!(held(&front), front.held, "after {number} of round {round}");
        }
        assert!(front.gave_way > 0 && front.door.refused > 0, "{} {}", front.gave_way, front.door.refused);
        clients.clear();
        for _ in 0..1000 {
            front.look();
            front.batch.take();
            front.tick(Duration::ZERO, Duration::ZERO);
            if front.slots.len() == 0 {
                break;
            }
            for id in ids(&front) {
                front.answer(&deed(&mut chance, id));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!((front.slots.len(), front.held), (0, Held::default()));
    }
}
