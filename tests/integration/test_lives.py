"""Rights are of a life of a queue, not of its name: who creates a queue of the name of a deleted
one gets nothing that was meant for the old one, and what was set up goes on only while it is
allowed.
"""

from __future__ import annotations

import asyncio
import secrets

import msgspec
import pytest

from engine.engine import Engine
from engine.errors import EngineError, NotAllowedOnQueue, NotAuthorised, QueueNotFound
from engine.rules.rights import as_asked
from engine.shapes import Principal, SendEntry
from schemas.records.settings import QueueSettings, RedrivePolicy
from schemas.topics import QUEUE_KEY
from schemas.vocabulary import NO_INCARNATION
from tests.integration.conftest import MakeEngine
from tests.integration.drive import ended, eventually

ALICE, BOB, MALLORY = Principal("alice"), Principal("bob"), Principal("mallory")
DEAD = RedrivePolicy("dead", 1)


@pytest.fixture
async def guarded(make_engine: MakeEngine) -> Engine:
    """Alice has q and its dead-letter queue."""
    engine = await make_engine(auth="required", admin_key_secret="admin's secret", default_partitions=1)
    await engine.queues.create_queue(ALICE, "dead", QueueSettings())
    await engine.queues.create_queue(ALICE, "q", QueueSettings(redrive_policy=DEAD))
    return engine


async def die(engine: Engine, text: str) -> int:
    """Sends a message to q and receives it until it dies, at most four times; how often that
    was.
    """
    await engine.messages.send(ALICE, "q", [SendEntry(text.encode())])
    for count in range(4):
        got = await engine.messages.receive(ALICE, "q", None, 10, 300, 0)
        if not got:
            return count
    return 4


async def texts(engine: Engine, by: Principal, queue: str) -> list[str]:
    return sorted(one.message.body.decode() for one in await engine.messages.peek_next(by, queue, None, 100))


async def has(engine: Engine, by: Principal, queue: str, *expected: str) -> None:
    async def there() -> bool:
        return await texts(engine, by, queue) == sorted(expected)

    await eventually(there)


async def remade(engine: Engine, name: str) -> None:
    """Alice deletes her queue, and Mallory creates one of that name."""
    await engine.queues.delete_queue(ALICE, name)
    await engine.queues.create_queue(MALLORY, name, QueueSettings())


async def test_a_dead_letter_queue_that_a_stranger_made_anew_gets_nothing(guarded: Engine) -> None:
    await die(guarded, "first")
    await has(guarded, ALICE, "dead", "first")
    await remade(guarded, "dead")

    assert await die(guarded, "second") == 4, "it is received on"
    (got,) = await guarded.messages.receive(ALICE, "q", None, 1, 1_000, 30_000)
    with pytest.raises(NotAllowedOnQueue, match="is another: set the policy again"):
        await guarded.messages.kill(ALICE, "q", [got.handle])
    await guarded.messages.release(ALICE, "q", [got.handle])
    assert await texts(guarded, MALLORY, "dead") == []
    assert await guarded.queues.get_redrive_policy(ALICE, "q") == (DEAD, "another")
    assert (await guarded.queues.get_queue(ALICE, "q")).redrive_fault == "another"
    assert (await guarded.queues.get_queue(MALLORY, "dead")).source_queues == [], "nor is she told whose it was"
    await guarded.parts.administration.watch.alarm_monitor.run_once()
    assert [(a.kind, a.queue, a.number) for a in guarded.alerts.alarms()] == [("redrive_stopped", "q", 1.0)]
    with pytest.raises(QueueNotFound):
        await guarded.queues.set_redrive_policy(ALICE, "q", DEAD)

    await guarded.queues.delete_queue(MALLORY, "dead")
    assert await guarded.queues.get_redrive_policy(ALICE, "q") == (DEAD, "missing")
    await guarded.queues.create_queue(ALICE, "dead", QueueSettings())
    assert await guarded.queues.get_redrive_policy(ALICE, "q") == (DEAD, "another"), "until she sets it again"
    await guarded.queues.set_redrive_policy(ALICE, "q", DEAD)
    assert await guarded.messages.receive(ALICE, "q", None, 1, 100, 0) == []
    await has(guarded, ALICE, "dead", "second")
    await guarded.parts.administration.watch.alarm_monitor.run_once()
    assert guarded.alerts.alarms() == []


