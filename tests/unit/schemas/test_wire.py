"""The wire format: every record both ways, native records, and hostile bytes."""

from __future__ import annotations

import contextlib
import json
import random
import re
import threading
from collections.abc import Callable
from io import BytesIO

import msgspec
import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from schemas import unpack
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
from schemas.vocabulary import HEADER_NAME_CHARS, EventKind, TaskStatus
from schemas.wire import AnyRecord, UndecodableRecord, decode, decode_message, encode

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


# Texts that look like what ends a record, or like a batch mark, and ids as the sender makes them.
PIECES = st.lists(st.sampled_from(["\0", "\0\0\0", "\2 ", "\x10\1", "0123456789abcdef", "ü", "a"]), max_size=8).map("".join)
MARKS = st.builds(BatchMark, st.just("0123456789abcdef") | PIECES, st.integers(-1, 99), st.integers(-1, 100))
COMMON = st.builds(
    Message,
    body=st.binary(max_size=70) | st.sampled_from([8191, 8192]).map(bytes),
    attributes=st.just({}) | st.dictionaries(PIECES, st.builds(Attribute, PIECES, st.binary(max_size=9)), max_size=1),
    delay_ms=st.just(0) | LONGS,
    lease_ms=st.none() | LONGS,
    sender=st.just("alice") | PIECES,
    origin=st.none() | st.just(FULL.origin),
    batch=st.none() | MARKS,
    group=st.none() | PIECES,
    dedup_id=st.none() | PIECES,
    priority=st.just(8) | st.integers(0, 99),
    body_is_text=st.booleans(),
)


def outcome(read: Callable[[], AnyRecord]) -> AnyRecord | str:
    try:
        return read()
    except UndecodableRecord as fault:
        return re.sub("0x[0-9a-f]+", "", str(fault))  # the library names its buffer


def hurt(data: bytes, cut: int, more: bytes, changes: list[tuple[int, int]]) -> bytes:
    """`data` without its last bytes, with some added, or with some altered, counted from the
    end.
    """
    wrong = bytearray(data[: len(data) - cut] + more)
    for back, byte in changes:
        if 5 < back <= len(wrong):
            wrong[5 - back] = byte
    return bytes(wrong)


CHANGES = st.lists(st.tuples(st.integers(6, 60), st.integers(0, 255) | st.sampled_from([0, 1, 2, 16, 32, 128])), max_size=3)


@given(COMMON, st.integers(0, 40) | st.just(0), st.binary(max_size=3) | st.just(b""), CHANGES)
def test_the_message_of_a_record_is_what_the_library_reads(message: Message, cut: int, more: bytes, changes: list[tuple[int, int]]) -> None:
    whole = encode(message)
    # Each twice: what is read once may be remembered.
    for data in (whole, hurt(whole, cut, more, changes)) * 2:
        if data[:5] == whole[:5]:
            assert outcome(lambda data=data: decode_message(data, None)) == outcome(lambda data=data: decode(data))  # type: ignore[misc]


MARK = "\2 0123456789abcdef"
HEAD = encode(Message(b""))[:5]
START = b"\0" + b"\0\0\0\x02a"  # no body; no attributes, no delay, no lease, sender "a"
LOOKALIKES = {
    "a negative length": [encode(Message(b"")), HEAD + b"\1" + encode(Message(b""))[6:]],
    "a length of three bytes": [encode(Message(bytes(8192), delay_ms=1, sender="a"))],
    "a short length in three bytes": [HEAD + b"\x82\x80\0x" + (START + b"\0\0\0\0\x10\1")[1:]],
    "a group like a mark": [encode(Message(b"")), encode(Message(b"", group="g" * 15 + "bb\0"))],
    "a number in more bytes than it needs": [
        HEAD + START + b"\0\x80\0\0\0\x10\1",
        HEAD + START + b"\0\x80" + MARK.encode() + b"\2\4\0\0\x10\1",
        HEAD + START + b"\0" + MARK.encode() + b"\2\x84\0\0\0\x10\1",
        HEAD + START + b"\0" + MARK.encode() + b"\x82\0\xc8\1\0\0\x10\1",
    ],
    "a mark of nothing": [encode(Message(b"", batch=BatchMark("b", 0, 0)))],
    "an index below nothing": [encode(Message(b"")), encode(Message(b"", batch=BatchMark(MARK[2:], -1, 2)))],
    "an id that is no text": [encode(Message(b"")), encode(Message(b"", batch=BatchMark(MARK[2:], 1, 2))).replace(b"0123", b"012\xff")],
    "a deduplication id like a mark": [encode(Message(b"", dedup_id=f"\0{MARK}\2\4\0\0"))],
}


@pytest.mark.parametrize("records", LOOKALIKES.values(), ids=LOOKALIKES)
def test_what_looks_like_a_common_message_is_what_the_library_reads(records: list[bytes]) -> None:
    for data in records * 2:
        assert outcome(lambda data=data: decode_message(data, None)) == outcome(lambda data=data: decode(data))  # type: ignore[misc]


@pytest.mark.parametrize(
    "batch",
    [None, *(BatchMark("0123456789abcdef", *numbers) for numbers in [(3, 10), (63, 63), (63, 64), (64, 100), (99, 100), (127, 127)])],
)
@pytest.mark.parametrize("size", [0, 63, 64, 8191])
def test_a_common_message_is_read_without_the_library_once_one_like_it_was(
    batch: BatchMark | None, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode_message(encode(Message(b"", sender="alice")), None)
    monkeypatch.setattr("schemas.wire.schemaless_reader", None)
    message = Message(b"x" * size, sender="alice", batch=batch)
    found = decode_message(encode(message), None)

    assert found == message
    found.attributes["mine"] = Attribute("string", b"")
    assert decode_message(encode(message), None) == message  # nothing is shared


def test_few_and_only_short_forms_are_remembered() -> None:
    for number in range(unpack.MOST + 9):
        decode_message(encode(Message(b"", delay_ms=number, sender="few")), None)
        assert len(unpack.forms) <= unpack.MOST
    before = len(unpack.forms)
    assert decode_message(encode(Message(b"", sender="x" * 200)), None).sender == "x" * 200
    assert decode_message(encode(Message(b"", {"a": Attribute("string", b"")}, sender="few")), None).attributes
    assert len(unpack.forms) == before


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
