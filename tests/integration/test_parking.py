"""What becomes of a message of a FIFO queue that was received too often: it blocks its group, dies,
or parks the group. Real Kafka and Redis, which loses all that it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from engine.engine import Engine
from engine.errors import InvalidValue, NotAllowedOnQueue, QueueNotFound
from engine.shapes import ParkedGroup, Principal, SendEntry
from schemas.records.settings import TABLE, QueueSettings, RedrivePolicy
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, eventually, receive
from tests.integration.test_fifo import put, texts
from tests.integration.test_rebuild import drained, wipe
from tests.integration.test_verify import clean, verify
from tests.services import Services

PARKS = QueueSettings(fifo=True, lease_ms=60_000, on_exhausted="park", max_receive_count=2)
SPREAD = QueueSettings(
    fifo=True, lease_ms=60_000, on_exhausted="park", max_receive_count=2, dedup_scope="group", partitions=4
)


async def fail(engine: Engine, queue: str, times: int, tag: str | None = None, max: int = 1) -> None:
    """Receives the first messages so often, and gives them back."""
    for _ in range(times):
        got = await receive(engine, queue, max=max, wait_ms=5_000, tag=tag)
        assert got
        await engine.messages.release(BY, queue, [one.handle for one in got], 0)


async def parked(engine: Engine, queue: str, tag: str | None = None) -> list[ParkedGroup]:
    return (await engine.tasks.parked_groups(BY, queue, tag, 100, None)).groups


async def counts(engine: Engine, queue: str, tag: str = "default") -> tuple[int, int, int, int]:
    """(ready, leased, parked, backlog)."""
    found = next(one for one in (await engine.queues.get_queue(BY, queue)).tags if one.name == tag)
    return found.ready, found.leased, found.parked, found.backlog


def names(groups: Sequence[ParkedGroup]) -> list[str]:
    return sorted(str(one.group) for one in groups)


@pytest.mark.parametrize("settings", [PARKS, SPREAD], ids=["queue scope", "group scope"])
async def test_a_parked_group_outlives_a_loss_of_redis_and_goes_on_in_order(
    make_engine: MakeEngine, stack: Services, settings: QueueSettings
) -> None:
    engine, other = await make_engine(), await make_engine()
    await engine.queues.create_queue(BY, "q", settings)
    await engine.queues.create_tag(BY, "q", "two", 0, None, {})
    await put(engine, "q", "a", "1")
    await fail(engine, "q", 2)
    assert await receive(engine, "q") == []  # this one parks it
    await put(other, "q", "a", "2", "3")
    await put(other, "q", "b", "x", "y")
    assert await drain(other, "q", expect=2) == ["x", "y"]
    (group,) = await parked(engine, "q")
    assert (group.group, group.receive_count, group.held) == ("a", 2, 2)
    peeked = await engine.messages.peek(BY, "q", group.message_id, None)
    assert (peeked.state, peeked.message.body, peeked.next_visible_at_ms) == ("parked", b"1", None)
    assert [
        one.message.body
        for one in (await engine.messages.query(BY, "q", None, None, None, "parked", None, 10, None)).messages
    ] == [b"1"]
    assert await engine.messages.peek_next(BY, "q", None, 10) == []
    assert await counts(engine, "q") == (2, 0, 1, 3)
    assert await counts(engine, "q", "two") == (5, 0, 0, 5)
    await drained(engine)
    assert clean(await verify(engine))

    wipe(stack, engine)
    assert await receive(engine, "q", wait_ms=1_000) == []
    await put(engine, "q", "b", "z")
    assert await drain(other, "q", expect=1) == ["z"]
    (again,) = await parked(other, "q")
    assert again == group
    assert (await engine.messages.peek(BY, "q", group.message_id, None)).state == "parked"
    # The other tag has all of it, in order.
    order = await drain(engine, "q", "two", expect=6)
    assert [text for text in order if text in "123"] == ["1", "2", "3"] and [
        text for text in order if text in "xyz"
    ] == ["x", "y", "z"]
    await drained(engine)
    assert clean(await verify(engine))

    assert await engine.tasks.unpark(BY, "q", "two", "a") is False
    assert await other.tasks.unpark(BY, "q", None, "a") is True
    assert await engine.tasks.unpark(BY, "q", None, "a") is False
    wipe(stack, engine)  # the answer came when the journal had it
    got = await receive(engine, "q", max=1, wait_ms=5_000)
    assert (texts(got), [one.receive_count for one in got]) == (["1"], [1])
    await ack(engine, "q", got)
    assert await drain(other, "q", expect=2) == ["2", "3"]
    assert (await parked(engine, "q"), await counts(engine, "q")) == ([], (0, 0, 0, 0))
    await drained(engine)
    assert clean(await verify(engine))


async def test_a_receive_that_waits_is_told_when_a_group_goes_on(make_engine: MakeEngine) -> None:
    engine, other = await make_engine(), await make_engine()
    await engine.queues.create_queue(BY, "q", PARKS)
    await put(engine, "q", "a", "1")
    await fail(engine, "q", 2)
    waiting = asyncio.create_task(receive(engine, "q", wait_ms=20_000))
    await eventually(lambda: _are(other, "q", ["a"]))
    assert not waiting.done()
    assert await other.tasks.unpark(BY, "q", None, "a")
    assert texts(await asyncio.wait_for(waiting, 5)) == ["1"]


async def _are(engine: Engine, queue: str, groups: list[str]) -> bool:
    return names(await parked(engine, queue)) == groups


async def test_a_receive_that_waits_gets_what_follows_when_a_parked_message_expires(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TABLE, "retention_ms", msgspec.structs.replace(TABLE["retention_ms"], low=1000))
    await engine.queues.create_queue(BY, queue, msgspec.structs.replace(PARKS, retention_ms=4_000))
    await put(engine, queue, "a", "1")
    await fail(engine, queue, 2)
    assert await receive(engine, queue) == []
    await asyncio.sleep(2)
    await put(engine, queue, "a", "2")
    assert names(await parked(engine, queue)) == ["a"]
    assert texts(await receive(engine, queue, wait_ms=10_000)) == ["2"]
    assert await parked(engine, queue) == []


async def test_each_tag_parks_by_its_own_policy_and_a_kill_moves_to_its_own_queue(engine: Engine, queue: str) -> None:
    for name in (f"{queue}-d1", f"{queue}-d2"):
        await engine.queues.create_queue(BY, name, QueueSettings(fifo=True))
    policy = RedrivePolicy(f"{queue}-d1", 3)
    await engine.queues.create_queue(BY, queue, QueueSettings(fifo=True, on_exhausted="park", redrive_policy=policy))
    await engine.queues.create_tag(BY, queue, "two", 0, None, {}, redrive_policy=RedrivePolicy(f"{queue}-d2", 1))
    await put(engine, queue, "a", "1", "2")
    await fail(engine, queue, 1, "two")
    assert await receive(engine, queue, tag="two") == []
    await fail(engine, queue, 2)
    assert (names(await parked(engine, queue)), names(await parked(engine, queue, "two"))) == ([], ["a"])
    await fail(engine, queue, 1)
    assert await receive(engine, queue) == []
    assert names(await parked(engine, queue)) == ["a"]

    assert await engine.tasks.unpark(BY, queue, "two", "a", kill=True)
    assert texts(await receive(engine, queue, tag="two")) == ["2"]
    (dead,) = await receive(engine, f"{queue}-d2", wait_ms=5_000)
    assert dead.message.origin is not None
    assert (dead.message.body, dead.message.origin.reason, dead.message.origin.receive_count) == (b"1", "killed", 1)
    assert await receive(engine, f"{queue}-d1") == []
    assert names(await parked(engine, queue)) == ["a"]


async def test_a_parked_message_may_be_deleted_moved_or_purged(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, PARKS)
    await engine.queues.create_queue(BY, f"{queue}-to", QueueSettings(fifo=True))
    for group in "abc":
        await put(engine, queue, group, f"{group}1", f"{group}2")
    await fail(engine, queue, 2, max=100)
    assert await receive(engine, queue, max=100) == []
    ids = {one.group: one.message_id for one in await parked(engine, queue)}
    assert sorted(map(str, ids)) == ["a", "b", "c"]
    await engine.messages.delete_message(BY, queue, ids["a"])
    await engine.tasks.redrive(BY, queue, f"{queue}-to", None, 0, ids=[ids["b"]])
    assert await drain(engine, f"{queue}-to", expect=1) == ["b1"]
    # What is behind them was received with them as often: it parks the groups again.
    assert await receive(engine, queue) == []
    assert {one.group: one.held for one in await parked(engine, queue)} == {"a": 0, "b": 0, "c": 1}
    await engine.queues.purge(BY, queue)
    assert (await parked(engine, queue), await counts(engine, queue)) == ([], (0, 0, 0, 0))
    await put(engine, queue, "a", "a3")
    assert await drain(engine, queue, expect=1) == ["a3"]


async def test_a_list_of_parked_groups_has_pages(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, SPREAD)
    for number in range(23):
        await put(engine, queue, f"g{number}", "m")
    for _ in range(3):
        got = await receive(engine, queue, max=100)
        if got:
            await engine.messages.release(BY, queue, [one.handle for one in got], 0)
    await eventually(lambda: _parks_all(engine, queue, 23))
    found, page = list[str | None](), await engine.tasks.parked_groups(BY, queue, None, 5, None)
    while page.next is not None:
        assert len(page.groups) <= 5
        found += [one.group for one in page.groups]
        page = await engine.tasks.parked_groups(BY, queue, None, 5, page.next)
    found += [one.group for one in page.groups]
    assert sorted(map(str, found)) == sorted(f"g{number}" for number in range(23))
    for bad in ("x", "AAAA"):
        with pytest.raises(InvalidValue, match="next is not a token"):
            await engine.tasks.parked_groups(BY, queue, None, 5, bad)


async def _parks_all(engine: Engine, queue: str, number: int) -> bool:
    await receive(engine, queue, max=100)
    return (await counts(engine, queue))[2] == number


async def test_a_queue_that_blocks_gives_its_first_message_again_and_again(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}-dead", QueueSettings(fifo=True))
    policy = RedrivePolicy(f"{queue}-dead", 2)
    await engine.queues.create_queue(BY, queue, QueueSettings(fifo=True, on_exhausted="block", redrive_policy=policy))
    await put(engine, queue, "a", "1", "2")
    await fail(engine, queue, 4)
    assert [one.message.body for one in await engine.messages.peek_next(BY, queue, None, 10)] == [b"1", b"2"]
    (first,) = await receive(engine, queue, max=1)
    assert (first.message.body, first.receive_count) == (b"1", 5)
    assert await receive(engine, f"{queue}-dead") == []
    # What a consumer kills dies all the same.
    assert [one.status for one in await engine.messages.kill(BY, queue, [first.handle])] == ["ok"]
    assert texts(await receive(engine, f"{queue}-dead", wait_ms=5_000)) == ["1"]
    assert texts(await receive(engine, queue)) == ["2"]


async def test_nothing_said_means_what_it_meant_before(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}-dead", QueueSettings(fifo=True))
    await engine.queues.create_queue(BY, queue, QueueSettings(fifo=True))
    assert (await engine.queues.get_queue(BY, queue)).on_exhausted == ""
    await put(engine, queue, "a", "1", "2")
    await fail(engine, queue, 4)
    await engine.queues.set_redrive_policy(BY, queue, RedrivePolicy(f"{queue}-dead", 4))
    assert await receive(engine, queue, max=1) == []
    assert texts(await receive(engine, f"{queue}-dead", wait_ms=5_000)) == ["1"]


async def test_a_change_leaves_parked_groups_parked(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, PARKS)
    await put(engine, queue, "a", "1")
    await fail(engine, queue, 2)
    await put(engine, queue, "b", "x")
    await fail(engine, queue, 1)
    assert names(await parked(engine, queue)) == ["a"]
    info = await engine.queues.set_queue(BY, queue, QueueSettings(on_exhausted="block"))
    assert (info.on_exhausted, info.max_receive_count) == ("block", 0)
    await fail(engine, queue, 3)
    assert names(await parked(engine, queue)) == ["a"]
    assert await engine.tasks.unpark(BY, queue, None, "a")
    assert sorted(await drain(engine, queue, expect=2)) == ["1", "x"]


BAD: list[tuple[QueueSettings, str]] = [
    (QueueSettings(on_exhausted="park", max_receive_count=2), "on_exhausted"),
    (QueueSettings(fifo=True, on_exhausted="stop"), "on_exhausted"),
    (QueueSettings(fifo=True, on_exhausted="park"), "on_exhausted"),
    (QueueSettings(fifo=True, on_exhausted="dead_letter"), "on_exhausted"),
    (QueueSettings(fifo=True, max_receive_count=2), "max_receive_count"),
    (QueueSettings(fifo=True, on_exhausted="block", max_receive_count=2), "max_receive_count"),
    (QueueSettings(fifo=True, on_exhausted="park", max_receive_count=0), "max_receive_count"),
]


@pytest.mark.parametrize(("settings", "field"), BAD, ids=[str(number) for number in range(len(BAD))])
async def test_a_choice_that_means_nothing_is_refused(
    engine: Engine, queue: str, settings: QueueSettings, field: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        await engine.queues.create_queue(BY, queue, settings)
    assert refused.value.field == field
    assert queue not in engine.catalog.queues


async def test_a_choice_keeps_what_it_needs(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}-dead", QueueSettings(fifo=True))
    policy = RedrivePolicy(f"{queue}-dead", 2)
    await engine.queues.create_queue(
        BY, queue, QueueSettings(fifo=True, on_exhausted="dead_letter", redrive_policy=policy)
    )
    for word in ("dead_letter", "park"):
        await engine.queues.set_queue(BY, queue, QueueSettings(on_exhausted=word))
        with pytest.raises(InvalidValue, match="needs"):
            await engine.queues.set_redrive_policy(BY, queue, None)
    await engine.queues.set_queue(BY, queue, QueueSettings(max_receive_count=7))
    assert await engine.queues.set_redrive_policy(BY, queue, None) is None
    assert (await engine.queues.get_queue(BY, queue)).max_receive_count == 7
    await engine.queues.copy_queue(BY, queue, f"{queue}-copy")
    copy = await engine.queues.get_queue(BY, f"{queue}-copy")
    assert (copy.on_exhausted, copy.max_receive_count) == ("park", 7)


async def test_what_cannot_be_unparked_is_refused(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}-plain", QueueSettings())
    await engine.queues.create_queue(BY, queue, PARKS)
    for refused in (
        engine.tasks.unpark(BY, f"{queue}-plain", None, "a"),
        engine.tasks.parked_groups(BY, f"{queue}-plain", None, 1, None),
    ):
        with pytest.raises(NotAllowedOnQueue, match="standard queue"):
            await refused
    with pytest.raises(NotAllowedOnQueue, match="no redrive policy"):
        await engine.tasks.unpark(BY, queue, None, "a", kill=True)
    for group in ("with space", "x" * 129):
        with pytest.raises(InvalidValue, match="group must be"):
            await engine.tasks.unpark(BY, queue, None, group)
    with pytest.raises(QueueNotFound):
        await engine.tasks.unpark(Principal("stranger"), queue, None, "a")
    assert await engine.tasks.unpark(BY, queue, None, "nobody") is False
    assert await engine.tasks.unpark(BY, queue, None, "") is False


async def test_parked_groups_are_told_of(own_engine: Engine) -> None:
    await own_engine.queues.create_queue(BY, "q", PARKS)
    for group in "abc":
        await put(own_engine, "q", group, "1")
    for _ in range(3):
        got = await receive(own_engine, "q", max=10)
        await asyncio.gather(*(own_engine.messages.release(BY, "q", [one.handle], 0) for one in got))
    assert own_engine.counts()["groups_parked_total"] == 3
    await own_engine.parts.administration.watch.alarm_monitor.run_once()
    assert [(one.kind, one.queue, one.number) for one in own_engine.alerts.alarms()] == [("groups_parked", "q", 3)]
    for group in "abc":
        assert await own_engine.tasks.unpark(BY, "q", None, group)
    await own_engine.parts.administration.watch.alarm_monitor.run_once()
    assert own_engine.alerts.alarms() == []
    assert own_engine.counts()["groups_unparked_total"] == 3


async def test_ordered_messages_are_not_transactional_and_have_no_delay(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(fifo=True, content_dedup=True))
    with pytest.raises(NotAllowedOnQueue, match="is FIFO"):
        await engine.transactions.prepare(BY, queue, "producers", [SendEntry(b"m", group="g")], None)
    for entry in (SendEntry(b"m", group="g", delay_ms=5), SendEntry(b"m", group="g", deliver_at_ms=5)):
        with pytest.raises(InvalidValue, match="no delay of its own"):
            await engine.messages.send(BY, queue, [entry])
    assert await drain(engine, queue, expect=0, patience_ms=100) == []
