"""By which names open mode may be reached.

In open mode nobody is asked who they are, so the address is all that keeps strangers out. A page of
another site can have its own name point to 127.0.0.1 (DNS rebinding); its browser then speaks to us
as to that page's own server, and says so in Host. Neighbours: `front` asks for every request.
"""

from __future__ import annotations

import ipaddress

# Answers that are remembered: clients name few hosts, and each request asks.
REMEMBERED = 64


class Hosts:
    """Names of this machine, and `more`: names with commas in between, as a setting has them."""

    def __init__(self, more: str) -> None:
        self._more = frozenset(name.strip().lower() for name in more.split(",") if name.strip())
        self._allowed: set[bytes] = set()

    def allows(self, host: bytes | None) -> bool:
        """Whether a request with this Host may be answered; None = it has none (HTTP/1.0)."""
        if host is None or host in self._allowed:
            return True
        allowed = self._is_ours(_name_of(host.decode("latin-1").lower()))
        if allowed and len(self._allowed) < REMEMBERED:
            self._allowed.add(host)
        return allowed

    def _is_ours(self, name: str) -> bool:
        if name == "localhost" or name.endswith(".localhost") or name in self._more:
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False


def _name_of(host: str) -> str:
    """A Host without its port, and an address of IPv6 without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")
