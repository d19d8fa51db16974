//! How connections to servers are encrypted: authorities, our certificate, what is checked.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::ring::default_provider;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// What of a server's certificate is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Checks {
    /// That an authority has signed it, and that it is of the host that was dialled.
    #[default]
    All,
    /// That an authority has signed it.
    Authority,
    Nothing,
}

/// Certificates and a key in PEM, and what is checked.
#[derive(Debug, Default)]
pub struct Trust {
    pub authorities: Vec<u8>,
    /// Both are empty when a client shows no certificate.
    pub certificates: Vec<u8>,
    pub key: Vec<u8>,
    pub checks: Checks,
    /// Whether it must be TLS 1.3; else it is 1.2 or 1.3.
    pub is_newest: bool,
}

/// Returns the settings of all connections, or what is wrong and why.
pub fn config(trust: &Trust) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust.checks {
        Checks::All => verifier(trust, &provider)?,
        checks => Arc::new(Lenient { known: verifier(trust, &provider).ok(), checks, provider: provider.clone() }),
    };
    let versions = if trust.is_newest { &[&TLS13][..] } else { &[&TLS12, &TLS13] };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    if trust.certificates.is_empty() {
        return Ok(Arc::new(builder.with_no_client_auth()));
    }
    let key = PrivateKeyDer::from_pem_slice(&trust.key)
        .map_err(|error| format!("there is no key that can be read without a password: {error}"))?;
    let shown = certificates(&trust.certificates)?;
    builder.with_client_auth_cert(shown, key).map(Arc::new).map_err(|error| format!("the certificate: {error}"))
}

fn verifier(trust: &Trust, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, String> {
    let mut roots = RootCertStore::empty();
    let (known, _) = roots.add_parsable_certificates(certificates(&trust.authorities)?);
    if known == 0 {
        return Err("there is no certificate of an authority".to_owned());
    }
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    builder.build().map_err(|error| format!("the authorities: {error}"))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|error| format!("a certificate: {error}"))
}

/// Takes a certificate of a known authority for any host, or any certificate.
#[derive(Debug)]
struct Lenient {
    known: Option<Arc<WebPkiServerVerifier>>,
    checks: Checks,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let known = match &self.known {
            _ if self.checks == Checks::Nothing => return Ok(ServerCertVerified::assertion()),
            None => return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
            Some(known) => known,
        };
        match known.verify_server_cert(certificate, between, name, ocsp, now) {
            // The name is looked at last, when all else was found good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
