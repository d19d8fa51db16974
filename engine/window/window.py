"""How every verb calls the part of a queue that Redis holds: lost state is rebuilt, then the call
is made again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias, TypeVar

from engine.catalog.catalog import Catalog
from engine.errors import Overloaded, QueueRenewed, Rebuilding, StoreUnavailable
from engine.rules.queue import Queue
from runtime.cancel import before
from runtime.deadline import state_until
from runtime.signals import Signal
from state.errors import OutboxFull, StateError, StateLost, StateUnavailable
from state.upkeep import UpkeepScripts

T = TypeVar("T")
# Returns when the journal has entry `seq` of a partition: queue, partition, seq, until (loop time).
# Raises LogUnavailable.
Journaled: TypeAlias = Callable[[Queue, int, int, float], Awaitable[None]]

# A dying or claimed message waits so long for its mover; then another takes over.
MOVER_LEASE_MS = 30_000
# So long a worker may hold what its plane has leased before anybody asked for it.
AHEAD_S: Final = 0.04


class Recovery(Protocol):
    """Brings lost state back from Kafka; `engine.recovery` does."""

    async def recover(self, queue: Queue, until: float) -> None:
        """Returns when the queue's state serves again. Raises Rebuilding at `until` (loop time),
        QueueNotFound, QueueRenewed.
        """

    def recover_soon(self, queue: Queue) -> None:
        """As `recover`, beside the caller."""


class Window:
    """Calls of the state layer. Any number of tasks may call. Whoever uses a unit says so by
    `used`, so that somebody owns it.
    """

    def __init__(self, catalog: Catalog, recovery: Recovery) -> None:
        self.used: Signal[[Queue, int]] = Signal()
        self._catalog = catalog
        self._recovery = recovery

    async def call(
        self,
        queue: Queue,
        call: Callable[[int], Awaitable[T]],
        renewed: T | None = None,
        *,
        until: float | None = None,
    ) -> T:
        """Runs `call(generation)`; state found lost is rebuilt first, then the call is made again.
        `renewed` is the answer for a queue that began a new life meanwhile, None = QueueRenewed.
        `until` (loop time): as long lost state is waited for, and a repeated call is cancelled
        then; None = STATE_S, and no call is cancelled, for it may lease something.

        Raises StoreUnavailable (outcome unknown), Rebuilding (it takes longer than the caller
        should wait), Overloaded (the journal is far behind; nothing was changed).
        """
        end = until
        for tries in range(3):
            try:
                if tries == 0 or until is None:
                    return await call(self._catalog.generation)
                return await before(until, call(self._catalog.generation), _late)
            except StateLost:
                end = state_until() if end is None else end
                try:
                    await self._recovery.recover(queue, end)
                except QueueRenewed:
                    if renewed is None:
                        raise
                    return renewed
            except OutboxFull:
                raise Overloaded(f"the journal of queue {queue.name!r} is behind: is Kafka taking writes?") from None
            except StateError as error:
                raise StoreUnavailable(str(error)) from error
        raise Rebuilding(f"the state of queue {queue.name!r} was lost again while it was rebuilt")


async def reach_journal(
    window: Window, upkeep: UpkeepScripts, wait: Journaled, at: tuple[Queue, int], until: float
) -> None:
    """Returns when the journal has all that was done to a unit (queue, partition) before the call.
    Raises LogUnavailable at `until` (loop time), and as `Window.call`.
    """
    queue, partition = at
    unit = queue.units[partition]
    last = await window.call(queue, lambda g: upkeep.last_seq(unit))
    base, _ = await window.call(queue, lambda g: upkeep.drained_seq(unit))
    if last > base:
        await wait(queue, partition, last, until)


def _late() -> StateUnavailable:
    return StateUnavailable("Redis did not answer in time after a rebuild")
