//! Addresses of brokers' names.
//!
//! The system's resolver waits, and only metadata says which names there are. So a name is looked up in
//! a thread that ends with its answer, and a socket wakes the caller's poll. Python would not do it
//! sooner: its lock may be taken when a broker has to be found. An address in place of a name, as the
//! embedded Kafka has, needs no thread.

use std::io::{Read, Result, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;

use mio::{Interest, Registry, Token};

/// The place of who has asked, and the addresses, or why there are none.
pub type Found = (usize, std::result::Result<Vec<SocketAddr>, String>);

pub struct Names {
    heard: mio::net::UnixStream,
    wakes: Arc<UnixStream>,
    send: Sender<Found>,
    found: Receiver<Found>,
}

impl Names {
    pub fn new(registry: &Registry, token: Token) -> Result<Self> {
        let (heard, wakes) = UnixStream::pair()?;
        heard.set_nonblocking(true)?;
        wakes.set_nonblocking(true)?;
        let mut heard = mio::net::UnixStream::from_std(heard);
        registry.register(&mut heard, token, Interest::READABLE)?;
        let (send, found) = channel();
        Ok(Self { heard, wakes: Arc::new(wakes), send, found })
    }

    /// Asks for the addresses of a host, for `place`; `found` has them, sooner or later.
    pub fn ask(&self, place: usize, host: &str, port: u16) {
        if let Ok(address) = host.parse::<IpAddr>() {
            let _ = self.send.send((place, Ok(vec![SocketAddr::new(address, port)])));
            return;
        }
        let (host, send, wakes) = (host.to_owned(), self.send.clone(), self.wakes.clone());
        let look_up = move || {
            let found =
                (host.as_str(), port).to_socket_addrs().map(Iterator::collect).map_err(|error| error.to_string());
            // Nobody listens any more when the producer has ended; a full socket wakes as well.
            let _ = send.send((place, found));
            let _ = (&*wakes).write(&[0]);
        };
        if let Err(error) = std::thread::Builder::new().name("lw-resolve".to_owned()).spawn(look_up) {
            let _ = self.send.send((place, Err(error.to_string())));
        }
    }

    /// Returns an answer that has come.
    pub fn found(&mut self) -> Option<Found> {
        self.found.try_recv().ok()
    }

    /// Empties the socket; call it when it is readable.
    pub fn hear(&mut self) {
        let mut scratch = [0; 64];
        while matches!(self.heard.read(&mut scratch), Ok(1..)) {}
    }
}
