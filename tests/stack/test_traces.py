"""Traces: a real service sends real spans by OTLP over HTTP; the collector is the test."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import pytest

from facade.programs.stack.processes.ports import free_port
from tests.conformance.rocketmq.raw import CLIENT, connected, receiving, sending
from tests.conftest import StartUp, absent
from tests.services import Up

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED: Final = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
MESSAGES, MESSAGE = "1af7651916cd43dd8448eb211c80319c", "c7ad6b7169203331"
CONTEXT: Final = f"00-{MESSAGES}-{MESSAGE}-01"


class Collector:
    """Takes spans at /v1/traces, as (name, span). `status`: what it answers."""

    def __init__(self, port: int) -> None:
        try:
            from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
        except ImportError:
            absent("OpenTelemetry (requirements/otel.lock)")
        self.spans: list[Any] = []
        self.resources: list[dict[str, Any]] = []
        self.status = 200
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.path == "/v1/traces" and collector.status == 200:
                    collector.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="collector")
        self._thread.start()

    def take(self, request: Any) -> None:
        for one in request.resource_spans:
            self.resources.append(attributes_of(one.resource))
            for scope in one.scope_spans:
                self.spans += scope.spans

    def named(self, name: str, wanted: Callable[[Any], bool] = lambda span: True) -> Any:
        """The one span of that name that is wanted, once it has come."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if found := [one for one in list(self.spans) if one.name == name and wanted(one)]:
                (span,) = found
                return span
            time.sleep(0.05)
        raise AssertionError(f"no {name!r} among {sorted(one.name for one in self.spans)}")

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def attributes_of(one: Any) -> dict[str, Any]:
    found = {}
    for attribute in one.attributes:
        kind = attribute.value.WhichOneof("value")
        found[attribute.key] = getattr(attribute.value, kind)
    return found


def links_of(span: Any) -> list[tuple[str, str]]:
    return [(one.trace_id.hex(), one.span_id.hex()) for one in span.links]


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    made = Collector(free_port())
    yield made
    made.close()


@pytest.fixture(scope="module")
def up(leaseway_up_module: StartUp, collector: Collector) -> Up:
    environment = {
        "LEASEWAY_TRACES": "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector._server.server_address[1]}",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
    }
    started = leaseway_up_module("--rocketmq-port", "0", environment=environment)
    started.wait_line("ready after", 120)
    return started


class Caller:
    """Requests to the service, on one connection."""

    def __init__(self, up: Up) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", up.port, timeout=30)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = None if body is None else json.dumps(body)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path, data, {"content-type": "application/json", **given})
        answer = self._connection.getresponse()
        text = answer.read()
        return json.loads(text) if text.startswith(b"{") else text.decode()

    def close(self) -> None:
        self._connection.close()

    def served_by_plane(self) -> float:
        lines = self.ask("GET", "/metrics").splitlines()
        way = 'leaseway_plane_requests_total{reason="",way="plane"}'
        return sum(float(line.split()[-1]) for line in lines if line.startswith(way))


@pytest.fixture
def caller(up: Up) -> Iterator[Caller]:
    made = Caller(up)
    yield made
    made.close()


