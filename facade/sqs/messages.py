"""SendMessage, SendMessageBatch, ReceiveMessage.

Neighbours: `attributes`, `digests`, `batches`; `handles` does what follows a receive. This module must not know HTTP.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.errors import MessageTooLarge
from engine.limits import message_bytes
from engine.verbs import Delivery, SendEntry, Sent
from facade.sqs import attributes, digests
from facade.sqs.batches import by_id, failed
from facade.sqs.call import Call
from facade.sqs.errors import BATCH_TOO_LONG, INVALID_CONTENTS, UNSUPPORTED_OPERATION, SqsError, invalid, missing, sqs_error
from facade.sqs.limits import VISIBILITY_SECONDS, Limits
from facade.sqs.names import Place, of_url
from facade.sqs.replies import FailedReply, MessageReply, ReceiveReply, SentBatchReply, SentReply
from facade.sqs.shapes import Outgoing
from schemas.records import Attribute, Origin

if TYPE_CHECKING:
    from engine.engine import Engine


def milliseconds(parameter: str, given: int | None, allowed: tuple[int, int]) -> int | None:
    """Seconds of a request as milliseconds; None stays None. Raises SqsError when out of range."""
    if given is None:
        return None
    if not allowed[0] <= given <= allowed[1]:
        raise invalid(parameter, given, f"Must be between {allowed[0]} and {allowed[1]}, if provided.")
    return given * 1000


class _Ready:
    """A message that has passed every check of this dialect: what the engine gets, and its attributes apart for the MD5s."""

    __slots__ = ("entry", "system", "user")

    def __init__(self, given: Outgoing, limits: Limits) -> None:
        text = given.message_body
        if not text:
            raise missing("MessageBody")
        if not attributes.legal(text):
            raise SqsError(INVALID_CONTENTS, "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 and above.")
        if given.message_group_id is not None:
            raise SqsError(UNSUPPORTED_OPERATION, "Message groups come later; MessageGroupId can't be given yet.")
        if given.message_deduplication_id is not None:
            raise invalid("MessageDeduplicationId", given.message_deduplication_id, "The request includes a parameter of FIFO queues only.")
        delay_ms = milliseconds("DelaySeconds", given.delay_seconds, (0, limits.delay_s))
        self.user = attributes.incoming(given.message_attributes)
        self.system = attributes.incoming_system(given.message_system_attributes)
        self.entry = SendEntry(text.encode(), {**self.user, **self.system}, delay_ms)

    def reply(self, sent: Sent, id: str | None = None) -> SentReply:
        """What the sender is told."""
        return SentReply(
            id=id,
            message_id=sent.id,
            md5_of_message_body=sent.body_md5,
            md5_of_message_attributes=digests.of_attributes(attributes.triples(self.user)) if self.user else None,
            md5_of_message_system_attributes=digests.of_attributes(attributes.as_system(self.system)) if self.system else None,
        )


async def send_message(engine: Engine, call: Call) -> SentReply:
    """Send one message. To a tag: the queue gets it, so every tag that wants it does."""
    at = of_url(call.body.queue_url)
    ready = _Ready(call.body, call.limits)
    (sent,) = await engine.send(call.by, at.queue, [ready.entry])
    return ready.reply(sent)


async def send_message_batch(engine: Engine, call: Call) -> SentBatchReply:
    """Send some messages: those that are right together, all or none; the others are told of as failed."""
    at = of_url(call.body.queue_url)
    entries: Mapping[str, Outgoing] = by_id(call.body.entries, call.limits.batch)
    ready: dict[str, _Ready] = {}
    bad: list[FailedReply] = []
    for entry_id, entry in entries.items():
        try:
            ready[entry_id] = _Ready(entry, call.limits)
        except SqsError as error:
            bad.append(failed(entry_id, error))
    if sum(message_bytes(one.entry) for one in ready.values()) > call.limits.batch_bytes:
        raise SqsError(BATCH_TOO_LONG, f"Batch requests cannot be longer than {call.limits.batch_bytes} bytes.")
    try:
        good = await _send(engine, call, at.queue, ready)
    except MessageTooLarge as error:
        # Nothing was sent: the engine looks at all sizes first. The queue's limit is lower than that of all queues.
        limit = int(error.limit)
        large = [entry_id for entry_id, one in ready.items() if message_bytes(one.entry) > limit]
        bad += [failed(entry_id, sqs_error(error)) for entry_id in large]
        good = await _send(engine, call, at.queue, {entry_id: one for entry_id, one in ready.items() if entry_id not in large})
    return SentBatchReply(successful=good or None, failed=bad or None)


async def _send(engine: Engine, call: Call, queue: str, ready: Mapping[str, _Ready]) -> list[SentReply]:
    if not ready:
        await engine.get_queue(call.by, queue)  # that there is no such queue is an error of the request even so
        return []
    sent = await engine.send(call.by, queue, [one.entry for one in ready.values()])
    return [one.reply(done, entry_id) for (entry_id, one), done in zip(ready.items(), sent, strict=True)]


async def receive_message(engine: Engine, call: Call) -> ReceiveReply:
    """Receive some messages, waiting for the first if asked to."""
    given = call.body
    at = of_url(given.queue_url)
    most = 1 if given.max_number_of_messages is None else given.max_number_of_messages
    if not 1 <= most <= call.limits.batch:
        raise invalid("MaxNumberOfMessages", most, f"Must be between 1 and {call.limits.batch}, if provided.")
    wait_ms = milliseconds("WaitTimeSeconds", given.wait_time_seconds, (0, call.limits.wait_s))
    lease_ms = milliseconds("VisibilityTimeout", given.visibility_timeout, VISIBILITY_SECONDS)
    deliveries = await engine.receive(call.by, at.queue, at.tag, most, wait_ms, lease_ms)
    if not deliveries:
        return ReceiveReply()
    system = frozenset((*(given.attribute_names or ()), *(given.message_system_attribute_names or ())))
    names = given.message_attribute_names
    return ReceiveReply(messages=[_message(delivery, system, names, call.place) for delivery in deliveries])


def _message(delivery: Delivery, system: frozenset[str], names: list[str] | None, place: Place) -> MessageReply:
    message, letter = delivery.message, _dead_letter(delivery)
    text = _text(message.body)
    shown = attributes.wanted(message.attributes, names) if names else {}
    return MessageReply(
        message_id=delivery.id if letter is None else letter.original_id,
        receipt_handle=delivery.handle,
        md5_of_body=digests.of_body(text.encode()),
        body=text,
        attributes=_system_attributes(delivery, system, place) or None if system else None,
        md5_of_message_attributes=digests.of_attributes(attributes.triples(shown)) if shown else None,
        message_attributes={name: attributes.attribute_reply(one) for name, one in shown.items()} or None,
    )


def _dead_letter(delivery: Delivery) -> Origin | None:
    """Where a dead letter came from: it keeps id and time of its first send, and its receive count goes on. None of other messages."""
    return delivery.message.origin if attributes.SOURCE_QUEUE in delivery.message.attributes else None


def _text(body: bytes) -> str:
    """A body as text; bytes that a native sender gave and that are no text of SQS, in base64."""
    try:
        text = body.decode()
        if attributes.legal(text):
            return text
    except UnicodeDecodeError:
        pass
    return b64encode(body).decode()


def _system_attributes(delivery: Delivery, asked: frozenset[str], place: Place) -> dict[str, str]:
    """The system attributes asked for that the message has."""
    message: Mapping[str, Attribute] = delivery.message.attributes
    letter = _dead_letter(delivery)
    sent_at_ms = delivery.sent_at_ms if letter is None else letter.original_sent_at_ms
    received = delivery.receive_count if letter is None else letter.receive_count + delivery.receive_count
    source = attributes.stored_text(message, attributes.SOURCE_QUEUE)
    values = {
        "SenderId": delivery.message.sender or "anonymous",
        "SentTimestamp": str(sent_at_ms),
        "ApproximateReceiveCount": str(received),
        "ApproximateFirstReceiveTimestamp": str(delivery.first_received_at_ms),
        attributes.TRACE_HEADER: attributes.trace_header(message),
        "DeadLetterQueueSourceArn": None if source is None else place.arn(source),
    }
    everything = "All" in asked
    return {name: value for name, value in values.items() if value is not None and (everything or name in asked)}
