"""peekMessage, deletePeekMessage and its batch: messages by id, whatever their state."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from engine.errors import EngineError
from facade.dialects.emq.messages.messages import check_ids
from facade.dialects.emq.messages.replies import exception_of, failure, peeked
from facade.dialects.emq.queues.call import Call, EmqError, checked, out_of_range
from facade.dialects.emq.queues.names import record_of
from facade.dialects.emq.wire.errors import ErrorCode, code_of
from facade.dialects.emq.wire.structs import message as wire
from schemas.records import QueueRecord

if TYPE_CHECKING:
    from engine.engine import Engine

MOST: Final = 200
_IDS: Final = (1, 1000)


async def peek_message(engine: Engine, call: Call) -> list[wire.PeekMessageResponse]:
    """Look at messages by their ids or handles, or at those of a partition that were sent in a span
    of time.
    """
    given: wire.PeekMessageRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    arg = given.peek_message_arg
    named = [
        one
        for one in (arg.receipt_handle, arg.receipt_handle_list, arg.partition_time_interval_and_max_num)
        if one is not None
    ]
    if len(named) != 1:
        raise EmqError(ErrorCode.BAD_REQUEST, f"peekMessageArg has exactly one of its fields, given {len(named)}")
    if arg.partition_time_interval_and_max_num is not None:
        return await _of_partition(engine, call, record, arg.partition_time_interval_and_max_num)
    if arg.receipt_handle is not None:
        return [
            peeked(
                engine, record, await engine.messages.peek(call.by, record.name, arg.receipt_handle, None, held=True)
            )
        ]
    ids = arg.receipt_handle_list or []
    if not _IDS[0] <= len(ids) <= _IDS[1]:
        raise out_of_range("the length of receiptHandleList", len(ids), *_IDS)
    return [await _one(engine, call, record, one) for one in ids]


async def _one(engine: Engine, call: Call, record: QueueRecord, id: str) -> wire.PeekMessageResponse:
    try:
        return peeked(engine, record, await engine.messages.peek(call.by, record.name, id, None, held=True))
    except EngineError as error:
        return wire.PeekMessageResponse(message_id=id, e=exception_of(_of_entry(error)))


async def _of_partition(
    engine: Engine, call: Call, record: QueueRecord, given: wire.PartitionTimeIntervalAndMaxNum
) -> list[wire.PeekMessageResponse]:
    number = given.partition_id
    partition = (
        random.randrange(record.partitions)
        if number is None
        else checked("partitionId", number, 0, record.partitions - 1)
    )
    most = checked("maxNum", given.max_num, 1, MOST) or MOST
    page = await engine.messages.query(
        call.by,
        record.name,
        None,
        given.start_timestamp,
        given.end_timestamp,
        None,
        None,
        most,
        None,
        partition=partition,
        held=True,
    )
    return [peeked(engine, record, found) for found in page.messages]


async def delete_peek_message(engine: Engine, call: Call) -> None:
    """Delete a message that was never received, by its id, under all tags."""
    given: wire.DeletePeekMessageRequest = call.body
    await engine.messages.delete_message(
        call.by, (await record_of(engine, given.queue_name, call.by)).name, given.receipt_handle, unreceived=True
    )


async def delete_peek_message_batch(engine: Engine, call: Call) -> wire.DeletePeekMessageBatchResponse:
    """Delete some messages by their ids."""
    given: wire.DeletePeekMessageBatchRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    ids = [entry.receipt_handle for entry in given.delete_peek_message_batch_entry_list]
    check_ids("receiptHandle", ids)
    done: list[str] = []
    wrong: list[wire.MessageBatchErrorEntry] = []
    for one in ids:
        try:
            await engine.messages.delete_message(call.by, record.name, one, unreceived=True)
            done.append(one)
        except EngineError as error:
            wrong.append(failure(one, _of_entry(error)))
    return wire.DeletePeekMessageBatchResponse(successful=done or None, failed=wrong or None)


def _of_entry(error: EngineError) -> EmqError:
    """What has become of one of several. Raises `error` again if it is of the whole request."""
    code = code_of(type(error))
    if code in (ErrorCode.PERMISSION_DENIED, ErrorCode.QUEUE_NOT_EXIST):
        raise error
    return EmqError(code, str(error))
