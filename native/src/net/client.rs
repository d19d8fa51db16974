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
}

impl Client {
    /// A connection that was accepted; None = TLS can't be begun on it.
    pub fn new(stream: TcpStream, tls: Option<&Arc<ServerConfig>>) -> Option<Self> {
        let session = match tls {
            Some(config) => Some(Box::new(ServerConnection::new(config.clone()).ok()?)),
            None => None,
        };
        Some(Self { stream, session })
    }

    pub fn source(&mut self) -> &mut impl Source {
        &mut self.stream
    }

    /// Both ends' addresses and ports.
    pub fn ends(&self) -> [Option<SocketAddr>; 2] {
        [self.stream.local_addr().ok(), self.stream.peer_addr().ok()]
    }

    pub fn is_tls(&self) -> bool {
        self.session.is_some()
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
        let Some(session) = &mut self.session else { return Ok(()) };
        while session.wants_write() {
            match session.write_tls(&mut self.stream) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
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
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(session) = &mut self.session else { return self.stream.read(room) };
            match session.reader().read(room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // A client that ends without saying so has ended all the same.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            session.read_tls(&mut self.stream)?;
            if let Err(error) = session.process_new_packets() {
                let _ = self.flush(); // the alert that says why
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
            match self.flush() {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
    }
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.session.is_none() {
            return self.stream.write(bytes);
        }
        self.flush()?; // what waits is bounded by what TLS makes of one call
        let Some(session) = &mut self.session else { return Ok(0) };
        let size = session.writer().write(bytes)?;
        match self.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(size),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Client::flush(self)
    }
}
