"""What the native library reads, Python reads too and with the same values; seeded mutations of
hot requests.
"""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pytest

from engine.plane.library import CHANGE, CHANGE_BATCH, DELETE, DELETE_BATCH, RECEIVE, SEND, SEND_BATCH
from engine.plane.library import NATIVE_ACK as ACK
from engine.plane.library import NATIVE_EXTEND as EXTEND
from engine.plane.library import NATIVE_RECEIVE as TAKE
from engine.plane.library import NATIVE_RELEASE as RELEASE
from engine.plane.library import NATIVE_SEND as PUT
from facade.dialects.native.wire.shapes import ExtendBody, HandlesBody, ReceiveBody, ReleaseBody, SendBody
from facade.dialects.native.wire.translate import distinct
from facade.dialects.sqs.actions import ACTIONS
from facade.dialects.sqs.lanes import ACTION
from facade.dialects.sqs.messages import attributes
from facade.dialects.sqs.messages.batches import by_id
from facade.http.sockets.library import read

pytestmark = pytest.mark.usefixtures("library")

SEED = 20261125
BODIES = 100_000
PARTS = ["a", "é", "€", "😀", "\n", '"', "\\", "x" * 70, "\ud7ff", "\u007f", "\t", "/", "\ue000", "b" * 7, "\r"]
REFUSED = ["\u0001", "\ufffe", "\uffff", "\u0000", "\ud800"]
INSERTED = b'"\\{}[],:0-9eE.u \n\t\x00\x80\xed\xa0\xef\xbf\xbe'
NATIVE = {
    PUT: ("messages", SendBody),
    TAKE: ("receive", ReceiveBody),
    ACK: ("ack", HandlesBody),
    EXTEND: ("extend", ExtendBody),
    RELEASE: ("release", ReleaseBody),
}
LEASES = [0, 30, 43_200] * 20 + [43_201, -1, 1.5, "5", True, None]
VERBS = [*ACTION, *NATIVE]
HEAD = "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.{}\r\nContent-Length: {}\r\n\r\n"

NATIVE_HEAD = (
    "POST /v1/queues/{}/{} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
)


def head_of(verb: int, size: int) -> str:
    return NATIVE_HEAD.format("q", NATIVE[verb][0], size) if verb in NATIVE else HEAD.format(ACTION[verb], size)


def some_text(chance: random.Random) -> str:
    return "".join(chance.choice(PARTS if chance.random() < 0.99 else REFUSED) for _ in range(chance.randrange(12)))


