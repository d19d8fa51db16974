"""Acks that the plane has made in queues with `durable_acks`: it answers them when the journal has
their entries.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, LogUnavailable
from engine.plane import library as lib
from engine.plane.plane import Opened, Plane
from engine.rules.queue import Queue
from runtime.deadline import journal_until


class DurableAcks:
    """`wait_journaled(queue, partition, seq, until)` returns when the journal has an entry, and
    raises LogUnavailable.
    """

    def __init__(self, plane: Plane, catalog: Catalog, wait_journaled: Callable[[Queue, int, int, float], Awaitable[None]]) -> None:
        self._plane = plane
        self._catalog = catalog
        self._wait_journaled = wait_journaled

    async def wait(self, opened: Opened, partition: int, seq: int, number: int) -> None:
        """Tells the plane when the journal has entry `seq`, which a call of acks has written that
        the plane knows by `number`, or why nobody knows whether it will.
        """
        why = "the worker stops"
        try:
            if opened.generation != self._catalog.generation:
                # Then the entry may be of another life of the state than what is asked now.
                raise LogUnavailable(f"another Redis came into use for queue {opened.queue.name!r} meanwhile: this may be forgotten")
            await self._wait_journaled(opened.queue, partition, seq, journal_until())
            why = ""
        except EngineError as error:
            why = str(error)
        finally:
            self._plane.tell(lib.JOURNALED, [number, why.encode()])
