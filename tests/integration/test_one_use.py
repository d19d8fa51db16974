"""Handles for one use: whatever changes a lease makes them stale, whoever does it; one of several
that use a handle at once does.
"""

from __future__ import annotations

import asyncio

import pytest

from engine.engine import Engine
from engine.shapes import Delivery, EntryResult, ExtendEntry, Late, SendEntry
from schemas.records.settings import QueueSettings, RedrivePolicy
from tests.integration.drive import BY, receive, send
from tests.integration.test_rebuild import drained, wipe
from tests.services import Services

KINDS = {
    "standard": QueueSettings(partitions=1),
    "FIFO": QueueSettings(fifo=True, content_dedup=True),
    "priority": QueueSettings(priority=True),
}


async def leased(engine: Engine, queue: str, settings: QueueSettings, lease_ms: int | None = None) -> Delivery:
    """A message that is with us."""
    await engine.queues.create_queue(BY, queue, settings)
    await engine.messages.send(BY, queue, [SendEntry(b"x", group="g" if settings.fifo else None)])
    (got,) = await receive(engine, queue, wait_ms=2000, lease_ms=lease_ms)
    return got


async def acked(engine: Engine, queue: str, *handles: str) -> list[str]:
    return [result.status for result in await engine.messages.ack(BY, queue, list(handles), late=Late.NEVER)]


async def extended(engine: Engine, queue: str, handle: str, lease_ms: int = 60_000) -> EntryResult:
    (result,) = await engine.messages.extend(BY, queue, [ExtendEntry(handle, lease_ms, one_use=True)], late=Late.NEVER)
    return result


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
async def test_an_extend_replaces_a_handle(engine: Engine, queue: str, settings: QueueSettings) -> None:
    got = await leased(engine, queue, settings)
    first = engine.messages.one_use(got)
    changed = await extended(engine, queue, first)
    assert changed.status == "ok" and changed.next_handle not in ("", first, got.handle)

    again = await extended(engine, queue, first)
    assert (again.status, again.next_handle) == ("stale", "")
    # What is stale while its message is not settled is told apart by an ack.
    assert await acked(engine, queue, first) == ["lapsed"]
    assert await acked(engine, queue, changed.next_handle) == ["ok"]
    assert await acked(engine, queue, changed.next_handle, first) == ["stale", "stale"]


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
async def test_what_others_do_with_the_lease_makes_it_stale(
    engine: Engine, queue: str, settings: QueueSettings
) -> None:
    got = await leased(engine, queue, settings)
    handle = engine.messages.one_use(got)
    await engine.messages.extend(BY, queue, [ExtendEntry(got.handle, 40_000)])

    assert await acked(engine, queue, handle) == ["lapsed"]
    assert (await extended(engine, queue, handle)).status == "stale"
    assert [result.status for result in await engine.messages.release(BY, queue, [handle])] == ["stale"]
    assert await acked(engine, queue, got.handle) == ["ok"], "a common handle counts whenever the lease ends"


async def test_a_stale_handle_kills_nothing(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}-dead", QueueSettings(partitions=1))
    got = await leased(engine, queue, QueueSettings(partitions=1, redrive_policy=RedrivePolicy(f"{queue}-dead", 5)))
    first = engine.messages.one_use(got)
    changed = await extended(engine, queue, first)

    assert [result.status for result in await engine.messages.kill(BY, queue, [first])] == ["stale"]
    assert [result.status for result in await engine.messages.kill(BY, queue, [changed.next_handle])] == ["ok"]


async def test_a_handle_is_over_with_its_lease(engine: Engine, queue: str) -> None:
    got = await leased(engine, queue, QueueSettings(partitions=1), lease_ms=100)
    await asyncio.sleep(0.15)

    assert await acked(engine, queue, engine.messages.one_use(got)) == ["lapsed"]
    (again,) = await receive(engine, queue, wait_ms=2000)
    assert again.receive_count == 2


async def test_of_several_that_use_a_handle_one_does(engine: Engine, queue: str) -> None:
    handle = engine.messages.one_use(await leased(engine, queue, QueueSettings(partitions=1)))
    uses = [extended(engine, queue, handle, 40_000 + n) for n in range(20)]
    acks = [acked(engine, queue, handle) for _ in range(20)]
    outcomes = await asyncio.gather(asyncio.gather(*uses), asyncio.gather(*acks))

    assert [one.status for one in outcomes[0]].count("ok") + sum(words.count("ok") for words in outcomes[1]) == 1


async def test_handles_of_both_kinds_go_in_one_request(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=2))
    await send(engine, queue, *"abcd")
    got = await receive(engine, queue, wait_ms=2000)
    handles = [one.handle if number % 2 else engine.messages.one_use(one) for number, one in enumerate(got)]
    results = await engine.messages.extend(BY, queue, [ExtendEntry(handle, 50_000) for handle in handles])

    assert [result.status for result in results] == ["ok"] * 4
    assert await acked(engine, queue, *handles) == ["lapsed", "ok", "lapsed", "ok"]


async def test_a_handle_outlives_a_loss_of_redis(own_engine: Engine, stack: Services) -> None:
    first = own_engine.messages.one_use(await leased(own_engine, "q", QueueSettings(partitions=1)))
    changed = await extended(own_engine, "q", first)
    await drained(own_engine)
    wipe(stack, own_engine)

    assert await acked(own_engine, "q", first) == ["lapsed"]
    assert await acked(own_engine, "q", changed.next_handle) == ["ok"]