def native_request(chance: random.Random, verb: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if verb == PUT:
        fields["messages"] = [
            {"body": some_text(chance) or "b"} for _ in range(chance.choice([0, 1, 1, 2, 3, 32, 33, 101]))
        ]
        if fields["messages"] and chance.random() < 0.05:
            fields["messages"][0][chance.choice(["group", "delay_seconds", "unknown"])] = chance.choice(["g", 5, None])
    elif verb == EXTEND:
        fields["entries"] = [
            {"handle": f"{place}{some_text(chance)}", "lease_seconds": chance.choice(LEASES)}
            for place in range(chance.choice([0, 1, 1, 2, 3]))
        ]
    elif verb in (ACK, RELEASE):
        if verb == RELEASE and chance.random() < 0.3:
            fields["delay_seconds"] = chance.choice([0, 0, 5, None])
        fields["handles"] = [
            str(place) + some_text(chance)[:1000] for place in range(chance.choice([0, 1, 1, 2, 3, 100, 101]))
        ]
        if chance.random() < 0.05:
            fields["handles"] *= 2
    else:
        for name, values in (
            ("max", [1, 2, 9, 100] * 3 + [0, 101, -1, 1.0, None]),
            ("wait_seconds", [0, 1, 20] * 4 + [21, 0.5, None]),
            ("lease_seconds", [0, 30, 43_200] * 5 + [43_201, 10**9, True, "5"]),
        ):
            if chance.random() < 0.6:
                fields[name] = chance.choice(values)
    if chance.random() < 0.05:
        fields[chance.choice(["tag", "unknown"])] = chance.choice(["t", None, 0])
    return fields


def request(chance: random.Random, verb: int) -> dict[str, Any]:
    """Fields that are mostly good."""
    if verb in NATIVE:
        return native_request(chance, verb)
    fields: dict[str, Any] = {"QueueUrl": "http://127.0.0.1/000000000000/" + chance.choice(["q", "été", "q@t"])}
    if verb == SEND:
        fields["MessageBody"] = some_text(chance)
    elif verb in (DELETE, CHANGE):
        fields["ReceiptHandle"] = some_text(chance) or "h"
        if verb == CHANGE:
            fields["VisibilityTimeout"] = chance.choice(LEASES)
    elif verb == RECEIVE:
        for name, values in (
            ("MaxNumberOfMessages", [1, 2, 9, 10] * 3 + [0, 11, -1, 1.0]),
            ("WaitTimeSeconds", [0, 1, 20] * 4 + [21, -1, None]),
            ("VisibilityTimeout", [0, 30, 43_200] * 5 + [43_201, 10**9, True, "5"]),
        ):
            if chance.random() < 0.6:
                fields[name] = chance.choice(values)
    else:
        value = "MessageBody" if verb == SEND_BATCH else "ReceiptHandle"
        fields["Entries"] = [
            {
                "Id": chance.choice(["a", "0", "x-_"]) + (str(place) if chance.random() < 0.98 else "é"),
                value: some_text(chance) or "v",
            }
            for place in range(chance.choice([0, 1, 1, 2, 3, 5, 10, 11]))
        ]
        for entry in fields["Entries"] if verb == CHANGE_BATCH else ():
            entry["VisibilityTimeout"] = chance.choice(LEASES)
    if chance.random() < 0.05:
        fields[chance.choice(["DelaySeconds", "Unknown", "MessageGroupId"])] = chance.choice([0, 5, "g"])
    return fields


def mutated(chance: random.Random, text: bytes) -> bytes:
    body = bytearray(text)
    for _ in range(chance.choice([0, 0, 0, 1, 2, 4])):
        if not body:
            break
        at, kind = chance.randrange(len(body)), chance.random()
        if kind < 0.4:
            body[at] = chance.randrange(256)
        elif kind < 0.6:
            del body[at]
        elif kind < 0.8:
            body.insert(at, chance.choice(INSERTED))
        else:
            other = chance.randrange(len(body))
            body[at:at] = body[min(at, other) : max(at, other)]
    return bytes(body)


def body_of(chance: random.Random, verb: int) -> bytes:
    text = json.dumps(request(chance, verb), ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    return mutated(chance, text)


def taken_by_front(verb: int, body: bytes) -> Any:
    """Returns what the library reads: URL, then [id, value, lease s] of each entry, or numbers;
    None = it is left to Python.
    """
    news = read(head_of(verb, len(body)).encode() + body)
    if news is None:
        return None
    found, host, path, signer, url, entries, *numbers = news
    where = f"/v1/queues/q/{NATIVE[verb][0]}".encode() if verb in NATIVE else b"/"
    assert (found, host, signer, path, url == "") == (verb, b"localhost", b"", where, verb in NATIVE)
    return [url, *numbers] if verb in (RECEIVE, TAKE) else [url, entries]


def sendable(text: str | None) -> bytes:
    body = attributes.encoded(text or "")
    assert body, "SQS refuses it"
    return body


def handle(text: str | None) -> bytes:
    assert text and len(text) <= 1024, "SQS refuses it"
    return text.encode()


def lease(seconds: int | None) -> int:
    assert seconds is not None and 0 <= seconds <= 43_200, "SQS refuses it"
    return seconds


def taken_by_native_api(verb: int, body: bytes) -> Any:
    given: Any = msgspec.json.decode(body, type=NATIVE[verb][1])
    if verb == PUT:
        return ["", [[b"", message.body.encode(), 0] for message in given.messages]]
    if verb == EXTEND:
        assert distinct([entry.handle for entry in given.entries], "{}")
        return ["", [[b"", entry.handle.encode(), entry.lease_seconds] for entry in given.entries]]
    if verb in (ACK, RELEASE):
        assert verb == ACK or not given.delay_seconds
        return ["", [[b"", text.encode(), 0] for text in distinct(given.handles, "{}")]]
    values = (given.max, given.wait_seconds, given.lease_seconds)
    return ["", *(-1 if value is None else int(value) if value == int(value) else value for value in values)]


def taken_by_python(verb: int, body: bytes) -> Any:
    """The same; raises for what Python refuses."""
    if verb in NATIVE:
        return taken_by_native_api(verb, body)
    given = ACTIONS[ACTION[verb]].decoder.decode(body)
    assert given.queue_url and len(given.queue_url) <= 2048
    url = given.queue_url
    if verb == RECEIVE:
        values = [given.max_number_of_messages, given.wait_time_seconds, given.visibility_timeout]
        assert all(
            value is None or low <= value <= high
            for value, low, high in zip(values, (1, 0, 0), (10, 20, 43_200), strict=True)
        )
        return [url, *(-1 if value is None else value for value in values)]
    if verb in (SEND, DELETE, CHANGE):
        return [url, [[b"", *value_of(verb, given)]]]
    entries = by_id(ACTION[verb], given.entries, 10).values()
    return [url, [[entry.id.encode(), *value_of(verb, entry)] for entry in entries]]


def value_of(verb: int, given: Any) -> list[Any]:
    """A body or a handle, and a lease."""
    if verb in (SEND, SEND_BATCH):
        return [sendable(given.message_body), 0]
    return [handle(given.receipt_handle), lease(given.visibility_timeout) if verb in (CHANGE, CHANGE_BATCH) else 0]


def test_what_the_front_takes_python_takes_with_the_same_values() -> None:
    chance = random.Random(SEED)
    taken = dict.fromkeys(VERBS, 0)
    for _ in range(BODIES):
        verb = chance.choice(VERBS)
        body = body_of(chance, verb)
        found = taken_by_front(verb, body)
        if found is not None:
            taken[verb] += 1
            assert found == taken_by_python(verb, body), (verb, body)
    # So that the comparison compares something.
    assert min(taken.values()) > BODIES / len(VERBS) / 5, taken


def test_good_requests_of_clients_are_plain() -> None:
    for verb, fields in (
        (SEND, {"QueueUrl": "u", "MessageBody": "é\n"}),
        (SEND_BATCH, {"QueueUrl": "u", "Entries": [{"Id": "0", "MessageBody": "b"}, {"Id": "1", "MessageBody": "c"}]}),
        (RECEIVE, {"QueueUrl": "u", "MaxNumberOfMessages": 10, "WaitTimeSeconds": 20}),
        (DELETE, {"QueueUrl": "u", "ReceiptHandle": "h"}),
        (DELETE_BATCH, {"QueueUrl": "u", "Entries": [{"Id": "0", "ReceiptHandle": "h"}]}),
        (CHANGE, {"QueueUrl": "u", "ReceiptHandle": "h", "VisibilityTimeout": 0}),
        (CHANGE_BATCH, {"QueueUrl": "u", "Entries": [{"Id": "0", "ReceiptHandle": "h", "VisibilityTimeout": 30}]}),
        (PUT, {"messages": [{"body": "é\n"}, {"body": "b"}]}),
        (TAKE, {"max": 100, "wait_seconds": 20}),
        (ACK, {"handles": ["h", "i"]}),
        (EXTEND, {"entries": [{"handle": "h", "lease_seconds": 30}, {"handle": "i", "lease_seconds": 0}]}),
        (RELEASE, {"handles": ["h", "i"]}),
    ):
        for escaped in (True, False):
            body = json.dumps(fields, ensure_ascii=escaped).encode()
            assert taken_by_front(verb, body) == taken_by_python(verb, body)
