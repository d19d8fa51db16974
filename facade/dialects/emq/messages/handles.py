"""deleteMessage, changeMessageVisibilitySeconds, deadMessage and their batches: what the holder of
a receipt handle may do.

A handle whose delivery is over changes nothing and is no error; one that this queue has not given
out is (reference/emq.md 3.6). Batches answer entry by entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from engine.shapes import EntryResult, ExtendEntry, Late
from facade.dialects.emq.messages.messages import check_ids
from facade.dialects.emq.messages.replies import failure
from facade.dialects.emq.queues.call import Call, EmqError, checked
from facade.dialects.emq.queues.names import record_of
from facade.dialects.emq.wire.errors import code_of
from facade.dialects.emq.wire.structs import message as wire

if TYPE_CHECKING:
    from engine.engine import Engine

_LEASE_SECONDS: Final = (0, 43_200)
_Answer = TypeVar("_Answer", bound=wire.HandleBatchResponse)


def _raise_wrong(results: Sequence[EntryResult]) -> None:
    for result in results:
        if result.error is not None:
            raise result.error


def _answer(make: type[_Answer], results: Sequence[EntryResult]) -> _Answer:
    done = [result.handle for result in results if result.error is None]
    wrong = [(result.handle, result.error) for result in results if result.error is not None]
    failed = [failure(handle, EmqError(code_of(type(error)), str(error))) for handle, error in wrong]
    return make(successful=done or None, failed=failed or None)


def _lease_ms(seconds: int) -> int:
    return (checked("invisibilitySeconds", seconds, *_LEASE_SECONDS) or 0) * 1000


async def delete_message(engine: Engine, call: Call) -> None:
    """Settle a message under the tag of its handle."""
    given: wire.DeleteMessageRequest = call.body
    _raise_wrong(
        await engine.messages.ack(
            call.by,
            (await record_of(engine, given.queue_name, call.by)).name,
            [given.receipt_handle],
            late=Late.BY_QUEUE,
        )
    )


async def delete_message_batch(engine: Engine, call: Call) -> wire.DeleteMessageBatchResponse:
    """Settle some messages."""
    given: wire.DeleteMessageBatchRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    handles = [entry.receipt_handle for entry in given.delete_message_batch_request_entry_list]
    check_ids("receiptHandle", handles)
    return _answer(
        wire.DeleteMessageBatchResponse, await engine.messages.ack(call.by, record.name, handles, late=Late.BY_QUEUE)
    )


async def change_visibility(engine: Engine, call: Call) -> None:
    """Give a lease a new length from now; 0 = receivable at once."""
    given: wire.ChangeMessageVisibilityRequest = call.body
    entry = ExtendEntry(given.receipt_handle, _lease_ms(given.invisibility_seconds))
    _raise_wrong(
        await engine.messages.extend(
            call.by, (await record_of(engine, given.queue_name, call.by)).name, [entry], late=Late.BY_QUEUE
        )
    )


async def change_visibility_batch(engine: Engine, call: Call) -> wire.ChangeMessageVisibilityBatchResponse:
    """Give some leases new lengths. A length that is out of range fails its entry alone."""
    given: wire.ChangeMessageVisibilityBatchRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    asked = given.change_message_visibility_request_entry_list
    check_ids("receiptHandle", [entry.receipt_handle for entry in asked])
    entries: list[ExtendEntry] = []
    wrong: list[wire.MessageBatchErrorEntry] = []
    for entry in asked:
        try:
            entries.append(ExtendEntry(entry.receipt_handle, _lease_ms(entry.invisibility_seconds)))
        except EmqError as error:
            wrong.append(failure(entry.receipt_handle, error))
    results = await engine.messages.extend(call.by, record.name, entries, late=Late.BY_QUEUE) if entries else []
    answer = _answer(wire.ChangeMessageVisibilityBatchResponse, results)
    return wire.ChangeMessageVisibilityBatchResponse(
        successful=answer.successful, failed=[*(answer.failed or ()), *wrong] or None
    )


async def dead_message(engine: Engine, call: Call) -> None:
    """Send a message to the dead-letter queue now."""
    given: wire.DeadMessageRequest = call.body
    _raise_wrong(
        await engine.messages.kill(
            call.by, (await record_of(engine, given.queue_name, call.by)).name, [given.receipt_handle]
        )
    )


async def dead_message_batch(engine: Engine, call: Call) -> wire.DeadMessageBatchResponse:
    """Send some messages to the dead-letter queue now."""
    given: wire.DeadMessageBatchRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    handles = [entry.receipt_handle for entry in given.dead_message_batch_request_entry_list]
    check_ids("receiptHandle", handles)
    return _answer(wire.DeadMessageBatchResponse, await engine.messages.kill(call.by, record.name, handles))
