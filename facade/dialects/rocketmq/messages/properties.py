"""Properties of messages and the engine's attributes: checks of what a client sends, and messages
for the wire.

What RocketMQ keeps beside the user's properties travels as attributes by RocketMQ's own names for
them, which it refuses from users; so every dialect can read them, and a message of any dialect is
one here.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from facade.dialects.rocketmq.messages import hosts
from facade.dialects.rocketmq.queues.expressions import TAG_ATTRIBUTE
from facade.dialects.rocketmq.queues.kinds import PROPERTY_BYTES
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code, Encoding
from schemas.records import Attribute
from schemas.records.trace_context import of_attributes
from schemas.vocabulary import SOURCE_QUEUE_ATTRIBUTE

KEYS: Final = "KEYS"
MESSAGE_ID: Final = "UNIQ_KEY"
BORN_HOST: Final = "__BORNHOST"
BORN_TIMESTAMP: Final = "BORN_TIMESTAMP"
TRACE_CONTEXT: Final = "TRACE_CONTEXT"
ENCODING: Final = "BODY_ENCODING"
_OWN: Final = frozenset({TAG_ATTRIBUTE, KEYS, MESSAGE_ID, BORN_HOST, BORN_TIMESTAMP, TRACE_CONTEXT, ENCODING})

# reference/rocketmq.md 1.7; what is not there is of the engine, or a name of this module.
RESERVED: Final = _OWN | {SOURCE_QUEUE_ATTRIBUTE} | frozenset((
    "TRACE_ON", "MSG_REGION", "WAIT", "DELAY", "RETRY_TOPIC", "REAL_TOPIC", "REAL_QID", "TRAN_MSG", "PGROUP",
    "MIN_OFFSET", "MAX_OFFSET", "BUYER_ID", "ORIGIN_MESSAGE_ID", "TRANSFER_FLAG", "CORRECTION_FLAG", "MQ2_FLAG",
    "RECONSUME_TIME", "MAX_RECONSUME_TIMES", "CONSUME_START_TIME", "POP_CK", "POP_CK_OFFSET", "1ST_POP_TIME",
    "TRAN_PREPARED_QUEUE_OFFSET", "DUP_INFO", "EXTEND_UNIQ_INFO", "INSTANCE_ID", "CORRELATION_ID", "REPLY_TO_CLIENT",
    "TTL", "ARRIVE_TIME", "PUSH_REPLY_TIME", "CLUSTER", "MSG_TYPE", "INNER_MULTI_QUEUE_OFFSET", "TIMER_DELAY_MS",
    "TIMER_DELAY_SEC", "TIMER_DELIVER_MS", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS", "TIMER_ROLL_TIMES", "TIMER_OUT_MS",
    "TIMER_DEL_UNIQKEY", "TIMER_DELAY_LEVEL", "DLQ_ORIGIN_TOPIC", "DLQ_ORIGIN_MESSAGE_ID", "__CRC32#", "__SHARDINGKEY",
))  # fmt: skip
MOST_PROPERTIES: Final = 90  # RocketMQ has 128; the engine takes 100 attributes, of which some are ours
MOST_BYTES: Final = PROPERTY_BYTES
_NAME: Final = re.compile(r"[!-~]{1,256}")
_ID: Final = re.compile(r"[!-~]{1,128}")
_TEXT: Final = "String"
_LAST_SECOND: Final = 253_402_300_799  # of the year 9999


def attributes_of(given: pb.Message, secret: str = "") -> dict[str, Attribute]:
    """Returns the attributes of a message to send; `secret` hides its host from other dialects.
    Raises RocketError.
    """
    properties = given.system_properties
    texts = dict(_checked(given.user_properties))
    texts[MESSAGE_ID] = _message_id(properties.message_id)
    if properties.HasField("tag"):
        texts[TAG_ATTRIBUTE] = _tag(properties.tag)
    if properties.keys:
        texts[KEYS] = _keys(properties.keys)
    if properties.born_host:
        texts[BORN_HOST] = hosts.sealed(properties.born_host, secret)
    if properties.HasField("born_timestamp"):
        texts[BORN_TIMESTAMP] = str(time_ms(properties.born_timestamp, Code.BAD_REQUEST, "born timestamp"))
    if properties.HasField("trace_context"):
        texts[TRACE_CONTEXT] = properties.trace_context
    if properties.body_encoding == Encoding.GZIP:
        texts[ENCODING] = Encoding.Name(Encoding.GZIP)
    _check_size(texts)
    return {name: Attribute(_TEXT, text.encode()) for name, text in texts.items()}


def time_ms(given: Timestamp, code: Code, name: str) -> int:
    """A time in milliseconds since 1970, rounded up. Raises RocketError for what is no time."""
    if not 0 <= given.seconds <= _LAST_SECOND or not 0 <= given.nanos < 1_000_000_000:
        raise RocketError(code, f"the {name} is no time: {given.seconds} s and {given.nanos} ns since 1970")
    return int(given.seconds * 1000 - -given.nanos // 1_000_000)


def _checked(given: Mapping[str, str]) -> Mapping[str, str]:
    """The user's properties."""
    if len(given) > MOST_PROPERTIES:
        raise RocketError(
            Code.MESSAGE_PROPERTIES_TOO_LARGE, f"a message has {MOST_PROPERTIES} properties at most, given {len(given)}"
        )
    for name in given:
        if name in RESERVED:
            raise RocketError(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, f"the property key {name!r} is reserved")
        if _NAME.fullmatch(name) is None:
            about = "a property key is 1 to 256 printable ASCII characters without space"
            raise RocketError(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, f"{about}, given {name[:200]!r}")
    return given


