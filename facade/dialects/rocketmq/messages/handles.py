"""AckMessage, ChangeInvisibleDuration, ForwardMessageToDeadLetterQueue: what the holder of a
receipt handle may do.

A handle counts until its lease has run out; a message that is settled already may be acked again
(reference/rocketmq.md, part 3).
"""

from __future__ import annotations

from typing import Final

from engine.shapes import EntryResult, ExtendEntry, Late
from facade.dialects.rocketmq.clients.clients import Clients
from facade.dialects.rocketmq.messages.receive import duration_ms
from facade.dialects.rocketmq.queues.call import Call
from facade.dialects.rocketmq.queues.names import group_of, record_of, topic_of
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError, check_number, ok, status_of
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code
from schemas.vocabulary import EntryStatus

_MOST_LEASE_MS: Final = 43_200_000


async def ack_message(call: Call, clients: Clients) -> pb.AckMessageResponse:
    """Settles messages for the group of their handles, each by itself."""
    given: pb.AckMessageRequest = call.body
    topic, _ = topic_of(given.topic), group_of(given.group)
    if not given.entries:
        raise RocketError(Code.BAD_REQUEST, "the request has no entry")
    check_number(given.entries)
    record = await record_of(call.engine, call.by, topic)
    handles = [entry.receipt_handle for entry in given.entries]
    results = await call.engine.messages.ack(call.by, record.name, handles, late=Late.NEVER)
    clients.renewals.forget(call.by, call.client_id, handles)
    entries = [
        pb.AckMessageResultEntry(
            message_id=entry.message_id, receipt_handle=entry.receipt_handle, status=_acked(result)
        )
        for entry, result in zip(given.entries, results, strict=True)
    ]
    codes = {entry.status.code for entry in entries}
    top = (
        entries[0].status
        if len(codes) == 1
        else pb.Status(code=Code.MULTIPLE_RESULTS, message="the entries have different results")
    )
    return pb.AckMessageResponse(status=top, entries=entries)


def _acked(result: EntryResult) -> pb.Status:
    """STALE = the message is settled, by this handle or another way."""
    if result.error is not None:
        return status_of(result.error)
    return status_of(_over()) if result.status == EntryStatus.LAPSED else ok()


async def change_invisible_duration(call: Call, clients: Clients) -> pb.ChangeInvisibleDurationResponse:
    """Gives a lease a new length from now; it is no longer renewed. The handle stays as it is."""
    given: pb.ChangeInvisibleDurationRequest = call.body
    topic, _ = topic_of(given.topic), group_of(given.group)
    lease_ms = duration_ms(given.invisible_duration)
    if not 0 <= lease_ms <= _MOST_LEASE_MS:
        about = f"the invisible duration is 0 to {_MOST_LEASE_MS // 1000} s"
        raise RocketError(Code.ILLEGAL_INVISIBLE_TIME, f"{about}, given {lease_ms / 1000:g} s")
    record = await record_of(call.engine, call.by, topic)
    await clients.renewals.take(call.by, call.client_id, given.receipt_handle)
    (result,) = await call.engine.messages.extend(
        call.by, record.name, [ExtendEntry(given.receipt_handle, lease_ms)], late=Late.NEVER
    )
    _check_held(result)
    return pb.ChangeInvisibleDurationResponse(status=ok(), receipt_handle=given.receipt_handle)


async def forward_to_dead_letter_queue(call: Call, clients: Clients) -> pb.ForwardMessageToDeadLetterQueueResponse:
    """Sends a message to the dead-letter queue now."""
    given: pb.ForwardMessageToDeadLetterQueueRequest = call.body
    topic, _ = topic_of(given.topic), group_of(given.group)
    record = await record_of(call.engine, call.by, topic)
    (result,) = await call.engine.messages.kill(call.by, record.name, [given.receipt_handle])
    clients.renewals.forget(call.by, call.client_id, [given.receipt_handle])
    _check_held(result)
    return pb.ForwardMessageToDeadLetterQueueResponse(status=ok())


def _check_held(result: EntryResult) -> None:
    """Raises RocketError for a handle whose delivery is over, EngineError for one that is none."""
    if result.error is not None:
        raise result.error
    if result.status != EntryStatus.OK:
        raise _over()


def _over() -> RocketError:
    return RocketError(
        Code.INVALID_RECEIPT_HANDLE,
        "the delivery of this handle is over: its lease has run out, or the message is settled",
    )
