"""The audit has what was changed and who was refused, loses nothing while Kafka is away, and bounds
a flood of refusals.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import EngineError, InvalidValue, NotAuthenticated, NotAuthorised, QueueNotFound
from engine.queues.callers import audited
from engine.queues.callers.audit import FAILURES_A_SECOND
from engine.shapes import Principal, SendEntry
from runtime.asked import note
from schemas.records.settings import QueueSettings
from schemas.records.watching import AuditRecord
from schemas.topics import audit_topic
from schemas.vocabulary import CHANGES, Role, Verb
from schemas.wire import decode, encode
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, eventually
from tests.integration.test_grants import ASKED
from tests.services import Services
from tests.stopping import stand_still

ALICE, BOB = Principal("alice", key_id="a1"), Principal("bob", key_id="b1")


@pytest.fixture
async def guarded(make_engine: MakeEngine) -> Engine:
    return await make_engine(auth="required", admin_key_secret="admin's secret", default_partitions=1)


async def records(engine: Engine) -> list[AuditRecord]:
    chunk = await engine.log.fetch(audit_topic(engine.settings.topic_prefix), 0, 0, 10_000, 8_000_000)
    found = [decode(record.value) for record in chunk.records if record.value]
    assert all(isinstance(one, AuditRecord) for one in found)
    return [one for one in found if isinstance(one, AuditRecord)]


async def serve(engine: Engine, call: Awaitable[Any], operation: str = "op", request_id: str = "") -> None:
    """Does what a server of requests does around each."""
    asked = engine.audit.begin("10.0.0.1")
    failed: EngineError | None = None
    try:
        await call
    except EngineError as error:
        failed = error
    if failed is not None or asked.verb not in engine.audit.quiet:
        await engine.audit.end(asked, operation, 400 if failed else 200, failed, request_id)


async def written(engine: Engine, number: int) -> list[AuditRecord]:
    async def there() -> bool:
        return len(await records(engine)) >= number

    await eventually(there)
    return await records(engine)


async def test_a_change_is_written_down_before_it_is_answered(guarded: Engine) -> None:
    await serve(guarded, guarded.queues.create_queue(ALICE, "q", QueueSettings()), "sqs.CreateQueue", "id-1")
    (one,) = await records(guarded)
    assert (one.principal, one.key_id, one.peer, one.operation, one.verb, one.queue) == (
        "alice", "a1", "10.0.0.1", "sqs.CreateQueue", "create_queue", "q",
    )  # fmt: skip
    assert (one.outcome, one.status, one.error, one.request_id, one.number) == ("done", 200, "", "id-1", 1)
    assert abs(one.at_ms - time.time() * 1000) < 60_000
    await serve(guarded, guarded.queues.create_tag(ALICE, "q", "t", 0, None, {}))
    await serve(guarded, guarded.callers.grant(ALICE, "q", "bob", "send"))
    await serve(guarded, guarded.callers.create_key(BY, "k", "carol", "reader"))
    _, *rest = await records(guarded)
    assert [(one.verb, one.queue, one.tag, one.subject) for one in rest] == [
        ("create_tag", "q", "t", ""), ("grant", "q", "", "bob"), ("manage_keys", "", "", "k"),
    ]  # fmt: skip


async def test_a_change_is_written_down_also_when_its_dialect_looks_first(guarded: Engine) -> None:
    async def as_sqs_does() -> None:
        with contextlib.suppress(QueueNotFound):
            await guarded.queues.get_queue(ALICE, "q")
        await guarded.queues.create_queue(ALICE, "q", QueueSettings())
        await guarded.queues.get_queue(ALICE, "q")

    await serve(guarded, as_sqs_does(), "sqs.CreateQueue")
    assert [(one.verb, one.queue, one.outcome) for one in await records(guarded)] == [("create_queue", "q", "done")]


async def test_each_change_that_a_dialect_makes_for_one_request_is_written_down(guarded: Engine) -> None:
    async def as_rocketmq_does() -> None:
        await guarded.queues.create_queue(ALICE, "dlq", QueueSettings())
        await guarded.queues.create_tag(ALICE, "q", "group", 0, None, {})

    await guarded.queues.create_queue(ALICE, "q", QueueSettings())
    await serve(guarded, as_rocketmq_does(), "rocketmq.ReceiveMessage", "id-1")
    found = [(one.number, one.verb, one.queue, one.tag, one.request_id) for one in await records(guarded)]
    assert found == [(1, "create_queue", "dlq", "", "id-1"), (2, "create_tag", "q", "group", "id-1")]


async def test_every_verb_that_changes_something_is_written_down_and_no_other(guarded: Engine) -> None:
    await guarded.queues.create_queue(ALICE, "q", QueueSettings())
    for verb in sorted(ASKED, key=lambda verb: verb == Verb.DELETE_QUEUE):
        await serve(guarded, ASKED[verb](guarded, ALICE))
    changes = CHANGES & set(ASKED) - {Verb.REDRIVE}  # of that the tasks are listed
    found = await written(guarded, len(changes))
    assert {one.verb for one in found} == changes
    assert len(found) == len(changes)


async def test_a_look_that_needs_the_right_of_a_change_is_not_written_down_unless_refused(
    guarded: Engine,
) -> None:
    await guarded.queues.create_queue(ALICE, "q", QueueSettings())
    for look in (
        guarded.tasks.list_tasks(ALICE, "q"),
        guarded.callers.list_keys(BY),
        guarded.callers.get_user(BY, "bob"),
    ):
        await serve(guarded, look)
    await serve(guarded, guarded.callers.list_keys(BOB))
    await serve(guarded, guarded.queues.create_tag(ALICE, "q", "t", 0, None, {}))
    found = await written(guarded, 2)
    assert [(one.verb, one.outcome) for one in found] == [("manage_keys", "refused"), ("create_tag", "done")]


async def test_refusals_are_written_down_also_where_the_queue_was_hidden(guarded: Engine) -> None:
    await guarded.queues.create_queue(ALICE, "q", QueueSettings())
    await serve(guarded, guarded.messages.send(BOB, "q", [SendEntry(b"x")]))
    await serve(guarded, guarded.messages.send(BOB, "none", [SendEntry(b"x")]))
    await guarded.callers.grant(ALICE, "q", "bob", "receive")
    await serve(guarded, guarded.messages.send(BOB, "q", [SendEntry(b"x")]))

    async def claim() -> None:
        guarded.callers.authenticate("somebody", "wrong")

    await serve(guarded, claim())
    found = await written(guarded, 3)
    assert [(one.principal, one.key_id, one.verb, one.queue, one.outcome, one.error) for one in found] == [
        ("bob", "b1", "send", "q", "refused", "queue_not_found"),
        ("bob", "b1", "send", "q", "refused", "not_authorised"),
        ("", "somebody", "", "", "refused", "not_authenticated"),
    ]


async def test_with_all_everything_is_written_down(make_engine: MakeEngine) -> None:
    engine = await make_engine(audit="all", default_partitions=1)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    await serve(engine, engine.messages.send(BY, "q", [SendEntry(b"x")]))
    await serve(engine, engine.messages.receive(BY, "q", "none", 1, 0, None))
    found = await written(engine, 2)
    assert [(one.verb, one.outcome, one.error) for one in found] == [
        ("send", "done", ""),
        ("receive", "failed", "tag_not_found"),
    ]


async def test_a_flood_of_refusals_is_counted(guarded: Engine) -> None:
    for _ in range(200):
        asked = guarded.audit.begin("10.0.0.1")
        await guarded.audit.end(asked, "send", 401, NotAuthenticated())

    async def all_told() -> bool:
        found = await records(guarded)
        return sum(one.suppressed for one in found) + sum(one.error != "suppressed" for one in found) == 200

    await eventually(all_told)
    assert len(await records(guarded)) <= 3 * FAILURES_A_SECOND


@pytest.mark.long
async def test_what_kafka_does_not_take_is_written_later_and_holds_up_nobody(guarded: Engine, stack: Services) -> None:
    await guarded.queues.create_queue(ALICE, "q", QueueSettings())
    stand_still(stack.kafka_pid)
    try:
        began = time.monotonic()
        for _ in range(5):
            asked = guarded.audit.begin("10.0.0.1")
            await guarded.audit.end(asked, "send", 401, NotAuthenticated())
        assert time.monotonic() - began < 0.5
        asked = guarded.audit.begin("10.0.0.1")
        note(ALICE.id, ALICE.key_id, Verb.SET_QUEUE, "q")
        await guarded.audit.end(asked, "set", 200, None)
        assert time.monotonic() - began < 3
        await asyncio.sleep(12)
    finally:
        os.kill(stack.kafka_pid, signal.SIGCONT)

    async def once_each() -> bool:
        found = {(one.worker, one.number) for one in await records(guarded)}
        return len(found) == 6

    await eventually(once_each, within_s=30)


async def listed(engine: Engine, limit: int, by: Principal = BY, **wanted: Any) -> list[tuple[str, str]]:
    """Verb and queue of all that is listed, page by page of `limit`."""
    found: list[tuple[str, str]] = []
    cursor: str | None = None
    while True:
        page = await engine.callers.list_audit(by, limit, cursor, **wanted)
        assert len(page.records) <= limit
        found += [(one.verb, one.queue) for one in page.records]
        if page.next is None:
            return found
        cursor = page.next


async def test_the_audit_is_listed_newest_first_each_record_once(
    guarded: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("q1", "q2", "q3"):
        await serve(guarded, guarded.queues.create_queue(ALICE, name, QueueSettings()))
    topic = audit_topic(guarded.settings.topic_prefix)
    between_ms = (await guarded.log.fetch(topic, 0, 2, 1, 1_000)).records[0].timestamp_ms
    await asyncio.sleep(0.01)
    await serve(guarded, guarded.messages.send(BOB, "q1", [SendEntry(b"x")]))
    first = await written(guarded, 4)
    every = [("send", "q1"), ("create_queue", "q3"), ("create_queue", "q2"), ("create_queue", "q1")]

    page = await guarded.callers.list_audit(BY, 2)
    assert [(one.verb, one.queue, one.outcome) for one in page.records] == [
        ("send", "q1", "refused"), ("create_queue", "q3", "done"),
    ]  # fmt: skip
    assert (page.scanned, page.cut) == (2, "")
    assert await listed(guarded, 3) == every
    assert await listed(guarded, 3, principal="alice") == every[1:]
    assert await listed(guarded, 3, queue="q1") == [every[0], every[3]]
    assert await listed(guarded, 3, verb="send") == every[:1]
    # By the clock of the log, from a time on and before it.
    assert await listed(guarded, 3, from_ms=between_ms + 1) == every[:1]
    assert await listed(guarded, 3, to_ms=between_ms + 1) == every[1:]
    assert await listed(guarded, 3, from_ms=between_ms + 3_600_000) == []

    # An append whose answer was lost was made again; a page may end between both, and by its bound.
    await guarded.log.append_many(topic, 0, [encode(one) for one in first])
    for limit in (1, 3, 5, 1000):
        assert await listed(guarded, limit) == every, limit
    monkeypatch.setattr(audited, "MOST_RECORDS", 1)
    monkeypatch.setattr(audited, "CHUNK", 5)
    cut = await guarded.callers.list_audit(BY, 10, queue="q9")
    assert (cut.records, cut.scanned, cut.cut) == ([], 5, "records") and cut.next is not None
    assert await listed(guarded, 10) == every

    for wrong in ("x", "-1", "9" * 17):
        with pytest.raises(InvalidValue, match="cursor"):
            await guarded.callers.list_audit(BY, 10, wrong)
    with pytest.raises(InvalidValue, match="verb"):
        await guarded.callers.list_audit(BY, 10, verb="nothing")
    with pytest.raises(NotAuthorised):
        await guarded.callers.list_audit(ALICE, 10)


async def test_an_administrator_of_an_account_is_shown_what_concerns_it(guarded: Engine) -> None:
    a, b = "111122223333", "444455556666"
    one, other = (Principal(f"{at}.boss", role=Role.ADMIN, account=at, key_id=f"{at}.k") for at in (a, b))
    await serve(guarded, guarded.queues.create_queue(one, "q", QueueSettings()))
    await serve(guarded, guarded.queues.create_queue(other, "q", QueueSettings()))
    await serve(guarded, guarded.messages.send(other, f"{a}.q", [SendEntry(b"x")]))
    await serve(guarded, guarded.queues.create_queue(ALICE, "q", QueueSettings()))
    await written(guarded, 4)

    page = await guarded.callers.list_audit(one, 10)

    # Names of its own are short; whoever of others was at its queue is told by their whole name.
    assert [(one.principal, one.verb, one.queue) for one in page.records] == [
        (f"{b}.boss", "send", "q"), ("boss", "create_queue", "q"),
    ]  # fmt: skip
    assert await listed(guarded, 10, by=one, principal="boss", queue="q") == [("create_queue", "q")]
    assert len(await listed(guarded, 10)) == 4
