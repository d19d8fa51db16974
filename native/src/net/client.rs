//! The socket of a client's connection, in the clear or in TLS. Nothing here waits.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use mio::event::Source;
use mio::net::TcpStream;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

/// Of what is read at once from a socket that is encrypted: a record of TLS, about.
const RECORD_BYTES: usize = 16 * 1024;

/// Returns the settings of connections that show a certificate, with its chain, and its key, in PEM;
/// or what is wrong with these.
pub fn config(certificates: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, String> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the certificate can't be read: {error}"))?;
    if chain.is_empty() {
        return Err("there is no certificate in the file".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| format!("there is no key that can be read without a password: {error}"))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| format!("the certificate can't be used with the key: {error}"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    session: Option<Box<ServerConnection>>,
    is_drained: bool,
}

impl Client {
    /// A connection that was accepted; None = TLS can't be begun on it.
    pub fn new(stream: TcpStream, tls: Option<&Arc<ServerConfig>>) -> Option<Self> {
        let session = match tls {
            Some(config) => Some(Box::new(ServerConnection::new(config.clone()).ok()?)),
            None => None,
        };
        Some(Self { stream, session, is_drained: false })
    }

    pub fn source(&mut self) -> &mut impl Source {
        &mut self.stream
    }

    /// Both ends' addresses and ports.
    pub fn ends(&self) -> [Option<SocketAddr>; 2] {
        [self.stream.local_addr().ok(), self.stream.peer_addr().ok()]
    }

    /// Whether the last read has found all that had come: the system tells of more.
    pub fn is_drained(&self) -> bool {
        self.is_drained
    }

    pub fn is_handshaking(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_handshaking())
    }

    /// Whether something that was written has not left.
    pub fn holds_output(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.wants_write())
    }

    /// Sends what TLS has to send.
    pub fn flush(&mut self) -> io::Result<()> {
        self.session.as_mut().map_or(Ok(()), |session| send(session, &mut self.stream))
    }

    /// Says that nothing more will be written, as far as there is room to say it.
    pub fn say_end(&mut self) {
        if let Some(session) = self.session.as_mut().filter(|session| !session.is_handshaking()) {
            session.send_close_notify();
            let _ = self.flush(); // the client finds out all the same
        }
    }

    /// Ends our side.
    pub fn shutdown(&mut self) {
        self.say_end();
        // A client that has gone needs no end; we hear of it when we read.
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

impl AsRawFd for Client {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

impl Read for Client {
    /// Reads what has come, as far as there is room for it; `is_drained` says whether that was all.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(session) = &mut self.session else {
            let size = self.stream.read(room)?;
            self.is_drained = size < room.len();
            return Ok(size);
        };
        self.is_drained = false;
        let mut filled = 0;
        loop {
            if decrypted(session, room, &mut filled)? || filled == room.len() {
                self.is_drained = false; // the next call says that it has ended, or has more
                return Ok(filled);
            }
            if self.is_drained && filled > 0 {
                return Ok(filled);
            }
            // Behind a part of a record the end may stand, of which the system has told already.
            self.is_drained = match take_in(session, &mut self.stream, room, &mut filled) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && filled > 0 => true,
                Err(error) if error.kind() == ErrorKind::Interrupted => false,
                is_short => is_short?,
            };
        }
    }
}

/// Moves what was decrypted to `room`, behind what is there. Returns whether the client has ended.
fn decrypted(session: &mut ServerConnection, room: &mut [u8], filled: &mut usize) -> io::Result<bool> {
    while *filled < room.len() {
        match session.reader().read(&mut room[*filled..]) {
            Ok(0) => return Ok(true),
            Ok(size) => *filled += size,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            // A client that ends without saying so has ended all the same.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Reads from the socket once, and decrypts that. Returns whether there was less than might have been.
fn take_in(
    session: &mut ServerConnection,
    stream: &mut TcpStream,
    room: &mut [u8],
    filled: &mut usize,
) -> io::Result<bool> {
    if room.len() - *filled < 3 * RECORD_BYTES {
        // What comes of it may not have room here, and the session holds no more than it takes by itself.
        session.read_tls(stream)?;
        return process(session, stream).map(|()| false);
    }
    let mut encrypted = [0; RECORD_BYTES];
    let size = stream.read(&mut encrypted)?;
    let mut piece = &encrypted[..size];
    loop {
        let taken = session.read_tls(&mut piece)?;
        process(session, stream)?;
        // What comes behind the end that a client has said counts for nothing.
        if taken == 0 || piece.is_empty() || decrypted(session, room, filled)? {
            return Ok(size < RECORD_BYTES);
        }
    }
}

/// Decrypts what the session was given, and sends what TLS says to that.
fn process(session: &mut ServerConnection, stream: &mut TcpStream) -> io::Result<()> {
    if let Err(error) = session.process_new_packets() {
        let _ = send(session, stream); // the alert that says why
        return Err(io::Error::new(ErrorKind::InvalidData, error));
    }
    send_some(session, stream)
}

/// Sends what TLS has to send, as far as the socket takes it now.
fn send_some(session: &mut ServerConnection, stream: &mut TcpStream) -> io::Result<()> {
    match send(session, stream) {
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
        _ => Ok(()),
    }
}

/// Sends what TLS has to send.
fn send(session: &mut ServerConnection, stream: &mut TcpStream) -> io::Result<()> {
    while session.wants_write() {
        match session.write_tls(stream) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.session.is_none() {
            return self.stream.write(bytes);
        }
        self.flush()?; // what waits is bounded by what TLS makes of one call
        let Some(session) = &mut self.session else { return Ok(0) };
        let size = session.writer().write(bytes)?;
        send_some(session, &mut self.stream).map(|()| size)
    }

    fn flush(&mut self) -> io::Result<()> {
        Client::flush(self)
    }
}
