"""Properties of a message: to attributes and back, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from engine.rules.limits import MAX_ATTRIBUTES, check_attributes
from facade.dialects.rocketmq.messages import properties
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code, Encoding
from schemas.records import Attribute

ID = "01AABBCCDDEEFF00010203040506070809"


def message(texts: dict[str, str] | None = None, **system: Any) -> pb.Message:
    return pb.Message(
        user_properties=texts or {}, system_properties=pb.SystemProperties(**{"message_id": ID, **system})
    )


def test_what_a_client_sends_comes_back() -> None:
    given = message(
        {"colour": "röt", "empty": ""},
        tag="red",
        keys=["k1", "k2"],
        born_timestamp={"seconds": 1_700_000_000, "nanos": 5_000_000},
        born_host="host",
        trace_context="00-ab",
        body_encoding=Encoding.GZIP,
    )
    attributes = properties.attributes_of(given)
    check_attributes(attributes)
    system, texts = properties.shown(attributes)

    assert texts == {"colour": "röt", "empty": ""}
    assert (system.tag, list(system.keys), system.message_id, system.born_host) == ("red", ["k1", "k2"], ID, "host")
    assert (system.trace_context, system.body_encoding) == ("00-ab", Encoding.GZIP)
    assert system.born_timestamp.ToMilliseconds() == 1_700_000_000_005


def test_a_message_of_another_dialect_is_shown() -> None:
    attributes = {
        "raw": Attribute("Binary.png", b"\xff"),
        "n": Attribute("Number", b"7"),
        "bad": Attribute("String", b"\xff"),
    }
    system, texts = properties.shown(
        {**attributes, "BORN_TIMESTAMP": Attribute("String", b"yesterday"), "KEYS": Attribute("String", b"")}
    )

    assert texts == {"raw": "/w==", "n": "7", "bad": "\ufffd"}
    assert system.body_encoding == Encoding.IDENTITY and not system.HasField("tag") and not list(system.keys)


def test_as_many_properties_as_may_be_fit_into_the_engines_bound() -> None:
    texts = {f"p{n}": "v" for n in range(properties.MOST_PROPERTIES)}
    given = message(
        texts, tag="t", keys=["k"], born_timestamp={"seconds": 1}, born_host="h", trace_context="t", body_encoding=2
    )

    assert len(properties.attributes_of(given)) <= MAX_ATTRIBUTES


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (message({"TAGS": "x"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
        (message({"UNIQ_KEY": "x"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
        (message({"DLQ.sourceQueue": "x"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
        (message({"__SHARDINGKEY": "x"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
        (message({"": "x"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
        (message({"a b": "x"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
        (message({"ö": "x"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
        (message({"a" * 257: "x"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
        (message({f"p{n}": "v" for n in range(91)}), Code.MESSAGE_PROPERTIES_TOO_LARGE),
        (message({"a": "x" * 16_384}), Code.MESSAGE_PROPERTIES_TOO_LARGE),
        (message(message_id=""), Code.ILLEGAL_MESSAGE_ID),
        (message(message_id="a b"), Code.ILLEGAL_MESSAGE_ID),
        (message(message_id="x" * 129), Code.ILLEGAL_MESSAGE_ID),
        (message(tag=""), Code.ILLEGAL_MESSAGE_TAG),
        (message(tag=" "), Code.ILLEGAL_MESSAGE_TAG),
        (message(tag="a|b"), Code.ILLEGAL_MESSAGE_TAG),
        (message(tag="a\n"), Code.ILLEGAL_MESSAGE_TAG),
        (message(keys=["a b"]), Code.ILLEGAL_MESSAGE_KEY),
        (message(keys=["ok", ""]), Code.ILLEGAL_MESSAGE_KEY),
        (message(keys=["a\x7f"]), Code.ILLEGAL_MESSAGE_KEY),
    ],
)
def test_what_rocketmq_refuses_has_its_code(given: pb.Message, code: int) -> None:
    with pytest.raises(RocketError) as refused:
        properties.attributes_of(given)
    assert refused.value.code == code
