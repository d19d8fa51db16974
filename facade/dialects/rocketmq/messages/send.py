"""SendMessage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.shapes import SendEntry, Sent
from facade.dialects.rocketmq.clients.clients import Clients
from facade.dialects.rocketmq.messages import ordering
from facade.dialects.rocketmq.messages.digests import check_digest
from facade.dialects.rocketmq.messages.properties import attributes_of, time_ms
from facade.dialects.rocketmq.messages.recall import RecallHandle
from facade.dialects.rocketmq.messages.transactions import prepared
from facade.dialects.rocketmq.queues.call import Call
from facade.dialects.rocketmq.queues.kinds import body_bytes, check_type, type_of
from facade.dialects.rocketmq.queues.names import record_of, topic_of
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError, check_number, ok
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code, Encoding, MessageType

if TYPE_CHECKING:
    from schemas.records import QueueRecord


async def send_message(call: Call, clients: Clients) -> pb.SendMessageResponse:
    """Sends the messages of one topic, all or none.

    A message to a FIFO queue repeats one with the same id: a client that sends it again, since it
    heard no answer, has sent it once.
    """
    given: pb.SendMessageRequest = call.body
    if not given.messages:
        raise RocketError(Code.MESSAGE_CORRUPTED, "the request has no message")
    check_number(given.messages)
    topic = topic_of(given.messages[0].topic)
    if any(message.topic.name != topic for message in given.messages):
        raise RocketError(Code.MESSAGE_CORRUPTED, "the messages of a request are of one topic")
    record = await record_of(call.engine, call.by, topic)
    entries = [_entry(call, record, topic, message) for message in given.messages]
    if any(message.system_properties.message_type == MessageType.TRANSACTION for message in given.messages):
        if len(given.messages) > 1:
            raise RocketError(Code.BAD_REQUEST, "a transactional message is alone in its request")
        return await prepared(call, clients, record, topic, given.messages[0], entries[0])
    sent = await call.engine.messages.send(call.by, record.name, entries)
    results = [
        pb.SendResultEntry(
            status=ok(),
            message_id=message.system_properties.message_id,
            transaction_id=one.id,
            recall_handle=_recall_handle(topic, entry, one, message.system_properties.message_id),
        )
        for message, entry, one in zip(given.messages, entries, sent, strict=True)
    ]
    return pb.SendMessageResponse(status=ok(), entries=results)


def _recall_handle(topic: str, entry: SendEntry, sent: Sent, message_id: str) -> str:
    """By which a timed message can be taken back; "" = it is due already."""
    at_ms = entry.deliver_at_ms or 0
    return RecallHandle(topic, at_ms, sent.id, message_id).text() if at_ms > sent.sent_at_ms else ""


def _entry(call: Call, record: QueueRecord, topic: str, given: pb.Message) -> SendEntry:
    """What the engine gets. Raises RocketError."""
    properties = given.system_properties
    kind = type_of(properties)
    check_type(record, topic, kind)
    if not given.body:
        raise RocketError(Code.MESSAGE_BODY_EMPTY, "the body of a message is not empty")
    if len(given.body) > (most := body_bytes(record)):
        about = (
            f"a body of topic {topic!r} has {most} bytes at most (max_message_bytes of its queue, without properties)"
        )
        raise RocketError(Code.MESSAGE_BODY_TOO_LARGE, f"{about}, given {len(given.body)}")
    check_digest(properties.body_digest, given.body)
    attributes = attributes_of(given, call.engine.settings.secret)
    is_text = properties.body_encoding != Encoding.GZIP and _is_text(given.body)
    if kind == MessageType.FIFO:
        group = ordering.stored(properties.message_group)
        return SendEntry(given.body, attributes, body_is_text=is_text, group=group, dedup_id=properties.message_id)
    at_ms = _deliver_at_ms(call, properties) if kind == MessageType.DELAY else None
    return SendEntry(given.body, attributes, deliver_at_ms=at_ms, body_is_text=is_text)


def _deliver_at_ms(call: Call, properties: pb.SystemProperties) -> int:
    """The delivery time; a past one is now. Raises RocketError."""
    most_ms = call.common.settings.rocketmq_max_delay_s * 1000
    # Rounded up, for a message is never early.
    at_ms = time_ms(properties.delivery_timestamp, Code.ILLEGAL_DELIVERY_TIME, "delivery time")
    delay_ms = at_ms - call.engine.queues.kafka_ms()
    if delay_ms > most_ms:
        about = f"the delivery time is at most {most_ms // 1000} s from now (LEASEWAY_ROCKETMQ_MAX_DELAY_S)"
        raise RocketError(Code.ILLEGAL_DELIVERY_TIME, f"{about}, given {delay_ms // 1000} s")
    return at_ms


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
