"""Whose address a request comes from, where clients are counted by their addresses.

Behind a proxy it is the last one in X-Forwarded-For, which that proxy has written; what stands
before it anybody can write. It counts only with the setting `trust_proxy`. This module must not
know what is counted.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from starlette.types import Scope

UNKNOWN: Final = "unknown"
# A network of IPv6 is one client: it has more addresses than anybody could count.
_NETWORK_BITS: Final = 64


@lru_cache(maxsize=4096)
def counted_as(address: str) -> str:
    """The address under which a client is counted; what is no address counts as UNKNOWN."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return UNKNOWN
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, _NETWORK_BITS), strict=False))
    return str(found)


def address_of(scope: Scope, headers: Mapping[bytes, bytes], *, trusted: bool) -> str:
    """The address of the client as it was told, "" = unknown; `trusted` = a proxy before us tells
    it.
    """
    if trusted and (forwarded := headers.get(b"x-forwarded-for")):
        return _without_port(forwarded.rpartition(b",")[2].strip().decode("latin-1"))
    client = scope.get("client")
    return client[0] if client else ""


def address_read(address: bytes) -> str:
    """As `address_of`, of a request that the native front has read, which tells from where."""
    return _without_port(address.decode("latin-1"))


def peer_of(scope: Scope, headers: Mapping[bytes, bytes], *, trusted: bool) -> str:
    """The address under which the client is counted; `trusted` as for `address_of`."""
    return counted_as(address_of(scope, headers, trusted=trusted))


class Peers:
    """Where requests come from; "" for all where nobody is counted, as in open mode."""

    def __init__(self, *, counted: bool, trusted: bool) -> None:
        self._counted = counted
        self._trusted = trusted

    def of(self, scope: Scope, headers: Mapping[bytes, bytes]) -> str:
        """The address of the client."""
        return peer_of(scope, headers, trusted=self._trusted) if self._counted else ""

    def of_read(self, address: bytes) -> str:
        """The same of a request that the native front has read, which tells from where."""
        return counted_as(address_read(address)) if self._counted else ""


def peers_of(auth: str, trust_proxy: str) -> Peers:
    """Those of a worker with these settings."""
    return Peers(counted=auth != "open", trusted=trust_proxy == "yes")


def _without_port(address: str) -> str:
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address
