"""Whether this worker may call the state: only on the server that is named, and only until then.

Who names a server, and how that is confirmed, is the engine's (`engine/recovery/redis_lives.py`).
Time is compared at each call and again at its reply, so a process that stood still finds out before
it acts and before it answers.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

from state.clock.boot import boot_s
from state.errors import StateLost, StateUnavailable

CLOSED = "closed"


class Fence:
    """Of one connection. Until it is set up, as in tests and tools, it lets everything through."""

    def __init__(self) -> None:
        self.life: str | None = None
        self.until = math.inf
        # How often the answers of calls that were under way became worthless.
        self.turn = 0
        self._confirm: Callable[[], Awaitable[None]] | None = None
        # Hears of each change, at once: the plane has a connection of its own.
        self.changed: Callable[[], None] = _nobody

    def tell(self, changed: Callable[[], None]) -> None:
        """From now on `changed` hears of each change, at once."""
        self.changed = changed

    def guard(self, confirm: Callable[[], Awaitable[None]]) -> None:
        """Lets nothing through from now on but what is opened. `confirm` extends the time, or
        closes the fence, or raises StateUnavailable.
        """
        self._confirm = confirm
        self.close()

    def open(self, life: str, until: float) -> None:
        """Lets calls to this server through until then."""
        self.life, self.until = life, until
        self.changed()

    def extend(self, until: float) -> None:
        """A later end, while it is open."""
        self.until = max(self.until, until)
        self.changed()

    def close(self) -> None:
        """Lets nothing through, nor the answer of a call that is under way."""
        self.life, self.until = CLOSED, 0.0
        self.turn += 1
        self.changed()

    def admits(self, life: str) -> bool:
        """Whether a call to this server may begin now."""
        return self.life is None or (self.life == life and boot_s() < self.until)

    async def enter(self, name: str, life: str) -> None:
        """For a call that is not admitted: returns when it may begin after all. Raises StateLost
        when its server is not the named one, StateUnavailable when nobody can say.
        """
        if self.life == life and self._confirm is not None:
            await self._confirm()
        if not self.admits(life):
            if self.life == life:
                raise StateUnavailable(f"{name}: Kafka did not confirm in time that this Redis is the one in use")
            raise StateLost(f"{name}: this Redis is not the one that the control topic names")

    async def leave(self, name: str, life: str, turn: int) -> None:
        """For the reply of a call that began in `turn`. Raises StateUnavailable: the outcome is
        unknown, for the state may live elsewhere by now.
        """
        if turn == self.turn and not self.admits(life):
            await self.enter(name, life)
        if turn != self.turn:
            raise StateUnavailable(f"{name}: another Redis came into use before this one answered")


def _nobody() -> None:
    """Hears of nothing."""
