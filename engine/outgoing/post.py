"""One POST to somewhere else, on behalf of a user: bounded in time and size, and not into networks
that the user could not reach.

A name is resolved once, and the connection goes to an address that was looked at: a name that
resolves to another address a moment later gains nothing. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
from collections.abc import Mapping

import httptools

from engine.errors import InvalidValue
from engine.outgoing.targets import Target, is_public, target_of

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
    reader, writer = await asyncio.open_connection(address, target.port, ssl=secure, server_hostname=target.host if secure else None)
    try:
        lines = [f"POST {target.path} HTTP/1.1", f"host: {target.authority}", "connection: close", f"content-length: {len(body)}"]
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
