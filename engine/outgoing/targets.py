"""Where webhooks may go: a URL as a user gives it, and an address that its host has.

A user of the service must not reach through it what only the service can reach: by default an
address must be a public one, and is connected to as it was looked at, so that a name server can't
show another one in between. Pure.
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
# All that IANA has allocated to the public Internet of version 6. What lies outside of it holds an
# IPv4 address that need not be public (::/96, NAT64), or was set apart (site-local, SRv6, discard).
_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
# Within it: IETF protocols (Teredo among them), 6to4 and documentation. And the anycast of 6to4.
_APART: Final = tuple(map(ipaddress.ip_network, ("2001::/23", "2002::/16", "3fff::/20", "192.88.99.0/24")))


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
    """Returns whether an address is of the public Internet, by the registries of IANA."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is None:
            return ip in _GLOBAL_UNICAST and ip.is_global and not _is_apart(ip)
        ip = ip.ipv4_mapped
    return ip.is_global and not ip.is_multicast and not _is_apart(ip)


def _is_apart(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return any(ip in network for network in _APART if network.version == ip.version)
