//! Which lanes the plane serves requests of, and which of their verbs, as Python has told.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use crate::batch::LANES;
use crate::plane::routes::{Route, MAY_ACK, MAY_EXTEND, MAY_RECEIVE, MAY_RELEASE, MAY_SEND};
use crate::plane::unit::Act;
use crate::requests::Verb;

/// Routes are looked through when there are so many: the batch knows half as many lanes.
const MOST: usize = 2 * LANES;

/// The bit of a route that lets the plane serve a verb.
pub fn may(verb: Verb) -> u8 {
    match verb.act() {
        _ if verb.is_send() => MAY_SEND,
        None => MAY_RECEIVE,
        Some(Act::Ack) => MAY_ACK,
        Some(Act::Extend) => MAY_EXTEND,
        Some(Act::Release) => MAY_RELEASE,
    }
}

/// By their lanes.
#[derive(Default)]
pub struct Routes(HashMap<u64, Route>);

impl Routes {
    /// Whether the plane may serve requests of a lane that have this verb.
    pub fn lets(&self, lane: u64, verb: Verb) -> bool {
        self.0.get(&lane).is_some_and(|route| route.verbs & may(verb) > 0)
    }

    /// The route of a lane, while what Python has found holds.
    pub fn of(&self, lane: u64, now: Instant) -> Option<&Route> {
        self.0.get(&lane).filter(|route| route.valid_until.is_none_or(|until| now < until))
    }

    /// Requests of a lane are the plane's from now on. `known`: the lanes that requests may name.
    pub fn learn(&mut self, lane: u64, route: Route, known: impl FnOnce() -> HashSet<u64>) {
        if self.0.len() >= MOST {
            let known = known();
            self.0.retain(|lane, _| known.contains(lane));
        }
        self.0.insert(lane, route);
    }

    /// Forgets a queue, and returns its lanes.
    pub fn forget_queue(&mut self, queue: u64) -> HashSet<u64> {
        let lanes: HashSet<u64> =
            self.0.iter().filter(|(_, route)| route.queue == queue).map(|(lane, _)| *lane).collect();
        self.0.retain(|lane, _| !lanes.contains(lane));
        lanes
    }

    pub fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Whose;
    use crate::net::front::{Front, Reads};
    use crate::net::numbers::told;
    use crate::pack::{Packer, Unpacker};
    use crate::requests::Dialect;

    #[test]
    fn routes_of_lanes_that_are_forgotten_are_forgotten_too() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut front = Front::new(listener, b"", Reads::All, false, 1).expect("a front");
        for number in 0..3 * LANES {
            let whose = Whose { dialect: Dialect::Sqs, host: b"host", path: b"/", signer: b"" };
            let lane = front.batch.lane(whose, number.to_string().as_bytes());
            let mut told = Packer::default();
            told.array(15);
            [lane, 1, 0, 7, 1, 10, 0, 0].iter().for_each(|number| told.uint(*number));
            told.array(0);
            told.binary(b"me");
            [1000, 1000, 0, 0, 0].iter().for_each(|number| told.uint(*number));
            front.hear(told::ROUTE, &mut Unpacker::new(&told.bytes)).expect("told");
            assert!(front.planes.routes.lets(lane, Verb::Receive));
        }
        assert!(front.planes.routes.0.len() <= MOST);
    }
}