def test_a_message_is_followed_from_its_send_to_its_redrive(up: Up, caller: Caller, collector: Collector) -> None:
    for name in ("dead", "orders"):
        policy = {"redrive_policy": {"dead_letter_queue": "dead", "max_receive_count": 5}} if name == "orders" else {}
        caller.ask("POST", "/v1/queues", {"name": name, "partitions": 1, **policy})
    message = {"body": "x", "attributes": {"traceparent": CONTEXT}}
    (sent,) = caller.ask("POST", "/v1/queues/orders/messages", {"messages": [message]}, **SAMPLED)["messages"]
    (got,) = caller.ask("POST", "/v1/queues/orders/receive", {"wait_seconds": 5}, **SAMPLED)["messages"]
    caller.ask("POST", "/v1/queues/orders/kill", {"handles": [got["handle"]]}, **SAMPLED)
    task = caller.ask("POST", "/v1/queues/dead/redrive", {})
    (again,) = caller.ask("POST", "/v1/queues/orders/receive", {"wait_seconds": 20})["messages"]
    caller.ask("POST", "/v1/queues/orders/ack", {"handles": [again["handle"]]}, **SAMPLED)

    send, receive, kill = (collector.named(f"{verb} orders") for verb in ("send", "receive", "kill"))
    ack, died, redriven = (
        collector.named("ack orders"),
        collector.named("dead_letter dead"),
        collector.named("redrive orders"),
    )
    for span in (send, receive, kill, ack):
        assert (span.trace_id.hex(), span.parent_span_id.hex(), span.kind) == (TRACE, SPAN, 2)
    for span in (died, redriven):
        assert (span.trace_id.hex() in (TRACE, MESSAGES), span.parent_span_id, span.kind) == (False, b"", 1)
    for span in (send, receive, kill, died, redriven):
        assert links_of(span) == [(MESSAGES, MESSAGE)]
    assert attributes_of(send) == {
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "url.path": "/v1/queues/orders/messages",
        "url.scheme": "http",
        "server.address": "127.0.0.1",
        "server.port": up.port,
        "messaging.system": "leaseway",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "messaging.message.id": sent["id"],
    }
    assert attributes_of(receive)["messaging.message.id"] == attributes_of(kill)["messaging.message.id"] == sent["id"]
    assert attributes_of(redriven)["leaseway.task"] == task["id"]
    assert attributes_of(died)["leaseway.source.queue"] == attributes_of(redriven)["messaging.destination.name"]
    about = collector.resources[0]
    assert (about["service.name"], about["deployment.environment.name"]) == ("leaseway", "test")


def test_clients_of_other_dialects_are_traced_too(up: Up, caller: Caller, collector: Collector) -> None:
    caller.ask("POST", "/v1/queues", {"name": "others", "partitions": 1})
    url = f"{up.endpoint}/000000000000/others"
    xray = f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={SPAN};Sampled=1"
    sending_body = {"QueueUrl": url, "MessageBody": "x"}
    caller.ask("POST", "/", sending_body, x_amz_target="AmazonSQS.SendMessage", x_amzn_trace_id=xray)
    sqs = collector.named("send others")
    metadata = (*CLIENT, *SAMPLED.items())
    with connected(up.run["rocketmq"]) as raw:
        raw.received(receiving("others"))  # which makes the group
        raw.ask("SendMessage", sending("others", b"y", trace_context=CONTEXT), metadata)
        raw.received(receiving("others", wait_s=5), metadata=metadata)

    assert (sqs.trace_id.hex(), sqs.parent_span_id.hex()) == (TRACE, SPAN)
    assert links_of(sqs) == [(TRACE, SPAN)]  # as AWS does, the request's header is that of its message
    rocketmq = collector.named("send others", lambda span: "rpc.method" in attributes_of(span))
    received = collector.named("receive others")
    assert links_of(rocketmq) == [(MESSAGES, MESSAGE)]
    assert attributes_of(received)["messaging.destination.subscription.name"] == "raw"


def test_requests_that_nobody_traces_stay_in_the_plane(library: None, caller: Caller, collector: Collector) -> None:
    caller.ask("POST", "/v1/queues", {"name": "quiet", "partitions": 1})
    unsampled = {"traceparent": f"00-{TRACE}-{SPAN}-00"}
    before, spans, end = caller.served_by_plane(), len(collector.spans), time.monotonic() + 20
    while caller.served_by_plane() == before:
        assert time.monotonic() < end
        caller.ask("POST", "/v1/queues/quiet/messages", {"messages": [{"body": "x"}]}, **unsampled)
    served = caller.served_by_plane()
    caller.ask("POST", "/v1/queues/quiet/messages", {"messages": [{"body": "last"}]}, **SAMPLED)
    collector.named("send quiet")

    assert caller.served_by_plane() == served
    assert len(collector.spans) == spans + 1


def test_a_collector_that_is_away_harms_nobody(up: Up, caller: Caller, collector: Collector) -> None:
    caller.ask("POST", "/v1/queues", {"name": "away", "partitions": 1})
    collector.status = 503
    try:
        for _ in range(20):
            answer = caller.ask("POST", "/v1/queues/away/messages", {"messages": [{"body": "x"}]}, **SAMPLED)
            assert len(answer["messages"]) == 1
    finally:
        collector.status = 200
    caller.ask("POST", "/v1/queues/away/messages", {"messages": [{"body": "a"}, {"body": "b"}]}, **SAMPLED)

    def is_last(span: Any) -> bool:
        return attributes_of(span).get("messaging.batch.message_count") == 2

    collector.named("send away", is_last)
