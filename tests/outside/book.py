"""The history of a run as the clients of this driver write it: each operation in one line, when it
has ended.

Outcomes of an operation: `done`, `refused` (4xx: nothing may have changed), `unknown` (503, no
whole answer: both are possible), `unreached` (no connection: nothing was asked), `broken` (500:
never right).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.judge.history import Line, Recorder

DONE, REFUSED, UNKNOWN, UNREACHED, BROKEN = "done", "refused", "unknown", "unreached", "broken"
# What an outcome is in a history: of an operation, and of one of its messages or handles.
TYPES = {DONE: "ok", REFUSED: "fail", UNREACHED: "fail", UNKNOWN: "info", BROKEN: "info"}
STATUSES = {**TYPES, BROKEN: "broken"}


class Book(Recorder):
    """Shared by all threads of a run, whose times are seconds since it was opened."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path
        self._began = time.monotonic_ns()

    def now(self) -> float:
        """Seconds since the book was opened."""
        return (time.monotonic_ns() - self._began) / 1e9

    def op(self, verb: str, t0: float, outcome: str, **fields: Any) -> None:
        """Writes an operation that has just ended."""
        began = self._began + int(t0 * 1e9)
        self.write(Line(TYPES[outcome], time.monotonic_ns(), began=began, verb=verb, **fields))

    def note(self, verb: str, queue: str = "", **args: Any) -> None:
        """Writes something that is no operation."""
        self.write(Line("note", time.monotonic_ns(), verb=verb, queue=queue, args=args))


def body_of(token: str) -> str:
    """The body that a token stands for: it says its token, and has a length of its own."""
    head = f"{token}|"
    return head + head * (sum(token.encode()) * 7 % 40)


def token_of(body: str) -> tuple[str, bool]:
    """The token of a body, and whether the body is exactly what was sent."""
    token = body.split("|", 1)[0]
    return token, body == body_of(token)
