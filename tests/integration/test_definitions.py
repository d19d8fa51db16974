"""Definitions: what is there as one document, and a document made true. Real Kafka and Redis."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from engine.engine import Engine
from engine.errors import EngineError, InvalidValue, NotAllowedOnQueue, NotAuthorised, QueueNotFound, TagExists
from engine.services.definitions.shapes import (
    AlertDefinition,
    Definitions,
    Difference,
    GrantDefinition,
    QueueDefinition,
    TagDefinition,
    UserDefinition,
)
from engine.shapes import Principal
from schemas.filters import Condition, Filter
from schemas.records.settings import QueueSettings, RedrivePolicy
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY

ALICE, BOB = Principal("alice", key_id="a"), Principal("bob", key_id="b")
EU = TagDefinition("eu", Filter([Condition("region", "string", b"eu")]), {"team": "x"}, 5, RedrivePolicy("dead", 3))
ORDERS = QueueDefinition(
    "orders",
    QueueSettings(lease_ms=60_000, user_attributes={"a": "b"}, read_qps=7, labels={"cost": "1"}, allowed_sources=[]),
    RedrivePolicy("dead", 5),
    [EU],
    [GrantDefinition("carol", "use"), GrantDefinition("dan", "receive", "eu")],
    [AlertDefinition("send_request", "count", 100.0), AlertDefinition("receive_request", "count", 5.0, "eu")],
    daily_statistics=True,
)
FIFO = QueueDefinition("line", QueueSettings(fifo=True, on_exhausted="park", max_receive_count=3))
DEAD = QueueDefinition("dead", QueueSettings(dead_letter=True))
USER = UserDefinition("carol", {"email": "c@example.com", "queues": 5})
# Its dead-letter queue comes after it, and a queue that is its own.
ALL = Definitions([ORDERS, QueueDefinition("own", QueueSettings(), RedrivePolicy("own", 9)), FIFO, DEAD], [USER])


def told(differences: list[Difference]) -> list[tuple[str, str, str, str]]:
    return [
        (one.action, one.kind, f"{one.queue}/{one.name}" if one.queue else one.name, one.field) for one in differences
    ]


async def test_a_document_is_made_true_once_and_shown_as_it_was_given(own_engine: Engine) -> None:
    definitions = own_engine.definitions
    assert await definitions.get_definitions(BY) == Definitions([], [])
    planned = await definitions.put_definitions(BY, ALL, dry_run=True)
    assert await definitions.get_definitions(BY) == Definitions([], []), "a dry run does nothing"
    assert await definitions.put_definitions(BY, ALL) == planned
    assert sorted(one for one in told(planned) if one[1] == "queue") == [
        ("create", "queue", name, "") for name in ("dead", "line", "orders", "own")
    ]
    assert await definitions.put_definitions(BY, ALL) == [], "all is so"
    shown = await definitions.get_definitions(BY)
    assert [queue.name for queue in shown.queues] == ["dead", "line", "orders", "own"]
    orders = shown.queues[2]
    assert (orders.tags, orders.grants, orders.redrive_policy) == ([EU], ORDERS.grants, ORDERS.redrive_policy)
    assert (set(orders.alerts or ()), orders.daily_statistics) == (set(ORDERS.alerts or ()), True)
    assert (orders.settings.lease_ms, orders.settings.labels, orders.settings.allowed_sources) == (
        60_000,
        {"cost": "1"},
        [],
    )
    assert shown.users == [replace(USER, values={**shown.users[0].values, **USER.values})]
    assert await definitions.put_definitions(BY, shown, prune=["tags", "grants", "alerts", "queues"]) == []


async def test_what_is_shown_makes_an_empty_service_equal(make_engine: MakeEngine) -> None:
    one = await make_engine()
    other = await make_engine(topic_prefix=f"{one.settings.topic_prefix}.other")
    await one.definitions.put_definitions(BY, ALL)
    shown = await one.definitions.get_definitions(BY)
    await other.definitions.put_definitions(BY, shown)
    assert await other.definitions.get_definitions(BY) == shown


async def test_a_document_changes_what_differs_and_deletes_what_is_asked_for(own_engine: Engine) -> None:
    definitions = own_engine.definitions
    await definitions.put_definitions(BY, ALL)
    alert = AlertDefinition("send_request", "count", 200.0)
    orders = QueueDefinition(
        "orders", QueueSettings(lease_ms=5_000), None, [], [GrantDefinition("carol", "send")], [alert]
    )
    wanted = Definitions([orders, DEAD], [replace(USER, values={"queues": 6})])
    assert sorted(told(await definitions.put_definitions(BY, wanted))) == [
        ("change", "grant", "orders/carol", "level"),
        ("change", "queue", "orders", "lease_ms"),
        ("change", "queue", "orders", "redrive_policy"),
        ("change", "user", "carol", "queues"),
        ("create", "alert", "orders/send_request", ""),
    ]
    shown = (await definitions.get_definitions(BY)).queues[2]
    assert (shown.settings.read_qps, shown.tags, len(shown.grants or ()), len(shown.alerts or ())) == (7, [EU], 2, 3)
    pruned = await definitions.put_definitions(BY, wanted, prune=["tags", "grants", "alerts", "queues"])
    assert {one.action for one in pruned} == {"delete"}
    assert sorted((one.kind, one.name) for one in pruned) == [
        ("alert", "receive_request"),
        ("alert", "send_request"),
        ("grant", "dan"),
        ("queue", "line"),
        ("queue", "own"),
        ("tag", "eu"),
    ]
    left = await definitions.get_definitions(BY)
    assert [queue.name for queue in left.queues] == ["dead", "orders"]
    assert (left.queues[1].tags, left.queues[1].alerts) == ([], [alert])


def bad(name: str = "a", policy: RedrivePolicy | None = None, **more: Any) -> QueueDefinition:
    """A new queue, or one of another name, with something that is refused."""
    definition = QueueDefinition(name, QueueSettings(**more.pop("settings", {})), **more)
    return definition if policy is None else replace(definition, redrive_policy=policy)


# What is refused, and where: below the path of the definition.
BAD: list[tuple[QueueDefinition, type[EngineError], str]] = [
    (bad(settings={"lease_ms": -1}), InvalidValue, ".lease_ms"),
    (bad("-"), InvalidValue, ".name"),
    (bad("good"), InvalidValue, ""),
    (bad(settings={"content_dedup": True}), InvalidValue, ".content_dedup"),
    (bad(policy=RedrivePolicy("none", 3)), QueueNotFound, ".redrive_policy.dead_letter_queue"),
    (bad(policy=RedrivePolicy("kept", 0)), InvalidValue, ".redrive_policy.max_receive_count"),
    (bad("kept", settings={"partitions": 9}), NotAllowedOnQueue, ".partitions"),
    (bad("kept", tags=[TagDefinition("t", read_qps=9)]), TagExists, ".tags[0].read_qps"),
    (bad(tags=[TagDefinition("t"), TagDefinition("t")]), InvalidValue, ".tags[1]"),
    (bad(grants=[GrantDefinition("x", "boss")]), InvalidValue, ".grants[0].level"),
    (bad(alerts=[AlertDefinition("x", "count", 1.0)]), InvalidValue, ".alerts[0].subject"),
]


async def test_one_bad_item_refuses_all_and_names_its_path(own_engine: Engine) -> None:
    await own_engine.queues.create_queue(BY, "kept", QueueSettings(partitions=1))
    await own_engine.queues.create_tag(BY, "kept", "t", 0, None, {})
    before = await own_engine.definitions.get_definitions(BY)
    good = QueueDefinition("good", QueueSettings())
    for wrong, kind, path in BAD:
        with pytest.raises(kind) as refused:
            await own_engine.definitions.put_definitions(BY, Definitions([good, wrong], [USER]))
        assert (refused.value.field, refused.value.detail.startswith("queues[1]")) == (f"queues[1]{path}", True), (
            refused.value.detail
        )
    for users, prune in (([UserDefinition("u", {"queues": -1})], ()), ([], ("users",))):
        with pytest.raises(InvalidValue):
            await own_engine.definitions.put_definitions(BY, Definitions([good], users), prune=prune)
    assert await own_engine.definitions.get_definitions(BY) == before


async def test_each_change_needs_its_right_and_nobody_sees_more_than_they_may(make_engine: MakeEngine) -> None:
    guarded = await make_engine(auth="required", admin_key_secret="s")
    await guarded.definitions.put_definitions(ALICE, Definitions([QueueDefinition("hers", QueueSettings())], []))

    async def refused(*queues: QueueDefinition, users: tuple[UserDefinition, ...] = (), **more: Any) -> None:
        with pytest.raises(NotAuthorised):
            await guarded.definitions.put_definitions(BOB, Definitions(list(queues), list(users)), **more)

    hers = QueueDefinition("hers", QueueSettings())
    await refused(hers)
    await guarded.callers.grant(ALICE, "hers", "bob", "get_info")
    assert await guarded.definitions.put_definitions(BOB, Definitions([hers], [])) == []
    await refused(QueueDefinition("his", QueueSettings()), replace(hers, settings=QueueSettings(lease_ms=5)))
    await refused(replace(hers, tags=[TagDefinition("t")]), dry_run=True)
    await refused(replace(hers, grants=[GrantDefinition("bob", "admin")]))
    await refused(replace(hers, alerts=[AlertDefinition("send_request", "count", 1.0)]))
    await refused(replace(hers, daily_statistics=True))
    await refused(replace(hers, redrive_policy=RedrivePolicy("hers", 3)))
    await refused(users=(UserDefinition("bob", {"queues": 0}),))
    assert (await guarded.definitions.get_definitions(BOB)).queues == [], "nothing of a refused document is done"
    assert (await guarded.definitions.get_definitions(ALICE)).users == []
    assert [queue.name for queue in (await guarded.definitions.get_definitions(ALICE)).queues] == ["hers"]
