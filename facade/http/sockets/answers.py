"""Answers that wait to be given to the native library, as native/src/answers.rs reads them.

What is answered in one turn of the event loop goes together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

DONE: Final = 0
OTHER: Final = 1
CARRIED: Final = 2
PASSED: Final = 3

# What is done besides whole answers, in DONE.
WRITE, START, END, LAST, CUT, PAUSE, RESUME, CONTINUE = range(8)

_encode = msgspec.msgpack.Encoder().encode


class Answers:
    """Belongs to one event loop. `soon` is called when there is something to take."""

    def __init__(self, soon: Callable[[], None]) -> None:
        self._soon = soon
        self._groups: tuple[list[Any], ...] = tuple([] for _ in range(PASSED + 1))
        # (connection, status line and headers, body)
        self.other: list[tuple[int, bytes, bytes]] = self._groups[OTHER]
        # The same, with messages, of which we are told if they could not be given
        self.carried: list[tuple[int, bytes, bytes]] = self._groups[CARRIED]
        # Whose request the app is to answer
        self.passed: list[int] = self._groups[PASSED]
        # (deed, connection, bytes), in order, before whole answers
        self.done: list[tuple[int, int, bytes]] = self._groups[DONE]
        self._waits = False

    def soon(self) -> None:
        """Something was added: it will be taken in this turn of the loop."""
        if not self._waits:
            self._waits = True
            self._soon()

    def take(self) -> bytes:
        """The batch; empty when there is nothing."""
        self._waits = False
        groups = [(kind, some) for kind, some in enumerate(self._groups) if some]
        if not groups:
            return b""
        batch = _encode(groups)
        for _, some in groups:
            some.clear()
        return batch
