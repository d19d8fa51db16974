"""Redrive policies of tags: where a message goes that dies under a tag, and what may have one."""

from __future__ import annotations

import pytest

from engine.engine import Engine
from engine.errors import InvalidValue, NotAllowedOnQueue, QueueNotFound, TagExists
from engine.shapes import Delivery, Principal, SendEntry
from schemas.records.settings import QueueSettings, RedrivePolicy
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, eventually


async def queues(engine: Engine) -> None:
    """Queue `q`, whose messages die after three deliveries, with a tag `two` under which they die
    after two.
    """
    for name in ("all-dead", "two-dead"):
        await engine.queues.create_queue(BY, name, QueueSettings(partitions=1))
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, redrive_policy=RedrivePolicy("all-dead", 3)))
    await engine.queues.create_tag(BY, "q", "two", 0, None, {}, redrive_policy=RedrivePolicy("two-dead", 2))


async def received(engine: Engine, queue: str, tag: str | None, wait_ms: int = 10_000) -> list[Delivery]:
    return await engine.messages.receive(BY, queue, tag, 10, wait_ms, 60_000)


async def letters(engine: Engine, queue: str) -> list[tuple[bytes, str, str, int]]:
    """What has died: body, tag, reason and count of each."""
    found = await received(engine, queue, None)
    origins = [(one.message.body, one.message.origin) for one in found]
    return [
        (body, origin.from_tag, origin.reason, origin.receive_count) for body, origin in origins if origin is not None
    ]


async def test_each_tag_sends_its_dead_where_its_own_policy_says(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    await queues(engine)
    await engine.messages.send(BY, "q", [SendEntry(b"m")])
    for tag, deliveries in (("two", 2), (None, 3)):
        for number in range(1, deliveries + 1):
            (one,) = await received(engine, "q", tag)
            assert one.receive_count == number
            await engine.messages.release(BY, "q", [one.handle])
        assert await received(engine, "q", tag, wait_ms=500) == []

    assert await letters(engine, "two-dead") == [(b"m", "two", "exhausted", 2)]
    assert await letters(engine, "all-dead") == [(b"m", "default", "exhausted", 3)]


async def test_a_message_is_killed_into_the_queue_of_the_tag_of_its_handle(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    await queues(engine)
    await engine.messages.send(BY, "q", [SendEntry(b"m")])
    handles = [(await received(engine, "q", tag))[0].handle for tag in ("two", None)]
    assert [result.status for result in await engine.messages.kill(BY, "q", handles)] == ["ok", "ok"]

    assert await letters(engine, "two-dead") == [(b"m", "two", "killed", 1)]
    assert await letters(engine, "all-dead") == [(b"m", "default", "killed", 1)]


async def test_a_queue_without_a_policy_may_have_a_tag_with_one(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "dead", QueueSettings(partitions=1))
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    tag, made = await engine.queues.create_tag(BY, "q", "t", 0, None, {}, redrive_policy=RedrivePolicy("dead", 1))
    assert made and tag.redrive_policy == RedrivePolicy("dead", 1)
    await engine.messages.send(BY, "q", [SendEntry(b"m")])
    handles = [(await received(engine, "q", tag))[0].handle for tag in ("t", None)]
    with pytest.raises(NotAllowedOnQueue):
        await engine.messages.kill(BY, "q", handles)  # the default tag has nowhere to send it, so nothing is killed
    assert [result.status for result in await engine.messages.kill(BY, "q", handles[:1])] == ["ok"]
    assert await letters(engine, "dead") == [(b"m", "t", "killed", 1)]


async def test_a_policy_of_a_tag_is_a_source_like_that_of_a_queue(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    await queues(engine)
    other = await make_engine()

    assert (await other.queues.get_queue(BY, "two-dead")).source_queues == ["q"]
    await engine.queues.delete_tag(BY, "q", "two")
    assert (await engine.queues.get_queue(BY, "two-dead")).source_queues == []

    async def heard() -> bool:
        return (await other.queues.get_queue(BY, "two-dead")).source_queues == []

    await eventually(heard)


async def test_an_equal_tag_is_fine_and_another_policy_is_not(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    await queues(engine)
    _, made = await engine.queues.create_tag(BY, "q", "two", 0, None, {}, redrive_policy=RedrivePolicy("two-dead", 2))
    assert not made
    for policy in (None, RedrivePolicy("two-dead", 3), RedrivePolicy("all-dead", 2)):
        with pytest.raises(TagExists):
            await engine.queues.create_tag(BY, "q", "two", 0, None, {}, redrive_policy=policy)


async def test_what_no_queue_may_have_no_tag_may(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    await queues(engine)
    await engine.queues.create_queue(BY, "fifo", QueueSettings(partitions=1, fifo=True))
    await engine.queues.create_queue(BY, "last", QueueSettings(partitions=1, dead_letter=True))
    for queue, policy, error in (
        ("q", RedrivePolicy("nowhere", 1), QueueNotFound),
        ("q", RedrivePolicy("fifo", 1), NotAllowedOnQueue),
        ("q", RedrivePolicy("two-dead", 0), InvalidValue),
        ("last", RedrivePolicy("two-dead", 1), NotAllowedOnQueue),
        ("two-dead", RedrivePolicy("last", 1), NotAllowedOnQueue),  # it is a dead-letter queue itself
    ):
        with pytest.raises(error):
            await engine.queues.create_tag(BY, queue, "t", 0, None, {}, redrive_policy=policy)
    await engine.queues.set_redrive_policy(BY, "q", None)
    with pytest.raises(NotAllowedOnQueue):  # its tag has a policy
        await engine.queues.create_queue(BY, "more", QueueSettings(redrive_policy=RedrivePolicy("q", 1)))


async def test_who_sets_a_policy_must_be_allowed_to_send_to_its_queue(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    await queues(engine)
    bob = Principal("bob")
    await engine.queues.create_queue(bob, "own", QueueSettings(partitions=1))
    with pytest.raises(QueueNotFound):
        await engine.queues.create_tag(bob, "own", "t", 0, None, {}, redrive_policy=RedrivePolicy("two-dead", 1))
    await engine.callers.grant(BY, "two-dead", "bob", "send")
    await engine.queues.create_tag(bob, "own", "t", 0, None, {}, redrive_policy=RedrivePolicy("two-dead", 1))
