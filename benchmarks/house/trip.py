"""Where verbs of messages go: each call of the engine from one room into another is a step; a step
into a room that was left before is a return.

What a worker does by itself meanwhile is not counted. Files that hold a rule are those of the
engine that a verb enters and that decide something.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Awaitable
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from benchmarks.house.layout import ROOT, room_of
from engine.engine import Engine
from engine.settings import Settings
from engine.shapes import ExtendEntry, Principal, SendEntry
from schemas.records.settings import QueueSettings, RedrivePolicy

T = TypeVar("T")

# Any room may ask these: they decide nothing, or have no parts.
NO_ROOMS = {"engine.errors", "engine.shapes", "engine.settings", "engine.wiring"}
# Nor do these hold a rule, for that reason:
NO_RULES = {
    "engine.services.messages": "a verb by its name, which calls one part",
    "engine.services.queues": "a verb by its name, which calls one part",
    "engine.services.callers": "a verb by its name, which calls one part",
    "engine.services.tasks": "a verb by its name, which calls one part",
    "engine.gate": "finds a queue, asks others for rights and quotas, and says when a verb is answered at the latest",
    "engine.services.accounts": "names as the caller says them: what they mean is said in schemas",
    "engine.log": "the client of Kafka",
    "engine.catalog.catalog": "the records in memory; a verb waits until those are read that were written before it",
    "engine.catalog.tables": "what was found to count, by its name",
    "engine.catalog.seal": "who wrote a record: of what a verb writes that is known",
    "engine.plane.plane": "whether a thread of the library serves a request, and not what it gets",
    "engine.receive.waits.wait_list": "when a receive that waits looks again, and not what it gets",
    "engine.window.window": "that a script is called again when what it lacked was rebuilt",
    "engine.loading.owner": "when something is loaded; a verb only notes that a unit is used",
    "engine.rules.linger": "how long a call waits for others to join it: the answer is the same",
    "engine.window.body_source": "where a body is read from: it is the same one",
}
# The verb that is followed. Tasks inherit it from who starts them, so what a worker does by itself
# does not have it.
_followed: ContextVar[bool] = ContextVar("followed", default=False)


class Trip:
    """The calls of one verb through the rooms of the engine, in one thread: a profiler."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.files: set[str] = set()
        self._entered: set[FrameType] = set()
        self._prefix = str(ROOT / "engine")

    def _module(self, frame: FrameType | None) -> str | None:
        """The module of the engine that a frame, or the next one outside of it, is in."""
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(self._prefix):
                return ".".join(Path(file).relative_to(ROOT).with_suffix("").parts)
            frame = frame.f_back
        return None

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(self._prefix) or not _followed.get():
            return
        if frame in self._entered:  # a coroutine that goes on is entered anew: that is no step
            return
        self._entered.add(frame)
        module = self._module(frame)
        assert module is not None
        room = room_of(module)
        if room not in NO_ROOMS | NO_RULES.keys() and module not in NO_RULES:
            self.files.add(module)
        caller = self._module(frame.f_back)
        if room not in NO_ROOMS and (caller is None or room != room_of(caller)):
            self.steps.append(room)

    def rooms(self) -> list[str]:
        """The rooms in the order of the first step into each."""
        return list(dict.fromkeys(self.steps))

    def returns(self) -> int:
        """Steps into a room that was left before."""
        seen: set[str] = set()
        last, returns = "", 0
        for room in self.steps:
            if room != last and room in seen:
                returns += 1
            seen.add(room)
            last = room
        return returns


async def trips(bootstrap: str, redis_url: str) -> dict[str, Trip]:
    """Verbs by their names in `Engine`, each followed with one message: the third time, when all is
    known.
    """
    engine = Engine(Settings(kafka_bootstrap=bootstrap, redis_url=redis_url, topic_prefix=f"h{secrets.token_hex(4)}"))
    await engine.start()
    try:
        found: dict[str, Trip] = {}
        for number in range(3):
            found = await _all_verbs(engine, f"q{number}")
        return found
    finally:
        await engine.stop()


_BY = Principal("house", admin=True)


async def follow(found: dict[str, Trip], verb: str, work: Awaitable[T]) -> T:
    """Awaits `work`, and notes its way as that of a verb."""
    trip = found[verb] = Trip()
    mark = _followed.set(True)
    sys.setprofile(trip)
    try:
        return await work
    finally:
        sys.setprofile(None)
        _followed.reset(mark)


async def _all_verbs(engine: Engine, queue: str) -> dict[str, Trip]:
    found: dict[str, Trip] = {}
    dead = f"{queue}-dead"
    await engine.queues.create_queue(_BY, dead, QueueSettings())
    await follow(found, "create_queue", engine.queues.create_queue(_BY, queue, QueueSettings()))
    await follow(found, "set_queue", engine.queues.set_queue(_BY, queue, QueueSettings(lease_ms=20_000)))
    await follow(found, "set_redrive_policy", engine.queues.set_redrive_policy(_BY, queue, RedrivePolicy(dead, 3)))
    await follow(found, "create_tag", engine.queues.create_tag(_BY, queue, "t", 0, None, {}))
    await follow(found, "delete_tag", engine.queues.delete_tag(_BY, queue, "t"))
    for _ in range(3):
        (sent,) = await follow(found, "send", engine.messages.send(_BY, queue, [SendEntry(b"m")]))
        await follow(found, "peek", engine.messages.peek(_BY, queue, sent.id, None))
        (delivery,) = await follow(found, "receive", engine.messages.receive(_BY, queue, None, 10, 0, None))
        await follow(found, "extend", engine.messages.extend(_BY, queue, [ExtendEntry(delivery.handle, 60_000)]))
        await follow(found, "release", engine.messages.release(_BY, queue, [delivery.handle], 0))
        (delivery,) = await engine.messages.receive(_BY, queue, None, 10, 0, None)
        await follow(found, "ack", engine.messages.ack(_BY, queue, [delivery.handle]))
    await engine.messages.send(_BY, queue, [SendEntry(b"m")])
    (delivery,) = await engine.messages.receive(_BY, queue, None, 10, 0, None)
    await follow(found, "kill", engine.messages.kill(_BY, queue, [delivery.handle]))
    await follow(found, "redrive", engine.tasks.redrive(_BY, dead, None, None, 0))
    await follow(found, "purge", engine.queues.purge(_BY, queue))
    await follow(found, "delete_queue", engine.queues.delete_queue(_BY, queue))
    return found
