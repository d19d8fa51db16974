"""SendMessage, SendMessageBatch, ReceiveMessage."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, Final

from engine.errors import EngineError, MessageTooLarge, TooManyInFlight
from engine.rules.limits import message_bytes
from engine.shapes import Delivery, SendEntry, Sent
from facade.dialect import Carried
from facade.dialects.sqs.messages import attributes
from facade.dialects.sqs.messages.batches import by_id, failed
from facade.dialects.sqs.queues import fifo
from facade.dialects.sqs.queues.call import Call
from facade.dialects.sqs.queues.names import Place
from facade.dialects.sqs.wire.digests import of_attributes, of_body
from facade.dialects.sqs.wire.errors import (
    BATCH_TOO_LONG,
    INVALID_CONTENTS,
    SqsError,
    between,
    invalid,
    missing,
    sqs_error,
)
from facade.dialects.sqs.wire.limits import ATTEMPT_CHARACTERS, VISIBILITY_SECONDS
from facade.dialects.sqs.wire.replies import FailedReply, MessageReply, ReceiveReply, SentBatchReply, SentReply
from facade.dialects.sqs.wire.shapes import Outgoing, OutgoingEntry
from schemas.records import Attribute, Origin, QueueRecord
from schemas.vocabulary import NATIVE_SENDER, SOURCE_QUEUE_ATTRIBUTE

if TYPE_CHECKING:
    from engine.engine import Engine

_CHARACTERS: Final = (
    "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | "
    "#xE000 to #xFFFD | #x10000 to #x10FFFF"
)
_NOTHING: Final[frozenset[str]] = frozenset()


def milliseconds(parameter: str, given: int | None, allowed: tuple[int, int]) -> int | None:
    """Seconds of a request as milliseconds; None stays None. Raises SqsError when out of range."""
    if given is None:
        return None
    if not allowed[0] <= given <= allowed[1]:
        raise between(parameter, given, *allowed)
    return given * 1000


def _entry(given: Outgoing, call: Call, record: QueueRecord) -> SendEntry:
    """What the engine gets: a message that has passed every check of this dialect. Raises SqsError,
    for the message alone.
    """
    text, delay_s = given.message_body, given.delay_seconds
    if not text:
        raise missing("MessageBody")
    body = attributes.encoded(text)
    if body is None:
        raise SqsError(INVALID_CONTENTS, _CHARACTERS)
    if delay_s is not None and not 0 <= delay_s <= call.limits.delay_s:
        raise invalid("DelaySeconds", delay_s, f"DelaySeconds must be >= 0 and <= {call.limits.delay_s}.")
    delay_ms = None if delay_s is None else delay_s * 1000
    user, system = given.message_attributes, given.message_system_attributes
    stored = {**attributes.incoming(user), **attributes.incoming_system(system)} if user or system else {}
    if call.trace and not system:
        stored |= attributes.traced(call.trace)
    group, dedup_id = given.message_group_id, given.message_deduplication_id
    if group is None and dedup_id is None and not record.fifo:
        return SendEntry(body, stored, delay_ms)
    return fifo.fitted(record, SendEntry(body, stored, delay_ms, group=group, dedup_id=dedup_id))


def _reply(entry: SendEntry, sent: Sent, id: str | None = None) -> SentReply:
    """What the sender is told; of a trace header too that came as one of HTTP."""
    stored = entry.attributes
    user, system = (
        (of_attributes(attributes.of_user(stored)), of_attributes(attributes.of_system(stored)))
        if stored
        else (None, None)
    )
    return SentReply(sent.id, sent.body_md5, user, system, sent.sequence_number or None, id)


async def send_message(engine: Engine, call: Call) -> SentReply:
    """Send one message. To a tag: the queue gets it, so every tag that wants it does."""
    queue = call.place.of_url(call.body.queue_url).queue
    entry = _entry(call.body, call, engine.queues.known(queue, call.by) or await engine.queues.record(queue, call.by))
    (sent,) = await engine.messages.send(call.by, queue, [entry])
    return _reply(entry, sent)


async def send_message_batch(engine: Engine, call: Call) -> SentBatchReply:
    """Send some messages: those that are right together, all or none; the others are told of as
    failed.

    Only groups in different partitions are sent apart: of them some may fail.
    """
    at = call.place.of_url(call.body.queue_url)
    entries: Mapping[str, OutgoingEntry] = by_id("SendMessageBatch", call.body.entries, call.limits.batch)
    # That there is no such queue is an error of the request, whatever the entries are.
    record = engine.queues.known(at.queue, call.by) or await engine.queues.record(at.queue, call.by)
    fifo.check_batch(record, entries)
    ready, bad, size = _sorted(entries, call, record)
    if size > call.limits.batch_bytes:
        about = f"cannot be longer than {call.limits.batch_bytes} bytes. You have sent {size} bytes."
        raise SqsError(BATCH_TOO_LONG, f"Batch requests {about}")
    parts = fifo.parts(record, ready) if ready else []
    if len(parts) == 1:
        good = await _send(engine, call, at.queue, ready)
    else:
        good = await _send_parts(engine, call, at.queue, parts, bad)
    return SentBatchReply(successful=good or None, failed=bad or None)


def _sorted(
    entries: Mapping[str, OutgoingEntry], call: Call, record: QueueRecord
) -> tuple[dict[str, SendEntry], list[FailedReply], int]:
    """The entries that may be sent, those that fail alone, and the bytes of all that could be
    read.
    """
    ready: dict[str, SendEntry] = {}
    bad: list[FailedReply] = []
    total, limit = 0, record.max_message_bytes
    for entry_id, given in entries.items():
        try:
            entry = _entry(given, call, record)
        except SqsError as error:
            bad.append(failed(entry_id, error))
            continue
        size = message_bytes(entry) if entry.attributes else len(entry.body)
        total += size
        if size <= limit:
            ready[entry_id] = entry
        else:
            bad.append(failed(entry_id, sqs_error(MessageTooLarge(field="body", limit=limit, given=size))))
    return ready, bad, total


async def _send(engine: Engine, call: Call, queue: str, ready: Mapping[str, SendEntry]) -> list[SentReply]:
    entries = list(ready.values())
    sent = await engine.messages.send(call.by, queue, entries)
    return list(starmap(_reply, zip(entries, sent, ready, strict=True)))


async def _send_parts(
    engine: Engine, call: Call, queue: str, parts: Sequence[Mapping[str, SendEntry]], bad: list[FailedReply]
) -> list[SentReply]:
    """Sends the parts side by side; what fails is added to `bad`. When all fail, the request
    does.
    """
    done = await asyncio.gather(*(_send(engine, call, queue, part) for part in parts), return_exceptions=True)
    good: list[SentReply] = []
    for part, outcome in zip(parts, done, strict=True):
        if not isinstance(outcome, BaseException):
            good += outcome
        elif isinstance(outcome, EngineError) and any(isinstance(one, list) for one in done):
            bad += [failed(entry_id, sqs_error(outcome)) for entry_id in part]
        else:
            raise outcome
    return good


async def receive_message(engine: Engine, call: Call) -> ReceiveReply | Carried:
    """Receive some messages, waiting for the first if asked to."""
    given = call.body
    at = call.place.of_url(given.queue_url)
    most = 1 if given.max_number_of_messages is None else given.max_number_of_messages
    if not 1 <= most <= call.limits.batch:
        raise invalid("MaxNumberOfMessages", most, f"Must be between 1 and {call.limits.batch}, if provided.")
    wait_ms = milliseconds("WaitTimeSeconds", given.wait_time_seconds, (0, call.limits.wait_s))
    lease_ms = milliseconds("VisibilityTimeout", given.visibility_timeout, VISIBILITY_SECONDS)
    attempt = given.receive_request_attempt_id
    if attempt is not None and not 1 <= len(attempt) <= ATTEMPT_CHARACTERS:
        about = f"can only include alphanumeric and punctuation characters. 1 to {ATTEMPT_CHARACTERS} in length."
        raise invalid("ReceiveRequestAttemptId", attempt, f"ReceiveRequestAttemptId {about}")
    try:
        deliveries = await engine.messages.receive(call.by, at.queue, at.tag, most, wait_ms, lease_ms, attempt)
    except TooManyInFlight as error:
        if error.waited or error.fifo:  # AWS tells only who does not wait, and only of standard queues
            return ReceiveReply()
        raise
    if not deliveries:
        return ReceiveReply()
    asked, more = given.attribute_names, given.message_system_attribute_names
    system = frozenset((*(asked or ()), *(more or ()))) if asked or more else _NOTHING
    asks, place = given.message_attribute_names, call.place
    names = attributes.Wanted(asks) if asks else None
    unsent = partial(engine.messages.undelivered, deliveries)
    try:
        return Carried(ReceiveReply([_message(delivery, system, names, place) for delivery in deliveries]), unsent)
    except Exception:
        unsent()
        raise


def _message(delivery: Delivery, system: frozenset[str], names: attributes.Wanted | None, place: Place) -> MessageReply:
    body, stored = delivery.message.body, delivery.message.attributes
    text = attributes.decoded(body)
    digest = delivery.body_md5
    if text is None:  # bytes that a native sender gave and that are no text of SQS
        body = b64encode(body)
        text, digest = body.decode(), ""
    digest = digest or of_body(body)
    if not stored and not system:
        return MessageReply(delivery.id, delivery.handle, digest, text)
    shown = names.of(stored) if names is not None and stored else {}
    return MessageReply(
        shown_id(delivery),
        delivery.handle,
        digest,
        text,
        _system_attributes(delivery, system, place) or None if system else None,
        of_attributes(attributes.triples(shown)) if shown else None,
        {name: attributes.attribute_reply(one) for name, one in shown.items()} or None,
    )


def shown_id(delivery: Delivery) -> str:
    """The id that a receiver is told."""
    dead_letter = _dead_letter(delivery)
    return delivery.id if dead_letter is None else dead_letter.original_id


def _dead_letter(delivery: Delivery) -> Origin | None:
    """Where a dead letter came from: it keeps the id of its first send, and its receive count
    goes on. None of other messages.

    It keeps the time too, but in a FIFO queue; there the id stands for that of its deduplication as
    well.
    """
    return delivery.message.origin if SOURCE_QUEUE_ATTRIBUTE in delivery.message.attributes else None


def _system_attributes(delivery: Delivery, asked: frozenset[str], place: Place) -> dict[str, str]:
    """The system attributes asked for that the message has."""
    message: Mapping[str, Attribute] = delivery.message.attributes
    dead_letter = _dead_letter(delivery)
    in_fifo = bool(delivery.sequence_number)
    sent_at_ms = delivery.sent_at_ms if dead_letter is None or in_fifo else dead_letter.original_sent_at_ms
    received = delivery.receive_count if dead_letter is None else dead_letter.receive_count + delivery.receive_count
    source = attributes.stored_text(message, SOURCE_QUEUE_ATTRIBUTE)
    values = {
        "SenderId": delivery.message.sender or NATIVE_SENDER,
        "SentTimestamp": str(sent_at_ms),
        "ApproximateReceiveCount": str(received),
        "ApproximateFirstReceiveTimestamp": str(delivery.first_received_at_ms),
        attributes.TRACE_HEADER: attributes.trace_header(message),
        "DeadLetterQueueSourceArn": None if source is None else place.arn(source),
        "MessageGroupId": delivery.message.group,
        "MessageDeduplicationId": delivery.message.dedup_id
        if dead_letter is None
        else dead_letter.original_id
        if in_fifo
        else None,
        "SequenceNumber": delivery.sequence_number or None,
    }
    everything = "All" in asked
    return {name: value for name, value in values.items() if value is not None and (everything or name in asked)}
