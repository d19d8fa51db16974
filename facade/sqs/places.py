"""Where a request came to: what the URLs that it is told begin with, and whose queues it means.

Behind a proxy that ends TLS the client's own scheme, host and port are in X-Forwarded-Proto, -Host
and -Port; anybody can send such headers, so they count only with the setting `trust_proxy`. Account
and region count with `sqs_namespaces`: the region is the one that was signed for; the account is
the first part of the path, else a key id of 12 digits, else that of the settings. Neighbours:
`exchange` asks for the place of each request, and checks signatures against the host that the
client called. This module must not know actions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from starlette.types import Scope

from facade.config import SqsSettings
from facade.sqs.queues.names import Place
from facade.sqs.signature import claimed_scope
from facade.sqs.wire.errors import SIGNATURE_DOES_NOT_MATCH, SqsError

# Names that clients call this worker by, kept with what follows from them; of more none is kept.
PLACES: Final = 1000
_HOST: Final = re.compile(rb"(?P<name>[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::(?P<port>[0-9]{1,5}))?")
_REGION: Final = re.compile(r"[a-z0-9-]{1,40}")
_ACCOUNT: Final = re.compile(r"[0-9]{12}")
_ACCOUNT_OF_PATH: Final = re.compile(r"/([0-9]{12})(?:/|$)")
_USUAL_PORTS: Final = {b"http": b"80", b"https": b"443"}


class Places:
    """The places of this worker."""

    def __init__(self, settings: SqsSettings, *, trust_proxy: bool) -> None:
        self._settings = settings
        self._trusted = trust_proxy
        self._by = settings.sqs_namespaces.split(",")
        self._alike = not settings.sqs_namespaces and not self._trusted
        self._known: dict[tuple[bytes, str, str] | bytes, Place] = {}

    def place_of(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Place:
        """The place of a request. Raises SqsError for one that is signed for a region that can't
        be.
        """
        host = headers.get(b"host", b"")
        if self._alike and (known := self._known.get(host)) is not None:
            return known
        base = self._base(scope, headers)
        account, region = self._whose(scope, headers) if self._settings.sqs_namespaces else ("", "")
        key = host if self._alike else (base, account, region)
        found = self._known.get(key)
        if found is None:
            s = self._settings
            by_account, by_region = "account" in self._by, "region" in self._by
            found = Place(base.decode("latin-1"), account or s.sqs_account, region or s.sqs_region, by_account, by_region)
            if host and len(self._known) < PLACES:
                self._known[key] = found
        return found

    def called(self, scope: Scope, headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """The headers as the client sent them, for its signature: the host is the one that it
        called.
        """
        found: list[tuple[bytes, bytes]] = scope["headers"]
        if not self._trusted:
            return found
        host = self._base(scope, headers).partition(b"://")[2]
        return [(name, host if name == b"host" else value) for name, value in found]

    def _base(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bytes:
        """Scheme, host and port as the client called us."""
        scheme: bytes = scope["scheme"].encode("ascii")
        host = headers.get(b"host", b"")
        if self._trusted:
            forwarded = _first(headers, b"x-forwarded-proto").lower()
            scheme = forwarded if forwarded in _USUAL_PORTS else scheme
            host = _forwarded_host(scheme, host, _first(headers, b"x-forwarded-host"), _first(headers, b"x-forwarded-port"))
        if not host:
            name, port = scope.get("server") or ("127.0.0.1", None)
            host = f"{name}:{port}".encode() if port else name.encode()
        return scheme + b"://" + host

    def _whose(self, scope: Scope, headers: Mapping[bytes, bytes]) -> tuple[str, str]:
        """The account and region of a request; "" = those of the settings."""
        signed = claimed_scope(headers.get(b"authorization", b""), scope.get("query_string", b""))
        key_id, region = signed or ("", "")
        if region and not _REGION.fullmatch(region):
            raise SqsError(SIGNATURE_DOES_NOT_MATCH, f"Credential should be scoped to a valid region, not '{region[:40]}'.")
        path = _ACCOUNT_OF_PATH.match(scope.get("path", ""))
        account = path[1] if path is not None else key_id if _ACCOUNT.fullmatch(key_id) else ""
        return account if "account" in self._by else "", region if "region" in self._by else ""


def _first(headers: Mapping[bytes, bytes], name: bytes) -> bytes:
    """Of several proxies the first spoke to the client."""
    return headers.get(name, b"").partition(b",")[0].strip()


def _forwarded_host(scheme: bytes, host: bytes, forwarded: bytes, port: bytes) -> bytes:
    """The host that the client called; what can't be a host or port does not count."""
    named = _HOST.fullmatch(forwarded)
    found = named or _HOST.fullmatch(host)
    if found is None:
        return host
    stated = port if port.isdigit() and 0 < int(port) < 65536 else None
    # A port beside the forwarded host is the client's; one in Host may be ours.
    used = (found["port"] or stated) if named is not None else (stated or found["port"])
    return found["name"] + (b"" if used is None or used == _USUAL_PORTS[scheme] else b":" + used)
