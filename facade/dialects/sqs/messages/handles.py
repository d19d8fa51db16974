"""DeleteMessage, ChangeMessageVisibility and their batches: what the holder of a receipt handle may
do.

In a FIFO queue a handle whose lease is over does nothing: what it holds may be with somebody else,
and what follows must wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from engine.shapes import EntryResult, ExtendEntry, Late
from facade.dialects.sqs.messages.batches import by_id, failed
from facade.dialects.sqs.messages.messages import milliseconds
from facade.dialects.sqs.queues.call import Call
from facade.dialects.sqs.wire.errors import CHANGED, DELETED, INVALID_HANDLE, Shape, SqsError, missing, sqs_error
from facade.dialects.sqs.wire.limits import HANDLE_CHARACTERS, VISIBILITY_SECONDS
from facade.dialects.sqs.wire.replies import DONE, DoneBatchReply, DoneReply, FailedReply, Output
from facade.dialects.sqs.wire.shapes import ChangeMessageVisibility, DeleteEntry, DeleteMessage, VisibilityEntry
from facade.dialects.sqs.wire.words import handle_text, value_text
from schemas.vocabulary import EntryStatus

if TYPE_CHECKING:
    from engine.engine import Engine

_T = TypeVar("_T")
_E = TypeVar("_E", bound=DeleteEntry)
_Outcomes = Mapping[str, Shape | None]
_NOT_IN_FLIGHT = "Message does not exist or is not available for visibility timeout change."


def _delete(engine: Engine, call: Call, handles: list[str]) -> Awaitable[list[EntryResult]]:
    return engine.messages.ack(call.by, call.place.of_url(call.body.queue_url).queue, handles, late=Late.BY_QUEUE)


def _change(engine: Engine, call: Call, entries: list[ExtendEntry]) -> Awaitable[list[EntryResult]]:
    return engine.messages.extend(call.by, call.place.of_url(call.body.queue_url).queue, entries, late=Late.BY_QUEUE)


def _handle(given: DeleteEntry | DeleteMessage) -> str:
    """The handle of an entry. Raises SqsError."""
    handle = given.receipt_handle
    if not handle:
        raise missing("ReceiptHandle")
    if len(handle) > HANDLE_CHARACTERS:
        raise SqsError(INVALID_HANDLE, handle_text(handle))
    return handle


def _extension(given: VisibilityEntry | ChangeMessageVisibility) -> ExtendEntry:
    """What an entry asks for. Raises SqsError."""
    handle = _handle(given)
    if given.visibility_timeout is None:
        raise missing("VisibilityTimeout")
    lease_ms = milliseconds("VisibilityTimeout", given.visibility_timeout, VISIBILITY_SECONDS) or 0
    return ExtendEntry(handle, lease_ms, VISIBILITY_SECONDS[1])


def _read(given: Mapping[str, _E], read: Callable[[_E], _T]) -> tuple[dict[str, _T], list[FailedReply]]:
    """What the entries of a batch ask for, by their ids; and those that can't be read."""
    wanted: dict[str, _T] = {}
    bad: list[FailedReply] = []
    for entry_id, entry in given.items():
        try:
            wanted[entry_id] = read(entry)
        except SqsError as error:
            bad.append(failed(entry_id, error))
    return wanted, bad


def _refusal(result: EntryResult, shape: Shape, outcomes: _Outcomes) -> SqsError:
    if result.error is not None:
        return sqs_error(result.error)
    expired = result.status == EntryStatus.LAPSED and outcomes is DELETED
    reason = "The receipt handle has expired." if expired else _NOT_IN_FLIGHT
    return SqsError(shape, value_text("ReceiptHandle", result.handle, reason))


def _one(results: list[EntryResult], outcomes: _Outcomes) -> Output:
    shape = outcomes[results[0].status]
    if shape is not None:
        raise _refusal(results[0], shape, outcomes)
    return DONE


def _many(
    entries: Iterable[str], results: list[EntryResult], bad: list[FailedReply], outcomes: _Outcomes
) -> DoneBatchReply:
    """The answer to a batch; `results` are those of the ids `entries`, and `bad` has failed
    before.
    """
    done: list[DoneReply] = []
    for entry_id, result in zip(entries, results, strict=True):
        shape = outcomes[result.status]
        if shape is None:
            done.append(DoneReply(entry_id))
        else:
            bad.append(failed(entry_id, _refusal(result, shape, outcomes)))
    return DoneBatchReply(done or None, bad or None)


async def delete_message(engine: Engine, call: Call) -> Output:
    """Settle a message. A handle that is no longer good is silently fine."""
    return _one(await _delete(engine, call, [_handle(call.body)]), DELETED)


async def delete_message_batch(engine: Engine, call: Call) -> DoneBatchReply:
    """Settle some messages."""
    given = by_id("DeleteMessageBatch", call.body.entries, call.limits.batch)
    handles, bad = _read(given, _handle)
    results = await _delete(engine, call, list(handles.values())) if handles else []
    return _many(handles, results, bad, DELETED)


async def change_message_visibility(engine: Engine, call: Call) -> Output:
    """Give a lease a new length from now; 0 = receivable at once."""
    return _one(await _change(engine, call, [_extension(call.body)]), CHANGED)


async def change_message_visibility_batch(engine: Engine, call: Call) -> DoneBatchReply:
    """Give some leases new lengths. Of two entries with one handle the last counts."""
    given = by_id("ChangeMessageVisibilityBatch", call.body.entries, call.limits.batch)
    entries, bad = _read(given, _extension)
    results = await _change(engine, call, list(entries.values())) if entries else []
    return _many(entries, results, bad, CHANGED)
