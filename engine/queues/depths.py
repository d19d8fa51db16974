"""How much is open in the units of a queue, how old it is, and what fills their windows."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence

from engine.rules.limits import MAX_DELAYED
from engine.rules.queue import Queue
from engine.window.retention import Retention
from engine.window.topic_retention import TopicRetention
from engine.window.window import Window
from runtime.signals import Signal
from state.errors import StateError
from state.keys import Unit
from state.replies import MAX_OPEN, TagCounts
from state.upkeep import UpkeepScripts

# Part of the delayed messages that a partition may have under a tag, from which on that is told.
NEARLY = 0.8


class Depths:
    """Looks of this worker. `suspect` tells of a topic that may be gone."""

    def __init__(
        self, upkeep: UpkeepScripts, window: Window, retention: Retention, topic_retention: TopicRetention, suspect: Signal[[Queue]]
    ) -> None:
        self.suspect = suspect
        self._upkeep = upkeep
        self._window = window
        self._retention = retention
        self._topic_retention = topic_retention

    async def unit(self, queue: Queue, partition: int, low: int, old: int, high: int) -> dict[str, float]:
        """Returns the alarms of a unit: what is near the end of its retention, or beyond it."""
        unit = queue.units[partition]
        tags = await self._window.call(queue, lambda g: self._upkeep.info(unit, g, queue.tag_ids))
        if any(tag.cursor > high for tag in tags):
            self.suspect(queue)
            return {}
        if any(tag.cursor < low for tag in tags):
            await self._retention.expire_unloaded(queue, partition, low)
            tags = await self._window.call(queue, lambda g: self._upkeep.info(unit, g, queue.tag_ids))
        passed = _waiting(tags, low)
        near = "retention_near"
        if queue.record.keep_unacked:
            near = "unacked_kept"
            await self._topic_retention.trim(queue, partition, low, min(tag.floor for tag in tags))
        return {near: max(0, _waiting(tags, old) - passed), "retention_passed": passed}

    async def crowded(self, queues: Sequence[Queue]) -> set[Unit]:
        """Units with so much open that the rest is worth asking for."""
        units = [(unit, queue.tag_ids) for queue in queues for unit in queue.units]
        try:
            most = await asyncio.gather(*(self._upkeep.open_most(unit, tags) for unit, tags in units))
        except StateError:
            return set()
        return {unit for (unit, _), count in zip(units, most, strict=True) if count > NEARLY * MAX_DELAYED}

    async def parked(self, queues: Sequence[Queue]) -> dict[str, int]:
        """How many groups are parked of the partition and tag with the most, by queue."""
        found = {queue.name: 0 for queue in queues}
        for queue in queues:
            if queue.record.fifo:
                with contextlib.suppress(StateError):
                    most = await asyncio.gather(*(self._upkeep.parked_most(unit, queue.tag_ids) for unit in queue.units))
                    found[queue.name] = max(most)
        return found

    async def full(self, queue: Queue, partition: int, high: int) -> tuple[int, int, int]:
        """(delayed messages of the tag with the most, if they are near the bound; messages behind
        windows that delayed ones fill; the same of what parked groups fill).
        """
        unit = queue.units[partition]
        tags = await self._window.call(queue, lambda g: self._upkeep.info(unit, g, queue.tag_ids))
        most = max(tag.delayed for tag in tags)
        full = [tag for tag in tags if tag.ready + tag.delayed + tag.parked >= MAX_OPEN]
        delayed = [max(0, high - tag.cursor) for tag in full if tag.delayed > NEARLY * MAX_DELAYED]
        parked = [max(0, high - tag.cursor) for tag in full if tag.parked]
        return most if most > NEARLY * MAX_DELAYED else 0, max(delayed, default=0), max(parked, default=0)


def _waiting(tags: Iterable[TagCounts], below: int) -> int:
    """Messages below an offset that are ready, leased, parked or not loaded, at most; delayed ones
    are not yet due.
    """
    return max(
        (min(max(below - tag.floor, 0), tag.ready + tag.leased + tag.parked + max(below - tag.cursor, 0)) for tag in tags), default=0
    )
