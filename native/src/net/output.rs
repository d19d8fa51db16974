//! What a connection holds: how much of what its client has sent, and what was written to it and has not
//! left.

use std::io::{Error, ErrorKind, Result, Write};

use crate::net::client::Client;

/// Bytes that wait to be sent before Python is told to wait; it hears when all have left.
pub const MOST_BYTES: usize = 64 * 1024;
/// Room that an idle connection keeps.
const KEPT_BYTES: usize = 16 * 1024;

#[derive(Debug, Default)]
pub struct Output {
    pub bytes: Vec<u8>,
    sent: usize,
    /// Our side ends when all has left.
    pub ends: bool,
}

impl Output {
    pub fn unsent(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Sends what can be sent now; an error: nothing that is written arrives any more.
    pub fn send(&mut self, stream: &mut Client) -> Result<()> {
        match self.send_all(stream) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if self.sent > MOST_BYTES {
                    self.bytes.drain(..self.sent);
                    self.sent = 0;
                }
                Ok(())
            }
            Err(error) => {
                self.bytes.clear();
                self.sent = 0;
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    fn send_all(&mut self, stream: &mut Client) -> Result<()> {
        while self.sent < self.bytes.len() {
            match stream.write(&self.bytes[self.sent..]) {
                Ok(0) => return Err(Error::from(ErrorKind::WriteZero)),
                Ok(size) => self.sent += size,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.sent = 0;
        stream.flush()?;
        if std::mem::take(&mut self.ends) {
            stream.shutdown();
        }
        Ok(())
    }
}

/// Bytes of a connection's input: of a part of a request, or of what is asked and all that came with
/// it; and whether there is a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub part: usize,
    pub asked: usize,
    pub parts: usize,
}

impl Held {
    /// Counts one connection in a sum by what it holds now.
    pub fn replace(&mut self, counted: &mut Self, now: Self) {
        let before = std::mem::replace(counted, now);
        self.part = self.part + now.part - before.part;
        self.asked = self.asked + now.asked - before.asked;
        self.parts = self.parts + now.parts - before.parts;
    }
}
