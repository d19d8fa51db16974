"""Bad bodies and query strings: each gets problem details with code, field, limit and what was
given, and the engine never hears of it.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import msgspec
import pytest

from facade.http.decode import decode_json
from facade.http.problem import ProblemError
from tests.unit.facade.double import RecordingEngine
from tests.unit.facade.problems import problem_in

ORDERS = "/v1/queues/orders"
SEND, ACK, RECEIVE, EXTEND = f"{ORDERS}/messages", f"{ORDERS}/ack", f"{ORDERS}/receive", f"{ORDERS}/extend"
DEEP = 200_000


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
    (
        SEND,
        b'{"messages": [{"body": "a", "attributes": {"n": {"type": "Number", "value": "five"}}}]}',
        "invalid_value",
        "messages[0].attributes.n.value",
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
    ("/v1/queues", b'{"name": "' + b"a" * 151 + b'"}', "invalid_value", "name"),
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
    (
        f"{ORDERS}/tags",
        b'{"name": "t", "filter": {"operator": "XOR", "conditions": []}}',
        "invalid_value",
        "filter.operator",
    ),
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
    ("path", "body", "detail"),
    [
        (
            RECEIVE,
            b'{"tag": "my tag"}',
            "tag must be 1 to 80 letters, digits, '_', '-' or '.', not beginning with '-' or '.'.",
        ),
        (
            "/v1/queues/q/redrive",
            b'{"filter": {"conditions": [{"name": "a b"}]}}',
            "filter.conditions[0].name must be 1 to 256 printable characters without spaces.",
        ),
    ],
)
async def test_what_a_name_must_be_is_said_in_words(
    client: httpx.AsyncClient, path: str, body: bytes, detail: str
) -> None:
    assert problem_in(await client.post(path, content=body))["detail"] == detail


async def test_a_bad_value_below_a_key_that_can_not_be_told_is_shown_with_all_keys(client: httpx.AsyncClient) -> None:
    body = {"messages": [{"body": "a", "attributes": {"n": {"type": "bool", "value": "x"}}}]}

    found = problem_in(await client.post(SEND, json=body))

    assert (found["field"], found["given"]) == ("messages[0].attributes[...].type", '{"n":{"type":"bool","value":"x"}}')


def test_json_nested_too_deeply_for_the_stack_is_refused() -> None:
    with pytest.raises(ProblemError) as caught:
        decode_json(msgspec.json.Decoder(), b"[" * DEEP)

    assert caught.value.code == "too_deep"


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