def _check_size(texts: Mapping[str, str]) -> None:
    size = sum(len(name.encode()) + len(text.encode()) for name, text in texts.items())
    if size > MOST_BYTES:
        raise RocketError(
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
            f"the properties of a message have {MOST_BYTES} bytes at most, given {size}",
        )


def _message_id(given: str) -> str:
    if _ID.fullmatch(given) is None:
        about = "a message id is 1 to 128 printable ASCII characters without space"
        raise RocketError(Code.ILLEGAL_MESSAGE_ID, f"{about}, given {given[:200]!r}")
    return given


def _tag(given: str) -> str:
    if not given.strip() or "|" in given or not given.isprintable():
        raise RocketError(
            Code.ILLEGAL_MESSAGE_TAG, f"a tag is not blank and has no '|' or control characters, given {given[:200]!r}"
        )
    return given


def _keys(given: Sequence[str]) -> str:
    # Before any is looked at: a message may have a million.
    if len(given) > MOST_BYTES or sum(map(len, given)) > MOST_BYTES:
        about = f"the properties of a message have {MOST_BYTES} bytes at most"
        raise RocketError(Code.MESSAGE_PROPERTIES_TOO_LARGE, f"{about}, given {len(given)} keys with more")
    return " ".join(map(_key, given))


def _key(given: str) -> str:
    if not given or not given.isprintable() or any(character.isspace() for character in given):
        raise RocketError(
            Code.ILLEGAL_MESSAGE_KEY, f"a key has no space and no control characters, given {given[:200]!r}"
        )
    return given


def shown(attributes: Mapping[str, Attribute], secret: str = "") -> tuple[pb.SystemProperties, dict[str, str]]:
    """The attributes of a stored message as system properties and properties of the user. Values
    that are no text are in base64.
    """
    texts = {name: _text(attribute) for name, attribute in attributes.items()}
    own = {name: texts.pop(name) for name in _OWN if name in texts}
    properties = pb.SystemProperties(
        tag=own.get(TAG_ATTRIBUTE),
        keys=own.get(KEYS, "").split(),
        message_id=own.get(MESSAGE_ID, ""),
        body_encoding=Encoding.GZIP if own.get(ENCODING) == Encoding.Name(Encoding.GZIP) else Encoding.IDENTITY,
        born_host=hosts.opened(own[BORN_HOST], secret) if BORN_HOST in own else "",
        trace_context=own[TRACE_CONTEXT] if TRACE_CONTEXT in own else _context(attributes),
    )
    born = own.get(BORN_TIMESTAMP, "")
    if born.isascii() and born.isdigit() and len(born) < len("100000000000000"):
        properties.born_timestamp.FromMilliseconds(int(born))
    return properties, texts


def _context(attributes: Mapping[str, Attribute]) -> str | None:
    """The trace context that another dialect has stored, if there is one."""
    context = of_attributes(attributes) if attributes else None
    return None if context is None else context.traceparent


def _text(attribute: Attribute) -> str:
    if attribute.type[:6].lower() == "binary":
        return b64encode(attribute.value).decode()
    return attribute.value.decode("utf-8", "replace")
