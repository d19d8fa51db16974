"""Types of messages: which a topic takes, and which a message is.

A FIFO queue takes ordered messages, any other normal, timed and transactional ones. The note
`message.type` on a queue (a user attribute, in RocketMQ an attribute of the topic) narrows that to
one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code, MessageType

if TYPE_CHECKING:
    from schemas.records import QueueRecord

PROPERTY_BYTES: Final = 16_384
MOST_BODY_BYTES: Final = 4_000_000
TYPE_NOTE: Final = "message.type"
_ORDERED: Final = (MessageType.FIFO,)
_OTHERS: Final = (MessageType.NORMAL, MessageType.DELAY, MessageType.TRANSACTION)
_NO_PRIORITY: Final = "messages with a priority or a lite topic are not served"


def body_bytes(record: QueueRecord) -> int:
    """Returns what a body of a topic may have: the bytes of a message without its properties. In a
    queue for small messages properties may have half.
    """
    return max(record.max_message_bytes - PROPERTY_BYTES, record.max_message_bytes // 2)


def types_of(record: QueueRecord) -> tuple[MessageType, ...]:
    """The types that a topic takes."""
    if record.fifo:
        return _ORDERED
    word = record.user_attributes.get(TYPE_NOTE, "").upper()
    return tuple(kind for kind in _OTHERS if MessageType.Name(kind) == word) or _OTHERS


def type_of(properties: pb.SystemProperties) -> MessageType:
    """The type of a message to send: by what it has, whatever it says it is, as RocketMQ's proxy.
    Raises RocketError.
    """
    if properties.HasField("priority") or properties.HasField("lite_topic"):
        raise RocketError(Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, _NO_PRIORITY)
    ordered, timed = properties.HasField("message_group"), properties.HasField("delivery_timestamp")
    if ordered and timed:
        raise RocketError(
            Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, "a message has a message group or a delivery time, not both"
        )
    if properties.message_type == MessageType.TRANSACTION:
        if ordered or timed:
            raise RocketError(
                Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
                "a transactional message has no message group and no delivery time",
            )
        return MessageType.TRANSACTION
    if timed:
        return MessageType.DELAY
    return MessageType.FIFO if ordered else MessageType.NORMAL


def check_type(record: QueueRecord, topic: str, kind: MessageType) -> None:
    """Raises RocketError for a type that the topic does not take."""
    types = types_of(record)
    if kind not in types:
        taken, given = " and ".join(map(MessageType.Name, types)), MessageType.Name(kind)
        raise RocketError(
            Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, f"topic {topic!r} takes {taken} messages, given a {given} one"
        )
