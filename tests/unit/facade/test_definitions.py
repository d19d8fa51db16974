"""Definitions over HTTP: the document that is shown is the one that is taken."""

from __future__ import annotations

import httpx
import pytest

from engine.errors import InvalidValue
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
from tests.unit.facade.double import RecordingEngine

BY = Principal("anonymous")
FILTER = Filter(
    [Condition("kind", "string", b"retail"), Condition("raw", "binary", b"\xff"), Condition("vip", "empty")]
)
FOUND = Definitions(
    [
        QueueDefinition(
            "orders",
            QueueSettings(lease_ms=1_500, retention_ms=60_000, labels={"cost": "1"}, allowed_sources=["a"]),
            RedrivePolicy("dead", 5),
            [TagDefinition("t", FILTER, {"a": "b"}, 3, RedrivePolicy("dead", 2)), TagDefinition("u")],
            [GrantDefinition("bob", "use"), GrantDefinition("bob", "receive", "t")],
            [AlertDefinition("send_request", "count", 5.0), AlertDefinition("receive_request", "latency", 0.5, "t")],
            daily_statistics=True,
        ),
        QueueDefinition("bare", QueueSettings()),
        QueueDefinition("free", QueueSettings(durable_acks=False), None, [], [], []),
    ],
    [UserDefinition("bob", {"email": "b@example.com", "queues": 0})],
)


async def test_what_is_shown_is_taken_as_it_was(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.answers.update(get_definitions=FOUND, put_definitions=[])
    shown = await client.get("/v1/definitions?prefix=o")

    assert shown.status_code == 200
    orders = shown.json()["queues"][0]
    assert (orders["lease_seconds"], orders["retention_seconds"]) == (1.5, 60)
    assert orders["tags"][0]["filter"]["conditions"][1:] == [
        {"name": "raw", "type": "binary", "value_base64": "/w=="},
        {"name": "vip", "type": "empty"},
    ]
    assert shown.json()["queues"][1] == {"name": "bare"}
    answer = await client.put("/v1/definitions", content=shown.content)
    assert (answer.status_code, answer.json()) == (200, {"dry_run": False, "changes": []})
    assert engine.calls == [("get_definitions", BY, "o"), ("put_definitions", BY, FOUND, False, [])]


async def test_what_would_be_changed_is_told_in_the_words_of_the_document(
    client: httpx.AsyncClient, engine: RecordingEngine
) -> None:
    engine.answers["put_definitions"] = [
        Difference("create", "queue", "orders", after=FOUND.queues[2]),
        Difference("change", "queue", "orders", "", "lease_ms", 30_000, 1_500),
        Difference("change", "queue", "orders", "", "redrive_policy", RedrivePolicy("dead", 5)),
        Difference("delete", "alert", "send_request", "orders", before=AlertDefinition("send_request", "count", 5.0)),
        Difference("change", "user", "bob", "", "queues", 0, 5),
    ]
    answer = await client.put("/v1/definitions?dry_run=true&prune=tags&prune=alerts", json={})

    nothing = {"queue": None, "field": None, "before": None, "after": None}
    changed = {**nothing, "action": "change", "kind": "queue", "name": "orders"}
    free = {"name": "free", "durable_acks": False, "redrive_policy": None, "tags": [], "grants": [], "alerts": []}
    policy = {"dead_letter_queue": "dead", "max_receive_count": 5}
    alert = {"subject": "send_request", "measurement": "count", "threshold": 5.0, "tag": None}
    assert answer.json() == {
        "dry_run": True,
        "changes": [
            {**nothing, "action": "create", "kind": "queue", "name": "orders", "after": free},
            {**changed, "field": "lease_seconds", "before": 30, "after": 1.5},
            {**changed, "field": "redrive_policy", "before": policy},
            {
                **changed,
                "action": "delete",
                "kind": "alert",
                "name": "send_request",
                "queue": "orders",
                "before": alert,
            },
            {**changed, "kind": "user", "name": "bob", "field": "queues", "before": 0, "after": 5},
        ],
    }
    assert engine.calls == [("put_definitions", BY, Definitions([], []), True, ["tags", "alerts"])]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"queues": [{"name": "a"}, {"name": "b", "lease_seconds": "x"}]}, "queues[1].lease_seconds"),
        ({"queues": [{"name": "a", "nothing": 1}]}, "queues[0].nothing"),
        ({"queues": [{"name": "a", "tags": [{"name": "-"}]}]}, "queues[0].tags[0].name"),
        ({"version": 2}, "version"),
        ({"secrets": []}, "secrets"),
    ],
)
async def test_a_document_of_another_shape_is_refused_with_its_path(
    body: object, field: str, client: httpx.AsyncClient, engine: RecordingEngine
) -> None:
    answer = await client.put("/v1/definitions", json=body)

    assert answer.status_code == 400
    assert field in answer.text
    assert engine.calls == []


async def test_a_value_that_is_refused_is_told_in_seconds(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.error = InvalidValue(
        "queues[3]: lease_ms must be 0 to 43200000, given -1",
        field="queues[3].lease_ms",
        limit=[0, 43_200_000],
        given=-1_000,
    )
    answer = await client.put("/v1/definitions", json={})

    assert (answer.status_code, answer.json()["field"]) == (400, "queues[3].lease_seconds")
    assert answer.json()["detail"] == "queues[3].lease_seconds must be 0 to 43200, given -1."
