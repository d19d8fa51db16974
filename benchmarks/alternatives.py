"""The worker without a part that we wrote for speed (ADRs 0010, 0014, 0015, 0024), or with a
library in its place: each function makes the app of such a worker, for `LW_APP`. So it is measured
in pairs:

    python -m benchmarks.bench --sides leaseway,beside \\
        --set LW_APP=benchmarks.alternatives:library_avro

A ratio above 1 is what our part gains. For measurements alone: an alternative keeps none of our
promises for days on which something is away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from io import BytesIO
from typing import Any

import hiredis
import msgspec
import redis.asyncio
from fastavro import schemaless_writer
from redis.exceptions import NoScriptError, ResponseError
from starlette.types import ASGIApp

import engine.plane.service
import engine.receive.parts
import engine.receive.waits.wait_lists
import engine.rules.placement
import engine.wiring.foundation
import schemas.wire
import state.redis.script_caller
from engine.receive.poll import Poll, Poller
from engine.receive.waits.wait_list import WaitList
from facade.app import create_app
from facade.config import Settings
from schemas.records import Message
from schemas.registry import schema_id
from state.clock.service_clock import ServiceClock
from state.clock.sightings import Sightings
from state.redis.fence import Fence
from state.redis.scripts import read_scripts
from state.redis.server import Server, read_server
from state.redis.wire import Argument


def library_avro(settings: Settings) -> ASGIApp:
    """Messages packed and unpacked by fastavro (ADR 0014)."""
    wire = vars(schemas.wire)
    wire["pack"], wire["unpack"] = _pack, lambda data, library: library(data)
    return create_app(settings)


_SCHEMA = vars(schemas.wire)["_PARSED"][schema_id("message")]


def _pack(message: Message, head: bytes) -> bytes:
    buffer = BytesIO(head)
    buffer.seek(len(head))
    schemaless_writer(buffer, _SCHEMA, msgspec.to_builtins(message, builtin_types=(bytes,)))
    return buffer.getvalue()


def redis_py(settings: Settings) -> ASGIApp:
    """Commands by redis-py's pool of connections (ADR 0015), at its lowest level: what it does with
    replies is left out.
    """
    vars(engine.wiring.foundation)["Connection"] = RedisPy
    return create_app(settings)


def whole_scripts(settings: Settings) -> ASGIApp:
    """No common case before the scripts (ADR 0024), for Python and for the plane."""
    for module in (engine.plane.service, state.redis.script_caller):
        vars(module)["read_scripts"] = partial(read_scripts, plain=False)
    return create_app(settings)


def any_order(settings: Settings) -> ASGIApp:
    """Sends and receives go to the partitions in turn, whichever has the oldest (ADR 0010)."""

    def due(line: WaitList, order: Iterable[int], now: float) -> list[int]:
        return [partition for partition in order if line.due[partition] <= now]

    async def none(poller: Poller, poll: Poll, order: Sequence[int], max: int) -> int:
        return 0

    names = {"oldest": due, "__slots__": ()}
    vars(engine.receive.waits.wait_lists)["WaitList"] = type("AnyOrder", (WaitList,), names)
    vars(engine.receive.parts)["Poller"] = type("InTurn", (Poller,), {"_exactly": none})
    vars(engine.rules.placement)["RUN"] = 1
    return create_app(settings)


class RedisPy:
    """As `state.redis.connection.Connection`, for a Redis that is there and stays."""

    def __init__(self, url: str) -> None:
        self._pool = redis.asyncio.ConnectionPool.from_url(url)
        self.run_id = self.life = ""
        self.place = url
        self.connected = self.is_mute = False
        self.clock, self.fence, self.sightings, self.server = ServiceClock(), Fence(), Sightings(), Server("")

    async def start(self) -> None:
        await self.look()
        self.connected = True

    async def look(self) -> None:
        self.server = read_server(await self._call("INFO"))
        self.run_id, self.life = self.server.run_id, self.server.life

    def leave(self, reason: str) -> None:
        raise RuntimeError(f"Redis was to stay: {reason}")

    async def stop(self) -> None:
        await self._pool.disconnect()

    def call(self, *arguments: Argument) -> asyncio.Future[Any]:
        """The reply, in a task: callers await it more than once, and cancel it."""
        return asyncio.ensure_future(self._call(*arguments))

    async def _call(self, *arguments: Argument) -> Any:
        connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        try:
            await connection.send_command(*arguments)
            return await connection.read_response()
        except NoScriptError as error:  # redis-py takes the first word off
            return hiredis.ReplyError(f"NOSCRIPT {error}")
        except ResponseError as error:
            return hiredis.ReplyError(str(error))
        finally:
            await self._pool.release(connection)
