"""DeleteMessage, BatchDeleteMessage, ChangeMessageVisibility: what the holder of a receipt handle
may do.

A handle is for one use, and only until its message is visible again (reference/mns.md 5, 1 to 7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import MessageDue, MessageNotFound
from engine.shapes import EntryResult, ExtendEntry, Late
from facade.dialects.mns.messages.delayed import bring_forward, message_of, revoke
from facade.dialects.mns.queues.call import DONE, Answer, Call
from facade.dialects.mns.queues.names import address
from facade.dialects.mns.wire.errors import (
    INVALID_ARGUMENT,
    MALFORMED_XML,
    MISSING_HANDLE,
    MISSING_VISIBILITY,
    NO_MESSAGE,
    MnsError,
    mns_error,
)
from facade.dialects.mns.wire.query import number
from schemas.vocabulary import EntryStatus

if TYPE_CHECKING:
    from engine.engine import Engine

_LEASE_SECONDS: Final = (1, 43_200)
_BATCH: Final = 16
# Some handles did nothing: the status that the service has for it.
_PARTIAL: Final = 404


def _refusal(result: EntryResult) -> MnsError | None:
    """Why a handle did nothing; None = it did."""
    if result.error is not None:
        return mns_error(result.error)
    return None if result.status == EntryStatus.OK else MnsError(NO_MESSAGE, "Message not exist.")


def _handle(call: Call) -> str:
    handle = call.query.get("receipthandle")
    if not handle:
        raise MnsError(MISSING_HANDLE, "ReceiptHandle is required.")
    return handle


async def delete_message(engine: Engine, call: Call) -> Answer:
    """Settle a message under the tag of its handle."""
    (refused,) = await _settle(engine, call, [_handle(call)])
    if refused is not None:
        raise refused
    return DONE


async def _settle(engine: Engine, call: Call, handles: list[str]) -> list[MnsError | None]:
    """Settles the messages of handles, and takes back those whose handles their sends gave: for
    each why it did nothing, None = it did.
    """
    ids = {handle: found for handle in handles if (found := message_of(handle)) is not None}
    received = [handle for handle in handles if handle not in ids]
    results = (
        await engine.messages.ack(call.by, address(call.name).queue, received, late=Late.NEVER) if received else []
    )
    refused = dict(zip(received, map(_refusal, results), strict=True))
    for handle, message_id in ids.items():
        try:
            await revoke(engine, call, message_id)
            refused[handle] = None
        except (MessageNotFound, MessageDue) as error:
            refused[handle] = mns_error(error)
    return [refused[handle] for handle in handles]


async def batch_delete_message(engine: Engine, call: Call) -> Answer:
    """Settle some messages; what fails is told, the others are settled."""
    body = call.body
    if body is None or body.name != "ReceiptHandles":
        raise MnsError(MALFORMED_XML if body is not None else MISSING_HANDLE, "the body must be ReceiptHandles")
    handles = [child.text.strip() for child in body.children if child.name == "ReceiptHandle"]
    if not 1 <= len(handles) <= _BATCH:
        raise MnsError(
            INVALID_ARGUMENT, f"The number of receipt handles should between 1 and {_BATCH}, given {len(handles)}"
        )
    told = zip(handles, await _settle(engine, call, handles), strict=True)
    refused = [(handle, error) for handle, error in told if error is not None]
    if not refused:
        return DONE
    items = [
        ("Error", (("ErrorCode", error.code.word), ("ErrorMessage", error.message), ("ReceiptHandle", handle)))
        for handle, error in refused
    ]
    return Answer(_PARTIAL, "Errors", items)


async def change_message_visibility(engine: Engine, call: Call) -> Answer:
    """Give a lease a new length from now; the handle in the answer takes the place of the old
    one.
    """
    handle, text = _handle(call), call.query.get("visibilitytimeout")
    if not text:
        raise MnsError(MISSING_VISIBILITY, "VisibilityTimeout is required.")
    lease_s = number("VisibilityTimeout", text, *_LEASE_SECONDS)
    if (message_id := message_of(handle)) is not None:
        handle, due_ms = await bring_forward(engine, call, message_id, lease_s * 1000)
        return Answer(200, "ChangeVisibility", (("ReceiptHandle", handle), ("NextVisibleTime", due_ms)))
    entry = ExtendEntry(handle, lease_s * 1000, one_use=True)
    (result,) = await engine.messages.extend(call.by, address(call.name).queue, [entry], late=Late.NEVER)
    refused = _refusal(result)
    if refused is not None:
        raise refused
    return Answer(
        200, "ChangeVisibility", (("ReceiptHandle", result.next_handle), ("NextVisibleTime", result.next_visible_at_ms))
    )
