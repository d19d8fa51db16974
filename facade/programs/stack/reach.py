"""Whether the Kafka and the Redis of the settings answer, and one line that says which does not.

No client of either is needed.
"""

from __future__ import annotations

import asyncio
import math
import os
import ssl
import struct
import time
from collections.abc import Callable

from facade.config import Settings
from facade.programs.stack.processes.errors import StackError
from state.redis.address import redis_address, without_password

ANSWER_S = 2.0
AGAIN_S = 0.5
_API_VERSIONS = 18
_CORRELATION = 7

Place = tuple[str, int] | str  # host and port, or a unix socket


async def kafka_at(place: Place, *, tls: bool = False) -> str | None:
    """Why no broker answers an ApiVersions request there; None = one does. Of one behind TLS only
    whether anybody takes a connection: its certificate is for Kafka's client to judge.
    """
    if tls:
        return (await _ask(place, b"", 0))[1]
    request = struct.pack(">hhih", _API_VERSIONS, 0, _CORRELATION, -1)
    head, why = await _ask(place, struct.pack(">i", len(request)) + request, 10)
    if why is not None:
        return why
    _size, correlation, error = struct.unpack(">iih", head)
    return None if correlation == _CORRELATION and error == 0 else "what answers is no Kafka"


async def redis_at(place: Place, tls: ssl.SSLContext | None = None) -> str | None:
    """Why no redis-server answers PING there; None = one does, or asks for a password. While it
    loads its file it doesn't.
    """
    head, why = await _ask(place, b"PING\r\n", 7, tls)
    if why is not None or head in (b"+PONG\r\n", b"-NOAUTH"):
        return why
    return "it loads its file" if head == b"-LOADIN" else "what answers is no Redis"


async def wait_for_services(settings: Settings, say: Callable[[str], None]) -> int:
    """Returns when both answer: how many seconds are left of the setting `start_wait_s`. Raises
    StackError, one line, when one doesn't within that.
    """
    end = time.monotonic() + settings.start_wait_s
    told = False
    while missing := await _missing(settings):
        if time.monotonic() >= end:
            waited = f"after {settings.start_wait_s} s" if told else "LEASEWAY_START_WAIT_S makes `serve` wait for it"
            raise StackError(f"{missing} ({waited})")
        if not told:
            say(f"{missing}; waiting for up to {settings.start_wait_s} s")
            told = True
        await asyncio.sleep(AGAIN_S)
    return max(0, math.ceil(end - time.monotonic()))


async def _missing(settings: Settings) -> str | None:
    kafka, redis = await asyncio.gather(_kafka_missing(settings), _redis_missing(settings.redis_url))
    return "; ".join(line for line in (kafka, redis) if line) or None


async def _kafka_missing(settings: Settings) -> str | None:
    bootstrap, why = settings.kafka_bootstrap, "it is no host:port"
    tls = settings.kafka_client().get("security.protocol", "").endswith("SSL")
    places = [place for place in map(_host_and_port, bootstrap.split(",")) if place]
    for answer in await asyncio.gather(*(kafka_at(place, tls=tls) for place in places)):
        if answer is None:
            return None
        why = answer
    return f"Kafka can't be reached at {bootstrap} ({why}): set LEASEWAY_KAFKA_BOOTSTRAP to where it is"


async def _redis_missing(url: str) -> str | None:
    shown, why = without_password(url), None
    try:
        address = redis_address(url)
        why = await redis_at(address.socket or (address.host, address.port), address.tls)
    except ValueError as error:
        why = str(error)
    return f"Redis can't be reached at {shown} ({why}): set LEASEWAY_REDIS_URL to where it is" if why else None


def _host_and_port(text: str) -> tuple[str, int] | None:
    host, _, port = text.strip().rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isdecimal() else None


async def _ask(place: Place, request: bytes, size: int, tls: ssl.SSLContext | None = None) -> tuple[bytes, str | None]:
    """The first `size` bytes of the answer, or why there is none."""
    try:
        async with asyncio.timeout(ANSWER_S):
            opening = (
                asyncio.open_unix_connection(place)
                if isinstance(place, str)
                else asyncio.open_connection(*place, ssl=tls)
            )
            reader, writer = await opening
            try:
                writer.write(request)
                return await reader.readexactly(size), None
            finally:
                writer.close()
    except TimeoutError:
        return b"", f"no answer in {ANSWER_S:g} s"
    except asyncio.IncompleteReadError:
        return b"", "it closes without an answer"
    except ssl.SSLError as error:
        return b"", f"TLS: {error.reason or error}"
    except OSError as error:
        # asyncio says "Connect call failed" and the address; a name that is none has an error
        # number of its own kind, below 0.
        return b"", os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
    except OverflowError as error:
        return b"", str(error)
