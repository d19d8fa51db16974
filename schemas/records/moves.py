"""What the journal says of a move: the `reason` of kinds moved and dead.

It is the address of the copy at its destination, `incarnation/partition/offset`, and for a redrive
task its id before that.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class LetterOutcome(StrEnum):
    """What came of a dead letter that a redrive task has come to."""

    MOVED = "moved"  # The queue that it was to go to has it.
    LEASED = "leased"  # It could not be moved: a consumer had it.
    NO_DESTINATION = "no_destination"  # It could not be moved: its queue is gone, or the task may not send there.
    REFUSED = "refused"  # It could not be moved: its queue does not take it.
    GONE = "gone"  # It was chosen, and somebody else has settled it, or Kafka has it no more.
    SKIPPED = "skipped"  # It was chosen, and is not such a letter as the task moves, or can't be read.


class Move(NamedTuple):
    """`task`: the id of the task that made it, empty = a dead letter's. `copy`: where it went."""

    task: str
    copy: str


def move_reason(task: str, copy: str) -> str:
    """The reason of an entry."""
    return f"{task} {copy}" if task else copy


def read_move(reason: str) -> Move:
    """What `move_reason` was given. An entry of before has a task alone, or nothing."""
    task, _, copy = reason.rpartition(" ")
    return Move(copy, "") if not task and "/" not in copy else Move(task, copy)
