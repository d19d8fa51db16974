"""Messages packed by hand are the bytes that the library writes."""

from __future__ import annotations

import json
from io import BytesIO

import msgspec
import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from schemas.pack import long
from schemas.records import Attribute, BatchMark, Message, Origin
from schemas.registry import schema_id, schema_text
from schemas.wire import decode, encode
from tests.unit.schemas.samples import LONGS, TEXTS

MESSAGE_SCHEMA = parse_schema(json.loads(schema_text(schema_id("message"))))
MESSAGES = st.builds(
    Message,
    body=st.binary(max_size=200),
    attributes=st.dictionaries(TEXTS, st.builds(Attribute, TEXTS, st.binary(max_size=70)), max_size=3),
    delay_ms=LONGS,
    lease_ms=st.none() | LONGS,
    sender=TEXTS,
    origin=st.none() | st.builds(Origin, *[TEXTS] * 6, *[LONGS] * 4, TEXTS),
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


@given(LONGS)
def test_a_long_is_zigzag_in_seven_bits_a_byte(value: int) -> None:
    expected = BytesIO()
    schemaless_writer(expected, parse_schema("long"), value)
    assert long(value) == expected.getvalue()


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_a_number_of_more_than_64_bits_is_no_long(value: int) -> None:
    with pytest.raises(ValueError, match="is no long"):
        long(value)
