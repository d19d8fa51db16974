"""What the journal says of a move."""

from __future__ import annotations

import pytest

from schemas.identity import MessageId
from schemas.records.moves import Move, move_reason, read_move


@pytest.mark.parametrize("task", ["", "6f2b7c1e-0000-4000-8000-000000000000"])
def test_a_reason_has_the_task_and_the_copy(task: str) -> None:
    copy = MessageId("0123456789ab", 3, 42).address

    assert read_move(move_reason(task, copy)) == Move(task, copy)
    assert MessageId.of_address(copy) == MessageId("0123456789ab", 3, 42)


@pytest.mark.parametrize(
    "text", ["", "0123456789ab/0", "0123456789ab/4096/0", f"0123456789ab/0/{2**40}", "0123456789AB/0/0"]
)
def test_what_no_message_can_have_is_no_address(text: str) -> None:
    assert MessageId.of_address(text) is None


def test_a_reason_of_before_has_no_copy() -> None:
    assert read_move("6f2b7c1e-0000-4000-8000-000000000000") == Move("6f2b7c1e-0000-4000-8000-000000000000", "")
    assert read_move("") == Move("", "")
