"""ReceiveMessage: a stream of a status, the messages, and the time of the delivery."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from google.protobuf.duration_pb2 import Duration
from msgspec import Struct

from facade.dialects.rocketmq.clients.clients import Clients
from facade.dialects.rocketmq.clients.renewals import RENEWED_MS
from facade.dialects.rocketmq.messages import ordering
from facade.dialects.rocketmq.messages.digests import digest_of
from facade.dialects.rocketmq.messages.properties import shown
from facade.dialects.rocketmq.queues.call import Call
from facade.dialects.rocketmq.queues.groups import subscribed
from facade.dialects.rocketmq.queues.names import group_of, record_of, topic_of
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError, ok
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code, MessageType
from schemas.vocabulary import Reason

if TYPE_CHECKING:
    from engine.shapes import Delivery
    from schemas.records import Message

MOST: Final = 32
WAIT_S: Final = 20
_LEASE_MS: Final = (10_000, 43_200_000)
_ATTEMPT_CHARACTERS: Final = 128
# What is left of a client's deadline to carry the answer of a long poll.
_MARGIN_S: Final = 0.5


class Received(Struct, frozen=True):
    """What a receive has leased, and how it is said."""

    deliveries: list[Delivery]
    topic: str
    fifo: bool
    lease_ms: int
    secret: str = ""

    def responses(self) -> Iterator[pb.ReceiveMessageResponse]:
        """The stream: a client that looks for the time of the delivery needs it."""
        if not self.deliveries:
            yield pb.ReceiveMessageResponse(
                status=pb.Status(code=Code.MESSAGE_NOT_FOUND, message="there is no message")
            )
            return
        yield pb.ReceiveMessageResponse(status=ok())
        for delivery in self.deliveries:
            yield pb.ReceiveMessageResponse(message=_message(self, delivery))
        at = pb.ReceiveMessageResponse()
        at.delivery_timestamp.FromMilliseconds(time.time_ns() // 1_000_000)
        yield at


async def receive_message(call: Call, clients: Clients) -> Received:
    """Leases messages of a topic for a group, waiting for them if asked to."""
    given: pb.ReceiveMessageRequest = call.body
    topic, group = topic_of(given.message_queue.topic), group_of(given.group)
    lease_ms = RENEWED_MS if given.auto_renew else _lease_ms(given)
    if len(given.attempt_id) > _ATTEMPT_CHARACTERS:
        raise RocketError(Code.BAD_REQUEST, f"an attempt id has {_ATTEMPT_CHARACTERS} characters at most")
    record = await record_of(call.engine, call.by, topic)
    await subscribed(call, record, group, given.filter_expression)
    if given.auto_renew:
        clients.renewals.check_room()
    attempt = given.attempt_id or None
    count = min(max(given.batch_size, 1), MOST)
    deliveries = await call.engine.messages.receive(
        call.by, record.name, group, count, _wait_ms(call, given), lease_ms, attempt
    )
    if given.auto_renew:
        clients.renewals.keep(call.by, call.client_id, record.name, [delivery.handle for delivery in deliveries])
    return Received(deliveries, topic, record.fifo, lease_ms, call.engine.settings.secret)


def _lease_ms(given: pb.ReceiveMessageRequest) -> int:
    lease_ms = duration_ms(given.invisible_duration)
    if not _LEASE_MS[0] <= lease_ms <= _LEASE_MS[1]:
        low, high = (bound // 1000 for bound in _LEASE_MS)
        raise RocketError(
            Code.ILLEGAL_INVISIBLE_TIME, f"the invisible duration is {low} to {high} s, given {lease_ms / 1000:g} s"
        )
    return lease_ms


def duration_ms(given: Duration) -> int:
    """A duration in whole milliseconds, rounded down."""
    return int(given.seconds * 1000 + given.nanos // 1_000_000)


def _wait_ms(call: Call, given: pb.ReceiveMessageRequest) -> int:
    """How long to wait: as asked, up to 20 s, within the deadline of the client."""
    wait_s: float = WAIT_S
    if given.HasField("long_polling_timeout"):
        wait_s = min(max(duration_ms(given.long_polling_timeout) / 1000, 0), WAIT_S)
    if call.left_s is not None:
        wait_s = min(wait_s, max(call.left_s - _MARGIN_S, 0))
    return int(wait_s * 1000)


def shown_message(topic: str, message: Message, id: str, secret: str) -> pb.Message:
    """A stored message; `id` is for one whose client has given it none, `secret` opens its host."""
    properties, texts = shown(message.attributes, secret)
    properties.message_id = properties.message_id or id
    properties.body_digest.CopyFrom(digest_of(message.body))
    return pb.Message(
        topic=pb.Resource(name=topic), user_properties=texts, system_properties=properties, body=message.body
    )


def _message(received: Received, delivery: Delivery) -> pb.Message:
    message = delivery.message
    shown = shown_message(received.topic, message, delivery.id, received.secret)
    properties = shown.system_properties
    properties.message_type = MessageType.FIFO if received.fifo else MessageType.NORMAL
    properties.store_timestamp.FromMilliseconds(delivery.sent_at_ms)
    properties.receipt_handle = delivery.handle
    properties.queue_id, properties.queue_offset = delivery.partition, delivery.offset
    properties.invisible_duration.FromMilliseconds(received.lease_ms)
    properties.delivery_attempt = delivery.receive_count
    if not properties.HasField("born_timestamp"):
        properties.born_timestamp.FromMilliseconds(delivery.sent_at_ms)
    if message.delay_ms and not received.fifo:
        properties.message_type = MessageType.DELAY
        properties.delivery_timestamp.FromMilliseconds(delivery.sent_at_ms + message.delay_ms)
    if received.fifo and message.group:
        properties.message_group = ordering.shown(message.group)
    if message.origin is not None and message.origin.reason == Reason.COMMITTED:
        properties.message_type = MessageType.TRANSACTION
    elif message.origin is not None:
        properties.dead_letter_queue.CopyFrom(
            pb.DeadLetterQueue(topic=message.origin.original_queue, message_id=properties.message_id)
        )
    return shown
