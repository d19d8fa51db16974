"""The wire format: every record both ways, native records, and hostile bytes."""

from __future__ import annotations

import contextlib
import json
import random
from io import BytesIO

import pytest
from fastavro import parse_schema, schemaless_reader

from schemas.filters import Condition, Filter
from schemas.records import (
    Attribute,
    GenerationRecord,
    JournalEntry,
    JournalRecord,
    KeyRecord,
    Message,
    ProducerGroupRecord,
    QueueRecord,
    TagRecord,
    TaskRecord,
    TransactionRecord,
)
from schemas.records.settings import RedrivePolicy
from schemas.registry import schema_text
from schemas.vocabulary import HEADER_NAME_CHARS, EventKind, TaskStatus, TransactionStep
from schemas.wire import AnyRecord, UndecodableRecord, decode, decode_message, encode
from tests.unit.schemas.samples import FULL

SOME = Filter([Condition("color", "string", b"red"), Condition("size")], "OR")
TAGS = [
    TagRecord(0, "default", 1, 0, [0, 0]),
    TagRecord(1, "red", 5, -1, [7, 9], SOME, {"team": "a"}, 7, RedrivePolicy("dead", 3)),
]
RECORDS: list[AnyRecord] = [
    Message(b""),
    Message(b"body", {"color": Attribute("string", b"red")}),
    FULL,
    JournalRecord("orders", "0123456789ab", 3, []),
    JournalRecord(
        "orders",
        "0123456789ab",
        3,
        [JournalEntry(1, 2, str(kind), 4, [5, 2**40], [6, 7], "killed") for kind in EventKind]
        + [JournalEntry(9, 2, "acked", 0, [1])],
    ),
    QueueRecord(
        "orders",
        "0123456789ab",
        "alice",
        1,
        2,
        partitions=4,
        delay_ms=5,
        lease_ms=6,
        tags=TAGS,
        next_tag_id=2,
        redrive_policy=RedrivePolicy("dlq", 3),
        user_attributes={"a": "b"},
        durable_acks=True,
        deleting=True,
    ),
    QueueRecord(
        "orders",
        "0123456789ab",
        "alice",
        1,
        2,
        partitions=4,
        delay_ms=5,
        lease_ms=6,
        tags=[],
        next_tag_id=1,
    ),
    KeyRecord("id", "secret", "alice", True, 1),
    *[
        TaskRecord("t", str(s), "dlq", "0123456789ab", "", SOME, 0, 1, 2, [3], [4], 5, 6, 7, "alice", "no")
        for s in TaskStatus
    ],
    TaskRecord("t", "running", "dlq", "0123456789ab", "orders", None, 100, 1, 2, [], []),
    TaskRecord("t", "running", "dlq", "0123456789ab", "", None, 0, 1, 2, [9, 9], [0, 4], chosen=[[0, 7], []]),
    GenerationRecord(7, "run", 1),
    *[
        TransactionRecord(
            "t", str(s), 1, "orders", "0123456789ab", "g", "p", 2, [b"", b"m"], 2, 3, 4, "q", "too_old", [5], [6]
        )
        for s in TransactionStep
    ],
    ProducerGroupRecord("g", "alice", "https://x", "s", 1),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_a_record_is_decoded_as_it_was_encoded(record: AnyRecord) -> None:
    assert decode(encode(record)) == record


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_a_record_with_bytes_missing_or_added_is_undecodable(record: AnyRecord) -> None:
    data = encode(record)
    for wrong in [data[:n] for n in range(len(data))] + [data + b"\x00", data + data]:
        with pytest.raises(UndecodableRecord):
            decode(wrong)


def test_a_message_is_read_by_a_stock_avro_reader() -> None:
    data = encode(FULL)
    fields = schemaless_reader(
        BytesIO(data[5:]), parse_schema(json.loads(schema_text(int.from_bytes(data[1:5], "big")))), None
    )

    assert isinstance(fields, dict)
    assert fields["body"] == FULL.body
    assert fields["batch"] == {"id": "b", "index": 2, "size": 3}


@pytest.mark.parametrize("message", [r for r in RECORDS if isinstance(r, Message)])
def test_a_message_of_ours_is_read_and_its_headers_are_no_attributes(message: Message) -> None:
    assert decode_message(encode(message), [("trace", b"1")]) == message


@pytest.mark.parametrize(
    "value", [None, b"", b"plain", "wörter".encode(), b"\x00", b"\x00\x00\x00\x00", b"\x00\x00\x01\x06\x20rest"]
)
def test_a_native_text_value_is_the_body(value: bytes | None) -> None:
    assert decode_message(value, None) == Message(value or b"")


def test_a_native_binary_value_is_a_body_that_is_no_text() -> None:
    assert decode_message(b"\xff\xfe", []) == Message(b"\xff\xfe", body_is_text=False)


def test_a_record_of_another_schema_of_ours_is_a_native_body() -> None:
    journal = encode(RECORDS[3])

    assert decode_message(journal, None).body == journal


def test_native_headers_become_attributes_and_the_last_of_a_name_wins() -> None:
    headers = [("a", b"1"), ("a", b"2"), ("raw", b"\xff"), ("none", None), ("", b"dropped"), ("n" * 1000, b"x")]

    message = decode_message(b"body", headers)

    assert message.attributes == {
        "a": Attribute("string", b"2"),
        "raw": Attribute("binary", b"\xff"),
        "none": Attribute("string", b""),
        "n" * HEADER_NAME_CHARS: Attribute("string", b"x"),
    }


@pytest.mark.parametrize(
    "wrong", [encode(FULL)[:-1], encode(FULL) + b"x", encode(FULL)[:5], b"\x00\x00\x00\x00\x01\xff\xff\xff\xff\x0f"]
)
def test_a_value_that_claims_our_message_schema_and_is_not_whole_is_undecodable(wrong: bytes) -> None:
    with pytest.raises(UndecodableRecord, match="message record"):
        decode_message(wrong, None)


def test_random_bytes_bring_out_nothing_but_undecodable_record() -> None:
    dice = random.Random(4711)
    whole = [encode(record) for record in RECORDS]
    for _ in range(20_000):
        if dice.random() < 0.5:
            data = bytearray(dice.choice(whole))
            for _ in range(dice.randrange(1, 4)):
                data[dice.randrange(5, len(data))] = dice.randrange(256)
        else:
            data = bytearray(b"\x00\x00\x00\x00" + bytes([dice.randrange(1, 7)]) + dice.randbytes(dice.randrange(60)))
        for read in (decode, lambda d: decode_message(d, None)):
            with contextlib.suppress(UndecodableRecord):
                read(bytes(data))
