//! What a turn does with the socket: what the fence lets through is written, and replies are read.

use std::io::ErrorKind;
use std::time::Instant;

use super::calls::Command;
use super::link::{Link, Stage};
use super::resp::Reply;
use super::{Failure, News, Redis, HALF_SENT};

/// How much is read before others have their turn.
const READ_AT_ONCE: usize = 4 * 1024 * 1024;
/// How often a call is made again because Redis forgot its script meanwhile.
const MOST_LOADS: usize = 5;
const UNCONFIRMED: &str = "Kafka did not confirm in time that this Redis is the one in use";

impl Redis {
    pub(super) fn serve(&mut self, link: &mut Link, registry: &mio::Registry, buffer: &mut [u8]) -> Result<(), String> {
        if !link.open(&self.address, Instant::now()).map_err(|error| error.to_string())? {
            return Ok(());
        }
        self.write(link)?;
        let mut read = 0;
        while read < READ_AT_ONCE || link.stream.holds_input() {
            match link.stream.read(buffer) {
                Ok(0) => return Err("Redis closed the connection".into()),
                Ok(size) => {
                    read += size;
                    link.note_heard(Instant::now());
                    self.read(link, &buffer[..size])?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.write(link),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        link.stream.tell_again(registry, self.token).map_err(|error| error.to_string())?;
        self.write(link)
    }

    /// Writes what was begun, unless its time is over: then it is not sent.
    pub(super) fn write(&mut self, link: &mut Link) -> Result<(), String> {
        if let Some(token) = link.calls.take_unfinished() {
            self.answer(token, Err(Failure::NotSent));
        }
        match link.stage {
            Stage::Connecting => return Ok(()),
            Stage::Greeted if link.would_write() && !self.is_in_time() => return self.hold_back(link),
            _ => {}
        }
        link.write().map_err(|error| error.to_string())
    }

    /// Fails when a command was written in part: Redis must not get the other one.
    fn hold_back(&mut self, link: &mut Link) -> Result<(), String> {
        let mut ended = Vec::new();
        let is_partial = link.hold_back(&mut ended);
        ended.iter().for_each(|call| self.answer(call.token, Err(Failure::NotSent)));
        if is_partial {
            return Err(HALF_SENT.into());
        }
        Ok(())
    }

    fn read(&mut self, link: &mut Link, mut input: &[u8]) -> Result<(), String> {
        while let Some(reply) = link.parser.next(&mut input)? {
            self.heard(link, reply)?;
        }
        Ok(())
    }

    fn heard(&mut self, link: &mut Link, reply: Reply) -> Result<(), String> {
        match link.calls.next_answered() {
            None => return Err("Redis sent a reply that nothing has asked for".into()),
            Some(Command::Greeting) => {
                if let Some(info) = link.greeted(reply)? {
                    self.news.push_back(News::Greeted { link: link.number, info });
                }
            }
            // Why a script could not be loaded is no matter: its call tells.
            Some(Command::Load(_) | Command::Forgotten) => {}
            Some(Command::Call { token, unknown, .. }) => {
                let (is_in_time, is_unknown) = (self.is_in_time(), unknown < MOST_LOADS && is_no_script(&reply));
                if is_in_time && is_unknown {
                    link.calls.again(&self.scripts);
                    return Ok(());
                }
                self.answer(
                    token,
                    match reply {
                        _ if is_unknown => Err(Failure::NotSent),
                        _ if !is_in_time => Err(Failure::Unknown(UNCONFIRMED.into())),
                        Reply::Error(text) => Err(Failure::Refused(String::from_utf8_lossy(&text).into_owned())),
                        reply => Ok(reply),
                    },
                );
            }
        }
        link.calls.answered();
        Ok(())
    }

    pub(super) fn answer(&mut self, token: u64, outcome: Result<Reply, Failure>) {
        self.news.push_back(News::Answer { token, outcome });
    }
}

/// Whether Redis does not know the script, and so did nothing.
fn is_no_script(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with(b"NOSCRIPT"))
}
