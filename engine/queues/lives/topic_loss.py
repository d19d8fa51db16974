"""A queue whose topic was deleted, or deleted and made anew, behind our back: it gets a new life,
and this is told.

State in Redis and offsets in Kafka no longer belong together then: a new topic begins at offset 0,
which the window believes to have seen. So the queue gets a new incarnation over the topic as it is
(made again if missing): what was in the deleted topic is lost, what was sent to the new one is
delivered.
"""

from __future__ import annotations

import asyncio
import logging
import secrets

import msgspec

from engine.catalog.catalog import Catalog, Change
from engine.errors import EngineError
from engine.log import Log
from engine.queues.lives.making import Making
from engine.rules.queue import Queue
from engine.window.window import Window
from runtime.background import Background
from runtime.counters import Counters
from state.errors import StateError
from state.store import Store

logger = logging.getLogger(__name__)

AGAIN_S = 1.0
LOOK_S = 0.25
# How many looks must agree, LOOK_S apart at least. A broker that starts knows less for a while: it
# names no topics yet, or answers with the end that it had written down before it was killed. Looks
# and not seconds: while Kafka stands still one look may take half a minute.
LOOKS = {"another": 3, "missing": 13, "short": 81}

# Of a queue that is renewed again and again, so many lives are remembered.
FORMER = 50


class TopicGuard:
    """Checks of this worker, one at a time for each queue."""

    def __init__(
        self, log: Log, store: Store, catalog: Catalog, window: Window, making: Making, counters: Counters
    ) -> None:
        self._log = log
        self._store = store
        self._catalog = catalog
        self._window = window
        self._counters = counters
        self._making = making
        self._asked: dict[str, float] = {}
        self._checking: set[str] = set()
        self._background = Background()

    async def stop(self) -> None:
        await self._background.stop()

    def suspect(self, queue: Queue) -> None:
        """Something is wrong with the topic of a queue: looks at it soon, at most once a second."""
        now = asyncio.get_running_loop().time()
        if queue.name not in self._checking and now - self._asked.get(queue.name, -AGAIN_S) >= AGAIN_S:
            self._asked[queue.name] = now
            self._checking.add(queue.name)
            self._background.start(self._check(queue), "check")

    async def _check(self, queue: Queue) -> None:
        try:
            await self.check(queue)
        except (EngineError, StateError) as error:
            logger.debug("action=check queue=%s error=%s", queue.name, error)
        finally:
            self._checking.discard(queue.name)

    async def check(self, queue: Queue) -> bool:
        """Renews the queue if its topic is surely missing, or another than its window has seen;
        whether it did. Raises EngineError.

        A renewal delivers all of the topic again, so all LOOKS must say the same.
        """
        fault = await self._fault(queue)
        if fault is None:
            return False
        for _ in range(LOOKS[fault] - 1):
            await asyncio.sleep(LOOK_S)
            if await self._fault(queue) != fault:
                return False
        async with self._catalog.change(queue.name) as change:
            now = self._catalog.by_incarnation.get(queue.incarnation)
            if now is None or await self._fault(now) != fault:
                return False
            await self._renew(
                now, await self._log.partition_count(now.topic), await self._log.topic_id(now.topic), change
            )
        return True

    async def _fault(self, queue: Queue) -> str | None:
        """What is wrong with the topic: it is missing, another (by its id), or short of what the
        window has seen. Not known = nothing.
        """
        log, parts = self._log, [(queue.topic, p) for p in range(len(queue.units))]
        count = await log.partition_count(queue.topic)
        if count is None:
            return "missing" if await log.alive() else None
        known = queue.record.topic_id
        if known and (found := await log.topic_id(queue.topic)) and found != known:
            return "another"
        if count != len(parts):
            return "short"
        # What the window has seen comes first: senders append and load meanwhile.
        seen = await self._seen(queue)
        ends = await log.end_offsets(parts)
        if any(part not in ends for part in parts):
            return None
        return "short" if any(ends[part] < seen[p] for p, part in enumerate(parts)) else None

    async def _seen(self, queue: Queue) -> list[int]:
        tag = queue.tag_ids[0]
        looks = [
            await self._window.call(
                queue,
                lambda g, u=unit: self._store.leases.probe(u, g, tag),  # type: ignore[misc]
            )
            for unit in queue.units
        ]
        return [look.cursor for look in looks]

    async def _renew(self, queue: Queue, count: int | None, topic_id: str | None, change: Change) -> None:
        partitions = queue.record.partitions if count is None else count
        tags = [msgspec.structs.replace(tag, start_offsets=[0] * partitions) for tag in queue.tags]
        record = msgspec.structs.replace(
            queue.record,
            incarnation=secrets.token_hex(6),
            former_incarnations=[*queue.record.former_incarnations, queue.incarnation][-FORMER:],
            partitions=partitions,
            tags=tags,
            topic_id=topic_id or "",
        )
        lost = await self._open(queue)
        logger.error(
            "action=renew queue=%s open=%d reason=its topic was %s: what was in it is lost",
            queue.name, lost, "deleted" if count is None else "deleted and made anew",
        )  # fmt: skip
        self._counters.count("topics_lost_total")
        self._counters.count("lost_with_topic_total", lost)
        await self._making.renew(record, change, made=count is not None)
        await self._store.upkeep.forget(queue.units, queue.tag_ids)

    async def _open(self, queue: Queue) -> int:
        """How many messages the window of the default tag still had; 0 when Redis can't tell."""
        tags = queue.tag_ids[:1]
        try:
            rows = [await self._store.upkeep.info(unit, self._catalog.generation, tags) for unit in queue.units]
        except StateError:
            return 0
        return sum(row[0].ready + row[0].delayed + row[0].leased for row in rows)
