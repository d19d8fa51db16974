"""What the plane is asked to drain, and what its owner hears of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.journal.outbox import DrainRequest, DrainResult
from engine.plane import drains as module
from engine.plane import library as lib
from engine.plane.drains import Drains
from state.keys import Unit
from state.redis.calls import drain_template
from tests.unit.engine.plane.conftest import Told

UNIT = Unit("0123456789ab", 2)
REQUEST = DrainRequest("orders", UNIT, 41, "lw.journal", 7, b"0123456789ab/2", 9, 500, 100, 3)


class Stage:
    def __init__(self) -> None:
        self.appends: list[tuple[float, float, int]] = []
        self.library = Told()
        self.drains = Drains("lw", lambda *times: self.appends.append(times))

    def begin(self) -> asyncio.Future[DrainResult]:
        begun = self.drains.drain(REQUEST)
        assert begun is not None
        return begun

    def told(self) -> list[Any]:
        return self.library.of(lib.DRAIN)


@pytest.fixture
def stage() -> Stage:
    made = Stage()
    made.drains.start(made.library)
    return made


def test_without_a_plane_nothing_begins() -> None:
    assert Drains("lw", lambda *times: None).drain(REQUEST) is None


async def test_the_plane_is_told_all_that_a_drain_needs(stage: Stage) -> None:
    stage.begin()
    (told,) = stage.told()
    call = drain_template("lw", UNIT, 41, 500)
    assert told == [1, "orders", "0123456789ab", 2, "lw.journal", 7, b"0123456789ab/2", call, 9, 500, 100, 3]
    assert [word for slot, word in call if not slot] == [
        b"2", b"lw:{0123456789ab:2}:meta", b"lw:{0123456789ab:2}:outbox", b"41", b"500",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("news", "result"),
    [
        ((lib.DONE, 3, 0, 0, 0, [], ""), DrainResult(3, has_more=False)),
        ((lib.DONE, 3, 12, 4_000, 1, [], ""), DrainResult(3, has_more=True, done_seq=12, since_ms=4_000)),
        ((lib.FENCED, 1, 12, 4_000, 0, [], ""), DrainResult(1, False, 12, 4_000, is_fenced=True)),
        ((lib.PASSED, 1, 12, 4_000, 0, [], ""), DrainResult(1, True, 12, 4_000, is_passed=True)),
        ((lib.NOT_APPENDED, 0, 0, 4_000, 0, [], "no leader"), DrainResult(0, False, 0, 4_000, error="no leader")),
        (
            (lib.NOT_APPENDED, 0, 0, 0, 0, [], ""),
            DrainResult(0, False, error="Kafka did not store entries of the journal"),
        ),
    ],
)
async def test_the_owner_hears_how_a_drain_has_ended(stage: Stage, news: tuple[Any, ...], result: DrainResult) -> None:
    begun = stage.begin()
    stage.drains.ended(1, news)
    assert await begun == result


async def test_the_clock_of_the_log_learns_from_appends(stage: Stage) -> None:
    begun = stage.begin()
    stage.drains.ended(1, (lib.DONE, 1, 0, 0, 0, [1_500_000, 2_500_000, 7_000], ""))
    await begun
    assert stage.appends == [(1.5, 2.5, 7_000)]


async def test_each_drain_has_its_own_end(stage: Stage) -> None:
    first, second = stage.begin(), stage.begin()
    stage.drains.ended(2, (lib.DONE, 2, 0, 0, 0, [], ""))
    assert not first.done()
    assert (await second).moved == 2


async def test_when_the_plane_stops_owners_go_on(stage: Stage) -> None:
    begun = stage.begin()
    stage.drains.stop()
    assert await begun == DrainResult(0, has_more=True, is_passed=True)
    assert stage.drains.drain(REQUEST) is None
    stage.drains.ended(1, (lib.DONE, 2, 0, 0, 0, [], ""))  # it was at it still


async def test_an_owner_does_not_wait_for_ever(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENCE_S", 0.0)
    assert (await stage.begin()).is_passed
    stage.drains.ended(1, (lib.DONE, 2, 0, 0, 0, [], ""))


async def test_an_owner_that_has_stopped_hears_nothing(stage: Stage) -> None:
    begun = stage.begin()
    begun.cancel()
    stage.drains.ended(1, (lib.DONE, 2, 0, 0, 0, [], ""))
    assert begun.cancelled()
