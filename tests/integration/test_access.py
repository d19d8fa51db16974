"""Who may do what when auth is required: every verb of the engine passes the authoriser."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import (
    EngineError,
    InvalidValue,
    KeyNotFound,
    NotAuthenticated,
    NotAuthorised,
    NotFound,
    QueueNotFound,
)
from engine.meters.shapes import MetricQuery
from engine.meters.statistics import day_of
from engine.services.definitions.shapes import Definitions, QueueDefinition
from engine.shapes import ExtendEntry, Principal, SendEntry
from runtime.clock import now_ms
from schemas.records.settings import QueueSettings, RedrivePolicy
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, receive, send
from tests.verbs import verb_of, verbs

ALICE, BOB = Principal("alice"), Principal("bob")


# These name something of a queue, and are answered as if it did not exist.
OF_ONE_QUEUE = {"get_task", "cancel_task", "task_outcomes", "commit", "rollback", "unknown", "get_transaction"}


@pytest.fixture
async def guarded(make_engine: MakeEngine) -> Engine:
    engine = await make_engine(auth="required", admin_key_secret="admin's secret")
    await engine.queues.create_queue(ALICE, "hers", QueueSettings())
    return engine


async def test_a_key_opens_for_its_principal_until_it_is_deleted(guarded: Engine) -> None:
    key_id, secret = await guarded.callers.create_key(BY, "k", "alice", "member")
    assert guarded.callers.authenticate(key_id, secret) == Principal("alice", key_id="k", proof=hash(secret))
    assert guarded.callers.authenticate("admin", "admin's secret").admin
    for bad in ((key_id, "wrong"), (key_id, None), ("unknown", secret), (None, None), ("admin", "")):
        with pytest.raises(NotAuthenticated):
            guarded.callers.authenticate(*bad)
    assert [(k.key_id, k.principal, k.role) for k in await guarded.callers.list_keys(BY)] == [("k", "alice", "member")]
    for taken in ("k", "admin"):
        with pytest.raises(InvalidValue):
            await guarded.callers.create_key(BY, taken, "alice", "member")
    await guarded.callers.delete_key(BY, "k")
    with pytest.raises(NotAuthenticated):
        guarded.callers.authenticate(key_id, secret)
    with pytest.raises(KeyNotFound):
        await guarded.callers.delete_key(BY, "k")


async def test_every_verb_refuses_a_stranger_and_changes_nothing(guarded: Engine) -> None:
    (sent,) = await send(guarded, "hers", "m")
    (got,) = await receive(guarded, "hers")
    (later,) = await send(guarded, "hers", "later", delay_ms=3_600_000)
    alert = await guarded.alerts.add_alert(ALICE, "hers", None, "send_request", "count", 1_000)
    task = await guarded.tasks.redrive(ALICE, "hers", None, None, 1)
    half = await guarded.transactions.prepare(ALICE, "hers", "group", [SendEntry(b"half")], 0)
    await guarded.transactions.set_webhook(ALICE, "group", "https://example.com/", None)
    arguments: dict[str, tuple[Any, ...]] = {
        "create_queue": ("hers", QueueSettings()),
        "get_queue": ("hers",),
        "set_queue": ("hers", QueueSettings(delay_ms=5)),
        "delete_queue": ("hers",),
        "purge": ("hers",),
        "pause": ("hers",),
        "resume": ("hers",),
        "seek": ("hers", "t", 0),
        "copy_queue": ("hers", "copy"),
        "get_redrive_policy": ("hers",),
        "set_redrive_policy": ("hers", None),
        "create_tag": ("hers", "t", 0, None, {}),
        "list_tags": ("hers",),
        "delete_tag": ("hers", "t"),
        "send": ("hers", [SendEntry(b"x")]),
        "receive": ("hers", None, 1, 0, None),
        "ack": ("hers", [got.handle]),
        "extend": ("hers", [ExtendEntry(got.handle, 0)]),
        "release": ("hers", [got.handle]),
        "kill": ("hers", [got.handle]),
        "peek": ("hers", sent.id, None),
        "peek_next": ("hers", None, 1),
        "query": ("hers", None, None, None, None, None, 1, None),
        "copy_message": ("hers", sent.id, None, lambda message: SendEntry(message.body)),
        "message_events": ("hers", sent.id, None, None),
        "delete_message": ("hers", sent.id),
        "cancel": ("hers", later.id),
        "reschedule": ("hers", later.id, 0),
        "parked_groups": ("hers", None, 1, None),
        "unpark": ("hers", None, "group"),
        "redrive": ("hers", None, None, 1),
        "preview_redrive": ("hers", None, None),
        "list_tasks": ("hers",),
        "get_task": (task.id,),
        "task_outcomes": (task.id, 1, None),
        "cancel_task": (task.id,),
        "create_key": ("k", "bob", "admin"),
        "set_key": ("k", "admin"),
        "rotate_key": ("k", 0),
        "delete_key": ("k",),
        "list_keys": (),
        "list_audit": (1,),
        "list_grants": ("hers",),
        "get_grant": ("hers", "alice"),
        "queue_rights": ("hers",),
        "grant": ("hers", "bob", "receive"),
        "set_contacts": ("alice", "Alice", "", ""),
        "set_user_quota": ("alice", 1, 1, 1),
        "get_user": ("alice",),
        "get_user_use": ("alice",),
        "prepare": ("hers", "group", [SendEntry(b"x")]),
        "commit": (half.id,),
        "rollback": (half.id,),
        "unknown": (half.id,),
        "get_transaction": (half.id,),
        "list_transactions": ("hers", None, 10),
        "set_webhook": ("group", "https://example.com/", None),
        "get_webhook": ("group",),
        "delete_webhook": ("group",),
        "add_alert": ("hers", None, "send_request", "count", 1),
        "delete_alert": ("hers", alert.id),
        "list_alerts": ("hers",),
        "list_alert_events": ("hers",),
        "set_daily_statistics": ("hers", True),
        "get_daily_statistics": ("hers",),
        "statistics": ("hers", day_of(now_ms())),
        "history": ("hers", "hour"),
        "query_metric": ("hers", MetricQuery("send_request.count", 0, 60_000, 60_000)),
        "put_definitions": (Definitions([QueueDefinition("hers", QueueSettings(delay_ms=5))], []),),
    }
    asked = {name for name, verb in verbs().items() if "by" in inspect.signature(verb).parameters}
    others = {"list_queues", "list_shared", "list_counts", "count_each", "check", "record", "get_definitions", "rights"}
    others |= {"redrive_all", "preview_redrive_all", "all_tasks"}
    assert asked == {*arguments, *others}, "a verb is not tried here"
    for verb, given in arguments.items():
        # Nobody tells him that there is such a queue, but for one that is to be made by that name.
        hides = (given[:1] == ("hers",) and verb != "create_queue") or verb in OF_ONE_QUEUE
        with pytest.raises(NotFound if hides else NotAuthorised):
            await verb_of(guarded, verb)(BOB, *given)
    with pytest.raises(QueueNotFound):
        await guarded.queues.record("hers", BOB)
    assert guarded.queues.known("hers", BOB) is None and guarded.queues.known("hers", ALICE) is not None
    assert await guarded.transactions.check(BOB, "group", 10, 3_000) == []
    assert await guarded.queues.list_queues(BOB, "", 10, None) == ([], None)
    assert await guarded.tasks.redrive_all(BOB, None, None, 0) == []
    assert await guarded.tasks.preview_redrive_all(BOB, None, None) == []
    assert await guarded.tasks.all_tasks(BOB, None, 10, None) == ([], None)
    for asked_all in (
        guarded.tasks.redrive_all(BOB, None, None, 0, [sent.id]),
        guarded.tasks.preview_redrive_all(BOB, None, None, [sent.id]),
    ):
        with pytest.raises(InvalidValue, match="no id of a message in a queue that you may redrive"):
            await asked_all
    assert await guarded.queues.list_shared(BOB, "", 10, None) == ([], None)
    assert [r.status for r in await guarded.messages.ack(ALICE, "hers", [got.handle])] == ["ok"]
    assert (await guarded.messages.peek(ALICE, "hers", later.id, None)).state == "delayed"
    assert [policy.id for policy, _ in await guarded.alerts.list_alerts(ALICE, "hers")] == [alert.id]


async def test_a_policy_needs_the_right_to_send_to_its_dead_letter_queue(guarded: Engine) -> None:
    await guarded.queues.create_queue(BOB, "his", QueueSettings())
    for refusal in (QueueNotFound, NotAuthorised):
        await refused_policies(guarded, refusal)
        await guarded.callers.grant(ALICE, "hers", "bob", "receive")


async def refused_policies(guarded: Engine, refusal: type[EngineError]) -> None:
    for call in (
        guarded.queues.set_redrive_policy(BOB, "his", RedrivePolicy("hers", 3)),
        guarded.queues.set_queue(BOB, "his", QueueSettings(redrive_policy=RedrivePolicy("hers", 3))),
        guarded.queues.create_queue(BOB, "more", QueueSettings(redrive_policy=RedrivePolicy("hers", 3))),
    ):
        with pytest.raises(refusal):
            await call


async def test_open_takes_the_claimed_key_id_as_the_principal(engine: Engine, queue: str) -> None:
    assert engine.callers.authenticate("carol", None).id == "carol"
    assert engine.callers.authenticate(None, None).id == "anonymous"
    await engine.queues.create_queue(engine.callers.authenticate("carol", None), queue, QueueSettings())
    assert (await engine.queues.get_queue(engine.callers.authenticate(None, None), queue)).owner == "carol"
    with pytest.raises(EngineError):
        await engine.queues.get_queue(BY, "nothing")
