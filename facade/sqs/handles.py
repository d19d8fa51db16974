"""DeleteMessage, ChangeMessageVisibility and their batches: what the holder of a receipt handle may do.

In a FIFO queue a handle whose lease is over does nothing: what it holds may be with somebody else, and what follows must wait.
The engine refuses a whole request for one malformed handle, or one lease that is too long in all; SQS fails that entry alone, so such
a batch is asked again one by one.
Neighbours: `errors` says what becomes of a status. This module must not know HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError, InvalidHandle, InvalidValue
from engine.verbs import EntryResult, ExtendEntry
from facade.sqs.batches import by_id, failed
from facade.sqs.call import Call
from facade.sqs.errors import CHANGED, DELETED, INVALID_HANDLE, Shape, SqsError, missing, sqs_error
from facade.sqs.limits import HANDLE_CHARACTERS, VISIBILITY_SECONDS
from facade.sqs.messages import milliseconds
from facade.sqs.names import of_url
from facade.sqs.replies import DONE, DoneBatchReply, DoneReply, FailedReply, Output
from facade.sqs.shapes import HandleEntry, OfHandle
from schemas.vocabulary import EntryStatus

if TYPE_CHECKING:
    from engine.engine import Engine

_Ask = Callable[[Sequence[ExtendEntry]], Coroutine[Any, Any, list[EntryResult]]]
_Outcomes = Mapping[str, Shape | None]


def _deleting(engine: Engine, call: Call) -> _Ask:
    queue = of_url(call.body.queue_url).queue

    async def ask(entries: Sequence[ExtendEntry]) -> list[EntryResult]:
        fifo = (await engine.record(queue)).fifo
        results = await engine.ack(call.by, queue, [entry.handle for entry in entries], late=not fifo)
        return await _told_apart(engine, call, queue, results) if fifo else results

    return ask


async def _told_apart(engine: Engine, call: Call, queue: str, results: list[EntryResult]) -> list[EntryResult]:
    """Results of a FIFO queue's deletes: a handle that did its work before stays stale, one received again since is lapsed."""
    stale = [result.handle for result in results if result.status == EntryStatus.STALE]
    if not stale:
        return results
    settled = dict(zip(stale, await engine.settled(call.by, queue, stale), strict=True))
    return [result if settled.get(result.handle, True) else EntryResult(result.handle, EntryStatus.LAPSED) for result in results]


def _changing(engine: Engine, call: Call) -> _Ask:
    queue = of_url(call.body.queue_url).queue

    async def ask(entries: Sequence[ExtendEntry]) -> list[EntryResult]:
        fifo = (await engine.record(queue)).fifo
        return await engine.extend(call.by, queue, list(entries), late=not fifo)

    return ask


def _wish(given: HandleEntry | OfHandle, outcomes: _Outcomes) -> ExtendEntry:
    """What an entry asks for; of a delete only the handle counts. Raises SqsError."""
    if not given.receipt_handle:
        raise missing("ReceiptHandle")
    if len(given.receipt_handle) > HANDLE_CHARACTERS:
        raise SqsError(INVALID_HANDLE, f"A receipt handle may have {HANDLE_CHARACTERS} characters.")
    if outcomes is DELETED:
        return ExtendEntry(given.receipt_handle, 0)
    if given.visibility_timeout is None:
        raise missing("VisibilityTimeout")
    lease_ms = milliseconds("VisibilityTimeout", given.visibility_timeout, VISIBILITY_SECONDS) or 0
    return ExtendEntry(given.receipt_handle, lease_ms, VISIBILITY_SECONDS[1])


def _refusal(result: EntryResult, outcomes: _Outcomes) -> SqsError | None:
    shape = outcomes[result.status]
    if shape is None:
        return None
    gone = "Message does not exist or is not available for visibility timeout change."
    reason = "The receipt handle has expired." if result.status == EntryStatus.LAPSED else gone
    return SqsError(shape, f"Value {result.handle[:100]} for parameter ReceiptHandle is invalid. Reason: {reason}")


async def _one(ask: _Ask, given: OfHandle, outcomes: _Outcomes) -> Output:
    (result,) = await ask([_wish(given, outcomes)])
    refusal = _refusal(result, outcomes)
    if refusal is not None:
        raise refusal
    return DONE


async def _many(ask: _Ask, given: Mapping[str, HandleEntry], outcomes: _Outcomes) -> DoneBatchReply:
    wishes: dict[str, ExtendEntry] = {}
    bad: list[FailedReply] = []
    for entry_id, entry in given.items():
        try:
            wishes[entry_id] = _wish(entry, outcomes)
        except SqsError as error:
            bad.append(failed(entry_id, error))
    # The engine wants each handle once; in SQS it may stand twice, and then the last word holds.
    refusals = await _ask_all(ask, {wish.handle: wish for wish in wishes.values()}, outcomes) if wishes else {}
    good: list[DoneReply] = []
    for entry_id, wish in wishes.items():
        refusal = refusals[wish.handle]
        if refusal is None:
            good.append(DoneReply(id=entry_id))
        else:
            bad.append(failed(entry_id, refusal))
    return DoneBatchReply(successful=good or None, failed=bad or None)


async def _ask_all(ask: _Ask, wishes: Mapping[str, ExtendEntry], outcomes: _Outcomes) -> dict[str, SqsError | None]:
    """What becomes of each handle; None = done."""
    try:
        results = await ask(list(wishes.values()))
    except (InvalidHandle, InvalidValue):
        return {handle: await _alone(ask, wish, outcomes) for handle, wish in wishes.items()}
    return {result.handle: _refusal(result, outcomes) for result in results}


async def _alone(ask: _Ask, wish: ExtendEntry, outcomes: _Outcomes) -> SqsError | None:
    try:
        (result,) = await ask([wish])
    except EngineError as error:
        return sqs_error(error)
    return _refusal(result, outcomes)


async def delete_message(engine: Engine, call: Call) -> Output:
    """Settle a message. A handle that is no longer good is silently fine."""
    return await _one(_deleting(engine, call), call.body, DELETED)


async def delete_message_batch(engine: Engine, call: Call) -> DoneBatchReply:
    """Settle some messages."""
    return await _many(_deleting(engine, call), by_id(call.body.entries, call.limits.batch), DELETED)


async def change_message_visibility(engine: Engine, call: Call) -> Output:
    """Give a lease a new length from now; 0 = receivable at once."""
    return await _one(_changing(engine, call), call.body, CHANGED)


async def change_message_visibility_batch(engine: Engine, call: Call) -> DoneBatchReply:
    """Give some leases new lengths."""
    return await _many(_changing(engine, call), by_id(call.body.entries, call.limits.batch), CHANGED)
