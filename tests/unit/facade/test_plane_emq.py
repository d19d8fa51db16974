"""What the plane reads of a call of EMQ and answers is what the dialect would have read and
answered, byte for byte: seeded calls in each protocol as clients send them, and damaged ones.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from engine.plane import library as lib
from engine.shapes import Principal
from facade.dialect import Carried
from facade.dialects.emq.actions import ACTIONS
from facade.dialects.emq.lanes import METHOD
from facade.dialects.emq.queues.call import Call
from facade.dialects.emq.wire.codec import Codec
from facade.dialects.emq.wire.packed import BINARY, COMPACT
from facade.dialects.emq.wire.protocols import decode_call, encode_reply
from facade.dialects.emq.wire.services import MESSAGE_SERVICE, Argument
from facade.dialects.emq.wire.structs import message as wire
from facade.dialects.emq.wire.tjson import JSON
from facade.http.sockets.library import read
from schemas.vocabulary import ANONYMOUS
from schemas.wire import encode
from tests.unit.facade.test_front_reading import PARTS, mutated
from tests.unit.facade.test_plane_formats import answers
from tests.unit.facade.test_plane_replies import REPLY, SENT_MS, WORDS, Judge, delivery, done, text

pytestmark = pytest.mark.usefixtures("library")

SEED = 20261129
CASES = 100_000
MEDIA: dict[bytes, Codec] = {
    b"application/x-thrift-binary": BINARY,
    b"application/x-thrift-compact": COMPACT,
    b"application/x-thrift-json": JSON,
    b"application/x-thrift": JSON,
}
ROWS = [(verb, media) for verb in METHOD for media in MEDIA]
MORE_PARTS = [*PARTS, "\0", "\x01", "\ufffd", "\uffff"]
CALL = 1


def some(chance: random.Random) -> str:
    return text(chance, PARTS if chance.random() < 0.9 else MORE_PARTS)


def optional(chance: random.Random) -> dict[str, Any]:
    """What most clients leave out of a message."""
    found: dict[str, Any] = {}
    if chance.random() < 0.2:
        found["delay_seconds"] = chance.choice([0, 0, 0, 5])
    if chance.random() < 0.05:
        found["priority"] = 3
    if chance.random() < 0.05:
        found["message_attributes"] = {"a": wire.MessageAttribute(type="string", string_value="v")}
    return found


def argument(chance: random.Random, verb: int) -> Any:
    queue = chance.choice(["q", "q", "-/q", "été", ""]) if chance.random() < 0.2 else "q"
    handles = [
        chance.choice(["", "h"]) + f"{n}{some(chance)}" for n in range(chance.choice([1, 1, 2, 5, 16, 100, 101]))
    ]
    if verb == lib.EMQ_SEND:
        return wire.SendMessageRequest(
            queue_name=queue, message_body=some(chance) or chance.choice("bbb ").strip(), **optional(chance)
        )
    if verb == lib.EMQ_SEND_BATCH:
        entries = [
            wire.SendMessageBatchRequestEntry(
                entry_id=f"{n}{some(chance)}", message_body=some(chance) or "b", **optional(chance)
            )
            for n in range(chance.choice([0, 1, 1, 2, 5, 16, 32, 33]))
        ]
        if entries and chance.random() < 0.05:
            entries *= 2
        return wire.SendMessageBatchRequest(queue_name=queue, send_message_batch_request_entry_list=entries)
    if verb == lib.EMQ_DELETE:
        return wire.DeleteMessageRequest(queue_name=queue, receipt_handle=handles[0])
    if verb == lib.EMQ_DELETE_BATCH:
        asked = [
            wire.DeleteMessageBatchRequestEntry(receipt_handle=handle)
            for handle in handles * chance.choice([1, 1, 1, 1, 2, 0])
        ]
        return wire.DeleteMessageBatchRequest(queue_name=queue, delete_message_batch_request_entry_list=asked)
    fields = {
        "max_receive_message_number": [1, 7, 100, 101, 0, -1],
        "max_receive_message_wait_seconds": [0, 5, 20, 21, -1],
    }
    given: dict[str, Any] = {
        name: chance.choice(values[: chance.choice([3, 3, 3, 6])])
        for name, values in fields.items()
        if chance.random() < 0.6
    }
    if chance.random() < 0.05:
        given["tag_name"] = "t"
    return wire.ReceiveMessageRequest(queue_name=queue, **given)


def body_of(chance: random.Random, verb: int, media: bytes) -> bytes:
    method = MESSAGE_SERVICE.methods[METHOD[verb]]
    seqid = chance.choice([0, 1, 7, 300, (1 << 31) - 1, -1])
    body = MEDIA[media].write(method.name, CALL, seqid, Argument(argument(chance, verb)), method.call)
    return mutated(chance, body) if chance.random() < 0.3 else body


def case(chance: random.Random, verb: int, media: bytes) -> tuple[list[Any], Judge]:
    words = [chance.choice(WORDS) for _ in range(100)]
    judge = Judge([delivery(chance, n) for n in range(chance.choice([0, 1, 1, 3, 16]))], words)
    leased = [
        [
            one.id.encode(), one.handle.encode(), one.partition, one.offset, one.receive_count,
            one.first_received_at_ms,
            one.next_visible_at_ms, one.received_at_ms, one.sent_at_ms, encode(one.message),
        ]
        for one in judge.deliveries
    ]  # fmt: skip
    ids = [f"{n:036}".encode() for n in range(40)]
    results = [[status.encode(), reason.encode(), 0] for _, status, reason in words]
    return [REPLY, verb, media, body_of(chance, verb, media), leased, ids, SENT_MS, results], judge


def judged(media: bytes, body: bytes, judge: Judge) -> bytes:
    """The reply of the dialect; raises for what it refuses."""
    call = decode_call(media, body, MESSAGE_SERVICE)
    # The plane is asked for queues alone that are of the developer whom their name names.
    owner = call.argument.queue_name.rpartition("/")[0]
    judge.record = replace(judge.record, owner=owner or judge.record.owner)
    answer = done(ACTIONS[call.method.name].run(judge, Call(Principal(ANONYMOUS), call.argument, False)))  # type: ignore[arg-type]
    return encode_reply(media, call, answer.content if isinstance(answer, Carried) else answer)


def test_replies_are_those_of_the_dialect() -> None:
    chance = random.Random(SEED)
    taken = dict.fromkeys(ROWS, 0)
    for _ in range(10):
        made = [(row, case(chance, *row)) for _ in range(CASES // len(ROWS) // 10) for row in ROWS]
        for (row, (given, judge)), found in zip(made, answers([given for _, (given, _) in made]), strict=True):
            if not found:
                continue
            taken[row] += 1
            _, _, media, body, *_ = given
            reply, *contents = found
            assert reply == judged(media, body, judge), body
            assert contents == [[one.body, [], -1 if one.delay_ms is None else one.delay_ms] for one in judge.sent], (
                body
            )
            assert not any(
                one.attributes or one.delay_ms or one.lease_ms or one.group or one.priority for one in judge.sent
            )
    # So that the comparison compares something.
    assert min(taken.values()) > CASES / len(ROWS) / 8, taken


@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize(
    ("verb", "given"),
    [
        (lib.EMQ_SEND, wire.SendMessageRequest(queue_name="me/q", message_body="ü")),
        (lib.EMQ_SEND, wire.SendMessageRequest(queue_name="q", message_body="b", delay_seconds=0)),
        (lib.EMQ_RECEIVE, wire.ReceiveMessageRequest(queue_name="q")),
        (
            lib.EMQ_RECEIVE,
            wire.ReceiveMessageRequest(
                queue_name="q", max_receive_message_number=100, max_receive_message_wait_seconds=20
            ),
        ),
        (lib.EMQ_DELETE, wire.DeleteMessageRequest(queue_name="q", receipt_handle="h")),
    ],
)
def test_calls_as_clients_send_them_are_the_plane_s(media: bytes, verb: int, given: Any) -> None:
    method = MESSAGE_SERVICE.methods[METHOD[verb]]
    body = MEDIA[media].write(method.name, CALL, 1, Argument(given), method.call)
    head = (
        f"POST /v1/api/message?id=0a1b2c3d&type={METHOD[verb]} HTTP/1.1\r\nHost: localhost:9400\r\nHost: localhost\r\n"
        f"Authorization: Galaxy-V2 me:62gq8Y7m7+u2KB0rS1f/jr5KehA=\r\nX-Xiaomi-Content-MD5: 0\r\n"
        f"Content-Type: {media.decode()}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    found, host, path, signer, queue, entries, *numbers = read(head.encode() + body)
    assert (found, host, path, signer, queue) == (verb, b"localhost:9400", b"/v1/api/message", b"me", given.queue_name)
    if verb == lib.EMQ_RECEIVE:
        most, wait_s = given.max_receive_message_number, given.max_receive_message_wait_seconds
        assert (entries, numbers) == ([], [-1 if most is None else most, -1 if wait_s is None else wait_s, -1])
    else:
        value = given.receipt_handle if verb == lib.EMQ_DELETE else given.message_body
        assert entries == [[b"", value.encode(), 0]]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("POST", "PUT"),
        ("/v1/api/message", "/v1/api/queue"),
        ("/v1/api/message", "/v1/api/message/"),
        ("x-thrift-binary", "x-thrift-binary; charset=utf-8"),
        ("x-thrift-binary", "X-Thrift-Binary"),
        ("x-thrift-binary", "json"),
        ("Galaxy-V2 me", "galaxy-v2 me"),
        ("Galaxy-V2 me", "Galaxy-V2  me"),
        ("Galaxy-V2 me:", "Galaxy-V2 me"),
        ("Galaxy-V2 me:", "Galaxy-V2 m/e:"),
        ("Galaxy-V2 me:", "Galaxy-V2 :"),
        ("Galaxy-V2 me:", "Galaxy-V2 me:x:"),
        ("Galaxy-V2 me:", "Galaxy-V2 " + "m" * 129 + ":"),
        ("Galaxy-V2 me:", "MNS me:"),
        ("sendMessage", "sendMessagf"),
    ],
)
def test_other_calls_are_python_s(old: str, new: str) -> None:
    method = MESSAGE_SERVICE.methods["sendMessage"]
    body = BINARY.write(
        "sendMessage", CALL, 1, Argument(wire.SendMessageRequest(queue_name="q", message_body="b")), method.call
    )
    head = (
        "POST /v1/api/message HTTP/1.1\r\nHost: localhost\r\nAuthorization: Galaxy-V2 me:AAAA=\r\n"
        f"Content-Type: application/x-thrift-binary\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    whole = head.encode() + body
    assert read(whole) is not None
    changed = whole.replace(old.encode(), new.encode(), 1)
    assert changed != whole
    assert read(changed) is None


@pytest.mark.parametrize("media", MEDIA)
def test_what_is_cut_or_goes_on_is_python_s(media: bytes) -> None:
    chance = random.Random(SEED)
    for verb in METHOD:
        given, _ = case(chance, verb, media)
        while not next(answers([given])):
            given, _ = case(chance, verb, media)
        body, at = given[3], 3
        others = [body[:size] for size in range(min(len(body), 600))] + [body + b"\0", body + b"x"]
        found = answers([[*given[:at], other, *given[at + 1 :]] for other in others])
        assert [one for one in found if one] == []
