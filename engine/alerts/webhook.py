"""Posts JSON to the URL of a user, signed with a secret that this user and the service know.

One try: a connection to an address that was looked at, a request, the status line of the answer; no
redirect is followed, and nothing else of the answer is read. `X-Leaseway-Signature` is `v1=` and
the HMAC-SHA256 of the timestamp header, a dot and the body, in hex. Neighbours: `messenger` tries
again, `targets` says what may be reached. Must not know what is told.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
import ssl
import time
from hashlib import sha256

from engine.alerts.targets import Target, is_public, target_of
from engine.errors import EngineError

TIMEOUT_S = 5.0
MOST_STATUS_LINE = 1_000


class NotDeliveredError(Exception):
    """Nothing has taken a message; the text says why."""


def webhook_secret(secret: str, user: str) -> str:
    """The secret of a user, which follows from that of the service."""
    return hmac.new(secret.encode(), b"webhook/" + user.encode(), sha256).hexdigest()


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """The value of X-Leaseway-Signature."""
    return "v1=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, sha256).hexdigest()


class Webhook:
    """Posts of this worker. `private` = loopback and private addresses may be reached."""

    def __init__(self, secret: str, *, private: bool) -> None:
        self._secret = secret
        self._private = private

    async def post(self, url: str, user: str, event: str, body: bytes) -> str:
        """Sends one event; what has taken it. Raises NotDeliveredError after at most 5 s."""
        try:
            target = target_of(url)
            async with asyncio.timeout(TIMEOUT_S):
                status = await self._exchange(target, await self._address(target), self._head(target, user, event, body) + body)
        except TimeoutError:
            raise NotDeliveredError(f"the webhook did not answer within {TIMEOUT_S:g} s") from None
        except (OSError, EngineError, UnicodeError, ValueError) as error:
            raise NotDeliveredError(f"the webhook could not be reached: {error}") from None
        if not 200 <= status < 300:
            raise NotDeliveredError(f"the webhook answered {status}")
        return f"webhook {status}"

    def _head(self, target: Target, user: str, event: str, body: bytes) -> bytes:
        timestamp = str(int(time.time()))
        lines = [
            f"POST {target.path} HTTP/1.1",
            f"Host: {target.authority}",
            "User-Agent: leaseway",
            "Connection: close",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            f"X-Leaseway-Event: {event}",
            f"X-Leaseway-Timestamp: {timestamp}",
            f"X-Leaseway-Signature: {signature(webhook_secret(self._secret, user), timestamp, body)}",
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")

    async def _address(self, target: Target) -> str:
        """An address of the host. Raises NotDeliveredError when none may be reached."""
        found = await asyncio.get_running_loop().getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        addresses = [str(row[4][0]) for row in found]
        allowed = addresses if self._private else [address for address in addresses if is_public(address)]
        if not allowed:
            raise NotDeliveredError(f"the webhook's host {target.host} has no public address")
        return allowed[0]

    async def _exchange(self, target: Target, address: str, request: bytes) -> int:
        """The status of the answer. Raises OSError, ValueError."""
        tls = ssl.create_default_context() if target.tls else None
        name = target.host if target.tls else None
        reader, writer = await asyncio.open_connection(address, target.port, ssl=tls, server_hostname=name, limit=MOST_STATUS_LINE)
        try:
            writer.write(request)
            await writer.drain()
            line = await reader.readline()
        finally:
            writer.transport.abort()  # what else the other side says or waits for is nothing to us
        version, _, rest = line.decode("latin-1").partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
            raise ValueError("the answer is not HTTP")
        return int(rest[:3])
