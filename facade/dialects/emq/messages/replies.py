"""Messages as EMQ shows them, and why an entry of a batch has failed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from engine.rules.fifo import ALONE
from engine.shapes import Delivery, Peeked
from facade.dialects.emq.queues import filters
from facade.dialects.emq.queues.call import EmqError
from facade.dialects.emq.queues.names import name_of
from facade.dialects.emq.wire.structs import message as wire
from facade.dialects.emq.wire.structs.shared import GalaxyEmqServiceException
from schemas.records import Message, Origin, QueueRecord, trace_context
from schemas.vocabulary import DEFAULT_TAG, NATIVE_SENDER, Reason

if TYPE_CHECKING:
    from engine.engine import Engine


def exception_of(error: EmqError) -> GalaxyEmqServiceException:
    """The struct by which a client hears of an error."""
    word = "QueueExistException" if error.code.name == "QUEUE_EXIST" else error.code.name
    return GalaxyEmqServiceException(error_code=int(error.code), err_msg=word, details=error.details)


def failure(id: str, error: EmqError) -> wire.MessageBatchErrorEntry:
    """Why an entry of a batch has failed."""
    return wire.MessageBatchErrorEntry(id=id, reason=exception_of(error))


def body_of(message: Message) -> str:
    """The body as text; the bad bytes of one that is none (native producers may send it) are
    replaced.
    """
    return message.body.decode("utf-8", "replace")


def received(engine: Engine, record: QueueRecord, delivery: Delivery) -> wire.ReceiveMessageResponse:
    """A leased message."""
    message = delivery.message
    digest = delivery.body_md5 or hashlib.md5(message.body, usedforsecurity=False).hexdigest()
    shown = {
        **_sent(record, message, delivery.sent_at_ms, digest),
        "receiveCount": str(delivery.receive_count),
        "firstReceiveTimestamp": str(delivery.first_received_at_ms),
        "receiveTimestamp": str(delivery.received_at_ms),
    }
    return wire.ReceiveMessageResponse(
        message_id=delivery.id,
        receipt_handle=delivery.handle,
        message_body=body_of(message),
        attributes=shown | _came_from(engine, message.origin) if message.origin else shown,
        message_attributes=attributes_of(engine, message),
    )


def peeked(engine: Engine, record: QueueRecord, found: Peeked) -> wire.PeekMessageResponse:
    """A message that was looked at."""
    message = found.message
    shown = _sent(record, message, found.sent_at_ms, hashlib.md5(message.body, usedforsecurity=False).hexdigest())
    if found.receive_count:
        shown |= {
            "receiveCount": str(found.receive_count),
            "firstReceiveTimestamp": str(found.first_received_at_ms or 0),
        }
    return wire.PeekMessageResponse(
        message_id=found.id,
        message_body=body_of(message),
        attributes=shown | _came_from(engine, message.origin),
        message_attributes=attributes_of(engine, message),
    )


def _sent(record: QueueRecord, message: Message, sent_at_ms: int, digest: str) -> dict[str, str]:
    shown = {
        "senderId": message.sender or NATIVE_SENDER,
        "messageLength": str(len(message.body)),
        "md5OfBody": digest,
        "sendTimestamp": str(sent_at_ms),
    }
    if record.priority:
        shown["priority"] = str(message.priority)
    if record.fifo and message.group and not message.group.startswith(ALONE):
        shown["topic"] = message.group
    return shown


def _came_from(engine: Engine, origin: Origin | None) -> dict[str, str]:
    """Of a message that has been moved: where it died, and as what it was sent."""
    if origin is None or origin.reason == Reason.COMMITTED:
        return {}
    return {
        "sourceQueueName": name_of(engine, origin.original_queue),
        "sourceTag": "" if origin.from_tag == DEFAULT_TAG else origin.from_tag,
        "deadTimestamp": str(origin.moved_at_ms),
        "originalMessageID": origin.original_id,
        "originalReceiveCount": str(origin.receive_count),
    }


def attributes_of(engine: Engine, message: Message) -> dict[str, wire.MessageAttribute] | None:
    """The attributes of a message, and its trace context; None = there are none."""
    if not message.attributes:
        return None
    return {
        name: filters.attribute_reply(engine, name, attribute)
        for name, attribute in trace_context.shown(message.attributes).items()
    }
