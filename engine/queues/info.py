"""What queues and tags look like to a caller: records joined with counts. And how much is open in
the units of a queue, how old it is, and what fills their windows.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

from engine.log import Log
from engine.rules.limits import MAX_DELAYED
from engine.rules.queue import Queue
from engine.rules.rights import Targets, as_asked
from engine.shapes import QueueInfo, SharedQueue, TagInfo
from engine.window.retention import Retention
from engine.window.topic_retention import TopicRetention
from engine.window.window import Window
from runtime.signals import Signal
from schemas.records import TagRecord
from schemas.records.settings import RedrivePolicy, effective
from state.errors import StateError
from state.keys import Unit
from state.replies import MAX_OPEN, TagCounts
from state.upkeep import UpkeepScripts

ShowPlane: TypeAlias = Callable[[str, int], Awaitable[None]]


class Info:
    """Looks at queues and tags. `show(incarnation, tag)` gives back what this worker has leased and
    nobody has, and returns when it is back.
    """

    def __init__(
        self,
        log: Log,
        upkeep: UpkeepScripts,
        targets: Targets,
        window: Window,
        show: ShowPlane,
    ) -> None:
        self._log = log
        self._upkeep = upkeep
        self._targets = targets
        self._window = window
        self._show = show

    async def tags(self, queue: Queue, tags: Sequence[TagRecord]) -> list[TagInfo]:
        """Tags with their counts, exact for the window; `stored` counts what Kafka has beyond it,
        in whatever state. Raises Unavailable.
        """
        ids = [tag.id for tag in tags]
        await asyncio.gather(*(self._show(queue.incarnation, number) for number in ids))
        looks = asyncio.gather(*(self._counts(queue, unit, ids) for unit in queue.units))
        parts = [(queue.topic, p) for p in range(len(queue.units))]
        # Without its ends nobody knows what is stored, and whoever scales or alarms by 0 is misled.
        ends, units = await asyncio.gather(self._log.end_offsets(parts), looks)
        for (_, p), rows in zip(parts, units, strict=True):
            if any(row.cursor < ends.get((queue.topic, p), 0) for row in rows):
                # Loaded now, also when nobody uses the queue: after a loss of Redis `stored` hides
                # what is delayed.
                self._window.used(queue, p)
        infos = []
        for index, tag in enumerate(tags):
            rows = [unit[index] for unit in units]
            ready, delayed, leased = sum(r.ready for r in rows), sum(r.later for r in rows), sum(r.leased for r in rows)
            parked = sum(r.parked for r in rows)
            stored = sum(row.behind(ends.get(part, 0)) for part, row in zip(parts, rows, strict=True))
            infos.append(
                TagInfo(
                    name=tag.name,
                    created_at_ms=tag.created_at_ms,
                    start_at_ms=tag.start_at_ms,
                    filter=tag.filter,
                    user_attributes=tag.user_attributes,
                    backlog=ready + delayed + leased + parked + stored,
                    ready=ready,
                    delayed=delayed,
                    leased=leased,
                    parked=parked,
                    stored=stored,
                    read_qps=tag.read_qps,
                    redrive_policy=as_asked(tag.redrive_policy),
                    redrive_fault=self._fault(queue, tag.redrive_policy),
                    paused=tag.paused,
                )
            )
        return infos

    async def _counts(self, queue: Queue, unit: Unit, tags: Sequence[int]) -> list[TagCounts]:
        return await self._window.call(queue, lambda g: self._upkeep.info(unit, g, tags))

    def policy(self, queue: Queue) -> tuple[RedrivePolicy | None, str]:
        """The redrive policy of a queue, and why it moves nothing: a PolicyFault word, empty = it
        does.
        """
        return as_asked(queue.record.redrive_policy), self._fault(queue, queue.record.redrive_policy)

    def _fault(self, queue: Queue, policy: RedrivePolicy | None) -> str:
        return "" if policy is None else self._targets.fault(queue.record, policy)

    async def backlog(self, queue: Queue) -> int:
        """Messages of the default tag that are not settled. Raises Unavailable."""
        (tag,) = await self.tags(queue, queue.tags[:1])
        return tag.backlog

    async def shared(self, queue: Queue) -> SharedQueue:
        """What others see of a queue in a list. Raises Unavailable."""
        (tag,) = await self.tags(queue, queue.tags[:1])
        return SharedQueue(queue.name, queue.record.owner, tag.backlog, tag.ready, tag.leased)

    async def queue(self, queue: Queue) -> QueueInfo:
        """A queue with all its tags and counts. Raises Unavailable."""
        record = queue.record
        return QueueInfo(
            name=record.name,
            owner=record.owner,
            created_at_ms=record.created_at_ms,
            modified_at_ms=record.modified_at_ms,
            redrive_fault=self._fault(queue, record.redrive_policy),
            source_queues=self._targets.sources(queue),
            tags=await self.tags(queue, queue.tags),
            purged_at_ms=record.purged_at_ms,
            paused=record.paused,
            **{**effective(record), "redrive_policy": as_asked(record.redrive_policy)},
        )


# Part of the delayed messages that a partition may have under a tag, from which on that is told.
NEARLY = 0.8


class Depths:
    """Looks of this worker. `suspect` tells of a topic that may be gone."""

    def __init__(
        self,
        upkeep: UpkeepScripts,
        window: Window,
        retention: Retention,
        topic_retention: TopicRetention,
        suspect: Signal[[Queue]],
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
                    most = await asyncio.gather(
                        *(self._upkeep.parked_most(unit, queue.tag_ids) for unit in queue.units)
                    )
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
        (
            min(max(below - tag.floor, 0), tag.ready + tag.leased + tag.parked + max(below - tag.cursor, 0))
            for tag in tags
        ),
        default=0,
    )
