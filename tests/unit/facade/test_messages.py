"""Verbs on messages: HTTP -> arguments of the engine -> HTTP."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest

from engine.shapes import EntryResult, ExtendEntry, Page, Principal, SendEntry, Sent
from schemas.filters import Condition, Filter, Text
from schemas.records import Attribute
from tests.unit.facade.double import AT, BYTES, RecordingEngine, delivery, peeked

BY = Principal("anonymous")
ORDERS = "/v1/queues/orders"


async def test_a_sender_gets_ids_in_order_and_the_engine_gets_milliseconds_and_bytes(
    client: httpx.AsyncClient, engine: RecordingEngine
) -> None:
    engine.answers["send"] = [Sent("a", "m1", AT), Sent("b", "m2", AT)]
    attributes = {
        "kind": "retail",
        "n": {"type": "number.int", "value": "-5.5e3"},
        "logo": {"type": "BINARY.PNG", "value_base64": base64.b64encode(b"\x89").decode()},
    }
    first = {"body": "gr\u00fc\u00df", "attributes": attributes, "delay_seconds": 0.25, "lease_seconds": 2}
    second = {"body_base64": base64.b64encode(b"\x00\xff").decode()}

    answer = await client.post(f"{ORDERS}/messages", json={"messages": [first, second]})

    assert answer.status_code == 200
    assert answer.json() == {
        "messages": [{"id": "a", "body_md5": "m1", "sent_at_ms": AT}, {"id": "b", "body_md5": "m2", "sent_at_ms": AT}]
    }
    expected = {
        "kind": Attribute("string", b"retail"),
        "n": Attribute("number.int", b"-5.5e3"),
        "logo": Attribute("BINARY.PNG", b"\x89"),
    }
    entries = [
        SendEntry("gr\u00fc\u00df".encode(), expected, 250, 2000, True),
        SendEntry(b"\x00\xff", {}, None, None, False),
    ]
    assert engine.calls == [("send", BY, "orders", entries)]


async def test_a_sender_may_send_an_empty_body(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.answers["send"] = []

    assert (
        await client.post(f"{ORDERS}/messages", json={"messages": [{"body": ""}, {"body_base64": ""}]})
    ).status_code == 200

    assert engine.calls[0][3] == [SendEntry(b""), SendEntry(b"", body_is_text=False)]


async def test_a_receiver_gets_text_as_text_and_all_else_as_base64(
    client: httpx.AsyncClient, engine: RecordingEngine
) -> None:
    engine.answers["receive"] = [delivery(), delivery(BYTES)]

    answer = await client.post(
        f"{ORDERS}/receive", json={"tag": "billing", "max": 10, "wait_seconds": 0.5, "lease_seconds": 30}
    )

    assert engine.calls == [("receive", BY, "orders", "billing", 10, 500, 30_000, None)]
    text, data = answer.json()["messages"]
    assert text == {
        "id": "id1",
        "handle": "handle1",
        "body": "text",
        "attributes": {
            "kind": {"type": "string", "value": "retail"},
            "raw": {"type": "string", "value_base64": "/w=="},
        },
        "sent_at_ms": AT,
        "receive_count": 1,
        "first_received_at_ms": AT + 1,
        "next_visible_at_ms": AT + 2,
        "partition": 0,
        "offset": 298,
        "sender": "shop",
    }
    assert "body" not in data
    assert data["body_base64"] == "AP8="
    assert data["attributes"] == {"logo": {"type": "binary.PNG", "value_base64": "iQ=="}}
    assert data["origin"]["original_queue"] == "orders"
    assert data["sender"] == "native", "nobody is named by a record that a Kafka-native producer wrote"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"tag": null, "max": null}'])
async def test_a_receiver_who_names_nothing_gets_the_queues_settings(
    client: httpx.AsyncClient, engine: RecordingEngine, body: bytes
) -> None:
    engine.answers["receive"] = []

    answer = await client.post(f"{ORDERS}/receive", content=body)

    assert answer.json() == {"messages": []}
    assert engine.calls == [("receive", BY, "orders", None, None, None, None, None)]


@pytest.mark.parametrize(
    ("verb", "body", "arguments"),
    [
        ("ack", {"handles": ["a", "b"]}, (["a", "b"],)),
        ("kill", {"handles": ["a"]}, (["a"], [])),
        ("kill", {"handles": ["a", "b"], "reason": "late"}, (["a", "b"], ["late", "late"])),
        ("kill", {"handles": ["a", "b"], "reasons": ["late", ""]}, (["a", "b"], ["late", ""])),
        ("release", {"handles": ["a"]}, (["a"], 0)),
        ("release", {"handles": ["a"], "delay_seconds": 0.001}, (["a"], 1)),
        ("extend", {"entries": [{"handle": "a", "lease_seconds": 1.5}]}, ([ExtendEntry("a", 1500)],)),
    ],
)
async def test_a_consumer_gets_a_result_per_handle(
    client: httpx.AsyncClient, engine: RecordingEngine, verb: str, body: Any, arguments: tuple[Any, ...]
) -> None:
    engine.answers[verb] = [EntryResult("a", "ok", AT), EntryResult("b", "stale")]

    answer = await client.post(f"{ORDERS}/{verb}", json=body)

    assert engine.calls == [(verb, BY, "orders", *arguments, True)]  # all or none
    assert answer.json() == {
        "results": [{"handle": "a", "status": "ok", "next_visible_at_ms": AT}, {"handle": "b", "status": "stale"}]
    }


async def test_a_looker_gets_a_message_and_its_state(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.answers["peek"] = peeked()

    answer = await client.get(f"{ORDERS}/messages/id1?tag=billing")

    assert engine.calls == [("peek", BY, "orders", "id1", "billing")]
    assert (answer.json()["state"], answer.json()["next_visible_at_ms"]) == ("leased", None)


async def test_a_looker_finds_messages_by_time_state_and_attributes(
    client: httpx.AsyncClient, engine: RecordingEngine
) -> None:
    engine.answers["query"] = Page([peeked()], "more", 20_000, "records")

    answer = await client.get(
        f"{ORDERS}/messages?from=1&to=-2&state=dead&attribute=kind%3Da%3Db&attribute=vip&tag=t&limit=7&next=n"
        "&text=4711&ignore_case=true&partition=3"
    )

    wanted = Filter([Condition("kind", "string", b"a=b"), Condition("vip")])
    assert engine.calls == [("query", BY, "orders", "t", 1, -2, "dead", wanted, 7, "n", 3, Text("4711", any_case=True))]
    assert (answer.json()["next"], answer.json()["scanned"], answer.json()["cut"]) == ("more", 20_000, "records")


async def test_a_looker_who_names_nothing_gets_a_page(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.answers["query"] = Page([], None)

    assert (await client.get(f"{ORDERS}/messages")).json() == {
        "messages": [],
        "next": None,
        "scanned": 0,
        "cut": None,
    }

    assert engine.calls == [("query", BY, "orders", None, None, None, None, None, 50, None, None, None)]


async def test_an_operator_deletes_a_message_by_id(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    answer = await client.delete(f"{ORDERS}/messages/id1")

    assert (answer.status_code, answer.content) == (204, b"")
    assert engine.calls == [("delete_message", BY, "orders", "id1")]


async def test_a_receive_hands_its_filter_on(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.answers["receive"] = []
    body = {"filter": {"conditions": [{"name": "colour", "type": "string", "value": "red"}, {"name": "size"}]}}

    assert (await client.post(f"{ORDERS}/receive", json=body)).status_code == 200

    assert engine.calls[0][-1] == Filter([Condition("colour", "string", b"red"), Condition("size")])
