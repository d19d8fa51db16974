"""Which copies of a commit count: those appended soon after their attempt began."""

from __future__ import annotations

import pytest

from engine.window.batches.message_log import is_late
from schemas.records import Message, Origin
from schemas.vocabulary import COMMIT_SPAN_MS, Reason

AT = 1_767_225_600_000


def copy(reason: str) -> Message:
    return Message(b"m", origin=Origin("t/0", "", "t", "q", "", reason, 0, 0, AT, AT))


@pytest.mark.parametrize(
    ("after_ms", "late"), [(-5, False), (0, False), (COMMIT_SPAN_MS, False), (COMMIT_SPAN_MS + 1, True)]
)
def test_a_copy_is_late_when_it_came_more_than_30_seconds_after_its_attempt_began(after_ms: int, late: bool) -> None:
    assert is_late(copy(Reason.COMMITTED), AT + after_ms) is late


@pytest.mark.parametrize(
    "message", [Message(b"m"), copy(Reason.KILLED), copy("")], ids=["sent", "dead letter", "redriven"]
)
def test_what_came_otherwise_is_never_late(message: Message) -> None:
    assert not is_late(message, AT + 10 * COMMIT_SPAN_MS)
