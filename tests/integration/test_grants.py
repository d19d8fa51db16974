"""Rights of others on a queue, who may use it as a dead-letter queue, edits of what is, redrive
tasks one at a time, leases in all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec
import pytest

from engine.engine import Engine
from engine.errors import EngineError, InvalidValue, NotAllowedOnQueue, NotAuthorised, QueueNotFound, TagNotFound
from engine.meters.shapes import MetricQuery
from engine.rules.grants import OF_NO_QUEUE, OF_TAG, RIGHTS
from engine.rules.limits import MAX_LEVELS
from engine.shapes import ExtendEntry, NewTag, Principal, QueueInfo, SendEntry
from schemas.identity import Handle
from schemas.records import QueueRecord
from schemas.records.settings import Grant, QueueSettings, RedrivePolicy
from schemas.vocabulary import Level, Role, Verb
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY

ALICE, BOB, CAROL = Principal("alice"), Principal("bob"), Principal("carol")


async def guarded(make_engine: MakeEngine) -> Engine:
    return await make_engine(auth="required", admin_key_secret="admin's secret", default_partitions=1)


async def test_a_grant_opens_its_verbs_to_its_principals_and_a_denial_closes_them(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    sends = Grant(True, ["bob", "carol"], ["send"])
    await engine.queues.create_queue(
        ALICE, "q", QueueSettings(grants=[sends, Grant(False, ["carol"], ["*"]), Grant(True, ["*"], ["get_queue"])])
    )

    await engine.messages.send(BOB, "q", [SendEntry(b"x")])
    assert (await engine.queues.get_queue(BOB, "q")).name == "q"
    with pytest.raises(NotAuthorised):
        await engine.messages.receive(BOB, "q", None, 1, 0, None)
    for call in (engine.messages.send(CAROL, "q", [SendEntry(b"x")]), engine.queues.get_queue(CAROL, "q")):
        with pytest.raises(QueueNotFound):
            await call
    await engine.queues.set_queue(ALICE, "q", QueueSettings(grants=[Grant(False, ["*"], ["*"])]))
    assert len(await engine.messages.receive(ALICE, "q", None, 1, 0, None)) == 1
    with pytest.raises(QueueNotFound):
        await engine.messages.send(BOB, "q", [SendEntry(b"x")])


async def test_edits_made_at_once_are_all_kept(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    await engine.queues.create_queue(ALICE, "q", QueueSettings(labels={"a": "1"}))

    def label(name: str) -> Awaitable[QueueInfo]:
        def edit(record: QueueRecord) -> QueueSettings:
            return QueueSettings(labels={**record.labels, name: "x"})

        return engine.queues.set_queue(ALICE, "q", QueueSettings(), edit)

    await asyncio.gather(*(label(f"n{n}") for n in range(8)))

    assert set((await engine.queues.get_queue(ALICE, "q")).labels) == {"a", *(f"n{n}" for n in range(8))}
    with pytest.raises(InvalidValue):
        await engine.queues.set_queue(
            ALICE, "q", QueueSettings(), lambda record: QueueSettings(labels={str(n): "" for n in range(51)})
        )


async def test_a_dead_letter_queue_says_who_may_be_its_source(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    await engine.queues.create_queue(BY, "dead", QueueSettings(allowed_sources=["good"]))
    await engine.queues.create_queue(BY, "good", QueueSettings(redrive_policy=RedrivePolicy("dead", 1)))

    with pytest.raises(NotAllowedOnQueue):
        await engine.queues.create_queue(BY, "bad", QueueSettings(redrive_policy=RedrivePolicy("dead", 1)))
    await engine.queues.set_queue(BY, "dead", QueueSettings(allowed_sources=[]))
    with pytest.raises(NotAllowedOnQueue):
        await engine.queues.set_redrive_policy(BY, "good", RedrivePolicy("dead", 2))


async def test_a_task_that_is_to_be_alone_waits_for_none(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    await engine.queues.create_queue(BY, "dead", QueueSettings())
    with pytest.raises(NotAllowedOnQueue):
        await engine.tasks.redrive(BY, "dead", None, None, 1, True)
    await engine.queues.create_queue(BY, "q", QueueSettings(redrive_policy=RedrivePolicy("dead", 1)))
    await engine.messages.send(BY, "dead", [SendEntry(b"x")] * 3)

    tries = [engine.tasks.redrive(BY, "dead", "q", None, 1, True) for _ in range(3)]
    began = await asyncio.gather(*tries, return_exceptions=True)

    (task,) = (one for one in began if not isinstance(one, BaseException))
    assert sum(isinstance(one, NotAllowedOnQueue) for one in began) == 2
    assert (task.expected, [one.id for one in await engine.tasks.list_tasks(BY, "dead")]) == (3, [task.id])
    await engine.tasks.cancel_task(BY, task.id)
    again = await engine.tasks.redrive(BY, "dead", "q", None, 0, True)
    assert [one.id for one in await engine.tasks.list_tasks(BY, "dead")] == [again.id, task.id]


async def test_a_lease_may_be_bound_from_when_the_delivery_began(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    await engine.messages.send(BY, "q", [SendEntry(b"x")])
    (got,) = await engine.messages.receive(BY, "q", None, 1, 0, None)
    secret = engine.settings.secret.encode()
    handle = Handle.parse(got.handle, secret)
    assert 0 <= got.next_visible_at_ms - handle.leased_at_ms - 30_000 <= 1
    hour_ago = msgspec.structs.replace(handle, leased_at_ms=handle.leased_at_ms - 3_600_000).text(secret)
    timeless = msgspec.structs.replace(handle, leased_at_ms=0).text(secret)

    async def extended(text: str, seconds: int, in_all_s: int | None) -> str:
        (result,) = await engine.messages.extend(BY, "q", [ExtendEntry(text, seconds * 1000, in_all_s)])
        return result.status

    assert await extended(got.handle, 43_190, 43_200) == "ok"
    assert await extended(hour_ago, 43_200, None) == await extended(timeless, 43_200, 43_200) == "ok"
    assert await extended(hour_ago, 43_200 - 3_700, 43_200) == "ok"
    assert await extended(hour_ago, 43_200 - 3_500, 43_200) == "invalid"
    with pytest.raises(InvalidValue) as refused:
        await engine.messages.extend(
            BY, "q", [ExtendEntry(hour_ago, (43_200 - 3_500) * 1000, 43_200)], all_or_none=True
        )
    assert refused.value.limit == 43_200


# Each verb on a queue, with how somebody asks for it; what it answers to who may ask is not looked
# at here.
ASKED: dict[Verb, Callable[[Engine, Principal], Coroutine[Any, Any, Any]]] = {
    Verb.GET_QUEUE: lambda e, by: e.queues.get_queue(by, "q"),
    Verb.SET_QUEUE: lambda e, by: e.queues.set_queue(by, "q", QueueSettings(lease_ms=30_000)),
    Verb.DELETE_QUEUE: lambda e, by: e.queues.delete_queue(by, "q"),
    Verb.PURGE: lambda e, by: e.queues.purge(by, "q"),
    Verb.PAUSE: lambda e, by: e.queues.pause(by, "q", "tag"),
    Verb.RESUME: lambda e, by: e.queues.resume(by, "q", "tag"),
    Verb.SEEK: lambda e, by: e.queues.seek(by, "q", "tag", 0),
    Verb.COPY_QUEUE: lambda e, by: e.queues.copy_queue(by, "q", f"copy-{by.id}"),
    Verb.GET_REDRIVE_POLICY: lambda e, by: e.queues.get_redrive_policy(by, "q"),
    Verb.SET_REDRIVE_POLICY: lambda e, by: e.queues.set_redrive_policy(by, "q", None),
    Verb.CREATE_TAG: lambda e, by: e.queues.create_tag(by, "q", "tag", 0, None, {}),
    Verb.LIST_TAGS: lambda e, by: e.queues.list_tags(by, "q"),
    Verb.DELETE_TAG: lambda e, by: e.queues.delete_tag(by, "q", "tag"),
    Verb.SEND: lambda e, by: e.messages.send(by, "q", [SendEntry(b"x")]),
    Verb.RECEIVE: lambda e, by: e.messages.receive(by, "q", None, 1, 0, 0),
    Verb.ACK: lambda e, by: e.messages.ack(by, "q", ["h"]),
    Verb.EXTEND: lambda e, by: e.messages.extend(by, "q", [ExtendEntry("h", 1)]),
    Verb.RELEASE: lambda e, by: e.messages.release(by, "q", ["h"]),
    Verb.KILL: lambda e, by: e.messages.kill(by, "q", ["h"]),
    Verb.PEEK: lambda e, by: e.messages.peek(by, "q", "id", None),
    Verb.QUERY: lambda e, by: e.messages.query(by, "q", None, None, None, None, None, 1, None),
    Verb.DELETE_MESSAGE: lambda e, by: e.messages.delete_message(by, "q", "id"),
    Verb.REDRIVE: lambda e, by: e.tasks.list_tasks(by, "q"),
    Verb.LIST_GRANTS: lambda e, by: e.callers.list_grants(by, "q"),
    Verb.GRANT: lambda e, by: e.callers.grant(by, "q", "dan", "send"),
    Verb.CANCEL: lambda e, by: e.messages.cancel(by, "q", "id"),
    Verb.RESCHEDULE: lambda e, by: e.messages.reschedule(by, "q", "id", 0),
    Verb.UNPARK: lambda e, by: e.tasks.unpark(by, "q", None, "group"),
    Verb.ADD_ALERT: lambda e, by: e.alerts.add_alert(by, "q", None, "send_request", "count", 1),
    Verb.DELETE_ALERT: lambda e, by: e.alerts.delete_alert(by, "q", "id"),
    Verb.LIST_ALERTS: lambda e, by: e.alerts.list_alerts(by, "q"),
    Verb.SET_DAILY_STATISTICS: lambda e, by: e.alerts.set_daily_statistics(by, "q", True),
    Verb.GET_STATISTICS: lambda e, by: e.alerts.statistics(by, "q", "2026-01-01"),
    Verb.QUERY_METRIC: lambda e, by: e.alerts.query_metric(
        by, "q", MetricQuery("send_request.count", 0, 60_000, 60_000)
    ),
}


async def may(call: Awaitable[Any]) -> bool:
    """Whether somebody is let in, whatever comes of it then. Who has no right at all is told that
    there is no queue.
    """
    try:
        await call
    except (NotAuthorised, QueueNotFound):
        return False
    except EngineError:
        return True
    return True


async def test_every_verb_at_every_level_for_owner_grantee_and_stranger(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    # Of a right that no verb asks for alone, see tests/conformance/rights/test_masks.py.
    assert {*ASKED, Verb.UNMASK} == RIGHTS[Level.FULL_CONTROL]
    for level in Level:
        for verb in sorted(ASKED, key=lambda verb: verb == Verb.DELETE_QUEUE):
            await engine.queues.create_queue(ALICE, "q", QueueSettings())
            await engine.callers.grant(ALICE, "q", "bob", level)
            if level != Level.NONE:
                assert await engine.callers.get_grant(BOB, "q", "bob") == level
                assert set((await engine.callers.queue_rights(BOB, "q")).verbs) == RIGHTS[level]
            assert not await may(ASKED[verb](engine, CAROL)), (level, verb)
            assert await may(ASKED[verb](engine, BOB)) == (verb in RIGHTS[level]), (level, verb)
            if "q" in engine.catalog.queues:
                assert await may(ASKED[verb](engine, ALICE)), verb
    await engine.queues.create_queue(ALICE, "q", QueueSettings())
    with pytest.raises(QueueNotFound):
        await engine.callers.queue_rights(CAROL, "q")
    await engine.queues.create_tag(ALICE, "q", "tag", 0, None, {})
    assert set((await engine.callers.queue_rights(ALICE, "q")).verbs) == RIGHTS[Level.FULL_CONTROL]
    assert set((await engine.callers.queue_rights(ALICE, "q")).tags["tag"]) == OF_TAG
    await engine.callers.grant(ALICE, "q", "dan", "send")
    await engine.callers.grant(ALICE, "q", "dan", "peek", "tag")
    of_dan = await engine.callers.queue_rights(Principal("dan"), "q")
    assert (of_dan.verbs, of_dan.tags) == ([Verb.SEND], {"default": [], "tag": [Verb.PEEK, Verb.QUERY]})
    await engine.callers.grant(ALICE, "q", "eve", "receive", "default")
    of_eve = await engine.callers.queue_rights(Principal("eve"), "q")
    assert (of_eve.verbs, of_eve.tags) == ([Verb.RECEIVE], {"default": [Verb.RECEIVE], "tag": []})
    assert await engine.callers.rights(CAROL) == [Verb.CREATE_QUEUE, Verb.LIST_QUEUES, Verb.SET_PRODUCER_GROUP]
    assert await engine.callers.rights(Principal("eve", role=Role.READER)) == [Verb.LIST_QUEUES]
    assert set(await engine.callers.rights(Principal("eve", admin=True, role=Role.ADMIN))) == OF_NO_QUEUE


async def test_levels_are_given_changed_listed_and_taken_away(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    await engine.queues.create_queue(ALICE, "q", QueueSettings())
    await engine.callers.grant(ALICE, "q", "bob", "send")
    await engine.callers.grant(ALICE, "q", "carol", "full_control")
    await engine.callers.grant(CAROL, "q", "bob", "receive")
    assert await engine.callers.list_grants(CAROL, "q") == {"bob": "receive", "carol": "full_control"}
    with pytest.raises(NotAuthorised):
        await engine.callers.list_grants(BOB, "q")
    with pytest.raises(NotAuthorised):
        await engine.callers.get_grant(BOB, "q", "carol")
    assert await engine.callers.get_grant(ALICE, "q", "alice") == "full_control"
    # A policy of SQS takes nothing of a level away, but what it denies is denied.
    await engine.queues.set_queue(ALICE, "q", QueueSettings(grants=[Grant(False, ["carol"], ["purge"])]))
    assert await may(engine.messages.send(CAROL, "q", [SendEntry(b"x")])) and not await may(
        engine.queues.purge(CAROL, "q")
    )
    await engine.callers.grant(ALICE, "q", "bob", "none")
    assert await engine.callers.list_grants(ALICE, "q") == {"carol": "full_control"}
    for principal, level in (("alice", "send"), ("-", "send"), ("bob", "anything")):
        with pytest.raises(InvalidValue):
            await engine.callers.grant(ALICE, "q", principal, level)
    with pytest.raises(QueueNotFound):
        await engine.callers.get_grant(BOB, "none", "bob")
    other = await guarded(make_engine)
    assert await other.callers.list_grants(ALICE, "q") == {"carol": "full_control"}


async def test_no_more_principals_have_rights_than_the_limit_and_none_twice(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    await engine.queues.create_queue(ALICE, "q", QueueSettings())
    for n in range(MAX_LEVELS):
        await engine.callers.grant(ALICE, "q", f"p{n}", "send")
    with pytest.raises(InvalidValue, match=f"{MAX_LEVELS} principals"):
        await engine.callers.grant(ALICE, "q", "one-more", "send")
    await engine.callers.grant(ALICE, "q", "p0", "receive")
    assert len(await engine.callers.list_grants(ALICE, "q")) == MAX_LEVELS


async def test_queues_of_others_are_listed_for_those_who_were_given_a_right(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    for name in ("q1", "q2", "q3", "other"):
        await engine.queues.create_queue(ALICE, name, QueueSettings())
        if name != "other":
            await engine.callers.grant(ALICE, name, "bob", Level.SEND)
    await engine.queues.create_queue(BOB, "q4", QueueSettings(grants=[Grant(True, ["*"], ["receive"])]))
    await engine.messages.send(ALICE, "q1", [SendEntry(b"x"), SendEntry(b"y")])
    first, after = await engine.queues.list_shared(BOB, "q", 2, None)
    assert [(queue.name, queue.owner, queue.backlog) for queue in first] == [("q1", "alice", 2), ("q2", "alice", 0)]
    rest, end = await engine.queues.list_shared(BOB, "q", 2, after)
    assert ([queue.name for queue in rest], end) == (["q3"], None), "not their own"
    assert [queue.name for queue in (await engine.queues.list_shared(CAROL, "", 100, None))[0]] == ["q4"], (
        "for everybody"
    )
    await engine.callers.grant(ALICE, "q2", "bob", Level.NONE)
    assert [queue.name for queue in (await engine.queues.list_shared(BOB, "", 100, None))[0]] == ["q1", "q3"]


async def test_administrators_make_queues_for_others_and_only_they(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    with pytest.raises(NotAuthorised):
        await engine.queues.create_queue(ALICE, "q", QueueSettings(), owner="bob")
    assert not engine.catalog.queues
    made, _ = await engine.queues.create_queue(
        Principal("root", admin=True), "q", QueueSettings(), [NewTag("t")], "bob"
    )
    assert (made.owner, [tag.name for tag in made.tags]) == ("bob", ["default", "t"])
    for tags in (
        [NewTag("t"), NewTag("t")],
        [NewTag("default")],
        [NewTag("no/name")],
        [NewTag(f"t{n}") for n in range(21)],
    ):
        with pytest.raises(InvalidValue):
            await engine.queues.create_queue(ALICE, "q2", QueueSettings(), tags)
    assert list(engine.catalog.queues) == ["q"]


async def test_an_administrator_is_who_has_a_key_that_may_do_everything(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    root = Principal("root", admin=True)
    await engine.callers.create_key(root, "k1", "alice", "member")
    await engine.callers.create_key(root, "k2", "bob", "admin")
    assert [engine.callers.is_admin(root, name) for name in ("alice", "bob", "carol")] == [False, True, False]
    assert not engine.callers.is_admin(ALICE, "alice"), "everybody may ask for themselves"
    with pytest.raises(NotAuthorised):
        engine.callers.is_admin(ALICE, "bob")


async def test_a_level_on_a_tag_opens_that_tag_and_ends_with_it(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    await engine.queues.create_queue(ALICE, "q", QueueSettings(), [NewTag("billing"), NewTag("other")])
    await engine.callers.grant(ALICE, "q", "bob", Level.HANDLE, "billing")
    assert await engine.callers.list_grants(ALICE, "q") == {} and await engine.callers.list_grants(
        ALICE, "q", "billing"
    ) == {"bob": "handle"}
    await engine.messages.send(ALICE, "q", [SendEntry(b"x"), SendEntry(b"y")])
    (one, two) = await engine.messages.receive(BOB, "q", "billing", 2, 1000, None)
    (done,) = await engine.messages.ack(BOB, "q", [one.handle])
    assert done.status == "ok"
    for tag in (None, "default", "other"):
        with pytest.raises(NotAuthorised):
            await engine.messages.receive(BOB, "q", tag, 1, 0, None)
    for call in (
        engine.messages.send(BOB, "q", [SendEntry(b"x")]),
        engine.queues.get_queue(BOB, "q"),
        engine.queues.list_tags(BOB, "q"),
    ):
        with pytest.raises(NotAuthorised):
            await call
    with pytest.raises(InvalidValue, match="level of a tag must be one of"):
        await engine.callers.grant(ALICE, "q", "bob", Level.SEND, "billing")
    with pytest.raises(TagNotFound):
        await engine.callers.grant(ALICE, "q", "bob", Level.HANDLE, "none")
    waiting = asyncio.ensure_future(engine.messages.receive(BOB, "q", "billing", 1, 20_000, None))
    await asyncio.sleep(0.1)
    await engine.callers.grant(ALICE, "q", "bob", Level.NONE, "billing")
    with pytest.raises(NotAuthorised):
        await waiting
    # The owner's new tag of that name is nobody's who had the old one.
    await engine.callers.grant(ALICE, "q", "bob", Level.HANDLE, "billing")
    await engine.queues.delete_tag(ALICE, "q", "billing")
    await engine.queues.create_tag(ALICE, "q", "billing", 0, None, {})
    with pytest.raises(QueueNotFound):
        await engine.messages.receive(BOB, "q", "billing", 1, 0, None)
    assert two.handle


async def test_the_default_tag_is_the_same_by_its_other_name(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    await engine.queues.create_queue(ALICE, "q", QueueSettings(default_tag_name="main"))
    await engine.callers.grant(ALICE, "q", "bob", Level.RECEIVE, "main")
    await engine.messages.send(ALICE, "q", [SendEntry(b"x")])
    for tag in (None, "default", "main"):
        assert len(await engine.messages.receive(BOB, "q", tag, 1, 1000, 0)) == 1
