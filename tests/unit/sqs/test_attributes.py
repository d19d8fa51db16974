"""Message attributes: which numbers and names SQS takes, and what a receive shows."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facade.dialects.sqs.messages.attributes import Wanted, encoded, incoming
from facade.dialects.sqs.wire.errors import SqsError
from facade.dialects.sqs.wire.shapes import AttributeValue
from schemas.records import Attribute

STORED = {
    "kind": Attribute("string", b"retail"),
    "foo.a": Attribute("Number.int", b"1"),
    "DLQ.sourceQueue": Attribute("string", b"orders"),
    "AWS.TraceHeader": Attribute("String", b"Root=1"),
}


def number(text: str) -> dict[str, AttributeValue]:
    return {"n": AttributeValue(data_type="Number", string_value=text)}


@pytest.mark.parametrize(
    "text", ["0", "-0.0", "+7", "1.", ".5", "1e126", "1E-128", "0.001e-125", "9" * 38, "1" + "0" * 126, "-12.50"]
)
def test_a_number_of_sqs_is_taken_as_it_is_written(text: str) -> None:
    assert incoming(number(text))["n"] == Attribute("Number", text.encode())


@pytest.mark.parametrize(
    "text", ["", ".", "-", "e5", "1e127", "1e-129", "0.01e-127", "9" * 39, "1 2", "0x10", "NaN", "1e99999", "1" * 500]
)
def test_what_is_no_number_of_sqs_is_refused(text: str) -> None:
    with pytest.raises(SqsError) as caught:
        incoming(number(text))
    assert caught.value.shape.code == "InvalidParameterValue"


@pytest.mark.parametrize("text", ["", "plain", "a\tb\r\n", "\ud7ff\ue000\ufffd\U0010ffff"])
def test_characters_of_sqs_are_legal(text: str) -> None:
    assert encoded(text) == text.encode()


@pytest.mark.parametrize("text", ["\x00", "\x1f", "a\x0b", "\ufffe", "\uffff", "\ud800"])
def test_other_characters_are_not(text: str) -> None:
    assert encoded(text) is None


@given(st.text(st.characters(codec=None) | st.sampled_from("\x00\x0b\x1f\t\ufffd\ufffe\uffff\ud800"), max_size=20))
def test_exactly_the_characters_of_sqs_are_legal(text: str) -> None:
    allowed = re.fullmatch("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*", text)
    assert (encoded(text) is not None) == (allowed is not None)


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (None, set()),
        ([], set()),
        (["All"], {"kind", "foo.a"}),
        (["foo.*"], {"foo.a"}),
        (["f.*"], {"foo.a"}),
        (["AWS.TraceHeader"], set()),
    ],
)
def test_a_receive_shows_what_was_asked_for_and_never_what_is_ours(names: list[str] | None, shown: set[str]) -> None:
    assert set(Wanted(names or ()).of(STORED)) == shown


def test_native_types_are_spelled_as_sqs_does() -> None:
    assert [one.type for one in Wanted(["All"]).of(STORED).values()] == ["String", "Number.int"]
