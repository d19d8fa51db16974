"""Records that Kafka has just taken go into the window at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from engine.catalog.catalog import Catalog
from engine.errors import LogUnavailable
from engine.log import Log
from engine.rules.queue import Queue
from engine.window.body_cache import BodyCache
from runtime.counters import Counters
from runtime.signals import Signal
from state.errors import StateError
from state.keys import Unit
from state.replies import LoadEntry
from state.store import Store


class WriteThrough:
    """`used` tells of every write, `receivable` of what may now be received, `suspect` of a window
    that is ahead of its topic.
    """

    def __init__(
        self,
        log: Log,
        store: Store,
        catalog: Catalog,
        bodies: BodyCache,
        counters: Counters,
        receivable: Signal[[str, int, int]],
        suspect: Signal[[Queue]],
    ) -> None:
        self._log = log
        self._store = store
        self._catalog = catalog
        self._bodies = bodies
        self._counters = counters
        self.used: Signal[[Queue, int]] = Signal()
        self._receivable = receivable
        self.suspect = suspect

    async def write(self, queue: Queue, partition: int, entries: Sequence[LoadEntry]) -> dict[int, int]:
        """Puts records that Kafka has into the window. Where that fails the loader brings them
        later.

        FIFO: gives the offset of the earlier message for each offset of one that repeats it, as far
        as known. Raises LogUnavailable when the window belongs to another life of the topic, so
        that it takes none of them.
        """
        unit, store = queue.units[partition], self._store
        self.used(queue, partition)
        try:
            loaded = await store.units.scripts.soon(lambda: store.leases.load(unit, self._catalog.generation, queue.tag_ids, entries))
        except StateError:
            self._counters.count("write_through_failed_total")
            self._forget(unit, entries)
            return {}
        self._receivable(queue.incarnation, partition, loaded.head_ms)
        last = entries[-1].offset + entries[-1].count
        if not loaded.taken:
            self._forget(unit, entries)
            if max(loaded.cursors, default=0) > last:
                await self.check_length(queue, partition, max(loaded.cursors))
        if queue.record.fifo and loaded.taken < len(queue.tag_ids) * (len(entries) - len(loaded.repeats)):
            return {**loaded.repeats, **await self._repeats(unit, entries)}
        return loaded.repeats

    def note_failed(self) -> None:
        """The plane could not put into the window what Kafka has."""
        self._counters.count("write_through_failed_total")

    def _forget(self, unit: Unit, entries: Sequence[LoadEntry]) -> None:
        """The window has not taken these: the loader will bring them, with their bodies."""
        for entry in entries:
            self._bodies.forget(unit, range(entry.offset, entry.offset + entry.count))

    async def _repeats(self, unit: Unit, entries: Sequence[LoadEntry]) -> dict[int, int]:
        """FIFO: what repeats what among records that were early, or came by the loader before;
        waits a second for those before them.
        """
        store, known = self._store, [entry for entry in entries if entry.dedup]
        for _ in range(50 if known else 0):
            with contextlib.suppress(StateError):
                seen, firsts = await store.units.scripts.soon(lambda: store.upkeep.dedup_firsts(unit, [entry.dedup for entry in known]))
                if seen > entries[-1].offset:
                    rows = zip(known, firsts, strict=True)
                    return {entry.offset: first for entry, first in rows if first is not None and first < entry.offset}
            await asyncio.sleep(0.02)
        return {}

    async def check_length(self, queue: Queue, partition: int, cursor: int) -> None:
        """Looks at a window that is beyond what was just appended: the loader was faster, or it is
        the window of a topic that was deleted.
        """
        part = (queue.topic, partition)
        if (await self._log.end_offsets([part])).get(part, cursor) < cursor:
            self.suspect(queue)
            raise LogUnavailable(f"topic {queue.topic} was made anew behind queue {queue.name!r}; try again")
