"""What is on its way back is waited for: by who stops, and by a receive that the plane does not
serve.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.plane import library as lib
from engine.plane import plane as planes
from tests.unit.engine.plane.test_plane import RECORD, Recording, Stage


class Slow(Recording):
    """Gives back later: `returning` is what it says until it is asked `rounds` times."""

    def __init__(self, returning: list[Any], rounds: int) -> None:
        super().__init__()
        self._returning = returning
        self.rounds = rounds

    def ask(self, what: int) -> list[Any]:
        if what != lib.RETURNING:
            return super().ask(what)
        self.rounds -= 1
        return self._returning if self.rounds > 0 else []


def staged(returning: list[Any], rounds: int) -> tuple[Stage, Slow]:
    """A stage whose library is slow."""
    stage, library = Stage(), Slow(returning, rounds)
    stage.library = library
    stage.plane.start(library, (0.001, 1.0))
    assert stage.route()
    library.kinds()
    return stage, library


async def test_who_stops_waits_for_what_is_on_its_way_back() -> None:
    stage, library = staged([[1, 1], [9, 3]], 5)
    await stage.plane.stop()
    assert library.rounds == 0
    assert library.kinds() == [lib.STOP, lib.CLOSE]
    assert not stage.plane.is_on


async def test_who_stops_waits_for_so_long_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planes, "STOP_S", 0.05)
    stage, library = staged([[1, 1]], 1_000_000)
    async with asyncio.timeout(5):
        await stage.plane.stop()
    assert library.rounds > 0


async def test_a_receive_of_pythons_waits_for_its_own_tag_alone() -> None:
    stage, library = staged([[1, 1]], 5)
    await stage.plane.empty(RECORD.incarnation, 1)
    assert library.rounds == 0
    assert library.kinds() == [lib.EMPTY]
    stage, library = staged([[1, 2], [2, 1]], 5)
    await stage.plane.empty(RECORD.incarnation, 1)
    assert library.rounds == 4


async def test_a_queue_that_nobody_uses_is_closed_and_its_next_request_opens_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    now = [1000.0]
    monkeypatch.setattr(planes, "monotonic", lambda: now[0])
    news = stage.parts.units.plane_news
    observed: list[int] = []
    assert stage.route()
    now[0] += planes.IDLE_S - 1
    stage.library.counts = [[1, 1, lib.RECEIVE, 1, 0, 1, 0, 1, 5, 5, [], []]]
    news.collect(stage.library, lambda verb, *rest: observed.append(verb))
    stage.library.counts = []
    now[0] += planes.IDLE_S - 1
    news.collect(stage.library, lambda verb, *rest: observed.append(verb))
    assert (observed, stage.library.kinds()) == ([lib.RECEIVE], [lib.OPEN, lib.ROUTE])
    now[0] += 2
    news.collect(stage.library, lambda verb, *rest: None)
    assert stage.library.kinds() == [lib.CLOSE]
    assert stage.route()
