"""sendMessage, sendMessageBatch, receiveMessage."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.rules.fifo import ALONE
from engine.shapes import SendEntry, Sent
from facade.dialect import Carried
from facade.dialects.emq.messages.replies import failure, received
from facade.dialects.emq.queues import filters
from facade.dialects.emq.queues.call import Call, EmqError, checked
from facade.dialects.emq.queues.names import record_of
from facade.dialects.emq.wire.errors import ErrorCode
from facade.dialects.emq.wire.structs import message as wire
from schemas.filters import Filter
from schemas.records import Attribute, QueueRecord

if TYPE_CHECKING:
    from engine.engine import Engine

# Ranges: reference/emq.md 1.2 and 1.5.
_DELAY_SECONDS: Final = (0, 900)
_LEASE_SECONDS: Final = (2, 43_200)
_PRIORITIES: Final = (1, 16)
_MOST: Final = (1, 100)
_WAIT_SECONDS: Final = (0, 20)
_NO_ATTRIBUTES: Final[Mapping[str, Attribute]] = {}


def _entry(
    record: QueueRecord, given: wire.SendMessageRequest | wire.SendMessageBatchRequestEntry, group: str | None
) -> SendEntry:
    """What the engine gets; `group` = that of a topic queue. Raises EmqError."""
    if not given.message_body:
        raise EmqError(ErrorCode.MESSAGE_BODY_MISSING, "a message needs a body that is not empty")
    delay_s = checked("delaySeconds", given.delay_seconds, *_DELAY_SECONDS)
    lease_s = checked("invisibilitySeconds", given.invisibility_seconds, *_LEASE_SECONDS)
    stored = {}
    for name, value in (given.message_attributes or {}).items():
        stored[name] = filters.attribute_of(name, value)
    return SendEntry(
        given.message_body.encode(),
        stored,
        None if delay_s is None else delay_s * 1000,
        None if lease_s is None else lease_s * 1000,
        group=group,
        dedup_id=secrets.token_hex(8) if record.fifo else None,
        priority=checked("priority", given.priority, *_PRIORITIES),
    )


def _group(record: QueueRecord, topic: str | None) -> str | None:
    """The group of a message in a topic queue: its topic; None = it is alone. Other queues have no
    topics.
    """
    if not record.fifo or not topic:
        return None
    if topic.startswith(ALONE):
        raise EmqError(ErrorCode.INVALID_ATTRIBUTE, f"a topic does not begin with {ALONE!r}, given {topic[:100]!r}")
    return topic


async def send_message(engine: Engine, call: Call) -> wire.SendMessageResponse:
    """Send one message."""
    given: wire.SendMessageRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    entry = _entry(record, given, _group(record, given.topic))
    (sent,) = await engine.messages.send(call.by, record.name, [entry])
    return wire.SendMessageResponse(
        message_id=sent.id, body_length=len(entry.body), body_md5=sent.body_md5, send_timestamp=sent.sent_at_ms
    )


async def send_message_batch(engine: Engine, call: Call) -> wire.SendMessageBatchResponse:
    """Send some messages, all or none: when one is wrong, all are told of as failed."""
    given: wire.SendMessageBatchRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    asked = given.send_message_batch_request_entry_list
    check_ids("entryId", [entry.entry_id for entry in asked])
    group = _group(record, given.topic)
    entries: dict[str, SendEntry] = {}
    wrong: dict[str, EmqError] = {}
    for entry in asked:
        try:
            entries[entry.entry_id] = _entry(record, entry, group)
        except EmqError as error:
            wrong[entry.entry_id] = error
    if wrong:
        other = EmqError(
            ErrorCode.INVALID_ACTION, f"entry {next(iter(wrong))[:100]!r} is wrong, so nothing of the batch was stored"
        )
        return wire.SendMessageBatchResponse(
            failed=[failure(entry.entry_id, wrong.get(entry.entry_id, other)) for entry in asked]
        )
    sent = await engine.messages.send(call.by, record.name, list(entries.values()))
    return wire.SendMessageBatchResponse(successful=[_sent(*one) for one in zip(entries.items(), sent, strict=True)])


def _sent(asked: tuple[str, SendEntry], sent: Sent) -> wire.SendMessageBatchResponseEntry:
    entry_id, entry = asked
    return wire.SendMessageBatchResponseEntry(
        entry_id=entry_id,
        message_id=sent.id,
        body_length=len(entry.body),
        body_md5=sent.body_md5,
        send_timestamp=sent.sent_at_ms,
    )


def check_ids(name: str, ids: Sequence[str]) -> None:
    """The ids or handles of a batch: 1 to 100, none empty, none twice. Raises EmqError."""
    if not ids:
        raise EmqError(ErrorCode.BAD_REQUEST, f"the batch is empty: it needs an entry with {name}")
    checked("the number of entries", len(ids), *_MOST)
    if not all(ids):
        raise EmqError(ErrorCode.BAD_REQUEST, f"{name} of an entry is empty")
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise EmqError(ErrorCode.INDEX_NOT_UNIQUE, f"two entries have the {name} {twice[:100]!r}")


async def receive_message(engine: Engine, call: Call) -> Carried | list[wire.ReceiveMessageResponse]:
    """Receive messages under a tag, waiting for them if asked to."""
    given: wire.ReceiveMessageRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    conditions = filters.single(engine, given.attribute_name, given.attribute_value)
    wanted = Filter(conditions) if conditions else None
    most = checked("maxReceiveMessageNumber", given.max_receive_message_number, *_MOST)
    wait_s = checked("maxReceiveMessageWaitSeconds", given.max_receive_message_wait_seconds, *_WAIT_SECONDS)
    wait_ms = None if wait_s is None else wait_s * 1000
    deliveries = await engine.messages.receive(
        call.by, record.name, given.tag_name or None, most, wait_ms, None, filter=wanted
    )
    if not deliveries:
        return []
    unsent = partial(engine.messages.undelivered, deliveries)
    try:
        return Carried([received(engine, record, delivery) for delivery in deliveries], unsent)
    except Exception:
        unsent()
        raise
