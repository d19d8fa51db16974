"""What is told of moves, and what callers are shown of dead letters: of those that a redrive task
came to, or would.
"""

from __future__ import annotations

from msgspec import Struct

from engine.shapes import Sent
from schemas.records import Message


class Letter(Struct, frozen=True):
    """What came, or would come, of a dead letter: `outcome` is a LetterOutcome word. `queue`: where
    it goes; `copy`: its id there.
    """

    id: str
    outcome: str
    queue: str | None = None
    copy: str | None = None


class Letters(Struct, frozen=True):
    """A page of what came of dead letters, in the order in which their task came to them; `next`
    continues it, None = there are no more so far. `complete`: the task has kept that of each.
    """

    letters: list[Letter]
    next: str | None
    complete: bool


class Preview(Struct, frozen=True):
    """What a redrive task would do with queue `source`: how many letters it would move, and how
    many not, by LetterOutcome words; the first `letters` of them. `scanned`, `cut`: as of a page.
    """

    source: str
    moved: int
    failed: dict[str, int]
    letters: list[Letter]
    scanned: int
    cut: str


class Copied(Struct, frozen=True):
    """A copy of a message that `queue` has; `removed`: whether the message was deleted, None = not
    known.
    """

    sent: Sent
    queue: str
    removed: bool | None


class Move(Struct, frozen=True, gc=False):
    """A message that was moved, or could not be. `kind`: what it is settled as, dead or moved; `id`
    at its source; `reason` why it died, `task` which one moves it, `error` why it could not be
    moved; each may be empty. `began_ns` since 1970.
    """

    kind: str
    source: str
    tag: str
    target: str
    id: str
    message: Message
    reason: str
    task: str
    began_ns: int
    error: str
