"""Whatever Redis does wrong under a verb, the caller hears an error of the engine's; and what a
deleted tag held goes in the end.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

import state.redis.lock
from engine.engine import Engine
from engine.errors import EngineError, StoreUnavailable
from engine.meters.shapes import MetricQuery
from engine.meters.statistics import day_of
from engine.services.definitions.shapes import Definitions
from engine.shapes import ExtendEntry, SendEntry
from runtime import deadline
from schemas.records.settings import QueueSettings, RedrivePolicy
from state.errors import StateError, StateLost, StateUnavailable
from tests.integration.drive import BY, eventually, receive, send
from tests.verbs import verbs

assert state.redis.lock.LockBusy in StateError.__subclasses__()
LEASE_MS = 3_600_000
# What a verb takes on a slow machine whose Redis is lost, besides STATE_S.
SLOW_S = 5.0


def kinds(of: type[StateError] = StateError) -> Iterator[type[StateError]]:
    yield of
    for kind in of.__subclasses__():
        yield from kinds(kind)


Verb = Callable[[Engine, dict[str, str]], Awaitable[Any]]
VERBS: dict[str, Verb] = {
    "create_queue": lambda e, at: e.queues.create_queue(BY, "new", QueueSettings(partitions=1)),
    "list_queues": lambda e, at: e.queues.list_queues(BY, "", 10, None),
    "list_shared": lambda e, at: e.queues.list_shared(BY, "", 10, None),
    "list_counts": lambda e, at: e.queues.list_counts(BY, "", 10),
    "count_each": lambda e, at: e.queues.count_each(BY),
    "record": lambda e, at: e.queues.record("q"),
    "get_queue": lambda e, at: e.queues.get_queue(BY, "q"),
    "set_queue": lambda e, at: e.queues.set_queue(BY, "q", QueueSettings(delay_ms=1)),
    "delete_queue": lambda e, at: e.queues.delete_queue(BY, "gone"),
    "purge": lambda e, at: e.queues.purge(BY, "q"),
    "pause": lambda e, at: e.queues.pause(BY, "q", "t"),
    "resume": lambda e, at: e.queues.resume(BY, "q", "t"),
    "seek": lambda e, at: e.queues.seek(BY, "q", "t", 0),
    "copy_queue": lambda e, at: e.queues.copy_queue(BY, "q", "copy"),
    "get_redrive_policy": lambda e, at: e.queues.get_redrive_policy(BY, "q"),
    "set_redrive_policy": lambda e, at: e.queues.set_redrive_policy(BY, "q", RedrivePolicy("dlq", 4)),
    "create_tag": lambda e, at: e.queues.create_tag(BY, "q", "more", 0, None, {}),
    "list_tags": lambda e, at: e.queues.list_tags(BY, "q"),
    "delete_tag": lambda e, at: e.queues.delete_tag(BY, "q", "t"),
    "send": lambda e, at: e.messages.send(BY, "q", [SendEntry(b"m")]),
    "receive": lambda e, at: e.messages.receive(BY, "q", None, 1, 0, None),
    "ack": lambda e, at: e.messages.ack(BY, "q", [at["handle"]]),
    "extend": lambda e, at: e.messages.extend(BY, "q", [ExtendEntry(at["handle"], LEASE_MS)]),
    "release": lambda e, at: e.messages.release(BY, "q", [at["handle"]]),
    "kill": lambda e, at: e.messages.kill(BY, "q", [at["handle"]]),
    "peek": lambda e, at: e.messages.peek(BY, "q", at["id"], None),
    "peek_next": lambda e, at: e.messages.peek_next(BY, "q", None, 5),
    "query": lambda e, at: e.messages.query(BY, "q", None, None, None, None, None, 10, None),
    "delete_message": lambda e, at: e.messages.delete_message(BY, "q", at["id"]),
    "cancel": lambda e, at: e.messages.cancel(BY, "q", at["to cancel"]),
    "reschedule": lambda e, at: e.messages.reschedule(BY, "q", at["to move"], 0),
    "parked_groups": lambda e, at: e.tasks.parked_groups(BY, "line", None, 10, None),
    "unpark": lambda e, at: e.tasks.unpark(BY, "line", None, "a"),
    "copy_message": lambda e, at: e.messages.copy_message(
        BY, "q", at["id"], None, lambda message: SendEntry(message.body)
    ),
    "message_events": lambda e, at: e.messages.message_events(BY, "q", at["id"], None, None),
    "redrive_all": lambda e, at: e.tasks.redrive_all(BY, None, None, 0),
    "preview_redrive": lambda e, at: e.tasks.preview_redrive(BY, "dlq", None, None),
    "preview_redrive_all": lambda e, at: e.tasks.preview_redrive_all(BY, None, None),
    "all_tasks": lambda e, at: e.tasks.all_tasks(BY, None, 10, None),
    "task_outcomes": lambda e, at: e.tasks.task_outcomes(BY, at["task"], 10, None),
    "redrive": lambda e, at: e.tasks.redrive(BY, "dlq", None, None, 0),
    "list_tasks": lambda e, at: e.tasks.list_tasks(BY, "dlq"),
    "get_task": lambda e, at: e.tasks.get_task(BY, at["task"]),
    "cancel_task": lambda e, at: e.tasks.cancel_task(BY, at["task"]),
    "create_key": lambda e, at: e.callers.create_key(BY, "k", "somebody", "member"),
    "set_key": lambda e, at: e.callers.set_key(BY, "old", role="reader"),
    "rotate_key": lambda e, at: e.callers.rotate_key(BY, "old", 1_000),
    "delete_key": lambda e, at: e.callers.delete_key(BY, "old"),
    "list_keys": lambda e, at: e.callers.list_keys(BY),
    "list_audit": lambda e, at: e.callers.list_audit(BY, 1),
    "list_grants": lambda e, at: e.callers.list_grants(BY, "q"),
    "get_grant": lambda e, at: e.callers.get_grant(BY, "q", "somebody"),
    "rights": lambda e, at: e.callers.rights(BY),
    "queue_rights": lambda e, at: e.callers.queue_rights(BY, "q"),
    "grant": lambda e, at: e.callers.grant(BY, "q", "somebody", "receive"),
    "add_alert": lambda e, at: e.alerts.add_alert(BY, "q", None, "delete_request", "count", 1),
    "delete_alert": lambda e, at: e.alerts.delete_alert(BY, "q", at["alert"]),
    "list_alerts": lambda e, at: e.alerts.list_alerts(BY, "q"),
    "list_alert_events": lambda e, at: e.alerts.list_alert_events(BY, "q"),
    "set_daily_statistics": lambda e, at: e.alerts.set_daily_statistics(BY, "q", True),
    "get_daily_statistics": lambda e, at: e.alerts.get_daily_statistics(BY, "q"),
    "history": lambda e, at: e.queues.history(BY, "q", "hour"),
    "statistics": lambda e, at: e.alerts.statistics(BY, "q", day_of(int(time.time() * 1000))),
    "query_metric": lambda e, at: e.alerts.query_metric(BY, "q", MetricQuery("send_request.count", 0, 60_000, 60_000)),
    "set_contacts": lambda e, at: e.callers.set_contacts(BY, "somebody", "Somebody", "", ""),
    "set_user_quota": lambda e, at: e.callers.set_user_quota(BY, "somebody", 1, 1, 1),
    "get_user": lambda e, at: e.callers.get_user(BY, "somebody"),
    "get_user_use": lambda e, at: e.callers.get_user_use(BY, "somebody"),
    "ready": lambda e, at: e.ready(),
    "get_definitions": lambda e, at: e.definitions.get_definitions(BY),
    "put_definitions": lambda e, at: e.definitions.put_definitions(BY, Definitions([], [])),
    "prepare": lambda e, at: e.transactions.prepare(BY, "q", "g", [SendEntry(b"m")], 0),
    "get_transaction": lambda e, at: e.transactions.get_transaction(BY, at["half"]),
    "list_transactions": lambda e, at: e.transactions.list_transactions(BY, "q", None, 10),
    "unknown": lambda e, at: e.transactions.unknown(BY, at["half"]),
    "check": lambda e, at: e.transactions.check(BY, "g", 10, 1_000),
    "commit": lambda e, at: e.transactions.commit(BY, at["half"]),
    "rollback": lambda e, at: e.transactions.rollback(BY, at["other half"]),
    "set_webhook": lambda e, at: e.transactions.set_webhook(BY, "g", "https://example.com/", None),
    "get_webhook": lambda e, at: e.transactions.get_webhook(BY, "g"),
    "delete_webhook": lambda e, at: e.transactions.delete_webhook(BY, "g"),
}


def test_every_verb_is_in_the_table() -> None:
    assert verbs().keys() | {"ready"} == VERBS.keys()


async def a_service(engine: Engine) -> dict[str, str]:
    """Something for each verb to work on; a handle, a message id and a task id."""
    for name in ("dlq", "gone"):
        await engine.queues.create_queue(BY, name, QueueSettings(partitions=1))
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, redrive_policy=RedrivePolicy("dlq", 3)))
    await engine.queues.create_queue(
        BY, "line", QueueSettings(partitions=1, fifo=True, on_exhausted="park", max_receive_count=1)
    )
    await engine.queues.create_tag(BY, "q", "t", 0, None, {})
    await engine.callers.create_key(BY, "old", "somebody", "member")
    sent = await send(engine, "q", "a", "b")
    (got,) = await receive(engine, "q", max=1, lease_ms=LEASE_MS)
    delayed = await send(engine, "q", "c", "d", delay_ms=LEASE_MS)
    task = await engine.tasks.redrive(BY, "dlq", None, None, 1)
    halves = [await engine.transactions.prepare(BY, "q", "g", [SendEntry(b"half")], 0) for _ in range(2)]
    await engine.transactions.set_webhook(BY, "g", "http://127.0.0.1:1/", None)
    alert = await engine.alerts.add_alert(BY, "q", None, "send_request", "count", 1_000)
    halves_at = {"half": halves[0].id, "other half": halves[1].id}
    delayed_at = {"to cancel": delayed[0].id, "to move": delayed[1].id}
    return {"handle": got.handle, "id": sent[1].id, "task": task.id, "alert": alert.id, **halves_at, **delayed_at}


@pytest.mark.parametrize("kind", list(kinds()), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("how", ["scripts", "everything"])
async def test_only_errors_of_the_engine_leave_a_verb(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch, kind: type[StateError], how: str
) -> None:
    at = await a_service(own_engine)
    monkeypatch.setattr(deadline, "STATE_S", 0.05)

    async def refuse(*_: Any, **__: Any) -> Any:
        raise kind("by the test")

    def refuse_at_once(*_: Any, **__: Any) -> Any:
        raise kind("by the test")

    escaped: dict[str, str] = {}
    slow: dict[str, float] = {}
    with monkeypatch.context() as wrong:
        wrong.setattr(own_engine.store.units.scripts, "run", refuse)
        wrong.setattr(own_engine.store.units.scripts, "ask", refuse)
        if how == "everything":  # locks too
            wrong.setattr(own_engine.parts.base.connection, "call", refuse_at_once)
        for name, verb in VERBS.items():
            began = time.monotonic()
            try:
                await verb(own_engine, at)
            except EngineError:
                pass
            except Exception as error:
                escaped[name] = repr(error)
            if (took := time.monotonic() - began) > SLOW_S:
                slow[name] = took
    assert (escaped, slow) == ({}, {})


async def test_what_a_deleted_tag_held_goes_though_redis_was_started_again(own_engine: Engine) -> None:
    """Redis came back with all of its state, and is not trusted yet: the first use has it
    adopted.
    """
    await a_service(own_engine)
    unit, store = own_engine.catalog.queues["q"].units[0], own_engine.store
    tag = own_engine.catalog.queues["q"].by_name["t"].id
    own_engine.parts.base.connection.fence.close()
    await own_engine.queues.delete_tag(BY, "q", "t")
    assert await held(own_engine, unit, tag) == []
    assert tag not in await store.upkeep.known_tags(unit)


@pytest.mark.parametrize("kind", [StateUnavailable, StateLost], ids=lambda kind: kind.__name__)
async def test_what_a_deleted_tag_held_goes_though_redis_was_away(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch, kind: type[StateError]
) -> None:
    await a_service(own_engine)
    unit, store = own_engine.catalog.queues["q"].units[0], own_engine.store
    tag = own_engine.catalog.queues["q"].by_name["t"].id
    assert await held(own_engine, unit, tag) != []

    async def refuse(*_: Any) -> None:
        raise kind("by the test")

    with monkeypatch.context() as wrong:
        wrong.setattr(store.upkeep, "close", refuse)
        with pytest.raises(EngineError):
            await own_engine.queues.delete_tag(BY, "q", "t")
    await own_engine.parts.administration.watch.alarm_monitor.run_once()
    assert await held(own_engine, unit, tag) == []
    assert await store.upkeep.known_tags(unit) == {0}
    # Nothing was taken from the tag that is left.
    assert (await own_engine.queues.get_queue(BY, "q")).tags[0].backlog == 4


async def test_a_queue_deleted_while_redis_was_away_leaves_nothing(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_service(own_engine)
    queue, store = own_engine.catalog.queues["q"], own_engine.store

    async def refuse(*_: Any) -> None:
        raise StateUnavailable("by the test")

    with monkeypatch.context() as wrong:
        wrong.setattr(store.upkeep, "forget", refuse)
        with pytest.raises(StoreUnavailable):
            await own_engine.queues.delete_queue(BY, "q")
    await own_engine.parts.administration.watch.alarm_monitor.run_once()

    async def gone() -> bool:
        return not own_engine.catalog.unfinished and not await held(own_engine, queue.units[0], 0)

    await eventually(gone)


async def held(engine: Engine, unit: Any, tag: int) -> list[str]:
    """The keys that a tag of a unit has in Redis."""
    names = engine.store.units.of(unit).tag(tag).all()
    return [name for name in names if await engine.parts.base.connection.call("EXISTS", name)]
