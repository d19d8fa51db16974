"""The wire format: every record both ways, native records, and hostile bytes."""

from __future__ import annotations

import contextlib
import json
import random
import threading
from io import BytesIO

import msgspec
import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from schemas.filters import Condition, Filter
from schemas.records import (
    Attribute,
    BatchMark,
    GenerationRecord,
    JournalEntry,
    JournalRecord,
    KeyRecord,
    Message,
    OpenDelivery,
    Origin,
    QueueRecord,
    RedrivePolicy,
    SnapshotRecord,
    TagRecord,
    TagSnapshot,
    TaskRecord,
)
from schemas.registry import schema_id, schema_text
from schemas.vocabulary import EventKind, TaskStatus
from schemas.wire import HEADER_NAME_CHARS, AnyRecord, UndecodableRecord, decode, decode_message, encode

MESSAGE_SCHEMA = parse_schema(json.loads(schema_text(schema_id("message"))))
SNAPSHOT_SCHEMA = parse_schema(json.loads(schema_text(schema_id("snapshot"))))
SOME = Filter([Condition("color", "string", b"red"), Condition("size")], "OR")
FULL = Message(
    body=b"\x00\xffbody",
    attributes={"color": Attribute("string.EN", "röd".encode()), "raw": Attribute("binary", b"\xff\x00")},
    delay_ms=30 * 86_400_000,
    lease_ms=0,
    sender="alice",
    origin=Origin("id", "tag", "first", "orders", "default", "killed", 3, 1_700_000_000_000, 1_600_000_000_000, 1_800_000_000_000),
    batch=BatchMark("b", 2, 3),
    group="g",
    dedup_id="d",
    priority=1,
    body_is_text=False,
)
TAGS = [TagRecord(0, "default", 1, 0, [0, 0]), TagRecord(1, "red", 5, -1, [7, 9], SOME, {"team": "a"})]
RECORDS: list[AnyRecord] = [
    Message(b""),
    Message(b"body", {"color": Attribute("string", b"red")}),
    FULL,
    JournalRecord("orders", "0123456789ab", 3, []),
    JournalRecord(
        "orders",
        "0123456789ab",
        3,
        [JournalEntry(1, 2, str(kind), 4, [5, 2**40], [6, 7], "killed") for kind in EventKind] + [JournalEntry(9, 2, "acked", 0, [1])],
    ),
    QueueRecord("orders", "0123456789ab", "alice", 1, 2, 4, 5, 6, 7, 8, 9, 10, TAGS, 2, RedrivePolicy("dlq", 3), {"a": "b"}, True, True),
    QueueRecord("orders", "0123456789ab", "alice", 1, 2, 4, 5, 6, 7, 8, 9, 10, [], 1),
    KeyRecord("id", "secret", "alice", True, 1),
    *[TaskRecord("t", str(s), "dlq", "0123456789ab", "", SOME, 0, 1, 2, [3], [4], 5, 6, 7, "alice", "no") for s in TaskStatus],
    TaskRecord("t", "running", "dlq", "0123456789ab", "orders", None, 100, 1, 2, [], []),
    TaskRecord("t", "running", "dlq", "0123456789ab", "", None, 0, 1, 2, [9, 9], [0, 4], chosen=[[0, 7], []]),
    GenerationRecord(7, "run", 1),
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
    fields = schemaless_reader(BytesIO(data[5:]), parse_schema(json.loads(schema_text(int.from_bytes(data[1:5], "big")))), None)

    assert isinstance(fields, dict)
    assert fields["body"] == FULL.body
    assert fields["batch"] == {"id": "b", "index": 2, "size": 3}


LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=70)
MESSAGES = st.builds(
    Message,
    body=st.binary(max_size=200),
    attributes=st.dictionaries(TEXTS, st.builds(Attribute, TEXTS, st.binary(max_size=70)), max_size=3),
    delay_ms=LONGS,
    lease_ms=st.none() | LONGS,
    sender=TEXTS,
    origin=st.none() | st.builds(Origin, *[TEXTS] * 6, *[LONGS] * 4),
    batch=st.none() | st.builds(BatchMark, TEXTS, st.integers(0, 99), st.integers(1, 100)),
    group=st.none() | TEXTS,
    dedup_id=st.none() | TEXTS,
    priority=st.integers(1, 8),
    body_is_text=st.booleans(),
)


