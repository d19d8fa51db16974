"""How a client has called this worker: the scheme, host and port that URLs begin with which it is
told.

Behind a proxy that ends TLS they are in X-Forwarded-Proto, -Host and -Port; anybody can send such
headers, so they count only with the setting `trust_proxy`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from starlette.types import Scope

_HOST: Final = re.compile(rb"(?P<name>[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::(?P<port>[0-9]{1,5}))?")
_USUAL_PORTS: Final = {b"http": b"80", b"https": b"443"}


def base_of(scope: Scope, headers: Mapping[bytes, bytes], *, trusted: bool) -> bytes:
    """Scheme, host and port as the client called us; `trusted` = a proxy before us says so."""
    scheme: bytes = scope["scheme"].encode("ascii")
    host = headers.get(b"host", b"")
    if trusted:
        forwarded = _first(headers, b"x-forwarded-proto").lower()
        scheme = forwarded if forwarded in _USUAL_PORTS else scheme
        host = _forwarded_host(scheme, host, _first(headers, b"x-forwarded-host"), _first(headers, b"x-forwarded-port"))
    if not host:
        name, port = scope.get("server") or ("127.0.0.1", None)
        host = f"{name}:{port}".encode() if port else name.encode()
    return scheme + b"://" + host


def _first(headers: Mapping[bytes, bytes], name: bytes) -> bytes:
    """Of several proxies the first spoke to the client."""
    return headers.get(name, b"").partition(b",")[0].strip()


def _forwarded_host(scheme: bytes, host: bytes, forwarded: bytes, port: bytes) -> bytes:
    """The host that the client called; what can't be a host or port does not count."""
    named = _HOST.fullmatch(forwarded)
    found = named or _HOST.fullmatch(host)
    if found is None:
        return host
    stated = port if port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536 else None
    # A port beside the forwarded host is the client's; one in Host may be ours.
    used = (found["port"] or stated) if named is not None else (stated or found["port"])
    return found["name"] + (b"" if used is None or used == _USUAL_PORTS[scheme] else b":" + used)
