//! A connection to a server: TCP or a unix socket, encrypted or not. Nothing here waits.
//! `Ready` is what the poll says of a socket.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use mio::event::{Event, Source};
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

/// What is handed to TLS before it has left.
const CHUNK_BYTES: usize = 64 * 1024;

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

pub struct Stream {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
}

impl Stream {
    /// Begins to connect; `open` says when that is done. `tls` names the host whose certificate is
    /// wanted.
    pub fn tcp(address: SocketAddr, tls: Option<(&Arc<ClientConfig>, &str)>) -> Result<Self> {
        let tls = tls.map(|(config, host)| {
            let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
            ClientConnection::new(config.clone(), name).map(Box::new).map_err(std::io::Error::other)
        });
        let tls = tls.transpose()?;
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { socket: Socket::Tcp(stream), tls })
    }

    pub fn unix(path: &str) -> Result<Self> {
        Ok(Self { socket: Socket::Unix(UnixStream::connect(path)?), tls: None })
    }

    pub fn register(&mut self, registry: &Registry, token: Token) -> Result<()> {
        self.socket.source().register(registry, token, Interest::READABLE | Interest::WRITABLE)
    }

    /// Has the next poll tell once more what is ready.
    pub fn tell_again(&mut self, registry: &Registry, token: Token) -> Result<()> {
        self.socket.source().reregister(registry, token, Interest::READABLE | Interest::WRITABLE)
    }

    /// Whether it is connected, and TLS has agreed on its keys. To be called again when the socket is
    /// ready.
    pub fn open(&mut self) -> Result<bool> {
        if !self.socket.is_connected()? {
            return Ok(false);
        }
        let Some(tls) = &mut self.tls else { return Ok(true) };
        match shake_hands(tls, &mut self.socket) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads what has come; 0 = the other side has ended.
    pub fn read(&mut self, room: &mut [u8]) -> Result<usize> {
        match &mut self.tls {
            None => self.socket.read(room),
            Some(tls) => read_tls(tls, &mut self.socket, room),
        }
    }

    /// Whether there is something to read of which no event tells.
    pub fn holds_input(&mut self) -> bool {
        let Some(tls) = &mut self.tls else { return false };
        tls.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
    }

    /// Whether bytes that `write` took may leave later.
    pub fn holds_output(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Writes what can be written now. Returns how many bytes of `output` it took: also when an error
    /// came behind some, which the next call meets again. Who does not know that they left would send
    /// them twice.
    pub fn write(&mut self, output: &[u8]) -> Result<usize> {
        let mut written = 0;
        loop {
            let size = match &mut self.tls {
                None if written == output.len() => return Ok(written),
                None => self.socket.write(&output[written..]),
                Some(tls) if tls.wants_write() => tls.write_tls(&mut self.socket).map(|_| 0),
                Some(_) if written == output.len() => return Ok(written),
                Some(tls) => tls.writer().write(&output[written..output.len().min(written + CHUNK_BYTES)]),
            };
            match size {
                Ok(size) => written += size,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(written),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) if written > 0 => return Ok(written),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Fails with WouldBlock until it is done.
fn shake_hands(tls: &mut ClientConnection, socket: &mut Socket) -> Result<()> {
    loop {
        while tls.wants_write() {
            tls.write_tls(socket)?;
        }
        if !tls.is_handshaking() {
            return Ok(());
        }
        take_in(tls, socket)?;
    }
}

fn read_tls(tls: &mut ClientConnection, socket: &mut Socket, room: &mut [u8]) -> Result<usize> {
    loop {
        match tls.reader().read(room) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // It did not say so before; what the bytes mean says whether something is missing.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
            other => return other,
        }
        take_in(tls, socket)?;
    }
}

fn take_in(tls: &mut ClientConnection, socket: &mut Socket) -> Result<()> {
    if tls.read_tls(socket)? == 0 && tls.is_handshaking() {
        return Err(std::io::Error::new(ErrorKind::UnexpectedEof, "the server hung up while TLS was agreed on"));
    }
    if let Err(error) = tls.process_new_packets() {
        // The other side hears why, if it listens.
        let _ = tls.write_tls(socket);
        return Err(std::io::Error::new(ErrorKind::InvalidData, error));
    }
    Ok(())
}

impl Socket {
    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
        }
    }

    fn is_connected(&self) -> Result<bool> {
        let (error, peer) = match self {
            Self::Tcp(stream) => (stream.take_error()?, stream.peer_addr().map(drop)),
            Self::Unix(stream) => (stream.take_error()?, stream.peer_addr().map(drop)),
        };
        match (error, peer) {
            (Some(error), _) => Err(error),
            (None, Ok(())) => Ok(true),
            (None, Err(error)) if error.kind() == ErrorKind::NotConnected => Ok(false),
            (None, Err(error)) => Err(error),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, room: &mut [u8]) -> Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(room),
            Self::Unix(stream) => stream.read(room),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

pub struct Ready {
    pub token: Token,
    pub is_readable: bool,
    pub has_end: bool,
    pub is_writable: bool,
}

impl Ready {
    pub fn of(event: &Event) -> Self {
        Self {
            token: event.token(),
            is_readable: event.is_readable(),
            has_end: event.is_read_closed() || event.is_error(),
            is_writable: event.is_writable(),
        }
    }
}
