//! For tests: all requests of a stream, read as a connection reads them.

use crate::http::body::Body;
use crate::http::head::{self, Found};
use crate::http::refusal::Refusal;
use crate::pack::Packer;

/// How a stream ends: after a request, in one, by what closes the connection, or by what is refused.
#[derive(Debug)]
pub enum End {
    Whole,
    Part,
    Closed,
    Refused(Refusal),
}

/// Reads a stream that comes in pieces of `step` bytes. Returns its requests as MessagePack, `[method,
/// target, is HTTP/1.0, [name, value, ...], body]` each, their number, and how it ends.
pub fn requests(stream: &[u8], step: usize) -> (Vec<u8>, usize, End) {
    let mut found = Vec::new();
    let (mut number, mut input, mut at) = (0, Vec::new(), 0);
    loop {
        match next(stream, step.max(1), &mut input, &mut at) {
            Ok((request, keeps)) => {
                number += 1;
                found.extend_from_slice(&request);
                if !keeps {
                    return (found, number, End::Closed);
                }
            }
            Err(end) => return (found, number, end),
        }
    }
}

/// The same as MessagePack: an array of requests, and nil, 0 = a part is left, 1 = nothing may follow,
/// or `[status, text]`.
pub fn packed(stream: &[u8], step: usize) -> Vec<u8> {
    let (found, number, end) = requests(stream, step);
    let mut whole = Packer::default();
    whole.array(2);
    whole.array(number);
    whole.bytes.extend_from_slice(&found);
    match end {
        End::Whole => whole.bytes.push(0xc0),
        End::Part => whole.uint(0),
        End::Closed => whole.uint(1),
        End::Refused(refusal) => {
            whole.array(2);
            whole.uint(u64::from(refusal.status));
            whole.text(refusal.text.as_bytes());
        }
    }
    whole.bytes
}

/// Moves the next piece into the input.
fn come(stream: &[u8], step: usize, input: &mut Vec<u8>, at: &mut usize) -> Result<(), End> {
    if *at == stream.len() {
        return Err(if input.is_empty() { End::Whole } else { End::Part });
    }
    let end = (*at + step).min(stream.len());
    input.extend_from_slice(&stream[*at..end]);
    *at = end;
    Ok(())
}

fn next(stream: &[u8], step: usize, input: &mut Vec<u8>, at: &mut usize) -> Result<(Vec<u8>, bool), End> {
    let mut packer = Packer::default();
    let mut checked = 0;
    if input.is_empty() {
        come(stream, step, input, at)?;
    }
    let (bytes, framing) = loop {
        match head::read(input, &mut checked) {
            Found::Head(head) => {
                let headers: Vec<_> = head.headers().collect();
                packer.array(5);
                packer.binary(head.method);
                packer.binary(head.target);
                packer.uint(u64::from(head.framing.is_old));
                packer.array(2 * headers.len());
                for (name, value) in headers {
                    packer.lower(name);
                    packer.binary(value);
                }
                break (head.bytes, head.framing);
            }
            Found::Part => come(stream, step, input, at)?,
            Found::Refused(refusal) => return Err(End::Refused(refusal)),
        }
    };
    input.drain(..bytes);
    let (mut body, mut taken) = (Body::new(framing.length), Vec::new());
    loop {
        let found = body.take(input).map_err(End::Refused)?;
        taken.extend_from_slice(&input[..found.body]);
        input.drain(..found.used);
        if body.is_whole() {
            break;
        }
        come(stream, step, input, at).map_err(|_| End::Part)?;
    }
    packer.binary(&taken);
    Ok((packer.bytes, framing.keeps))
}
