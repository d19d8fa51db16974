//! What Python tells the plane and asks of it, by the numbers of `numbers`.

use std::collections::HashSet;
use std::time::Instant;

use super::numbers::{asked, told};
use crate::net::front::Front;
use crate::pack::{NotThere, Packer, Read, Unpacker};

impl Front {
    /// Takes in what Python tells; without a plane nothing.
    pub fn hear(&mut self, what: u32, told: &mut Unpacker) -> Read<()> {
        match what {
            told::CLOCK => self.with_plane(|plane, _, _| plane.set_clock(told)).unwrap_or(Ok(())),
            told::OPEN => self.with_plane(|plane, _, now| plane.open(told, now)).unwrap_or(Ok(())),
            told::DRAIN => self.with_plane(|plane, _, _| plane.drain(told)).unwrap_or(Err(NotThere)),
            told::ROUTE => self.learn_route(told),
            told::CLOSE | told::WOKEN | told::EMPTY | told::WATCH => self.hear_of_queue(what, told),
            told::ADMIT | told::SHUT | told::LEAVE => self.hear_of_link(what, told),
            told::RETELL => {
                let lanes = (0..told.array()?).map(|_| told.uint()).collect::<Read<HashSet<u64>>>()?;
                self.batch.forget_these(&lanes);
                Ok(())
            }
            told::GRANT | told::GRANT_DELAYS => {
                told.array()?;
                let (queue, many, valid) = (told.uint()?, told.uint()?, told.millis()?);
                self.with_plane(|plane, _, now| {
                    let allowances = if what == told::GRANT { &mut plane.allowances } else { &mut plane.delays };
                    allowances.grant(queue, many, valid, now);
                });
                Ok(())
            }
            told::JOURNALED => {
                told.array()?;
                let (number, why) = (told.uint()?, String::from_utf8_lossy(told.bytes()?).into_owned());
                self.with_plane(|plane, front, now| plane.journaled(front, number, &why, now));
                Ok(())
            }
            told::LEARNT => {
                let now = Instant::now();
                (0..told.array()?).try_for_each(|_| told.uint().map(|lane| self.learnt(lane, now)))
            }
            told::STOP => {
                self.with_plane(|plane, front, now| plane.stop(front, now));
                Ok(())
            }
            _ => Err(NotThere),
        }
    }

    fn hear_of_queue(&mut self, what: u32, told: &mut Unpacker) -> Read<()> {
        if what == told::CLOSE {
            self.close_queue(told.uint()?);
            return Ok(());
        }
        told.array()?;
        let (queue, next) = (told.uint()?, told.uint()?);
        match what {
            told::WOKEN => {
                let head_ms = told.uint()? as i64;
                self.with_plane(|plane, _, now| plane.woken(queue, next as usize, head_ms, now));
            }
            told::EMPTY => {
                let pause = told.millis()?;
                self.with_plane(|plane, _, now| plane.empty_stock(queue, next as u16, pause, now));
            }
            _ => drop(self.with_plane(|plane, _, _| plane.watch(queue, next > 0))),
        }
        Ok(())
    }

    /// The connection to Redis.
    fn hear_of_link(&mut self, what: u32, told: &mut Unpacker) -> Read<()> {
        match what {
            told::ADMIT => {
                told.array()?;
                let (link, until) = (told.uint()?, told.bytes()?);
                let until = std::str::from_utf8(until).ok().and_then(|until| until.parse().ok()).ok_or(NotThere)?;
                self.with_plane(|plane, _, _| plane.calls.caller.admit(link, until));
            }
            told::LEAVE => {
                let link = told.uint()?;
                self.with_plane(|plane, _, _| plane.calls.caller.leave(link, "Python has another server"));
            }
            _ => drop(self.with_plane(|plane, _, _| plane.calls.caller.shut())),
        }
        Ok(())
    }

    /// Requests of a lane are the plane's from now on.
    fn learn_route(&mut self, told: &mut Unpacker) -> Read<()> {
        let (lane, route) = crate::plane::told::route(told, Instant::now())?;
        self.planes.routes.learn(lane, route, || self.batch.known_lanes());
        Ok(())
    }

    /// The plane serves a queue no more.
    fn close_queue(&mut self, queue: u64) {
        let lanes = self.planes.routes.forget_queue(queue);
        self.batch.forget_these(&lanes);
        self.with_plane(|plane, front, now| plane.close(front, queue, now));
    }

    /// No request is the plane's until its lane is told again, nor those that wait.
    pub fn forget_routes(&mut self) {
        self.planes.routes.forget();
        self.with_plane(|plane, front, _| plane.pass_waiters(front));
    }

    /// Answers what Python asks.
    pub fn say(&mut self, what: u32, packer: &mut Packer) {
        if what == asked::WHYS {
            return self.planes.whys.take(packer);
        }
        let Some(plane) = &mut self.planes.plane else { return packer.array(0) };
        match what {
            asked::COUNTS => plane.take_counts(packer),
            asked::WAITING => plane.waiting(packer),
            asked::RETURNING => plane.returning(packer),
            asked::WAITS => plane.waits.tell(packer),
            asked::TIMES => plane.times.take(packer),
            asked::OF_LANES => plane.take_of_lanes(packer),
            asked::STORED => plane.take_stored(packer),
            asked::WAITERS => plane.waiters(packer),
            asked::UNHEARD => plane.unheard.take(packer),
            asked::CALLS => {
                packer.array(1);
                packer.uint(plane.calls.begun);
            }
            asked::ALLOWANCES => plane.allowances.take_all(packer, Instant::now()),
            _ => packer.array(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Whose;
    use crate::net::front::Reads;
    use crate::requests::Dialect;

    #[test]
    fn lanes_are_told_again_when_python_says_so() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut front = Front::new(listener, b"", Reads::All, false, 1).expect("a front");
        let whose = Whose { dialect: Dialect::Sqs, host: b"host", path: b"/", signer: b"" };
        let lanes = [b"a", b"b"].map(|url| front.batch.lane(whose, url));
        let mut told = Packer::default();
        told.array(1);
        told.uint(lanes[0]);
        front.hear(told::RETELL, &mut Unpacker::new(&told.bytes)).expect("told");
        assert_ne!(front.batch.lane(whose, b"a"), lanes[0]);
        assert_eq!(front.batch.lane(whose, b"b"), lanes[1]);
    }
}
