"""Bad input: each gets problem details with code, field, limit and what was given, and the engine never hears of it."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Message

from facade.asgi import BODY_BYTES
from tests.unit.facade.double import RecordingEngine

ORDERS = "/v1/queues/orders"
SEND, ACK, RECEIVE, EXTEND = f"{ORDERS}/messages", f"{ORDERS}/ack", f"{ORDERS}/receive", f"{ORDERS}/extend"
DEEP = 200_000


def problem_in(answer: httpx.Response) -> dict[str, Any]:
    """The problem in `answer`; its form is checked here for all tests."""
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert {"type", "title", "status", "code", "detail"} <= set(found)
    assert set(found) <= {"type", "title", "status", "code", "detail", "field", "limit", "given"}
    assert found["status"] == answer.status_code
    assert found["type"] == f"/docs#{found['code']}"
    assert len(answer.content) < 2000
    return found


BODIES = [
    (SEND, b"", "missing_body", "body"),
    (SEND, b"  ", "missing_body", "body"),
    (SEND, b"{", "malformed_json", "body"),
    (SEND, b'{"messages": [{"body": "a"}]} {}', "malformed_json", "body"),
    (SEND, b"\xef\xbb\xbf{}", "malformed_json", "body"),
    (SEND, '{"messages": [{"body": "a"}]}'.encode("utf-16"), "malformed_json", "body"),
    (SEND, b'{"messages": [{"body": "\xff"}]}', "malformed_json", "body"),
    (SEND, b'{"messages": [{"body": "\\ud800"}]}', "malformed_json", "body"),
    (SEND, b'{"messages": [{"body": "a", "delay_seconds": NaN}]}', "malformed_json", "body"),
    (SEND, b'{"messages": [{"body": "a", "delay_seconds": Infinity}]}', "malformed_json", "body"),
    (SEND, b"[" * DEEP, "wrong_type", "body"),
    (SEND, b'{"messages": ' + b"[" * DEEP, "wrong_type", "messages[0]"),
    (SEND, b'{"messages": [{"body": ' + b'{"a":' * DEEP, "wrong_type", "messages[0].body"),
    (SEND, b"null", "wrong_type", "body"),
    (SEND, b"[]", "wrong_type", "body"),
    (SEND, b"{}", "missing_field", "messages"),
    (SEND, b'{"messages": []}', "invalid_value", "messages"),
    (SEND, b'{"messages": {}}', "wrong_type", "messages"),
    (SEND, b'{"messages": [{}]}', "missing_field", "messages[0].body"),
    (SEND, b'{"messages": [{"body": null}]}', "missing_field", "messages[0].body"),
    (SEND, b'{"messages": [{"body": 5}]}', "wrong_type", "messages[0].body"),
    (SEND, b'{"messages": [{"body": "a", "body_base64": "YQ=="}]}', "duplicate_value", "messages[0].body_base64"),
    (SEND, b'{"messages": [{"body_base64": "a"}]}', "invalid_value", "messages[0].body_base64"),
    (SEND, b'{"messages": [{"body": "a", "colour": 1}]}', "unknown_field", "messages[0].colour"),
    (SEND, b'{"messages": [{"body": "a"}], "x": 1}', "unknown_field", "x"),
    (SEND, b'{"messages": [{"body": "a", "delay_seconds": -1}]}', "invalid_value", "messages[0].delay_seconds"),
    (SEND, b'{"messages": [{"body": "a", "delay_seconds": 1e400}]}', "invalid_value", "messages[0].delay_seconds"),
    (SEND, b'{"messages": [{"body": "a", "delay_seconds": 1e300}]}', "invalid_value", "messages[0].delay_seconds"),
    (SEND, b'{"messages": [{"body": "a", "delay_seconds": "5"}]}', "wrong_type", "messages[0].delay_seconds"),
    (SEND, b'{"messages": [{"body": "a", "delay_seconds": true}]}', "wrong_type", "messages[0].delay_seconds"),
    (SEND, b'{"messages": [{"body": "a", "attributes": {"": "x"}}]}', "invalid_value", "messages[0].attributes"),
    (SEND, b'{"messages": [{"body": "a", "attributes": {"a b": "x"}}]}', "invalid_value", "messages[0].attributes"),
    (SEND, b'{"messages": [{"body": "a", "attributes": {"a\\n": "x"}}]}', "invalid_value", "messages[0].attributes"),
    (SEND, b'{"messages": [{"body": "a", "attributes": {"a": 5}}]}', "wrong_type", "messages[0].attributes[...]"),
    (SEND, b'{"messages": [{"body": "a", "attributes": [1]}]}', "wrong_type", "messages[0].attributes"),
    (
        SEND,
        b'{"messages": [{"body": "a", "attributes": {"DLQ.sourceQueue": "x"}}]}',
        "invalid_value",
        "messages[0].attributes.DLQ.sourceQueue",
    ),
    (RECEIVE, b'{"max": 99999999999999999999999999}', "invalid_value", "max"),
    (RECEIVE, b'{"max": ' + b"9" * 5000 + b"}", "invalid_value", "max"),
    (RECEIVE, b'{"max": 1.5}', "wrong_type", "max"),
    (RECEIVE, b'{"max": 1e400}', "invalid_value", "max"),
    (RECEIVE, b'{"max": "1"}', "wrong_type", "max"),
    (RECEIVE, b'{"wait_seconds": -0.001}', "invalid_value", "wait_seconds"),
    (RECEIVE, b'{"tag": "a@b"}', "invalid_value", "tag"),
    (RECEIVE, b'{"tag": ""}', "invalid_value", "tag"),
    (RECEIVE, b'{"tag": "a\\n"}', "invalid_value", "tag"),
    (RECEIVE, b'{"Max": 1}', "unknown_field", "Max"),
    (ACK, b'{"handles": []}', "invalid_value", "handles"),
    (ACK, b'{"handles": "a"}', "wrong_type", "handles"),
    (ACK, b'{"handles": [""]}', "invalid_value", "handles[0]"),
    (ACK, b'{"handles": [null]}', "wrong_type", "handles[0]"),
    (ACK, b'{"handles": ["a", "b", "a"]}', "duplicate_value", "handles[2]"),
    (ACK, json.dumps({"handles": [str(n) for n in range(101)]}).encode(), "invalid_value", "handles"),
    (ACK, json.dumps({"handles": ["x" * 1025]}).encode(), "invalid_value", "handles[0]"),
    (EXTEND, b'{"entries": [{"handle": "a"}]}', "missing_field", "entries[0].lease_seconds"),
    (
        EXTEND,
        b'{"entries": [{"handle": "a", "lease_seconds": 1}, {"handle": "a", "lease_seconds": 2}]}',
        "duplicate_value",
        "entries[1].handle",
    ),
    ("/v1/queues", b'{"name": "-a"}', "invalid_value", "name"),
    ("/v1/queues", b'{"name": "' + b"a" * 81 + b'"}', "invalid_value", "name"),
    ("/v1/queues", b'{"name": "a/b"}', "invalid_value", "name"),
    (
        "/v1/queues",
        b'{"name": "a", "redrive_policy": {"dead_letter_queue": "b"}}',
        "missing_field",
        "redrive_policy.max_receive_count",
    ),
    ("/v1/queues", b'{"name": "a", "partitions": 1.5}', "wrong_type", "partitions"),
    ("/v1/queues", b'{"name": "a", "user_attributes": {"a": 1}}', "wrong_type", "user_attributes[...]"),
    (f"{ORDERS}/tags", b'{"name": "t", "filter": {"conditions": []}}', "invalid_value", "filter.conditions"),
    (f"{ORDERS}/tags", b'{"name": "t", "filter": {"operator": "XOR", "conditions": []}}', "invalid_value", "filter.operator"),
    (f"{ORDERS}/purge", b'{"really": true}', "unknown_field", "body"),
    ("/v1/keys", b'{"key_id": "a:b", "principal": "p"}', "invalid_value", "key_id"),
]


@pytest.mark.parametrize(("path", "body", "code", "field"), BODIES)
async def test_a_bad_body_is_refused_with_code_and_field(
    client: httpx.AsyncClient, engine: RecordingEngine, path: str, body: bytes, code: str, field: str
) -> None:
    answer = await client.post(path, content=body)

    found = problem_in(answer)
    assert (answer.status_code, found["code"], found["field"], engine.calls) == (400, code, field, [])


@pytest.mark.parametrize(
    ("body", "limit", "given"),
    [
        (b'{"max": "x"}', "int | null", "x"),
        (b'{"wait_seconds": -1}', "float >= 0.0", -1),
        (b'{"tag": "' + b"a" * 5000 + b'"}', "str matching regex '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}$'", "a" * 200),
        (b'{"tag": {"a": [1]}}', "str | null", '{"a":[1]}'),
    ],
)
async def test_a_bad_value_is_named_with_its_limit_and_itself_shortened(
    client: httpx.AsyncClient, body: bytes, limit: str, given: Any
) -> None:
    found = problem_in(await client.post(RECEIVE, content=body))

    assert (found["limit"], found["given"]) == (limit, given)


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        ("limit=x", "wrong_type", "limit"),
        ("limit=1.5", "wrong_type", "limit"),
        ("limit=" + "9" * 400, "invalid_value", "limit"),
        ("limit=1&limit=2", "duplicate_value", "limit"),
        ("from=NaN", "wrong_type", "from"),
        ("from=1e400", "invalid_value", "from"),
        ("colour=1", "unknown_field", "colour"),
        ("state=", "invalid_value", "state"),
        ("tag=%00", "invalid_value", "tag"),
        ("tag=%ff", "malformed_query", "query"),
        ("attribute=%20x", "invalid_value", "attribute"),
        ("attribute==x", "invalid_value", "attribute"),
        ("&".join(["attribute=a"] * 21), "invalid_value", "attribute"),
        ("&".join(["attribute=a"] * 51), "malformed_query", "query"),
    ],
)
async def test_a_bad_query_is_refused_with_code_and_field(
    client: httpx.AsyncClient, engine: RecordingEngine, query: str, code: str, field: str
) -> None:
    answer = await client.get(f"{ORDERS}/messages?{query}")

    found = problem_in(answer)
    assert (answer.status_code, found["code"], found["field"], engine.calls) == (400, code, field, [])


@pytest.mark.parametrize("name", ["-a", ".a", "a" * 81, "a%20b", "%ff", "%00", "a%0A", "caf%C3%A9", "a:b"])
@pytest.mark.parametrize("verb", ["receive", "purge"])
async def test_a_bad_name_in_the_path_is_refused(client: httpx.AsyncClient, engine: RecordingEngine, name: str, verb: str) -> None:
    answer = await client.post(f"/v1/queues/{name}/{verb}")

    found = problem_in(answer)
    assert (answer.status_code, found["code"], found["field"], engine.calls) == (400, "invalid_value", "queue", [])


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/queues/",
        "/v2/queues",
        "/v1/queues//receive",
        "/v1/queues/a/receive/",
        "/v1/queues/a/b/receive",
        "/v1/%ff",
    ],
)
async def test_an_unknown_path_is_a_problem_too(client: httpx.AsyncClient, path: str) -> None:
    found = problem_in(await client.post(path))

    assert (found["status"], found["code"], found["field"]) == (404, "path_not_found", "path")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/queues", "GET, POST"),
        ("GET", RECEIVE, "POST"),
        ("PUT", SEND, "GET, POST"),
        ("POST", ORDERS, "DELETE, GET, PATCH"),
        ("OPTIONS", "/v1/queues", "GET, POST"),
        ("BREW", "/openapi.json", "GET"),
    ],
)
async def test_a_wrong_method_is_told_all_that_are_allowed(client: httpx.AsyncClient, method: str, path: str, allowed: str) -> None:
    answer = await client.request(method, path)

    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert problem_in(answer)["limit"] == allowed


async def test_a_head_is_refused_without_a_body(client: httpx.AsyncClient) -> None:
    answer = await client.head("/live")

    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "multipart/form-data; boundary=x"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": ";;;"},
    ],
)
async def test_a_body_that_is_not_said_to_be_json_is_refused(
    client: httpx.AsyncClient, engine: RecordingEngine, headers: dict[str, str]
) -> None:
    answer = await client.post(ACK, content=b'{"handles": ["a"]}', headers=headers)

    assert (problem_in(answer)["status"], engine.calls) == (415, [])


@pytest.mark.parametrize("media_type", ["application/json", "Application/JSON; Charset=UTF-8", 'application/json;charset="utf-8"'])
async def test_a_body_in_json_is_taken_however_that_is_spelt(client: httpx.AsyncClient, engine: RecordingEngine, media_type: str) -> None:
    engine.answers["ack"] = []

    answer = await client.post(ACK, content=b'{"handles": ["a"]}', headers={"content-type": media_type})

    assert answer.status_code == 200


async def test_a_body_over_the_bound_is_refused_unread_when_its_length_is_stated(client: httpx.AsyncClient) -> None:
    answer = await client.post(SEND, content=b"x", headers={"content-length": str(BODY_BYTES + 1)})

    assert (answer.status_code, problem_in(answer)["limit"]) == (413, BODY_BYTES)


async def test_a_body_over_the_bound_is_refused_as_soon_as_it_is_when_streamed(app: ASGIApp, engine: RecordingEngine) -> None:
    chunk = b"x" * 1_000_000
    taken, sent = 0, list[Message]()

    async def receive() -> Message:
        nonlocal taken
        taken += len(chunk)
        return {"type": "http.request", "body": chunk, "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": SEND, "headers": [], "query_string": b""}
    await app(scope, receive, send)

    assert (sent[0]["status"], engine.calls) == (413, [])
    assert taken <= BODY_BYTES + len(chunk)


async def test_a_failure_nobody_foresaw_is_logged_and_tells_the_client_nothing(
    client: httpx.AsyncClient, engine: RecordingEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.error = RuntimeError("secret of the house")

    hot, cold = await client.post(RECEIVE), await client.get(ORDERS)

    for answer in (hot, cold):
        assert problem_in(answer)["code"] == "internal"
        assert (answer.status_code, "secret" in answer.text) == (500, False)
    assert "secret of the house" in caplog.text
