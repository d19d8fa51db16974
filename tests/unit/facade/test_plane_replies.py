"""What the plane reads of a request and answers is what the dialect would have read and answered:
seeded requests as clients send them, and damaged ones.
"""

from __future__ import annotations

import json
import random
from base64 import b64encode
from collections.abc import Callable, Coroutine, Sequence
from hashlib import md5
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from engine.plane import library as lib
from engine.plane import service
from engine.shapes import Delivery, EntryResult, ExtendEntry, Principal, SendEntry, Sent
from facade.dialect import Carried
from facade.dialects.native import messages as native
from facade.dialects.native.wire.shapes import ExtendBody, HandlesBody, ReceiveBody, ReleaseBody, SendBody
from facade.dialects.sqs.actions import ACTIONS
from facade.dialects.sqs.lanes import ACTION
from facade.dialects.sqs.queues.call import Call
from facade.dialects.sqs.queues.names import Place
from facade.dialects.sqs.wire.limits import Limits
from facade.http.decode import decode_json
from facade.http.operation import Call as NativeCall
from schemas.records import Attribute, Message, QueueRecord, TagRecord
from schemas.vocabulary import DEFAULT_TAG
from schemas.wire import encode
from tests.unit.facade.test_front_reading import PARTS, mutated
from tests.unit.facade.test_plane_formats import answers

pytestmark = pytest.mark.usefixtures("library")

SEED = 20261128
CASES = 24_000
REPLY = 9
BY = Principal("shop")
WORDS = [word for word in service.WORDS if word[1] != "lapsed"]  # that counts in the queues that the plane serves
SENT_MS = 1_700_000_000_123
NATIVE: dict[int, tuple[Callable[..., Any], msgspec.json.Decoder[Any]]] = {
    lib.NATIVE_SEND: (native.send, msgspec.json.Decoder(SendBody)),
    lib.NATIVE_RECEIVE: (native.receive, msgspec.json.Decoder(ReceiveBody)),
    lib.NATIVE_ACK: (native.ack, msgspec.json.Decoder(HandlesBody)),
    lib.NATIVE_EXTEND: (native.extend, msgspec.json.Decoder(ExtendBody)),
    lib.NATIVE_RELEASE: (native.release, msgspec.json.Decoder(ReleaseBody)),
}
VERBS = [*ACTION, *NATIVE]
TAGS = [TagRecord(1, DEFAULT_TAG, 0, 0, [0])]
RECORD = QueueRecord(
    "q",
    "0123456789ab",
    "shop",
    0,
    0,
    partitions=1,
    retention_ms=86_400_000,
    max_message_bytes=1_000_000,
    receive_wait_ms=0,
    max_receive_messages=10,
    tags=TAGS,
    next_tag_id=1,
)
NAMES = ["colour", "price.net", "price.gross", "a-b_c", "Å", "é.x", 'q"\\uote', "x" * 40]
SYSTEM = [
    "SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp", "AWSTraceHeader",
    "SequenceNumber",
]  # fmt: skip
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CONTEXTS = [
    f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00", f"01-{TRACE}-{SPAN}-fe-x", f"00-{TRACE}-{SPAN}-01-x",
    f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01",
    f"00-{TRACE.upper()}-{SPAN}-01", f"00-{TRACE}-{SPAN}-1", "x",
]  # fmt: skip
IDS = [f"{n:036}".encode() for n in range(10)]
encode_json = msgspec.json.Encoder().encode


class Judge:
    """An engine that has what the plane would have found, and notes what is sent."""

    def __init__(self, deliveries: list[Delivery], words: Sequence[tuple[str, str, str]]) -> None:
        self.messages = self.queues = self
        self.deliveries = deliveries
        self.words = words
        self.sent: list[SendEntry] = []
        self.record = RECORD

    def known(self, queue: str, by: Principal) -> QueueRecord:
        return self.record

    async def receive(self, *given: Any, **more: Any) -> list[Delivery]:
        return self.deliveries

    def undelivered(self, deliveries: list[Delivery]) -> None:
        raise AssertionError("they are given")

    async def send(self, by: Principal, queue: str, entries: list[SendEntry]) -> list[Sent]:
        self.sent = entries
        return [
            Sent(f"{n:036}", md5(entry.body, usedforsecurity=False).hexdigest(), SENT_MS, "")
            for n, entry in enumerate(entries)
        ]

    async def ack(self, by: Principal, queue: str, handles: list[str], **how: Any) -> list[EntryResult]:
        return [
            EntryResult(handle, status, reason=reason)
            for handle, (_, status, reason) in zip(handles, self.words, strict=False)
        ]

    async def extend(self, by: Principal, queue: str, entries: list[ExtendEntry], **how: Any) -> list[EntryResult]:
        return await self.release(by, queue, [entry.handle for entry in entries])

    async def release(
        self, by: Principal, queue: str, handles: list[str], delay_ms: int = 0, **how: Any
    ) -> list[EntryResult]:
        assert not delay_ms
        results = await self.ack(by, queue, handles)
        return [replace(one, next_visible_at_ms=SENT_MS) if one.status == "ok" else one for one in results]


