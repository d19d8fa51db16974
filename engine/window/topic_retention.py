"""How long the topic of a queue keeps its records: as the queue's settings need, and longer once a
message is delayed for longer.

Kafka knows one time for all records of a topic, which is the only record of it: what a worker has
in memory is a copy. It is raised before anything of a longer delay is stored, or taken from a
native producer, and before settings that need more count; it is lowered after settings that need
less do, and never falls by itself, for nobody knows when the last such message is gone. The topic
of a queue with `keep_unacked` keeps records for ever: what every tag has settled is deleted from it
here (docs/decisions/0025). A floor passes messages that are deferred (0021), so what is below it is
looked for before that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from engine.catalog.catalog import Catalog, Change
from engine.errors import QueueInUse, Unavailable
from engine.log import Log, TopicPartition
from engine.rules.queue import Queue
from runtime.background import Background
from runtime.failpoints import reached
from schemas.records import QueueRecord
from schemas.records.settings import MAX_DELAY_MS, MAX_LEASE_MS
from schemas.vocabulary import BATCH_SPAN_MS, SLOT_MS
from state.deferred import DeferredScripts

logger = logging.getLogger(__name__)

# Beyond retention and delay: the longest lease, and a margin for clocks and for slow loaders.
MARGIN_MS = MAX_LEASE_MS + 3_600_000
# The delay that every topic keeps messages for; a longer one is doubled until it fits, so that few
# sends have to raise anything.
LEAST_DELAY_MS = 3_600_000
FOR_EVER = -1
ONE_RECORD_BYTES = 1_000
AGAIN_S = 1.0
_SETTING = "retention.ms"


def keep_ms(retention_ms: int, delay_ms: int) -> int:
    """How long a topic keeps records: messages may be delayed for `delay_ms`, and are open for
    `retention_ms` from then on.
    """
    return retention_ms + max(delay_ms, LEAST_DELAY_MS) + MARGIN_MS


def kept_for_ms(record: QueueRecord) -> int:
    """How long the topic of a new queue keeps records; FOR_EVER = until they are deleted here."""
    return FOR_EVER if record.keep_unacked else keep_ms(record.retention_ms, record.delay_ms)


def rounded(delay_ms: int, max_delay_ms: int) -> int:
    """The delay to keep messages for when one of `delay_ms` comes, of a queue whose messages ask
    for `max_delay_ms` at most.
    """
    most = LEAST_DELAY_MS
    while most < delay_ms:
        most *= 2
    return max(delay_ms, min(most, max_delay_ms))


def _delay_kept(queue: Queue, kept_ms: int) -> int:
    return MAX_DELAY_MS if kept_ms == FOR_EVER else kept_ms - keep_ms(queue.record.retention_ms, 0) + LEAST_DELAY_MS


class TopicRetention:
    """What this worker knows of the topics' times. Any number of tasks may ask."""

    def __init__(self, log: Log, catalog: Catalog, scripts: DeferredScripts) -> None:
        self._log = log
        self._catalog = catalog
        self._scripts = scripts
        self._kept: dict[str, int] = {}
        self._changing = asyncio.Lock()
        self._background = Background()

    async def stop(self) -> None:
        await self._background.stop()

    def forget_queue(self, queue: Queue) -> None:
        """A queue is gone."""
        self._kept.pop(queue.incarnation, None)

    async def keep(self, queue: Queue, delay_ms: int) -> None:
        """Returns when the queue's topic keeps messages of that delay for long enough. Raises
        Unavailable (QueueRenewed), QueueNotFound.
        """
        if delay_ms <= self._kept.get(queue.incarnation, LEAST_DELAY_MS):
            return
        async with self._changing:  # one at a time here: others find it done
            if delay_ms <= self._kept.get(queue.incarnation, LEAST_DELAY_MS):
                return
            try:
                async with self._catalog.change(queue.name) as change:
                    await self._raise(queue, delay_ms, change)
            except QueueInUse as error:
                raise Unavailable(
                    f"the topic of queue {queue.name!r} can't be told to keep a longer delay now: {error}"
                ) from None

    async def _raise(self, queue: Queue, delay_ms: int, change: Change) -> None:
        now = self._catalog.by_incarnation.get(queue.incarnation)
        if now is None:
            raise self._catalog.ended(queue)
        kept_ms = await self.kept_ms(now.topic)
        kept = _delay_kept(now, kept_ms)
        if kept < delay_ms:
            kept = rounded(delay_ms, now.record.max_delay_ms)
            # One that was delayed may be rescheduled: that is longer than any delay, and less than
            # for ever.
            if kept_ms != FOR_EVER:
                await self._set(now, keep_ms(now.record.retention_ms, kept), change)
        self._kept[queue.incarnation] = kept

    async def raise_for(self, queue: Queue, record: QueueRecord, change: Change) -> int | None:
        """Before `record` becomes the queue's: its topic keeps what these settings need, and the
        delays that it kept so far. Returns how long that is, if it keeps records for longer; then
        `lower` is to be called once the record counts.
        """
        if (record.retention_ms, record.delay_ms) == (queue.record.retention_ms, queue.record.delay_ms):
            return None
        kept_ms = await self.kept_ms(queue.topic)
        if kept_ms == FOR_EVER:
            return None
        needed_ms = keep_ms(record.retention_ms, max(_delay_kept(queue, kept_ms), record.delay_ms))
        if needed_ms > kept_ms:
            await self._set(queue, needed_ms, change)
        return needed_ms if needed_ms < kept_ms else None

    async def lower(self, queue: Queue, to_ms: int | None, change: Change) -> None:
        """After the record that needs less. What fails leaves the topic with more than it needs."""
        try:
            if to_ms is not None:
                await self._set(queue, to_ms, change)
        except (Unavailable, QueueInUse) as error:
            logger.warning(
                "action=keep queue=%s topic=%s %s=%d error=%s", queue.name, queue.topic, _SETTING, to_ms, error
            )

    async def trim(self, queue: Queue, partition: int, low: int, floor: int) -> None:
        """Deletes what other queues would not keep either, of a partition that begins at `low` and
        of which every tag has settled all below `floor`, but for what was deferred.

        Any worker may call it, at any time; while somebody changes the queue it does nothing.
        Raises Unavailable, StateError.
        """
        part, record = (queue.topic, partition), queue.record
        if floor <= low:
            return
        old = (
            await self._log.offsets_at(
                [part], self._log.clock.earliest_ms() - keep_ms(record.retention_ms, record.delay_ms)
            )
        ).get(part, 0)
        below = min(old, floor)
        if below > low and not record.fifo:
            below = await self._first_of_deferred(queue, partition, below)
        if below > low:
            below = await self._first_of_batches(part, below)
        if below <= low:
            return
        with contextlib.suppress(QueueInUse):
            await self._delete_below(queue, partition, below)

    async def _first_of_deferred(self, queue: Queue, partition: int, at: int) -> int:
        """At most `at`: the offset below which nothing is deferred, nor open since it was brought.

        What is deferred is known by the hour in which it is due: it was sent 30 days before that at
        the earliest, whatever the queue's max_delay_ms is by now. It is asked for first: what is
        brought meanwhile is found in the window.
        """
        unit, generation, part = queue.units[partition], self._catalog.generation, (queue.topic, partition)
        seen = await self._scripts.deferred(unit, generation, queue.tag_ids, ahead_ms=0)
        slots = [min(tag.slots, default=seen.now_ms // SLOT_MS) for tag in seen.tags if tag.total]
        if slots:
            at = min(at, (await self._log.offsets_at([part], min(slots) * SLOT_MS - MAX_DELAY_MS)).get(part, 0))
        for tag in queue.tag_ids:
            at = min(await self._scripts.passed(unit, generation, tag, at, max=1), default=at)
        return at

    async def _first_of_batches(self, part: TopicPartition, at: int) -> int:
        """The offset from which on all records are of the batches that have one at `at` or behind
        it: without its first records the rest of a batch would count as torn.
        """
        records = (await self._log.fetch(*part, at, 1, ONE_RECORD_BYTES)).records
        if not records:
            return at
        return min(at, (await self._log.offsets_at([part], records[0].timestamp_ms - BATCH_SPAN_MS)).get(part, 0))

    async def _delete_below(self, queue: Queue, partition: int, below: int) -> None:
        async with self._catalog.change(queue.name) as change:
            now = self._catalog.by_incarnation.get(queue.incarnation)
            # It may be made anew, or have got a tag that begins with the oldest message.
            if now is not None and now.tag_ids == queue.tag_ids:
                reached("trim.before_delete")
                change.check()
                await self._log.delete_records({(queue.topic, partition): below})
                logger.info(
                    "action=trim queue=%s partition=%d below=%d reason=settled under every tag",
                    queue.name,
                    partition,
                    below,
                )

    async def kept_ms(self, topic: str) -> int:
        """What the topic is told, FOR_EVER = nothing is deleted. Raises LogUnavailable."""
        return int((await self._log.topic_config(topic)).get(_SETTING, FOR_EVER))

    async def _set(self, queue: Queue, to_ms: int, change: Change) -> None:
        change.check()
        reached("keep.before_set")
        await self._log.set_topic_config(queue.topic, {_SETTING: str(to_ms)})
        logger.info("action=keep queue=%s topic=%s %s=%d", queue.name, queue.topic, _SETTING, to_ms)
        try:
            change.check()
        except QueueInUse:
            # We were stopped, and another worker may have raised what we have lowered now.
            self._background.start(self._mend(queue.name), "mend_retention")

    async def _mend(self, name: str) -> None:
        """Has the topic of a queue keep what its settings and any delay need: how long it was told
        to keep messages, and for which, is lost.
        """
        while True:
            try:
                async with self._catalog.change(name) as change:
                    now = self._catalog.queues.get(name)
                    if now is not None and not now.record.keep_unacked:
                        await self._set(now, keep_ms(now.record.retention_ms, MAX_DELAY_MS), change)
                    return
            except (QueueInUse, Unavailable) as error:
                logger.warning("action=keep queue=%s error=%s", name, error)
                await asyncio.sleep(AGAIN_S)
