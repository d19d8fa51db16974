"""Handles that the send of a delayed message gives: with one the message is taken back, or becomes
due at another time, until it is due.

Such a handle names the message and when it was to be due, and says no secret: whoever uses it needs
the right to cancel or to reschedule.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.shapes import SendEntry, Sent
from facade.dialects.mns.queues.call import Call
from facade.dialects.mns.queues.names import address
from schemas.records import QueueRecord

if TYPE_CHECKING:
    from engine.engine import Engine

_FORM: Final = re.compile(r"D[0-9a-f]{1,14}-(?P<id>[0-9a-f-]{36})")


def handle_of(record: QueueRecord, entry: SendEntry, sent: Sent) -> str | None:
    """The handle of a message that was sent; None = it is not delayed."""
    delay_ms = record.delay_ms if entry.delay_ms is None else entry.delay_ms
    return _text(sent.sent_at_ms + delay_ms, sent.id) if delay_ms else None


def _text(due_ms: int, id: str) -> str:
    return f"D{due_ms:x}-{id}"


def message_of(handle: str) -> str | None:
    """The id of the message whose send gave a handle; None = a receive has given it, or nobody."""
    found = _FORM.fullmatch(handle)
    return None if found is None else found["id"]


async def revoke(engine: Engine, call: Call, id: str) -> None:
    """Takes a message back before it is due. Raises MessageNotFound, MessageDue."""
    await engine.messages.cancel(call.by, address(call.name).queue, id)


async def bring_forward(engine: Engine, call: Call, id: str, after_ms: int) -> tuple[str, int]:
    """Has a message be due so long from now: its next handle, and when that is. Raises as `revoke`
    does.
    """
    due_ms = engine.queues.kafka_ms() + after_ms
    await engine.messages.reschedule(call.by, address(call.name).queue, id, due_ms)
    return _text(due_ms, id), due_ms