@given(MESSAGES)
def test_a_message_is_packed_as_the_library_packs_it(message: Message) -> None:
    data, expected = encode(message), BytesIO()
    schemaless_writer(expected, MESSAGE_SCHEMA, msgspec.to_builtins(message, builtin_types=(bytes,)))
    assert data[5:] == expected.getvalue()
    assert decode(data) == message


@pytest.mark.parametrize("size", [0, 63, 64, 8191, 8192, 1_048_576])
def test_lengths_and_numbers_of_any_size_are_packed_as_the_library_packs_them(size: int) -> None:
    for delay_ms in (size, -size, -size - 1):
        message, expected = Message(b"x" * size, delay_ms=delay_ms), BytesIO()
        schemaless_writer(expected, MESSAGE_SCHEMA, msgspec.to_builtins(message, builtin_types=(bytes,)))
        assert encode(message)[5:] == expected.getvalue()


DELIVERIES = st.builds(OpenDelivery, LONGS, LONGS, st.integers(0, 2**31 - 1), LONGS, st.integers(0, 3), LONGS)
SNAPSHOTS = st.builds(
    SnapshotRecord,
    TEXTS,
    TEXTS,
    st.integers(0, 2**31 - 1),
    LONGS,
    LONGS,
    st.lists(
        st.builds(TagSnapshot, st.integers(0, 99), LONGS, st.lists(LONGS), st.lists(LONGS), st.lists(DELIVERIES)),
        max_size=3,
    ),
    st.lists(TEXTS),
    st.lists(LONGS),
)


@given(SNAPSHOTS)
def test_a_snapshot_is_packed_as_the_library_packs_it(snapshot: SnapshotRecord) -> None:
    data, expected = encode(snapshot), BytesIO()
    schemaless_writer(expected, SNAPSHOT_SCHEMA, msgspec.to_builtins(snapshot))
    assert data[5:] == expected.getvalue()
    assert decode(data) == snapshot


def test_a_large_snapshot_lets_other_threads_run_while_it_is_packed() -> None:
    rows = [OpenDelivery(n, n + 1, 1, 1_795_313_164_012, 0, 1_795_313_164_012 + n) for n in range(100_000)]
    snapshot = SnapshotRecord(
        "q", "0123456789ab", 0, 5, 6, [TagSnapshot(0, 7, [*range(9_000)], [1] * 9_000, rows)], ["a" * 24] * 5_000, [8] * 5_000
    )
    ticks, over = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not over.wait(0.0005):
            ticks += 1

    other = threading.Thread(target=tick)
    other.start()
    data = encode(snapshot)
    over.set()
    other.join()
    assert ticks >= 10  # as one, it lets the other thread run two or three times
    assert decode(data) == snapshot


@pytest.mark.parametrize(
    "wrong",
    [
        Message("text"),  # type: ignore[arg-type]
        Message(b"", delay_ms=2**63),
        Message(b"", sender=b"bytes"),  # type: ignore[arg-type]
        Message(b"", delay_ms=0.0),  # type: ignore[arg-type]
        Message(b"", priority=8.0),  # type: ignore[arg-type]
        Message(b"", batch=BatchMark("b", 0, 1.0)),  # type: ignore[arg-type]
    ],
)
def test_a_message_that_does_not_hold_what_it_should_is_not_packed(wrong: Message) -> None:
    encode(Message(b"", batch=BatchMark("b", 0, 1)))  # equal to some of them: 1.0 == 1
    with pytest.raises((TypeError, ValueError, AttributeError)):
        encode(wrong)


@pytest.mark.parametrize("message", [r for r in RECORDS if isinstance(r, Message)])
def test_a_message_of_ours_is_read_and_its_headers_are_no_attributes(message: Message) -> None:
    assert decode_message(encode(message), [("trace", b"1")]) == message


@pytest.mark.parametrize("value", [None, b"", b"plain", "wörter".encode(), b"\x00", b"\x00\x00\x00\x00", b"\x00\x00\x01\x06\x20rest"])
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


@pytest.mark.parametrize("wrong", [encode(FULL)[:-1], encode(FULL) + b"x", encode(FULL)[:5], b"\x00\x00\x00\x00\x01\xff\xff\xff\xff\x0f"])
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
