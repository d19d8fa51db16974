"""A rebuild of many units: in rounds, owned in groups, and a unit that fails fails alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from engine.engine import Engine
from engine.errors import Rebuilding
from engine.recovery.lives import Holding
from runtime import deadline
from runtime.deadline import state_until
from runtime.failpoints import arm, disarm
from schemas.records.settings import QueueSettings
from state.errors import Fenced
from state.keys import Unit
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, receive, send
from tests.integration.test_rebuild import drained, wipe
from tests.services import Services

QUEUES, PARTITIONS, ROUND = 30, 10, 40


@pytest.fixture(autouse=True)
def small_rounds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("engine.recovery.rebuild.ROUND_UNITS", ROUND)
    # Who waits for more than a machine under load needs is told nothing wrong.
    monkeypatch.setattr(deadline, "STATE_S", 60.0)
    yield
    disarm()


async def lost_queues(engine: Engine, stack: Services) -> list[str]:
    """Names of queues with a message each, whose state in Redis is gone; nobody looks for that."""
    await engine.parts.administration.queues.collector.stop()
    names = [f"q{number}" for number in range(QUEUES)]
    for name in names:
        await engine.queues.create_queue(BY, name, QueueSettings(partitions=PARTITIONS))
        await send(engine, name, "m")
    await drained(engine)
    for queue in engine.catalog.queues.values():
        for unit in queue.units:
            engine.parts.units.owner._forget(unit)
    wipe(stack, engine)
    return names


def rebuilt(engine: Engine) -> int:
    return int(engine.parts.base.counters.get("rebuilds_total"))


def thrown_away(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        text
        for record in caplog.records
        if (text := record.getMessage()).startswith("action=rebuild ") and "error=" in text
    ]


async def test_leases_that_end_while_a_rebuild_is_slow_cost_it_nothing(
    own_engine: Engine, stack: Services, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Units were owned one after the other and renewed when all were: the first leases had ended by
    then, the round was thrown away, and so was the next.
    """
    names = await lost_queues(own_engine, stack)
    monkeypatch.setattr("engine.recovery.lives.REBUILD_LEASE_MS", 300)
    arm("rebuild.taken=sleep:10")
    order: list[tuple[str, int]] = []

    async def recover(name: str) -> None:
        await own_engine.parts.base.rebuilder.recover(own_engine.catalog.queues[name], state_until())
        order.append((name, rebuilt(own_engine)))

    with caplog.at_level(logging.WARNING, "engine.recovery"):
        await asyncio.gather(*(recover(name) for name in names))
    assert thrown_away(caplog) == []
    assert rebuilt(own_engine) == QUEUES * PARTITIONS
    assert [name for name, _ in order] == names, "they answer in the order in which they were asked for"
    assert order[0][1] <= 2 * ROUND, "the first answers when its round is done"
    for name in names:
        assert [d.message.body for d in await receive(own_engine, name)] == [b"m"]


async def test_a_queue_that_somebody_waits_for_comes_before_those_that_nobody_does(
    own_engine: Engine, stack: Services
) -> None:
    names = await lost_queues(own_engine, stack)
    rebuilder = own_engine.parts.base.rebuilder
    for name in names:
        rebuilder.recover_soon(own_engine.catalog.queues[name])
    await rebuilder.recover(own_engine.catalog.queues[names[-1]], state_until())
    assert rebuilt(own_engine) <= 2 * ROUND


async def test_a_unit_that_another_worker_takes_fails_alone(
    own_engine: Engine, stack: Services, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    names = await lost_queues(own_engine, stack)
    queues = [own_engine.catalog.queues[name] for name in names]
    victim = queues[1].units[3]
    clear = own_engine.store.upkeep.clear

    async def taken(unit: Unit, epoch: int, tags: list[int]) -> None:
        if unit == victim:
            await own_engine.store.upkeep.seize(unit, "another worker", lease_ms=600_000)
        await clear(unit, epoch, tags)

    monkeypatch.setattr(own_engine.store.upkeep, "clear", taken)
    monkeypatch.setattr(deadline, "STATE_S", 2.0)
    with caplog.at_level(logging.WARNING, "engine.recovery"):
        rebuilds = (own_engine.parts.base.rebuilder.recover(queue, state_until()) for queue in queues[:4])
        results = await asyncio.gather(*rebuilds, return_exceptions=True)
    assert [type(each) for each in results] == [type(None), Rebuilding, type(None), type(None)]
    assert thrown_away(caplog) == []
    assert rebuilt(own_engine) == 4 * PARTITIONS
    for name in (names[0], names[2], names[3]):
        assert [d.message.body for d in await receive(own_engine, name)] == [b"m"]


async def test_two_workers_rebuild_together_each_its_share(make_engine: MakeEngine, stack: Services) -> None:
    one = await make_engine()
    two = await make_engine(topic_prefix=one.settings.topic_prefix)
    names = await lost_queues(one, stack)
    await two.catalog.sync()
    asked = [
        engine.parts.base.rebuilder.recover(engine.catalog.queues[name], state_until())
        for engine in (one, two)
        for name in names
    ]
    await asyncio.gather(*asked)
    assert min(rebuilt(one), rebuilt(two)) >= ROUND, "both had a share"
    assert rebuilt(one) + rebuilt(two) == QUEUES * PARTITIONS, "and none did what the other had done"


async def test_what_a_rebuild_holds_is_renewed_from_the_first_unit_on(own_engine: Engine) -> None:
    """The leases are shorter than the time until the last unit is taken."""
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=PARTITIONS))
    base, (first, *more) = own_engine.parts.base, own_engine.catalog.queues["q"].units
    held: set[Unit] = set()
    async with Holding(own_engine.store.upkeep, "rebuilder", base.rebuilder._background, held, 600) as holding:
        epochs = [owned.number async for _, owned in holding.take([first])]
        await asyncio.sleep(1.0)
        other = await own_engine.store.upkeep.own(first, "other", lease_ms=600)
        assert not other.ours, "it ended although it was held"
        epochs += [owned.number async for _, owned in holding.take(more)]
        assert held == {first, *more}
    assert not held
    with pytest.raises(Fenced):
        await own_engine.store.upkeep.drain(first, epochs[0] - 1, done_seq=0, max=1)
