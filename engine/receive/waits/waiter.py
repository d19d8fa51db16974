"""One receive that waits: what it wants, and how it ends."""

from __future__ import annotations

import asyncio

from engine.errors import LogUnavailable, NotAuthorised
from engine.rules.rights import NOBODY, Asker
from engine.shapes import Delivery
from runtime import deadline


def late_receive() -> LogUnavailable:
    """What a receive is answered for which something took too long."""
    return LogUnavailable(
        f"the receive took {deadline.MESSAGES_S:g} s longer than it was to wait: nothing is leased for it"
    )


class Waiter:
    """A receive that waits for up to `max` messages. `new`: nobody has looked for it yet, so it may
    still be told that nobody can.

    `busy`: something is being leased for it, or read: it waits for that, also when its time is over
    (`late`), but not for longer than MESSAGES_S. Else who waits for less time than that takes would
    never get anything.
    """

    __slots__ = ("asker", "busy", "end", "late", "lease_ms", "max", "new", "served")

    def __init__(
        self, max: int, lease_ms: int | None, served: asyncio.Future[list[Delivery]], asker: Asker = NOBODY
    ) -> None:
        self.asker = asker
        self.max = max
        self.lease_ms = lease_ms
        self.served = served
        self.new = True
        self.busy = self.late = False
        self.end: asyncio.TimerHandle | None = None

    def give_up(self) -> None:
        """Its time is over: it is told that there is nothing, unless it has been served, or is
        about to be.
        """
        self.late = True
        if self.served.done():
            return
        if not self.busy:
            self.served.set_result([])
        elif self.end is None:
            self.end = asyncio.get_running_loop().call_later(deadline.MESSAGES_S, self.refuse)

    def refuse(self) -> None:
        """It has waited for what is under way for as long as it may. What that brings goes to those
        behind it, or back.
        """
        if not self.served.done():
            self.served.set_exception(late_receive())

    def ask_again(self) -> None:
        """Rights have changed: it ends if it has lost its own."""
        if not self.served.done():
            try:
                self.asker.check()
            except NotAuthorised as error:
                self.served.set_exception(error)

    def rest(self) -> None:
        """Nothing is under way for it any more."""
        self.busy = False
        if self.end is not None:
            self.end.cancel()
            self.end = None
        if self.late:
            self.give_up()
