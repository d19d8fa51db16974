"""Messages that came by the commit of a transaction, and which of them count.

A worker that was stopped while it was about to append them may do so long after another has
finished its work. So such a message says when its attempt began, by the log's own clock, and does
not count when it was appended much later: whoever takes up a commit begins an attempt of its own.
The rule depends on the record alone, so every reader comes to the same. Pure.
"""

from __future__ import annotations

from schemas.records import Message
from schemas.vocabulary import COMMIT_SPAN_MS, Reason


def is_late(message: Message, appended_at_ms: int) -> bool:
    """Whether a committed message came too late to count."""
    origin = message.origin
    return origin is not None and origin.reason == Reason.COMMITTED and appended_at_ms - origin.moved_at_ms > COMMIT_SPAN_MS
