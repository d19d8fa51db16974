"""The certificate that a worker serves, read again when its files change."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path

from facade.programs.stack.processes.errors import StackError

log = logging.getLogger("leaseway.worker")

HTTP, HTTP2 = "http/1.1", "h2"

_Stamp = tuple[tuple[int, int, int], ...]


class Certificate:
    """A certificate with its chain, and its key, in PEM. Connections that are there keep the one
    they began with.
    """

    def __init__(self, cert: str, key: str, protocol: str = HTTP) -> None:
        """`protocol` is what is spoken, by ALPN. Raises StackError for files that can't be used."""
        self._files = (cert, key)
        self._protocol = protocol
        # Told of each new one: the certificate with its chain, and its key, in PEM.
        self.renewed: Callable[[bytes, bytes], None] = lambda cert, key: None
        try:
            self._seen = self._stamp()
            self._current = _context(*self._files, protocol)
            # What the server listens with; each handshake is given the context of then.
            self.context = _context(*self._files, protocol)
        except (OSError, ValueError) as error:
            raise StackError(f"LEASEWAY_TLS_CERT and LEASEWAY_TLS_KEY ({cert}, {key}) can't be used: {error}") from None
        self.context.sni_callback = self._choose

    def renew(self) -> None:
        """Takes what the files have now, if they have changed. What can't be used is logged, and
        the certificate stays as it is until they change again.
        """
        try:
            stamp = self._stamp()
            if stamp == self._seen:
                return
            self._seen = stamp
            self._current = _context(*self._files, self._protocol)
            self.renewed(*self.pem())
        except (OSError, ValueError) as error:
            log.error("action=renew_certificate cert=%s error=%s", self._files[0], error)
        else:
            log.info("action=renew_certificate cert=%s", self._files[0])

    def pem(self) -> tuple[bytes, bytes]:
        """Returns what the files have. Raises OSError."""
        cert, key = (Path(file).read_bytes() for file in self._files)
        return cert, key

    def _stamp(self) -> _Stamp:
        return tuple((found.st_mtime_ns, found.st_size, found.st_ino) for found in map(os.stat, self._files))

    def _choose(self, handshake: ssl.SSLObject | ssl.SSLSocket, name: str | None, context: ssl.SSLContext) -> None:
        handshake.context = self._current


def certificate_of(cert: str, key: str, protocol: str = HTTP) -> Certificate | None:
    """Returns the certificate of two settings, for a protocol; None = there is none. Raises
    StackError for one without the other too.
    """
    if not cert and not key:
        return None
    if not cert or not key:
        raise StackError("LEASEWAY_TLS_CERT and LEASEWAY_TLS_KEY are both needed for HTTPS, or none of them")
    return Certificate(cert, key, protocol)


def _context(cert: str, key: str, protocol: str) -> ssl.SSLContext:
    """Raises OSError (ssl.SSLError too), ValueError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([protocol])
    context.load_cert_chain(cert, key, password=_no_password)
    return context


def _no_password() -> str:
    """OpenSSL would ask at the terminal."""
    raise ValueError("the key is encrypted")
