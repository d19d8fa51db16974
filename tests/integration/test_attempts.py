"""Attempts, late handles and what a stale handle means in FIFO queues, through the engine. Real
Kafka and Redis.
"""

from __future__ import annotations

import asyncio

import pytest

from engine.engine import Engine
from engine.errors import NotAllowedOnQueue
from engine.handles.attempts import KEPT_S
from engine.shapes import Delivery, ExtendEntry, Late, Principal, SendEntry
from schemas.records.settings import QueueSettings
from tests.clock import Clock
from tests.integration.drive import BY, ack, receive
from tests.integration.test_fifo import FIFO, SPREAD, put, texts


async def attempt(
    engine: Engine, queue: str, key: str, lease_ms: int | None = None, by: Principal = BY
) -> list[Delivery]:
    return await engine.messages.receive(by, queue, None, 10, 0, lease_ms, key)


def handles(deliveries: list[Delivery]) -> list[str]:
    return [d.handle for d in deliveries]


@pytest.mark.parametrize("settings", [FIFO, SPREAD], ids=["queue scope", "group scope"])
async def test_a_repeated_attempt_is_answered_as_before_and_leased_anew(
    engine: Engine, queue: str, settings: QueueSettings
) -> None:
    await engine.queues.create_queue(BY, queue, settings)
    for group in "abc":
        await put(engine, queue, group, "1", "2")
    first = await attempt(engine, queue, "k", 5_000)
    again = await attempt(engine, queue, "k", 9_000)
    assert len(first) == 6 and handles(again) == handles(first) and texts(again) == texts(first)
    assert [d.receive_count for d in again] == [1] * 6
    gained = [b.next_visible_at_ms - a.next_visible_at_ms for a, b in zip(first, again, strict=True)]
    assert all(4_000 <= gain < 9_000 for gain in gained)
    assert (
        await attempt(engine, queue, "other") == []
        and await attempt(engine, queue, "k", by=Principal("x", admin=True)) == []
    )
    assert handles(await attempt(engine, queue, "k")) == handles(first)
    await ack(engine, queue, again)


@pytest.mark.parametrize("change", ["ack", "extend", "release", "lapse"])
async def test_an_attempt_whose_messages_were_touched_is_a_receive_like_any_other(
    engine: Engine, queue: str, change: str
) -> None:
    await engine.queues.create_queue(BY, queue, FIFO)
    await put(engine, queue, "a", "1", "2")
    first = await attempt(engine, queue, "k", 1 if change == "lapse" else 60_000)
    if change == "ack":
        await ack(engine, queue, first[:1])
    elif change == "extend":
        await engine.messages.extend(BY, queue, [ExtendEntry(first[0].handle, 50_000)])
    elif change == "release":
        await engine.messages.release(BY, queue, handles(first))
    else:
        await asyncio.sleep(0.02)
    again = await attempt(engine, queue, "k")
    assert texts(again) == (["1", "2"] if change in ("release", "lapse") else [])
    assert not set(handles(again)) & set(handles(first))
    assert handles(await attempt(engine, queue, "k")) == handles(again)


async def test_an_attempt_is_forgotten_after_five_minutes(engine: Engine, queue: str, clock: Clock) -> None:
    await engine.queues.create_queue(BY, queue, FIFO)
    await put(engine, queue, "a", "1")
    first = await attempt(engine, queue, "k", 600_000)
    clock.pass_s(KEPT_S - 10)
    assert handles(await attempt(engine, queue, "k", 600_000)) == handles(first)
    clock.pass_s(20)  # after the first one: to repeat it does not make it younger
    assert await attempt(engine, queue, "k") == []  # the message is leased


async def test_a_handle_is_late_once_its_lease_has_lapsed_if_the_caller_says_so(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, FIFO)
    await put(engine, queue, "a", "1")
    (old,) = await receive(engine, queue, lease_ms=1)
    await asyncio.sleep(0.02)
    for late in (Late.NEVER, Late.BY_QUEUE):
        assert [r.status for r in await engine.messages.ack(BY, queue, [old.handle], late=late)] == ["lapsed"]
        assert [r.status for r in await engine.messages.extend(BY, queue, [ExtendEntry(old.handle, 1)], late=late)] == [
            "lapsed"
        ]
    (new,) = await receive(engine, queue)
    assert [r.status for r in await engine.messages.ack(BY, queue, [old.handle], late=Late.NEVER)] == ["lapsed"]
    assert [r.status for r in await engine.messages.ack(BY, queue, [old.handle])] == ["stale"]
    await ack(engine, queue, [new])
    assert [r.status for r in await engine.messages.ack(BY, queue, [new.handle, old.handle], late=Late.BY_QUEUE)] == [
        "stale",
        "stale",
    ]


async def test_a_late_handle_counts_in_a_standard_queue_if_the_queue_decides(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    await engine.messages.send(BY, queue, [SendEntry(b"1"), SendEntry(b"2")])
    first, second = [one.handle for one in await receive(engine, queue, max=2, lease_ms=1)]
    await asyncio.sleep(0.02)
    assert [r.status for r in await engine.messages.ack(BY, queue, [first], late=Late.NEVER)] == ["lapsed"]
    assert [r.status for r in await engine.messages.ack(BY, queue, [first], late=Late.BY_QUEUE)] == ["ok"]
    assert [
        r.status for r in await engine.messages.extend(BY, queue, [ExtendEntry(second, 1)], late=Late.BY_QUEUE)
    ] == ["ok"]


async def test_a_task_moves_between_queues_of_one_kind_only(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, FIFO)
    await engine.queues.create_queue(BY, f"{queue}-plain", QueueSettings())
    for source, target in ((queue, f"{queue}-plain"), (f"{queue}-plain", queue)):
        with pytest.raises(NotAllowedOnQueue, match="both"):
            await engine.tasks.redrive(BY, source, target, None, 0)
