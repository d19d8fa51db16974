"""One POST to somewhere else, on behalf of a user: bounded in time and size, signed, and not into
networks that the user could not reach.

A user of the service must not reach through it what only the service can reach: by default an
address must be a public one. A name is resolved once, and the connection goes to the address that
was looked at: a name that resolves to another address a moment later gains nothing. Redirects are
not followed.

The header `leaseway-signature` is `t=<epoch seconds>,v1=<hex>`: the HMAC-SHA256 of the seconds, a
dot and the body, keyed with a secret that both sides know.
"""

from __future__ import annotations

import asyncio
import functools
import hmac
import ipaddress
import socket
import ssl
from collections.abc import Mapping
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

import httptools
from msgspec import Struct

from engine.errors import InvalidValue
from engine.rules.limits import MAX_URL

SIGNATURE = "leaseway-signature"


def webhook_secret(secret: str, user: str) -> str:
    """The secret of a user, which follows from that of the service."""
    return hmac.new(secret.encode(), b"webhook/" + user.encode(), sha256).hexdigest()


def signed(secret: str, at_s: int, body: bytes) -> dict[str, str]:
    """The headers of a POST of JSON."""
    mac = hmac.new(secret.encode(), b"%d." % at_s + body, sha256).hexdigest()
    return {"content-type": "application/json", "user-agent": "leaseway", SIGNATURE: f"t={at_s},v1={mac}"}


_RULE: Final = (
    f"an http:// or https:// URL of up to {MAX_URL} printable ASCII characters, "
    "with a host and without user and fragment"
)
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
    return Target(
        parts.scheme == "https", host, port or _PORTS[parts.scheme], parts.netloc, (parts.path or "/") + query
    )


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


TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 4_096
MAX_READ_BYTES = 16_384


class OutgoingError(Exception):
    """The request had no answer that can be used; the text says why."""


class _Answer:
    """What the parser of the answer calls."""

    def __init__(self) -> None:
        self.body = b""
        self.complete = False

    def on_body(self, body: bytes) -> None:
        self.body += body
        if len(self.body) > MAX_ANSWER_BYTES:
            raise OutgoingError(f"its answer has more than {MAX_ANSWER_BYTES} bytes")

    def on_message_complete(self) -> None:
        self.complete = True


async def post(url: str, body: bytes, headers: Mapping[str, str], *, private: bool) -> tuple[int, bytes]:
    """Status and body of the answer. `private`: also addresses that are not public. Raises
    OutgoingError.
    """
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await _post(url, body, headers, private)
    except TimeoutError:
        raise OutgoingError(f"no answer within {TIMEOUT_S:g} s") from None
    except (httptools.HttpParserError, InvalidValue, UnicodeError) as error:
        # An error of the callback comes wrapped by the parser.
        cause = error.__context__ if isinstance(error.__context__, OutgoingError) else error
        raise OutgoingError(str(cause) or type(error).__name__) from error
    except OSError as error:
        raise OutgoingError(_reason(error)) from error


async def _post(url: str, body: bytes, headers: Mapping[str, str], private: bool) -> tuple[int, bytes]:
    target = target_of(url, "url")
    secure = _authorities() if target.tls else None
    address = await _address(target, private)
    reader, writer = await asyncio.open_connection(
        address, target.port, ssl=secure, server_hostname=target.host if secure else None
    )
    try:
        lines = [
            f"POST {target.path} HTTP/1.1",
            f"host: {target.authority}",
            "connection: close",
            f"content-length: {len(body)}",
        ]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()
        return await _read(reader)
    finally:
        writer.close()


def _reason(error: OSError) -> str:
    """Returns why a connection failed, without the addresses that the system's own text has: the
    user who reads it may not know what a name means inside this network.
    """
    if isinstance(error, socket.gaierror):
        return "its host has no address"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or 'no reason given'}"
    if isinstance(error, ConnectionRefusedError):
        return "it refused the connection"
    return "no connection could be made, or it broke"


@functools.cache
def _authorities() -> ssl.SSLContext:
    """Whom we trust; read once, for that takes the event loop's time."""
    return ssl.create_default_context()


async def _address(target: Target, private: bool) -> str:
    found = await asyncio.get_running_loop().getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    addresses = [str(row[4][0]) for row in found]
    if not addresses:
        raise OutgoingError("its host has no address")
    if not private and not all(map(is_public, addresses)):
        raise OutgoingError("its host has an address that is not public, which webhooks may not go to")
    return addresses[0]


async def _read(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    answer = _Answer()
    parser = httptools.HttpResponseParser(answer)
    size = 0
    while not answer.complete:
        chunk = await reader.read(MAX_READ_BYTES)
        if not chunk:
            break
        size += len(chunk)
        if size > MAX_READ_BYTES:
            raise OutgoingError(f"its answer has more than {MAX_READ_BYTES} bytes")
        parser.feed_data(chunk)
    status = parser.get_status_code()
    if not status:
        raise OutgoingError("it closed the connection without an answer")
    return int(status), answer.body
