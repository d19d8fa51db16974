"""A common message is read by hand as the library reads it, and everything else by the library."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import unpack
from schemas.records import Attribute, BatchMark, Message
from schemas.wire import AnyRecord, UndecodableRecord, decode, decode_message, encode
from tests.unit.schemas.samples import FULL, LONGS

# Texts that look like what ends a record, or like a batch mark, and ids as the sender makes them.
PIECES = st.lists(st.sampled_from(["\0", "\0\0\0", "\2 ", "\x10\1", "0123456789abcdef", "ü", "a"]), max_size=8).map(
    "".join
)
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


CHANGES = st.lists(
    st.tuples(st.integers(6, 60), st.integers(0, 255) | st.sampled_from([0, 1, 2, 16, 32, 128])), max_size=3
)


@given(COMMON, st.integers(0, 40) | st.just(0), st.binary(max_size=3) | st.just(b""), CHANGES)
def test_the_message_of_a_record_is_what_the_library_reads(
    message: Message, cut: int, more: bytes, changes: list[tuple[int, int]]
) -> None:
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
    "an id that is no text": [
        encode(Message(b"")),
        encode(Message(b"", batch=BatchMark(MARK[2:], 1, 2))).replace(b"0123", b"012\xff"),
    ],
    "a deduplication id like a mark": [encode(Message(b"", dedup_id=f"\0{MARK}\2\4\0\0"))],
}


@pytest.mark.parametrize("records", LOOKALIKES.values(), ids=LOOKALIKES)
def test_what_looks_like_a_common_message_is_what_the_library_reads(records: list[bytes]) -> None:
    for data in records * 2:
        assert outcome(lambda data=data: decode_message(data, None)) == outcome(lambda data=data: decode(data))  # type: ignore[misc]


@pytest.mark.parametrize(
    "batch",
    [
        None,
        *(
            BatchMark("0123456789abcdef", *numbers)
            for numbers in [(3, 10), (63, 63), (63, 64), (64, 100), (99, 100), (127, 127)]
        ),
    ],
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
