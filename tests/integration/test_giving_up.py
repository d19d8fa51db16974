"""A unit that its owner gives up just when it is used again: what was used goes to the journal
soon, though nobody comes a second time.
"""

from __future__ import annotations

import pytest

from engine.engine import Engine
from engine.loading.loader import Loader
from engine.shapes import Delivery
from schemas.records.settings import QueueSettings
from schemas.vocabulary import EntryStatus
from state.errors import Fenced
from state.keys import Unit
from state.upkeep import UpkeepScripts
from tests.integration.drive import BY, eventually, receive, send
from tests.integration.test_rebuild import drained


async def leased(engine: Engine, queue: str) -> tuple[Loader, Delivery]:
    """A message that is leased, and the loader of its unit; the journal has all so far."""
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    await send(engine, queue, "a")
    (delivery,) = await receive(engine, queue)
    unit = engine.catalog.queues[queue].units[0]

    async def owned() -> bool:
        return unit in engine.parts.units.owner.owned

    await eventually(owned)
    await drained(engine)
    return engine.parts.units.owner.owned[unit], delivery


async def ack(engine: Engine, queue: str, delivery: Delivery) -> None:
    assert [one.status for one in await engine.messages.ack(BY, queue, [delivery.handle])] == [EntryStatus.OK]


async def give_up(engine: Engine, loader: Loader) -> None:
    owner = engine.parts.units.owner
    await owner._give_up(loader, owner._used[loader.unit])


async def test_an_ack_that_comes_while_a_unit_is_given_up_is_journaled(
    own_engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader, delivery = await leased(own_engine, queue)
    real = UpkeepScripts.disown

    async def disown(store: UpkeepScripts, unit: Unit, epoch: int) -> bool:
        done = await real(store, unit, epoch)
        await ack(own_engine, queue, delivery)  # Redis has taken the unit from us before
        return done

    with monkeypatch.context() as patch:
        patch.setattr(UpkeepScripts, "disown", disown)
        await give_up(own_engine, loader)
    await drained(own_engine)


async def test_a_unit_that_was_taken_anew_while_it_was_given_up_stays_owned(
    own_engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader, delivery = await leased(own_engine, queue)
    owner = own_engine.parts.units.owner

    async def fenced() -> int:
        """Kafka stood still for longer than the lease of the unit; then it was used again."""
        await own_engine.store.upkeep.disown(loader.unit, loader.epoch)
        owner._drop(loader.unit)
        owner._renewals._due_at.clear()
        await ack(own_engine, queue, delivery)
        await eventually(taken)
        raise Fenced("the unit has another owner")

    async def taken() -> bool:
        return loader.unit in owner.owned

    monkeypatch.setattr(loader.outbox, "drain", fenced)
    await give_up(own_engine, loader)
    assert await taken()
    await drained(own_engine)
