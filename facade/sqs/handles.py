"""DeleteMessage, ChangeMessageVisibility and their batches: what the holder of a receipt handle may
do.

In a FIFO queue a handle whose lease is over does nothing: what it holds may be with somebody else,
and what follows must wait. The engine refuses a whole request for one malformed handle, or one
lease that is too long in all; SQS fails that entry alone, so such a batch is asked again one by
one. Neighbours: `errors` says what becomes of a status. This module must not know HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from engine.errors import EngineError, InvalidHandle, InvalidValue
from engine.shapes import EntryResult, ExtendEntry
from facade.sqs.batches import by_id, failed
from facade.sqs.call import Call
from facade.sqs.errors import CHANGED, DELETED, INVALID_HANDLE, Shape, SqsError, missing, sqs_error
from facade.sqs.limits import HANDLE_CHARACTERS, VISIBILITY_SECONDS
from facade.sqs.messages import milliseconds
from facade.sqs.replies import DONE, DoneBatchReply, DoneReply, FailedReply, Output
from facade.sqs.shapes import HandleEntry, OfHandle
from facade.sqs.words import handle_text, value_text
from schemas.vocabulary import EntryStatus

if TYPE_CHECKING:
    from engine.engine import Engine

_Wish = TypeVar("_Wish")  # what the engine gets for a handle: of a delete the handle itself
_Ask = Callable[[list[_Wish]], Coroutine[Any, Any, list[EntryResult]]]
_Read = Callable[[HandleEntry | OfHandle], _Wish]
_Outcomes = Mapping[str, Shape | None]
_NOT_IN_FLIGHT = "Message does not exist or is not available for visibility timeout change."


def _deleting(engine: Engine, call: Call) -> _Ask[str]:
    queue = call.place.of_url(call.body.queue_url).queue

    async def ask(handles: list[str]) -> list[EntryResult]:
        fifo = (engine.known(queue) or await engine.record(queue)).fifo
        results = await engine.ack(call.by, queue, handles, late=not fifo)
        return await _told_apart(engine, call, queue, results) if fifo else results

    return ask


async def _told_apart(engine: Engine, call: Call, queue: str, results: list[EntryResult]) -> list[EntryResult]:
    """Results of a FIFO queue's deletes: a handle that did its work before stays stale, one
    received again since is lapsed.
    """
    stale = [result.handle for result in results if result.status == EntryStatus.STALE]
    if not stale:
        return results
    settled = dict(zip(stale, await engine.settled(call.by, queue, stale), strict=True))
    return [result if settled.get(result.handle, True) else EntryResult(result.handle, EntryStatus.LAPSED) for result in results]


def _changing(engine: Engine, call: Call) -> _Ask[ExtendEntry]:
    queue = call.place.of_url(call.body.queue_url).queue

    async def ask(entries: list[ExtendEntry]) -> list[EntryResult]:
        fifo = (engine.known(queue) or await engine.record(queue)).fifo
        return await engine.extend(call.by, queue, entries, late=not fifo)

    return ask


def _handle(given: HandleEntry | OfHandle) -> str:
    """The handle of an entry. Raises SqsError."""
    handle = given.receipt_handle
    if not handle:
        raise missing("ReceiptHandle")
    if len(handle) > HANDLE_CHARACTERS:
        raise SqsError(INVALID_HANDLE, handle_text(handle))
    return handle


def _extension(given: HandleEntry | OfHandle) -> ExtendEntry:
    """What an entry asks for. Raises SqsError."""
    handle = _handle(given)
    if given.visibility_timeout is None:
        raise missing("VisibilityTimeout")
    lease_ms = milliseconds("VisibilityTimeout", given.visibility_timeout, VISIBILITY_SECONDS) or 0
    return ExtendEntry(handle, lease_ms, VISIBILITY_SECONDS[1])


def _refusal(result: EntryResult, outcomes: _Outcomes) -> SqsError | None:
    shape = outcomes[result.status]
    if shape is None:
        return None
    if shape is INVALID_HANDLE:
        return SqsError(shape, handle_text(result.handle))
    expired = result.status == EntryStatus.LAPSED and outcomes is DELETED
    reason = "The receipt handle has expired." if expired else _NOT_IN_FLIGHT
    return SqsError(shape, value_text("ReceiptHandle", result.handle, reason))


async def _one(ask: _Ask[_Wish], wish: _Wish, outcomes: _Outcomes) -> Output:
    (result,) = await ask([wish])
    refusal = _refusal(result, outcomes)
    if refusal is not None:
        raise refusal
    return DONE


async def _many(ask: _Ask[_Wish], read: _Read[_Wish], given: Mapping[str, HandleEntry], outcomes: _Outcomes) -> DoneBatchReply:
    # The engine wants each handle once; in SQS it may stand twice, and then the last word holds.
    wishes: dict[str, _Wish] = {}
    handles: dict[str, str] = {}
    bad: list[FailedReply] = []
    for entry_id, entry in given.items():
        try:
            wish = read(entry)
        except SqsError as error:
            bad.append(failed(entry_id, error))
            continue
        handles[entry_id] = handle = entry.receipt_handle or ""
        wishes[handle] = wish
    refusals = await _ask_all(ask, wishes, outcomes) if wishes else {}
    if refusals:
        bad += [failed(entry_id, refusals[handle]) for entry_id, handle in handles.items() if handle in refusals]
        handles = {entry_id: handle for entry_id, handle in handles.items() if handle not in refusals}
    return DoneBatchReply(list(map(DoneReply, handles)) or None, bad or None)


async def _ask_all(ask: _Ask[_Wish], wishes: Mapping[str, _Wish], outcomes: _Outcomes) -> dict[str, SqsError]:
    """What is refused, by handle."""
    try:
        results = await ask(list(wishes.values()))
    except (InvalidHandle, InvalidValue):
        alone = [(handle, await _alone(ask, wish, outcomes)) for handle, wish in wishes.items()]
    else:
        alone = [(result.handle, _refusal(result, outcomes)) for result in results if outcomes[result.status] is not None]
    return {handle: refusal for handle, refusal in alone if refusal is not None}


async def _alone(ask: _Ask[_Wish], wish: _Wish, outcomes: _Outcomes) -> SqsError | None:
    try:
        (result,) = await ask([wish])
    except EngineError as error:
        return sqs_error(error)
    return _refusal(result, outcomes)


async def delete_message(engine: Engine, call: Call) -> Output:
    """Settle a message. A handle that is no longer good is silently fine."""
    return await _one(_deleting(engine, call), _handle(call.body), DELETED)


async def delete_message_batch(engine: Engine, call: Call) -> DoneBatchReply:
    """Settle some messages."""
    return await _many(_deleting(engine, call), _handle, by_id("DeleteMessageBatch", call.body.entries, call.limits.batch), DELETED)


async def change_message_visibility(engine: Engine, call: Call) -> Output:
    """Give a lease a new length from now; 0 = receivable at once."""
    return await _one(_changing(engine, call), _extension(call.body), CHANGED)


async def change_message_visibility_batch(engine: Engine, call: Call) -> DoneBatchReply:
    """Give some leases new lengths."""
    entries = by_id("ChangeMessageVisibilityBatch", call.body.entries, call.limits.batch)
    return await _many(_changing(engine, call), _extension, entries, CHANGED)
