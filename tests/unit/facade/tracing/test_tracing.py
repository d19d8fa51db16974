"""Spans of requests and of moves: which there are, and what they say."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from engine.errors import QueueNotFound
from engine.move.shapes import Move
from engine.shapes import Delivery, SendEntry, Sent
from runtime import asked
from schemas.records import Attribute, Message
from tests.unit.facade.tracing.conftest import SPAN, TRACE, UNSAMPLED, W3C, XRAY, Traced, links_of

SCOPE = {"method": "POST", "path": "/v1/queues/orders/messages", "scheme": "http", "query_string": b"secret=1"}
CONTEXT = {"traceparent": Attribute("string", W3C.encode())}


def begin(traced: Traced, verb: str = "", queue: str = "", tag: str = "", **headers: str) -> None:
    """A request with a sampled context that asks the engine for a verb."""
    found = {"host": "leaseway.localhost:9400", "traceparent": W3C, **headers}
    traced.tracing.begin(SCOPE, {name.replace("_", "-").encode(): text.encode() for name, text in found.items()})
    asked.current.set(asked.Asked(""))
    if verb:
        asked.note("shop", "", verb, queue, tag)


def delivery(id: str, message: Message) -> Delivery:
    return Delivery(id, f"handle-{id}", message, 1, 1, 1, 1, 0, 0)


def test_a_request_continues_the_trace_of_its_client(traced: Traced) -> None:
    begin(traced, "send", "orders")
    traced.tracing.sending([SendEntry(b"x", CONTEXT)])
    traced.tracing.sent([Sent("id1", "", 1)])
    traced.tracing.end("send", 200)
    span = traced.one()

    assert (span.name, span.kind.name, span.status.status_code.name) == ("send orders", "SERVER", "UNSET")
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}", span.parent.is_remote) == (
        TRACE,
        SPAN,
        True,
    )
    assert dict(span.attributes) == {
        "http.request.method": "POST",
        "url.path": "/v1/queues/orders/messages",
        "url.scheme": "http",
        "server.address": "leaseway.localhost",
        "server.port": 9400,
        "http.response.status_code": 200,
        "messaging.system": "leaseway",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "messaging.message.id": "id1",
    }
    assert links_of(span) == [(TRACE, SPAN, {})]


@pytest.mark.parametrize(
    ("headers", "state"),
    [
        ({"tracestate": "a=b"}, "a=b"),
        ({"traceparent": "damaged", "x_amzn_trace_id": XRAY}, ""),
        ({"traceparent": UNSAMPLED}, None),
        ({"traceparent": "damaged"}, None),
        ({"traceparent": "damaged", "x_amzn_trace_id": XRAY.replace("Sampled=1", "Sampled=0")}, None),
    ],
)
def test_only_a_sampled_context_has_a_span(traced: Traced, headers: dict[str, str], state: str | None) -> None:
    begin(traced, "send", "orders", **headers)
    traced.tracing.sending([SendEntry(b"x", CONTEXT)])
    traced.tracing.end("send", 200)

    found = [one.parent.trace_state.to_header() for one in traced.spans]
    assert found == ([] if state is None else [state])


def test_the_span_of_a_request_is_not_that_of_the_next_one_in_its_task(traced: Traced) -> None:
    begin(traced, "send", "orders")
    begin(traced, "send", "orders", traceparent=UNSAMPLED)
    traced.tracing.end("send", 200)

    assert traced.spans == []


async def test_requests_side_by_side_have_spans_of_their_own(traced: Traced) -> None:
    async def request(number: int) -> None:
        begin(traced, "receive", f"q{number}", "tag")
        await asyncio.sleep(0)
        traced.tracing.received("", [delivery(f"id{n}", Message(b"x", CONTEXT)) for n in range(number)])
        await asyncio.sleep(0)
        traced.tracing.end("receive", 200)

    await asyncio.gather(*(request(number) for number in range(4)))

    counts = {one.name: one.attributes.get("messaging.batch.message_count") for one in traced.spans}
    assert counts == {"receive q0": 0, "receive q1": None, "receive q2": 2, "receive q3": 3}
    assert {one.attributes["messaging.destination.subscription.name"] for one in traced.spans} == {"tag"}
    assert [len(one.links) for one in sorted(traced.spans, key=lambda one: str(one.name))] == [0, 1, 2, 3]


def test_the_tag_is_that_of_the_receive_whatever_was_asked_for_before(traced: Traced) -> None:
    begin(traced, "receive", "orders")
    traced.tracing.received("billing", [])
    traced.tracing.end("rocketmq.ReceiveMessage", 200)

    assert traced.one().attributes["messaging.destination.subscription.name"] == "billing"


def test_who_settles_a_message_links_to_its_context(traced: Traced) -> None:
    begin(traced, "receive", "orders")
    traced.tracing.received("", [delivery("id1", Message(b"x", CONTEXT)), delivery("id2", Message(b"x"))])
    traced.tracing.end("receive", 200)
    begin(traced, "ack", "orders")
    traced.tracing.settling(["a", "b", "bad"], {"a": "id1", "b": "id2", "bad": ""}.__getitem__)
    traced.tracing.end("ack", 200)
    receive, ack = traced.spans

    assert links_of(receive) == links_of(ack) == [(TRACE, SPAN, {"messaging.message.id": "id1"})]
    told = {name: ack.attributes[f"messaging.{name}"] for name in ("operation.type", "batch.message_count")}
    assert told == {"operation.type": "settle", "batch.message_count": 3}


def test_a_new_length_of_a_lease_is_no_settlement(traced: Traced) -> None:
    begin(traced, "extend", "orders")
    traced.tracing.settling(["a"], lambda handle: "id1")
    traced.tracing.end("sqs.ChangeMessageVisibility", 200)
    span = traced.one()

    assert span.name == "extend orders"
    assert span.attributes["messaging.message.id"] == "id1"
    assert "messaging.operation.type" not in span.attributes


def test_what_is_done_with_a_queue_has_no_messages(traced: Traced) -> None:
    begin(traced, "purge", "orders")
    traced.tracing.end("purge_queue", 200)
    span = traced.one()

    told = {name for name in span.attributes if name.startswith("messaging.")}
    assert (span.name, told) == (
        "purge orders",
        {"messaging.system", "messaging.operation.name", "messaging.destination.name"},
    )


def test_contexts_that_are_remembered_are_bounded(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("facade.http.tracing.tracing.KNOWN", 2)
    begin(traced, "receive", "orders")
    traced.tracing.received("", [delivery(f"id{n}", Message(b"x", CONTEXT)) for n in range(3)])
    traced.tracing.settling(["id0", "id1", "id2"], str)
    traced.tracing.end("receive", 200)

    ids = [told["messaging.message.id"] for _, _, told in links_of(traced.one())]
    assert ids == ["id0", "id1", "id2", "id1", "id2"]


@pytest.mark.parametrize(
    ("error", "status", "told", "is_ours"),
    [
        (QueueNotFound("no"), 404, {"error.type": "queue_not_found", "http.response.status_code": 404}, False),
        (ValueError("x"), 500, {"error.type": "ValueError", "http.response.status_code": 500}, True),
        (None, 503, {"error.type": "503", "http.response.status_code": 503}, True),
        (None, 499, {"error.type": "client_gone"}, False),
    ],
)
def test_what_went_wrong_is_told(
    traced: Traced, error: Exception | None, status: int, told: dict[str, Any], is_ours: bool
) -> None:
    begin(traced)
    if error is not None:
        traced.tracing.failed(error)
    traced.tracing.end("sqs.ListQueues", status)
    span = traced.one()

    found = {
        name: span.attributes[name] for name in ("error.type", "http.response.status_code") if name in span.attributes
    }
    assert (span.name, found, span.status.status_code.name) == ("sqs.ListQueues", told, "ERROR" if is_ours else "UNSET")
    assert not any(name.startswith("messaging.") for name in span.attributes)
    assert "secret" not in str(span.attributes)


def test_what_comes_after_the_end_of_a_request_is_nobodys(traced: Traced, caplog: pytest.LogCaptureFixture) -> None:
    begin(traced, "send", "orders")
    traced.tracing.end("send", 200)
    traced.tracing.sending([SendEntry(b"x", CONTEXT)])
    traced.tracing.end("send", 500)

    assert [len(one.links) for one in traced.spans] == [0]
    assert caplog.text == ""  # OpenTelemetry complains of changes after the end


def test_a_call_over_grpc(traced: Traced) -> None:
    traced.tracing.begin_call("/a.B/SendMessage", {"traceparent": W3C, ":authority": "[::1]:8081"})
    asked.current.set(asked.Asked(""))
    asked.note("shop", "", "send", "orders")
    traced.tracing.end("rocketmq.SendMessage", 50_001)
    span = traced.one()

    assert (span.name, span.status.status_code.name) == ("send orders", "ERROR")
    told = {name: value for name, value in span.attributes.items() if not name.startswith("messaging.")}
    assert told == {
        "rpc.system.name": "grpc",
        "rpc.method": "a.B/SendMessage",
        "server.address": "::1",
        "server.port": 8081,
        "leaseway.rocketmq.code": 50_001,
        "error.type": "50001",
    }


@pytest.mark.parametrize(("kind", "name"), [("dead", "dead_letter"), ("moved", "redrive")])
def test_a_move_is_a_trace_of_its_own_that_links_to_the_message(traced: Traced, kind: str, name: str) -> None:
    begin(traced, "kill", "orders")
    move = Move(kind, "orders", "billing", "dead", "id1", Message(b"x", CONTEXT), "killed", "", 1_000_000_000, "")
    traced.tracing.moved(move)
    span = traced.one()

    assert (span.name, span.kind.name, span.parent) == (f"{name} dead", "INTERNAL", None)
    assert f"{span.context.trace_id:032x}" != TRACE
    assert (span.start_time, span.end_time > span.start_time) == (1_000_000_000, True)
    assert links_of(span) == [(TRACE, SPAN, {"messaging.message.id": "id1"})]
    assert dict(span.attributes) == {
        "messaging.system": "leaseway",
        "messaging.operation.name": name,
        "messaging.operation.type": "send",
        "messaging.destination.name": "dead",
        "messaging.message.id": "id1",
        "leaseway.source.queue": "orders",
        "leaseway.source.tag": "billing",
        "leaseway.reason": "killed",
    }


def test_a_move_that_failed_says_why(traced: Traced) -> None:
    traced.tracing.moved(
        Move("moved", "dead", "default", "orders", "id1", Message(b"x", CONTEXT), "", "t1", 1, "LogUnavailable")
    )
    span = traced.one()

    assert (span.status.status_code.name, span.attributes["error.type"]) == ("ERROR", "LogUnavailable")
    assert span.attributes["leaseway.task"] == "t1"


@pytest.mark.parametrize("attributes", [{}, {"traceparent": Attribute("string", UNSAMPLED.encode())}])
def test_a_message_without_a_sampled_context_moves_without_a_span(
    traced: Traced, attributes: dict[str, Attribute]
) -> None:
    traced.tracing.moved(Move("dead", "orders", "default", "dead", "id1", Message(b"x", attributes), "", "", 1, ""))

    assert traced.spans == []


async def test_a_collector_that_hangs_does_not_keep_a_worker_from_stopping(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("facade.http.tracing.tracing.STOP_S", 0.2)
    hangs = threading.Event()
    monkeypatch.setattr(traced.tracing, "_close", hangs.wait)
    began = time.monotonic()
    await traced.tracing.stop()
    hangs.set()

    assert 0.2 <= time.monotonic() - began < 5