async def test_a_policy_of_a_tag_means_a_life_too(guarded: Engine) -> None:
    await guarded.queues.create_tag(ALICE, "q", "t", 0, None, {}, redrive_policy=DEAD)
    await remade(guarded, "dead")
    assert [tag.redrive_fault for tag in await guarded.queues.list_tags(ALICE, "q")] == ["", "another"]
    await guarded.messages.send(ALICE, "q", [SendEntry(b"x")])
    for _ in range(3):
        assert len(await guarded.messages.receive(ALICE, "q", "t", 1, 1_000, 0)) == 1
    assert await texts(guarded, MALLORY, "dead") == []


async def test_a_policy_ends_with_the_right_to_send(guarded: Engine) -> None:
    await guarded.queues.create_queue(BOB, "bobs", QueueSettings())
    await guarded.callers.grant(BOB, "bobs", "alice", "send")
    bobs = RedrivePolicy("bobs", 1)
    await guarded.queues.set_redrive_policy(ALICE, "q", bobs)
    await die(guarded, "first")
    await has(guarded, BOB, "bobs", "first")

    await guarded.callers.grant(BOB, "bobs", "alice", "none")
    assert await die(guarded, "second") == 4
    assert await guarded.queues.get_redrive_policy(ALICE, "q") == (bobs, "forbidden")
    assert await texts(guarded, BOB, "bobs") == ["first"]
    await guarded.callers.grant(BOB, "bobs", "alice", "use")
    assert await guarded.messages.receive(ALICE, "q", None, 1, 100, 0) == []
    await has(guarded, BOB, "bobs", "first", "second")


async def test_an_administrator_who_leaves_stops_no_dead_letters_of_the_owner(guarded: Engine) -> None:
    root = Principal("root", admin=True)
    await guarded.callers.create_key(root, "k", "root", "admin")
    await guarded.queues.create_queue(BOB, "bobs", QueueSettings())
    await guarded.queues.set_redrive_policy(root, "q", DEAD)
    await guarded.queues.create_queue(ALICE, "q2", QueueSettings())
    await guarded.queues.set_redrive_policy(root, "q2", RedrivePolicy("bobs", 1))
    await guarded.callers.delete_key(root, "k")
    assert (await guarded.queues.get_redrive_policy(ALICE, "q"))[1] == "", "she may send there herself"
    assert (await guarded.queues.get_redrive_policy(ALICE, "q2"))[1] == "forbidden", "only root could"


async def test_no_race_with_a_creation_gives_a_policy_to_a_queue_that_nobody_may_send_to(guarded: Engine) -> None:
    for n in range(8):
        name = f"race{n}"
        policy = RedrivePolicy(name, 1)
        created = asyncio.create_task(guarded.queues.create_queue(MALLORY, name, QueueSettings()))
        tries: list[BaseException | None] = []
        while not created.done() or not tries:
            try:
                await guarded.queues.set_redrive_policy(ALICE, "q", policy)
                tries.append(None)
            except EngineError as error:
                tries.append(error)
        await created
        assert all(isinstance(error, QueueNotFound) for error in tries)
    assert (await guarded.queues.get_redrive_policy(ALICE, "q")) == (DEAD, "")


async def test_a_dead_letter_goes_home_to_the_life_that_it_came_from_and_to_no_other(guarded: Engine) -> None:
    await die(guarded, "letter")
    await has(guarded, ALICE, "dead", "letter")
    await guarded.queues.delete_queue(ALICE, "q")
    await guarded.queues.create_queue(MALLORY, "q", QueueSettings())
    task = await ended(guarded, await guarded.tasks.redrive(ALICE, "dead", None, None, 0))
    assert (task.status, task.moved, task.failed) == ("completed", 0, 1)
    assert await texts(guarded, MALLORY, "q") == []
    with pytest.raises(QueueNotFound):
        await guarded.tasks.redrive(ALICE, "dead", "q", None, 0)
    # Not even to a queue of hers of that name, unless she says so.
    await guarded.queues.delete_queue(MALLORY, "q")
    await guarded.queues.create_queue(ALICE, "q", QueueSettings())
    assert (await ended(guarded, await guarded.tasks.redrive(ALICE, "dead", None, None, 0))).moved == 0
    assert (await ended(guarded, await guarded.tasks.redrive(ALICE, "dead", "q", None, 0))).moved == 1
    assert await texts(guarded, ALICE, "q") == ["letter"]


async def test_a_queue_that_was_renewed_is_the_same_to_policies_and_letters(guarded: Engine) -> None:
    await die(guarded, "letter")
    await has(guarded, ALICE, "dead", "letter")
    making = guarded.parts.administration.queues.making
    for name in ("q", "dead"):
        old = guarded.catalog.queues[name]
        former = [*old.record.former_incarnations, old.incarnation]
        record = msgspec.structs.replace(old.record, incarnation=secrets.token_hex(6), former_incarnations=former)
        async with guarded.catalog.change(name) as change:
            await making.renew(record, change, made=True)
    await has(guarded, ALICE, "dead", "letter")
    assert await guarded.queues.get_redrive_policy(ALICE, "q") == (DEAD, "")
    assert (await guarded.queues.get_queue(ALICE, "dead")).source_queues == ["q"]
    assert (await ended(guarded, await guarded.tasks.redrive(ALICE, "dead", None, None, 0))).moved == 1


