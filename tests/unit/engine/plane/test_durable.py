"""Acks of queues with `durable_acks`: the plane hears when the journal has them, or why not."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from engine.errors import LogUnavailable
from engine.plane import library as lib
from engine.plane.parts import DurableAcks
from engine.plane.plane import Plane
from engine.rules.queue import Queue
from schemas.records import GenerationRecord
from tests.unit.engine.plane.conftest import RECORD, Known, Told, route

SEQ, NUMBER = 17, 5


class Journal:
    """Says of each wait what `outcome` says."""

    def __init__(self, outcome: BaseException | None = None) -> None:
        self.outcome = outcome
        self.asked: list[tuple[str, int, int]] = []

    async def wait(self, queue: Queue, partition: int, seq: int, until: float) -> None:
        self.asked.append((queue.name, partition, seq))
        assert until > asyncio.get_running_loop().time()
        if self.outcome is not None:
            raise self.outcome


async def told(plane: Plane, known: Known, library: Told, journal: Journal, generation: int = 0) -> list[Any]:
    known.put("queue", "orders", msgspec.structs.replace(RECORD, durable_acks=True), 0)
    route(plane, known, 1)
    opened = plane.opened(library.of(lib.OPEN)[0][0])
    assert opened is not None and library.of(lib.OPEN)[0][-1] == 1
    if generation:
        known.put("generation", "generation", GenerationRecord(generation, "r", 0), 0)
    await DurableAcks(plane, cast(Any, known), journal.wait).wait(opened, 0, SEQ, NUMBER)
    return library.of(lib.JOURNALED)


async def test_the_plane_hears_that_the_journal_has_them(plane: Plane, known: Known, library: Told) -> None:
    journal = Journal()
    assert await told(plane, known, library, journal) == [[NUMBER, b""]]
    assert journal.asked == [("orders", 0, SEQ)]


async def test_the_plane_hears_why_nobody_knows(plane: Plane, known: Known, library: Told) -> None:
    assert await told(plane, known, library, Journal(LogUnavailable("late"))) == [[NUMBER, b"late"]]


async def test_another_life_of_redis_says_nothing_of_what_was_written_before(
    plane: Plane, known: Known, library: Told
) -> None:
    journal = Journal()
    ((_, why),) = await told(plane, known, library, journal, generation=known.generation + 1)
    assert b"another Redis" in why and journal.asked == []


async def test_who_is_cancelled_says_so(plane: Plane, known: Known, library: Told) -> None:
    with pytest.raises(asyncio.CancelledError):
        await told(plane, known, library, Journal(asyncio.CancelledError()))
    assert library.of(lib.JOURNALED) == [[NUMBER, b"the worker stops"]]
