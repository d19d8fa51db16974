"""FIFO: a tag that is made later sees a message that was sent twice once, also when the partition's
order was found again by somebody who did not know the tag yet.
"""

from __future__ import annotations

import asyncio

import pytest

from engine.catalog.catalog import Change
from engine.engine import Engine
from engine.queues.records import QueueRecords
from engine.rules.queue import Queue
from engine.shapes import SendEntry
from schemas.records import QueueRecord
from schemas.records.settings import QueueSettings
from tests.integration.drive import BY, eventually


def entry(body: str, dedup_id: str) -> SendEntry:
    return SendEntry(body.encode(), group="g", dedup_id=dedup_id)


async def taken(engine: Engine, name: str, tag: str, number: int) -> list[bytes]:
    """What a tag gives until nothing comes for a while."""
    found: list[bytes] = []
    while some := await engine.messages.receive(BY, name, tag, 10, 5_000 if len(found) < number else 500, 60_000):
        found += [one.message.body for one in some]
        await engine.messages.ack(BY, name, [one.handle for one in some])
    return found


@pytest.mark.parametrize("forgotten", [False, True])
async def test_a_tag_is_made_while_the_order_is_found_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, forgotten: bool
) -> None:
    name = f"q{forgotten}"
    await engine.queues.create_queue(BY, name, QueueSettings(partitions=1, fifo=True))
    for body, dedup_id in (("m", "d"), ("m again", "d"), ("n", "e")):
        await engine.messages.send(BY, name, [entry(body, dedup_id)])
    write = QueueRecords.write

    async def late(records: QueueRecords, record: QueueRecord, change: Change) -> Queue:
        """The window has the new tag; now another finds the order again, and only then the tag is
        known.
        """
        unit = engine.catalog.queues[name].units[0]
        await engine.messages.send(BY, name, [entry("o", "f")])

        async def found() -> bool:
            return (await engine.store.leases.probe(unit, engine.catalog.generation, 0)).seen == 4

        await eventually(found)
        await engine.messages.send(BY, name, [entry("o again", "f")])
        if forgotten:  # as those of messages that are older than the window of deduplication
            keys = engine.store.units.of(unit)
            await engine.store.units.scripts.ask("DEL", keys.dedup, keys.ids)
            await engine.store.units.scripts.ask("HSET", keys.meta, "dedups", 0)
        return await write(records, record, change)

    monkeypatch.setattr(QueueRecords, "write", late)
    await engine.queues.create_tag(BY, name, "new", 0, None, {})
    await asyncio.sleep(0)
    assert await taken(engine, name, "new", 3) == [b"m", b"n", b"o"]
    assert await taken(engine, name, "default", 3) == [b"m", b"n", b"o"]