async def test_a_task_ends_with_its_destination_and_with_the_right_to_send_there(guarded: Engine) -> None:
    await guarded.messages.send(ALICE, "dead", [SendEntry(b"%d" % n) for n in range(30)])
    await guarded.queues.create_queue(ALICE, "to", QueueSettings())
    first = await guarded.tasks.redrive(ALICE, "dead", "to", None, 2)
    await remade(guarded, "to")
    failed = await ended(guarded, first)
    assert (failed.status, failed.failure) == ("failed", "queue 'to' was deleted")
    assert await texts(guarded, MALLORY, "to") == []

    await guarded.queues.create_queue(BOB, "bobs", QueueSettings())
    with pytest.raises(QueueNotFound):
        await guarded.tasks.redrive(ALICE, "dead", "bobs", None, 2)
    await guarded.callers.grant(BOB, "bobs", "alice", "receive")
    with pytest.raises(NotAuthorised):
        await guarded.tasks.redrive(ALICE, "dead", "bobs", None, 2)
    await guarded.callers.grant(BOB, "bobs", "alice", "send")
    second = await guarded.tasks.redrive(ALICE, "dead", "bobs", None, 2)
    await guarded.callers.grant(BOB, "bobs", "alice", "none")
    failed = await ended(guarded, second)
    assert (failed.status, failed.failure) == ("failed", "principal 'alice' may not send to queue 'bobs'")
    assert len(await texts(guarded, BOB, "bobs")) < 30


async def test_a_letter_of_somebody_else_goes_home_only_while_that_is_allowed(guarded: Engine) -> None:
    await guarded.queues.create_queue(BOB, "bobs", QueueSettings())
    await guarded.callers.grant(BOB, "bobs", "alice", "send")
    await guarded.queues.set_redrive_policy(ALICE, "q", RedrivePolicy("bobs", 1))
    await die(guarded, "letter")
    await has(guarded, BOB, "bobs", "letter")
    assert (await ended(guarded, await guarded.tasks.redrive(BOB, "bobs", None, None, 0))).failed == 1
    await guarded.callers.grant(ALICE, "q", "bob", "send")
    assert (await ended(guarded, await guarded.tasks.redrive(BOB, "bobs", None, None, 0))).moved == 1
    await has(guarded, ALICE, "q", "letter")


async def test_a_copy_has_no_rights(guarded: Engine) -> None:
    await guarded.queues.create_tag(ALICE, "q", "t", 0, None, {}, redrive_policy=DEAD)
    await guarded.callers.grant(ALICE, "q", "bob", "admin")
    await guarded.callers.grant(ALICE, "q", "mallory", "full_control")
    copy = await guarded.queues.copy_queue(BOB, "q", "copy")
    assert (copy.owner, copy.redrive_policy, [tag.redrive_policy for tag in copy.tags]) == ("bob", None, [None, None])
    assert await guarded.callers.list_grants(BOB, "copy") == {}
    await guarded.queues.delete_queue(ALICE, "dead")
    await guarded.queues.copy_queue(ALICE, "q", "copy2")


async def test_records_of_before_mean_the_queue_that_was_there(guarded: Engine) -> None:
    """As a version wrote them that noted no life."""
    record = guarded.catalog.queues["q"].record
    before = msgspec.structs.replace(record, redrive_policy=as_asked(record.redrive_policy))
    async with guarded.catalog.change("q") as change:
        await change.write(f"{QUEUE_KEY}q", before)
    assert await guarded.queues.get_redrive_policy(ALICE, "q") == (DEAD, "")
    await die(guarded, "first")
    await has(guarded, ALICE, "dead", "first")

    await asyncio.sleep(0.01)
    await remade(guarded, "dead")
    assert await guarded.queues.get_redrive_policy(ALICE, "q") == (DEAD, "another")
    await guarded.queues.set_queue(ALICE, "q", QueueSettings(lease_ms=10_000))
    assert await guarded.queues.get_redrive_policy(ALICE, "q") == (DEAD, "another"), (
        "a change of something else lets nobody in"
    )
    noted = guarded.catalog.queues["q"].record.redrive_policy
    assert noted is not None and noted.dead_letter_incarnation == NO_INCARNATION
