"""An authority of a test, and certificates that it signs."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID


class Certificates:
    """An authority, and what it has signed: a server on 127.0.0.1 and a client; files below
    `folder`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of a test")])
        self.ca = self._write("ca", self._signed(self._name, self._key, ca=True), self._key)
        self.server = self.issue("server")
        self.client = self.issue("client")

    def issue(self, name: str, curve: ec.EllipticCurve | None = None) -> Path:
        """A certificate for 127.0.0.1 with its key in one file, of P-256 or of another curve."""
        key = ec.generate_private_key(curve or ec.SECP256R1())
        return self._write(
            name, self._signed(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key, ca=False), key
        )

    def locked(self, name: str, password: str) -> Path:
        """As `issue`, with the key behind a password."""
        whole = self.issue(name).read_bytes()
        key = serialization.load_pem_private_key(whole, None)
        hidden = serialization.BestAvailableEncryption(password.encode())
        path = self._folder / f"{name}.locked.pem"
        certificate = x509.load_pem_x509_certificate(whole).public_bytes(serialization.Encoding.PEM)
        path.write_bytes(
            certificate + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)
        )
        return path

    def packed(self, name: str, password: str) -> Path:
        """As `issue`, as a PKCS12 key store."""
        whole = self.issue(name).read_bytes()
        key = serialization.load_pem_private_key(whole, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        path, hidden = self._folder / f"{name}.p12", serialization.BestAvailableEncryption(password.encode())
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                name.encode(), key, x509.load_pem_x509_certificate(whole), None, hidden
            )
        )
        return path

    def _signed(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, ca: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if not ca:
            place = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            builder = builder.add_extension(x509.SubjectAlternativeName([place]), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Path:
        encoding, form, plain = (
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        path = self._folder / f"{name}.pem"
        path.write_bytes(certificate.public_bytes(encoding) + key.private_bytes(encoding, form, plain))
        return path