def done(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine that never waits returns."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


def judged(verb: int, body: bytes, judge: Judge) -> bytes:
    """The reply of the dialect; raises for what it refuses."""
    if verb in NATIVE:
        run, decoder = NATIVE[verb]
        answer = done(run(judge, NativeCall(BY, decode_json(decoder, body), {"queue": "q"}, None)))
        return encode_json((answer.content if isinstance(answer, Carried) else answer).content)
    action = ACTIONS[ACTION[verb]]
    place = Place("http://localhost", "000000000000", "eu-west-1")
    call = Call(BY, action.decoder.decode(body), place, Limits(900, 20, 10, 262_144), 0)
    answer = done(action.run(judge, call))  # type: ignore[arg-type]
    return encode_json(answer.content if isinstance(answer, Carried) else answer)


def text(chance: random.Random, parts: Sequence[str] = PARTS) -> str:
    return "".join(chance.choice(parts) for _ in range(chance.randrange(9)))


def stored(chance: random.Random) -> dict[str, Attribute]:
    """Attributes of a message that the plane hands out, from whichever dialect or producer."""
    found = {}
    for _ in range(chance.choice([0, 0, 1, 2, 5])):
        kind = chance.choice(
            ["String", "string", "number.Int", "Number", "Binary", "binary.PNG", "BINARY.x.y", "NUMBER", "odd", "b", ""]
        )
        is_binary = kind.lower().startswith("binary")
        value = (
            chance.randbytes(chance.randrange(9))
            if is_binary
            else text(chance, [*PARTS, "\x01", "\0", "\x7f"]).encode()
        )
        found[chance.choice([*NAMES, text(chance)])] = Attribute(kind, value)
    if chance.random() < 0.3:
        kind = chance.choice(["string", "String.w3c", "binary"])
        found["traceparent"] = Attribute(kind, chance.choice(CONTEXTS).encode())
    return found


def delivery(chance: random.Random, number: int) -> Delivery:
    is_text = chance.random() < 0.8
    content = text(chance, [*PARTS, "\x01", "\uffff"]).encode() if is_text else chance.randbytes(chance.randrange(20))
    if chance.random() < 0.3:
        is_text, content = False, text(chance).encode()
    message = Message(
        content,
        stored(chance),
        sender=chance.choice(["shop", 'o"\\é']),
        body_is_text=is_text,
        priority=chance.choice([8, 8, 1, 16]),
    )
    sent_ms, first_ms, until_ms = (chance.randrange(1 << 45) for _ in range(3))
    count, partition, offset = chance.choice([1, 2, 1000]), chance.randrange(64), chance.randrange(1 << 40)
    at_ms = chance.randrange(1 << 45)
    return Delivery(
        f"{number:036}",
        f"{number:052}",
        message,
        sent_ms,
        count,
        first_ms,
        until_ms,
        partition,
        offset,
        received_at_ms=at_ms,
    )


def names(chance: random.Random) -> dict[str, Any]:
    """What a receive asks to be told, as clients do: nothing, all, some."""
    found: dict[str, Any] = {}
    asked = [[], ["All"], SYSTEM[:3], [chance.choice([*SYSTEM, "all", "unknown"]) for _ in range(3)]]
    for field in ("AttributeNames", "MessageSystemAttributeNames"):
        if chance.random() < 0.5:
            found[field] = chance.choice(asked)
    if chance.random() < 0.6:
        some = [chance.choice([*NAMES, "price.*", "p.*", "", "é.*", "x" * chance.choice([256, 257])]) for _ in range(3)]
        found["MessageAttributeNames"] = chance.choice([[], ["All"], [".*"], ["*"], some, some * 30])
    return found


def to_send(chance: random.Random) -> dict[str, Any]:
    """A message as clients of SQS send it, mostly good."""
    found: dict[str, Any] = {"MessageBody": text(chance) or "b"}
    if chance.random() < 0.3:
        found["DelaySeconds"] = chance.choice([0, 0, 5, 900, 901, None])
    if chance.random() < 0.5:
        rows: dict[str, Any] = {}
        for _ in range(chance.choice([0, 1, 2, 10, 11])):
            kind = chance.choice(
                ["String", "Number", "Binary", "String.x", "Number.Int.y", "Binary.PNG", "string", "String.", "Odd"]
            )
            number = chance.choice(["1", "-12.50", "1e3", "0" * 38, "9" * 39, "-", ".5", "5.", "+1", "\u0661"])
            value = number if kind.startswith("Number") else text(chance) or "v"
            row: dict[str, Any] = {"DataType": kind, "StringValue": value}
            if kind.startswith("Binary"):
                row = {"DataType": kind, "BinaryValue": b64encode(chance.randbytes(chance.randrange(5))).decode()}
            if chance.random() < 0.03:
                row[chance.choice(["StringListValues", "BinaryValue", "StringValue"])] = chance.choice(
                    [[], "AA==", None]
                )
            odd = ["n" * chance.choice([1, 256, 257]), "AWS.x", "amazon.x", ".a", "a.", "a..b", f"k{len(rows)}"]
            rows[chance.choice([*NAMES, *odd])] = row
        found["MessageAttributes"] = rows
    return found


def native_to_send(chance: random.Random) -> dict[str, Any]:
    """A message as clients of the native API send it, mostly good."""
    found: dict[str, Any] = {"body": text(chance) or "b"}
    if chance.random() < 0.2:
        found["delay_seconds"] = chance.choice([0, 5, 900])
    if chance.random() < 0.5:
        rows: list[Any] = [
            text(chance),
            {"type": chance.choice(["string", "string.x", "String", "s"]), "value": text(chance)},
            {"type": chance.choice(["number", "number.int"]), "value": chance.choice(["1", "-12.50", "1e3", "", "x"])},
            {"type": "binary.png", "value_base64": b64encode(chance.randbytes(chance.randrange(5))).decode()},
            {"value": "v"},
        ]
        some = chance.choice([rows[:1], rows[:4], rows])
        found["attributes"] = {
            chance.choice([*NAMES[:4], "AWS.x", f"k{n}"]): chance.choice(some) for n in range(chance.choice([0, 1, 2]))
        }
    return found


def native_fields(chance: random.Random, verb: int) -> dict[str, Any]:
    if verb == lib.NATIVE_SEND:
        return {"messages": [native_to_send(chance) for _ in range(chance.choice([1, 1, 2, 5]))]}
    if verb == lib.NATIVE_RECEIVE:
        return chance.choice([{}, {"max": 5}, {"max": 10, "wait_seconds": 1, "lease_seconds": 30}])
    handles = [f"{n}{text(chance)}" for n in range(chance.choice([1, 1, 2, 5]))]
    if verb == lib.NATIVE_EXTEND:
        return {"entries": [{"handle": handle, "lease_seconds": chance.choice([0, 30])} for handle in handles]}
    more = chance.choice([{}, {"delay_seconds": 0}]) if verb == lib.NATIVE_RELEASE else {}
    return {"handles": handles, **more}


def fields(chance: random.Random, verb: int) -> dict[str, Any]:
    if verb in NATIVE:
        return native_fields(chance, verb)
    entries = range(chance.choice([1, 1, 2, 5, 10]))
    found: dict[int, Callable[[], dict[str, Any]]] = {
        lib.RECEIVE: lambda: {"MaxNumberOfMessages": 10, "WaitTimeSeconds": 0, **names(chance)},
        lib.SEND: lambda: to_send(chance),
        lib.DELETE: lambda: {"ReceiptHandle": text(chance) or "h"},
        lib.SEND_BATCH: lambda: {"Entries": [{"Id": f"{n}", **to_send(chance)} for n in entries]},
        lib.DELETE_BATCH: lambda: {
            "Entries": [{"Id": f"x-{n}", "ReceiptHandle": f"{n}{text(chance)}"} for n in entries]
        },
        lib.CHANGE: lambda: {"ReceiptHandle": text(chance) or "h", "VisibilityTimeout": chance.choice([0, 30, 43_200])},
        lib.CHANGE_BATCH: lambda: {
            "Entries": [
                {"Id": f"x-{n}", "ReceiptHandle": f"{n}{text(chance)}", "VisibilityTimeout": 7 * n} for n in entries
            ]
        },
    }
    return {"QueueUrl": "http://localhost/000000000000/q", **found[verb]()}


def case(chance: random.Random, verb: int) -> tuple[list[Any], Judge]:
    body = json.dumps(fields(chance, verb), ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    if chance.random() < 0.3:
        body = mutated(chance, body)
    # Of a change that SQS refuses Python says why.
    words = [WORDS[0] if verb in (lib.CHANGE, lib.CHANGE_BATCH) else chance.choice(WORDS) for _ in range(10)]
    judge = Judge([delivery(chance, n) for n in range(chance.choice([0, 1, 1, 3]))], words)
    leased = [
        [
            one.id.encode(), one.handle.encode(), one.partition, one.offset, one.receive_count,
            one.first_received_at_ms,
            one.next_visible_at_ms, one.received_at_ms, one.sent_at_ms, encode(one.message),
        ]
        for one in judge.deliveries
    ]  # fmt: skip
    is_timed = verb in (lib.CHANGE, lib.CHANGE_BATCH, lib.NATIVE_EXTEND, lib.NATIVE_RELEASE)
    results = [
        [status.encode(), reason.encode(), SENT_MS if is_timed and status == "ok" else 0] for _, status, reason in words
    ]
    return [REPLY, verb, b"", body, leased, IDS, SENT_MS, results], judge


def test_replies_are_those_of_the_dialects() -> None:
    chance = random.Random(SEED)
    made = [case(chance, verb) for _ in range(CASES // len(VERBS)) for verb in VERBS]
    taken = dict.fromkeys(VERBS, 0)
    for ([_, verb, _, body, *_], judge), found in zip(made, answers([given for given, _ in made]), strict=True):
        if not found:
            continue
        taken[verb] += 1
        reply, *contents = found
        assert json.loads(reply) is not None
        assert reply == judged(verb, body, judge), body
        sent = [
            [one.body, [[name, a.type.encode(), a.value] for name, a in named(one)], delay_ms(one)]
            for one in judge.sent
        ]
        assert contents == sent, body
        assert not any(one.deliver_at_ms or one.lease_ms or one.group or one.dedup_id for one in judge.sent)
    # So that the comparison compares something.
    assert min(taken.values()) > CASES / len(VERBS) / 5, taken


def delay_ms(entry: SendEntry) -> int:
    return -1 if entry.delay_ms is None else entry.delay_ms


def named(entry: SendEntry) -> list[tuple[bytes, Attribute]]:
    return [(name.encode(), attribute) for name, attribute in entry.attributes.items()]


@pytest.mark.parametrize(
    ("verb", "given"),
    [
        (
            lib.RECEIVE,
            {
                "MaxNumberOfMessages": 10,
                "WaitTimeSeconds": 20,
                "AttributeNames": ["All"],
                "MessageAttributeNames": ["All"],
            },
        ),
        (
            lib.RECEIVE,
            {"MessageSystemAttributeNames": ["All"], "MessageAttributeNames": [".*"], "VisibilityTimeout": 30},
        ),
        (lib.RECEIVE, {"AttributeNames": ["ApproximateReceiveCount"], "MaxNumberOfMessages": 1}),
        (
            lib.SEND,
            {
                "MessageBody": "b",
                "DelaySeconds": 0,
                "MessageAttributes": {"a": {"DataType": "String", "StringValue": "v"}},
            },
        ),
    ],
)
def test_requests_as_clients_send_them_are_the_plane_s(verb: int, given: dict[str, Any]) -> None:
    body = encode_json({"QueueUrl": "http://localhost/000000000000/q", **given})
    (found,) = answers([[REPLY, verb, b"", body, [], IDS, SENT_MS, []]])
    assert found and found[0] == judged(verb, body, Judge([], []))
