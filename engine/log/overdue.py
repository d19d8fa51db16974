"""Work that threads do for the event loop, and the interpreter's lock, which they need to end it.

A thread that wants the lock asks for it when it has waited in vain for the switch interval of
Python, 5 ms, and begins to wait anew whenever the lock was free for a moment and was taken again. A
loop that always has something to do frees it for some microseconds in each turn, so a thread may
wait for 200 ms (docs/lab/floods.md). While work is overdue the interval is short. Neighbours:
`appender` and `log` say what they wait for. This module must not know what that is.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Hashable
from contextvars import Context
from typing import Final

# Kafka stores a record in less than that when it is in good health.
OVERDUE_S: Final = 0.002
SHORT_S: Final = 10e-6
# Not what is set when it is made short: another log of the process may have done that.
USUAL_S: Final = sys.getswitchinterval()


class Overdue:
    """Belongs to one event loop; the interval is that of the process."""

    def __init__(self) -> None:
        self._since: dict[Hashable, float] = {}  # oldest first
        self._timer: asyncio.TimerHandle | None = None
        self._context = Context()  # the timer is nobody's: who began work may be long gone
        self._is_short = False

    def began(self, work: Hashable) -> None:
        """A thread is to do it. Each `work` ends before it may begin again."""
        loop = asyncio.get_running_loop()
        self._since[work] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(OVERDUE_S, self._look, context=self._context)

    def ended(self, work: Hashable) -> None:
        """Its result is here. Of work that did not begin nothing happens."""
        self._since.pop(work, None)

    def stop(self) -> None:
        """Nothing is waited for any more. Idempotent."""
        self._since.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._offer(is_often=False)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        oldest = next(iter(self._since.values()), None)
        self._offer(is_often=oldest is not None and loop.time() - oldest >= OVERDUE_S)
        self._timer = loop.call_later(OVERDUE_S, self._look, context=self._context) if self._since else None

    def _offer(self, *, is_often: bool) -> None:
        if is_often is not self._is_short:
            self._is_short = is_often
            sys.setswitchinterval(SHORT_S if is_often else USUAL_S)
