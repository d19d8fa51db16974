"""Where webhooks may go: a URL as a user gives it, and an address that its host has.

A user of the service must not reach through it what only the service can reach: by default an
address must be a public one, and is connected to as it was looked at, so that a name server can't
show another one in between. Neighbours: `post` connects. Pure.
"""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from engine.errors import InvalidValue
from engine.rules.limits import MAX_URL

_RULE: Final = f"an http:// or https:// URL of up to {MAX_URL} printable ASCII characters, with a host and without user and fragment"
_PORTS: Final = {"http": 80, "https": 443}
# Public by their looks, and each holds an IPv4 address that need not be: NAT64, 6to4, Teredo.
_CARRIERS: Final = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")))


class Target(Struct, frozen=True):
    """Where to send: `path` has the query too, `authority` is the Host header."""

    tls: bool
    host: str
    port: int
    authority: str
    path: str


def target_of(url: str, field: str = "webhook") -> Target:
    """A URL in its parts; `field` is what a user gave it as. Raises InvalidValue."""
    try:
        if len(url) > MAX_URL or not all("!" <= character <= "~" for character in url):
            raise ValueError
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        if parts.scheme not in _PORTS or not host or port == 0 or "@" in parts.netloc or "#" in url or "\\" in url:
            raise ValueError
    except ValueError:
        given = url[:200]
        raise InvalidValue(f"{field} must be {_RULE}, given {given!r}", field=field, limit=_RULE, given=given) from None
    query = f"?{parts.query}" if parts.query else ""
    return Target(parts.scheme == "https", host, port or _PORTS[parts.scheme], parts.netloc, (parts.path or "/") + query)


def is_public(address: str) -> bool:
    """Whether an address is of the public Internet, by what IANA has set apart."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return ip.is_global and not ip.is_multicast and not any(ip in carrier for carrier in _CARRIERS if carrier.version == ip.version)
