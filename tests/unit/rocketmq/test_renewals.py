"""Leases that are renewed: while their client lives and holds them, and no longer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.errors import StoreUnavailable
from engine.shapes import EntryResult, ExtendEntry, Principal
from facade.dialects.rocketmq.clients import renewals as module
from facade.dialects.rocketmq.clients.renewals import RENEWED_FOR_S, Renewals
from facade.dialects.rocketmq.wire.errors import RocketError

BY = Principal("alice")


class Extending:
    """The part of an engine that renewals use: notes what is extended, and answers `words`."""

    def __init__(self) -> None:
        self.messages = self
        self.extended: list[tuple[str, list[str]]] = []
        self.words: dict[str, str] = {}
        self.fails = False
        self.gate: asyncio.Event | None = None

    async def extend(self, by: Principal, queue: str, entries: list[ExtendEntry], **_: Any) -> list[EntryResult]:
        assert by == BY and all(entry.lease_ms == 60_000 for entry in entries)
        self.extended.append((queue, [entry.handle for entry in entries]))
        if self.gate is not None:
            await self.gate.wait()
        if self.fails:
            raise StoreUnavailable
        return [EntryResult(entry.handle, self.words.get(entry.handle, "ok")) for entry in entries]


class Times:
    """A clock that stands still until it is moved."""

    now = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Times:
    times = Times()
    monkeypatch.setattr(module, "_now", lambda: times.now)
    return times


async def passed(renewals: Renewals, times: Times, seconds: float, *, alive: bool = True) -> None:
    """Looks as `run` does, every 5 s; a client that is alive says so."""
    for _ in range(int(seconds / module.LOOK_S)):
        times.now += module.LOOK_S
        if alive:
            renewals.heard(BY, "c")
        await renewals.renew()


async def test_a_lease_is_renewed_before_it_ends_while_its_client_lives(clock: Times) -> None:
    engine = Extending()
    renewals: Any = Renewals(engine)  # type: ignore[arg-type]
    renewals.keep(BY, "c", "q", ["h1", "h2"])
    await passed(renewals, clock, 40)
    assert engine.extended == []
    await passed(renewals, clock, 5)
    assert engine.extended == [("q", ["h1", "h2"])]
    await passed(renewals, clock, 45)
    assert len(engine.extended) == 2
    await passed(renewals, clock, 200, alive=False)
    assert len(engine.extended) <= 3 and renewals.leave(BY, "c") == {}


async def test_what_is_settled_or_given_back_is_renewed_no_more(clock: Times) -> None:
    engine = Extending()
    renewals: Any = Renewals(engine)  # type: ignore[arg-type]
    renewals.keep(BY, "c", "q", ["h1", "h2", "h3", "h4"])
    renewals.forget(BY, "c", ["h1", "unknown"])
    renewals.forget(BY, "other", ["h2"])
    renewals.forget(Principal("bob"), "c", ["h2"])
    await renewals.take(BY, "c", "h3")
    engine.words = {"h4": "lapsed"}
    await passed(renewals, clock, 90)
    assert engine.extended == [("q", ["h2", "h4"]), ("q", ["h2"])]
    assert renewals.leave(BY, "c") == {"q": ["h2"]}


async def test_no_lease_is_renewed_for_ever(clock: Times) -> None:
    engine = Extending()
    renewals: Any = Renewals(engine)  # type: ignore[arg-type]
    renewals.keep(BY, "c", "q", ["h"])
    await passed(renewals, clock, RENEWED_FOR_S + 10)
    number = len(engine.extended)
    await passed(renewals, clock, 200)
    assert len(engine.extended) == number > 100


async def test_a_renewal_that_failed_is_made_again(clock: Times) -> None:
    engine = Extending()
    renewals: Any = Renewals(engine)  # type: ignore[arg-type]
    renewals.keep(BY, "c", "q", ["h"])
    engine.fails = True
    await passed(renewals, clock, 45)
    engine.fails = False
    await passed(renewals, clock, 5)
    assert len(engine.extended) == 2 and renewals.leave(BY, "c") == {"q": ["h"]}


async def test_who_takes_a_lease_waits_for_a_renewal_that_is_under_way(clock: Times) -> None:
    engine = Extending()
    renewals: Any = Renewals(engine)  # type: ignore[arg-type]
    renewals.keep(BY, "c", "q", ["h"])
    clock.now += 50
    renewals.heard(BY, "c")
    engine.gate = asyncio.Event()
    renewing = asyncio.create_task(renewals.renew())
    await asyncio.sleep(0)
    assert engine.extended == [("q", ["h"])]
    taking = asyncio.create_task(renewals.take(BY, "c", "h"))
    await asyncio.sleep(0)
    assert not taking.done()
    engine.gate.set()
    await asyncio.gather(renewing, taking)
    assert renewals.leave(BY, "c") == {}


async def test_a_worker_renews_so_many_leases_and_no_more(clock: Times, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    renewals: Any = Renewals(Extending())  # type: ignore[arg-type]
    renewals.keep(BY, "c", "q", ["h1", "h2"])
    renewals.keep(BY, "c", "q", ["h2"])  # again
    renewals.check_room()
    renewals.keep(BY, "d", "q", ["h3"])
    with pytest.raises(RocketError):
        renewals.check_room()
    renewals.leave(BY, "c")
    renewals.check_room()
