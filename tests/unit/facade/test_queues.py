"""Verbs on queues, tags, tasks and keys: HTTP -> arguments of the engine -> HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from engine.move.shapes import Letter, Letters, Preview
from engine.rules.grants import QueueRights
from engine.shapes import Event, KeyInfo, Life, Principal, QueueCounts
from schemas.filters import Condition, Filter
from schemas.records import Choice, Pause
from schemas.records.settings import QueueSettings, RedrivePolicy
from schemas.vocabulary import Role, Verb
from state.shared.overview import Done
from tests.unit.facade.double import AT, QUEUE, TAG, TASK, RecordingEngine

BY = Principal("anonymous")
POLICY = {"dead_letter_queue": "dead", "max_receive_count": 5}


@pytest.mark.parametrize(("made", "status"), [(True, 201), (False, 200)])
async def test_a_creator_is_told_whether_the_queue_was_made_now(
    client: httpx.AsyncClient, engine: RecordingEngine, made: bool, status: int
) -> None:
    engine.answers["create_queue"] = QUEUE, made
    body = {
        "name": "orders",
        "partitions": 2,
        "delay_seconds": 0.25,
        "receive_wait_seconds": 1.5,
        "redrive_policy": POLICY,
    }

    answer = await client.post("/v1/queues", json=body)

    assert (answer.status_code, answer.headers["location"]) == (status, "/v1/queues/orders")
    settings = QueueSettings(partitions=2, delay_ms=250, receive_wait_ms=1500, redrive_policy=RedrivePolicy("dead", 5))
    assert engine.calls == [("create_queue", BY, "orders", settings)]
    shown = answer.json()
    assert (shown["delay_seconds"], shown["lease_seconds"], shown["receive_wait_seconds"]) == (0.25, 30, 1.5)
    assert b'"lease_seconds":30,' in answer.content  # whole seconds are whole numbers
    assert (shown["redrive_policy"], shown["source_queues"]) == ({**POLICY, "stopped": ""}, ["x"])
    assert shown["tags"][0]["filter"] == {
        "operator": "OR",
        "conditions": [{"name": "kind", "type": "string", "value": "retail"}, {"name": "vip", "type": "empty"}],
    }


async def test_a_setter_names_only_what_changes(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.answers["set_queue"] = QUEUE

    answer = await client.patch(
        "/v1/queues/orders", json={"lease_seconds": 0, "durable_acks": True, "user_attributes": {}}
    )

    assert answer.status_code == 200
    assert engine.calls == [
        ("set_queue", BY, "orders", QueueSettings(lease_ms=0, durable_acks=True, user_attributes={}))
    ]


async def test_a_setter_is_not_left_to_believe_that_null_removes_a_policy(
    client: httpx.AsyncClient, engine: RecordingEngine
) -> None:
    answer = await client.patch("/v1/queues/orders", json={"redrive_policy": None})

    assert (answer.status_code, answer.json()["field"], engine.calls) == (400, "redrive_policy", [])


@pytest.mark.parametrize(
    ("method", "path", "body", "call", "result", "status"),
    [
        ("GET", "/v1/queues/orders", None, ("get_queue", BY, "orders"), QUEUE, 200),
        ("DELETE", "/v1/queues/orders", None, ("delete_queue", BY, "orders"), None, 204),
        ("POST", "/v1/queues/orders/purge", None, ("purge", BY, "orders"), None, 204),
        (
            "POST",
            "/v1/queues/orders/pause",
            {"reason": "late"},
            ("pause", BY, "orders", None, "late"),
            Pause("shop", AT, "late"),
            200,
        ),
        ("POST", "/v1/queues/orders/resume", None, ("resume", BY, "orders", None), None, 204),
        (
            "POST",
            "/v1/queues/orders/tags/t/pause",
            None,
            ("pause", BY, "orders", "t", ""),
            Pause("shop", AT),
            200,
        ),
        ("POST", "/v1/queues/orders/tags/t/resume", None, ("resume", BY, "orders", "t"), None, 204),
        ("POST", "/v1/queues/orders/tags/t/seek", {"to_ms": 5}, ("seek", BY, "orders", "t", 5), TAG, 200),
        ("POST", "/v1/queues/orders/tags/t/seek", {"to": "earliest"}, ("seek", BY, "orders", "t", 0), TAG, 200),
        ("POST", "/v1/queues/orders/tags/t/seek", {"to": "latest"}, ("seek", BY, "orders", "t", -1), TAG, 200),
        ("POST", "/v1/queues/orders/copy", {"target": "new"}, ("copy_queue", BY, "orders", "new"), QUEUE, 201),
        (
            "GET",
            "/v1/queues/orders/redrive-policy",
            None,
            ("get_redrive_policy", BY, "orders"),
            (RedrivePolicy("dead", 5), "another"),
            200,
        ),
        (
            "PUT",
            "/v1/queues/orders/redrive-policy",
            POLICY,
            ("set_redrive_policy", BY, "orders", RedrivePolicy("dead", 5)),
            RedrivePolicy("dead", 5),
            200,
        ),
        ("DELETE", "/v1/queues/orders/redrive-policy", None, ("set_redrive_policy", BY, "orders", None), None, 204),
        ("GET", "/v1/queues/orders/tags", None, ("list_tags", BY, "orders"), [TAG], 200),
        ("DELETE", "/v1/queues/orders/tags/billing", None, ("delete_tag", BY, "orders", "billing"), None, 204),
        ("GET", "/v1/tasks/t1", None, ("get_task", BY, "t1"), TASK, 200),
        ("DELETE", "/v1/tasks/t1", None, ("cancel_task", BY, "t1"), TASK, 200),
        ("POST", "/v1/queues/dead/redrive", None, ("redrive", BY, "dead", None, None, 0, None, None), TASK, 202),
        (
            "POST",
            "/v1/queues/dead/redrive",
            {"ids": ["a", "b"]},
            ("redrive", BY, "dead", None, None, 0, ["a", "b"], None),
            TASK,
            202,
        ),
        (
            "POST",
            "/v1/queues/dead/redrive/preview",
            {"from": 5, "to": 9, "reason": "killed", "source": "orders", "text": "a", "ignore_case": True},
            ("preview_redrive", BY, "dead", None, None, None, Choice(5, 9, "killed", "orders", "a", True)),
            Preview("dead", 1, {"leased": 1}, [Letter("m", "moved", "orders")], 2, ""),
            200,
        ),
        ("POST", "/v1/redrive", {"rate": 5}, ("redrive_all", BY, None, None, 5, None, None), [TASK], 202),
        ("POST", "/v1/redrive/preview", {"ids": ["a"]}, ("preview_redrive_all", BY, None, None, ["a"], None), [], 200),
        (
            "GET",
            "/v1/tasks?status=running&limit=7&next=n",
            None,
            ("all_tasks", BY, "running", 7, "n"),
            ([TASK], None),
            200,
        ),
        (
            "GET",
            "/v1/tasks/t1/outcomes?next=7",
            None,
            ("task_outcomes", BY, "t1", 100, "7"),
            Letters([Letter("m", "moved", "orders", "c"), Letter("n", "gone")], None, True),
            200,
        ),
        (
            "GET",
            "/v1/queues/orders/messages/m/events?tag=t&next=n",
            None,
            ("message_events", BY, "orders", "m", "t", "n"),
            Life([Event("sent", AT, by="shop"), Event("leased", AT, "t", 1, AT + 5)], False, AT, None, 3, ""),
            200,
        ),
        (
            "POST",
            "/v1/keys",
            {"key_id": "k", "principal": "p"},
            ("create_key", BY, "k", "p", "member", 0),
            ("k", "s"),
            201,
        ),
        (
            "PATCH",
            "/v1/keys/k",
            {"disabled": True},
            ("set_key", BY, "k", None, None, True),
            KeyInfo("k", "p", Role.MEMBER, AT, 0, True, 0, 0),
            200,
        ),
        (
            "PATCH",
            "/v1/keys/k",
            {"expires_at_ms": 5, "role": "reader"},
            ("set_key", BY, "k", "reader", 5, None),
            KeyInfo("k", "p", Role.READER, AT, 5, False, 0, 0),
            200,
        ),
        (
            "POST",
            "/v1/keys",
            {"key_id": "k", "principal": "p", "role": "operator"},
            ("create_key", BY, "k", "p", "operator", 0),
            ("k", "s"),
            201,
        ),
        ("POST", "/v1/keys/k/rotate", {"grace_seconds": 0.5}, ("rotate_key", BY, "k", 500), "s", 200),
        ("POST", "/v1/keys/k/rotate", None, ("rotate_key", BY, "k", 86_400_000), "s", 200),
        ("GET", "/v1/keys", None, ("list_keys", BY), [KeyInfo("k", "p", Role.ADMIN, AT, 0, False, 0, 0)], 200),
        ("DELETE", "/v1/keys/k", None, ("delete_key", BY, "k"), None, 204),
    ],
)
async def test_a_manager_reaches_each_verb(
    client: httpx.AsyncClient,
    engine: RecordingEngine,
    method: str,
    path: str,
    body: Any,
    call: tuple[Any, ...],
    result: Any,
    status: int,
) -> None:
    engine.answers[call[0]] = result

    answer = await client.request(method, path, json=body) if body is not None else await client.request(method, path)

    assert (answer.status_code, engine.calls) == (status, [call])
    assert bool(answer.content) == (status != 204)


async def test_a_queue_without_policy_has_none_to_get(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.answers["get_redrive_policy"] = None, ""
    answer = await client.get("/v1/queues/orders/redrive-policy")

    assert (answer.status_code, answer.json()["code"]) == (404, "no_redrive_policy")


async def test_a_lister_pages_by_the_last_name(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.answers["list_queues"] = (["a", "b"], "b")

    answer = await client.get("/v1/queues?prefix=a&limit=2&after=a")

    assert (answer.json(), engine.calls) == ({"queues": ["a", "b"], "next": "b"}, [("list_queues", BY, "a", 2, "a")])


async def test_a_lister_of_counts_has_an_order_and_a_cursor(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    done = {"default": Done(9, 1, 5, 2, 1)}
    rows = [QueueCounts("orders", 15, 1, 2, 3, 4, 5, 6, 7, paused=True, sent=8, done=done), QueueCounts("new")]
    engine.answers["list_counts"] = rows, "Wzcs"
    answer = await client.get("/v1/queues?counts=true&prefix=o&limit=2&sort=oldest&cursor=WzYs")
    assert engine.calls == [("list_counts", BY, "o", 2, "oldest", "WzYs", False)]
    names = ("backlog", "ready", "delayed", "leased", "parked", "stored", "oldest_at_ms", "as_of_ms", "paused")
    tags = [{"name": "default", "received": 9, "redelivered": 1, "acked": 5, "released": 2, "dead": 1}]
    shown = 15, 1, 2, 3, 4, 5, 6, 7, True
    none = {**dict.fromkeys((*names[:6], "sent"), 0), "oldest_at_ms": None, "as_of_ms": None, "paused": False}
    assert answer.json() == {
        "queues": ["orders", "new"],
        "counts": [
            {
                "name": "orders",
                **dict(zip(names, shown, strict=True)),
                "sent": 8,
                "tags": tags,
            },
            {"name": "new", **none, "tags": []},
        ],
        "next": "Wzcs",
    }


@pytest.mark.parametrize(
    "query", ["sort=oldest", "cursor=x", "dead_letters=true", "counts=true&after=a", "counts=maybe"]
)
async def test_a_field_of_the_other_kind_of_list_is_refused_by_name(
    client: httpx.AsyncClient, engine: RecordingEngine, query: str
) -> None:
    answer = await client.get(f"/v1/queues?{query}")
    field = query.rsplit("&", maxsplit=1)[-1].split("=", maxsplit=1)[0]
    assert (answer.status_code, answer.json()["field"], engine.calls) == (400, field, [])


async def test_a_tag_starts_now_and_sees_all_unless_told(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.answers["create_tag"] = TAG, True

    answer = await client.post("/v1/queues/orders/tags", json={"name": "billing"})

    assert (answer.status_code, engine.calls) == (201, [("create_tag", BY, "orders", "billing", -1, None, {}, 0, None)])


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"name": "a"}, Condition("a")),
        ({"name": "a", "type": "EMPTY"}, Condition("a")),
        ({"name": "a", "value": "v"}, Condition("a", "string", b"v")),
        ({"name": "a", "value_base64": "/w=="}, Condition("a", "binary", b"\xff")),
        ({"name": "a", "type": "number.int", "value": "5"}, Condition("a", "number.int", b"5")),
    ],
)
async def test_a_filter_condition_may_leave_its_type_out(
    client: httpx.AsyncClient, engine: RecordingEngine, condition: Any, expected: Condition
) -> None:
    engine.answers["create_tag"] = TAG, False
    body = {
        "name": "billing",
        "start_at_ms": 0,
        "filter": {"operator": "OR", "conditions": [condition]},
        "user_attributes": {"a": "b"},
    }

    answer = await client.post("/v1/queues/orders/tags", json=body)

    assert answer.status_code == 200
    assert engine.calls == [("create_tag", BY, "orders", "billing", 0, Filter([expected], "OR"), {"a": "b"}, 0, None)]


@pytest.mark.parametrize(
    "condition",
    [
        {"name": "a", "type": "empty", "value": "v"},
        {"name": "a", "value": "v", "value_base64": "/w=="},
        {"name": "a", "type": "binary", "value": "v"},
        {"name": "a", "type": "string"},
        {"name": "a", "type": "bool", "value": "v"},
        {"name": "a b"},
    ],
)
async def test_a_filter_condition_that_says_two_things_is_refused(
    client: httpx.AsyncClient, engine: RecordingEngine, condition: Any
) -> None:
    answer = await client.post(
        "/v1/queues/orders/tags", json={"name": "billing", "filter": {"conditions": [condition]}}
    )

    assert (answer.status_code, engine.calls) == (400, [])
    assert answer.json()["field"].startswith("filter.conditions[0]")
    assert answer.json()["code"] in ("invalid_value", "duplicate_value", "missing_field")


async def test_a_redriver_is_sent_to_the_task(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.answers["redrive"] = TASK

    answer = await client.post("/v1/queues/dead/redrive", json={"destination": "orders", "rate": 10})

    assert (answer.status_code, answer.headers["location"], answer.json()["moved"]) == (202, "/v1/tasks/t1", 1)
    assert engine.calls == [("redrive", BY, "dead", "orders", None, 10, None, None)]


async def test_who_asks_what_they_may_do_is_told_the_verbs(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.answers["rights"] = [Verb.SEND, Verb.GET_QUEUE]
    engine.answers["queue_rights"] = QueueRights([Verb.SEND], {"default": [], "audit": [Verb.PEEK]})
    of_queue = await client.get("/v1/queues/orders/rights")
    alone = await client.get("/v1/rights")

    assert of_queue.json() == {
        "queue": "orders", "may": ["send"], "tags": {"default": [], "audit": ["peek"]}
    }  # fmt: skip
    assert alone.json()["may"] == ["send", "get_queue"] and alone.json()["principal"] == BY.id
    assert engine.calls == [("queue_rights", BY, "orders"), ("rights", BY)]
