"""The state of a queue from Kafka alone: journal in, Redis out.

A unit that lost its state answers LOST to every verb (fenced) until `open` sets its generation again as the last step. What a
rebuild can't know is what had not been drained (up to DRAIN_S): those leases end early and those acks are forgotten.
Neighbours: `core.on_state` calls `recover` when a script says LOST. Must not know verbs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from engine.core import Core
from engine.errors import QueueNotFound, Rebuilding
from engine.loader import LEASE_MS, Loader, journal_partition
from engine.queue import Queue
from schemas.records import JournalEntry, JournalRecord
from schemas.vocabulary import EventKind, Reason
from schemas.wire import UndecodableRecord, decode
from state.ending import end
from state.errors import StateError
from state.keys import Unit
from state.replies import RestoredDelivery

logger = logging.getLogger(__name__)

PATIENCE_S = 8.0
SLICE = 500
# Seqs (= nonces) used after the last drained entry are unknown: the next ones begin far above them.
SEQ_GAP = 1_000_000

_SETTLES = {
    EventKind.ACKED, EventKind.DEAD, EventKind.EXPIRED, EventKind.DELETED, EventKind.MOVED, EventKind.SKIPPED,
}  # fmt: skip
_FLAGS = {Reason.KILLED.value: 1, Reason.EXHAUSTED.value: 2}


class TagState:
    """What the journal says of one tag of one unit."""

    __slots__ = ("below", "deliveries", "settled")

    def __init__(self) -> None:
        self.settled: set[int] = set()
        self.below = 0
        self.deliveries: dict[int, RestoredDelivery] = {}

    def apply(self, entry: JournalEntry) -> None:
        """Applies one entry; entries come in seq order."""
        kind = entry.kind
        if kind == EventKind.PURGED:
            self.below = max(self.below, entry.offsets[0])
        elif kind in _SETTLES:
            self.settled.update(entry.offsets)
            for offset in entry.offsets:
                self.deliveries.pop(offset, None)
        elif kind != EventKind.LAPSED:
            for offset, time in zip(entry.offsets, entry.times, strict=True):
                self.deliveries[offset] = _next(self.deliveries.get(offset), offset, entry, time)

    def cut(self, start: int) -> int:
        """The floor: below it all is settled. Forgets what is below."""
        floor = max(start, self.below)
        while floor in self.settled:
            floor += 1
        self.settled = {offset for offset in self.settled if offset > floor}
        self.deliveries = {offset: d for offset, d in self.deliveries.items() if offset >= floor}
        return floor


def _next(old: RestoredDelivery | None, offset: int, entry: JournalEntry, time: int) -> RestoredDelivery:
    """The delivery of a message after an entry of kind leased, extended, released, dying or claimed."""
    before = old or RestoredDelivery(offset, 0, 0, 0, 0, 0)
    if entry.kind == EventKind.LEASED:
        return RestoredDelivery(offset, entry.seq, before.count + 1, before.first_received_at_ms or entry.at_ms, 0, time)
    nonce = {EventKind.EXTENDED: before.nonce, EventKind.RELEASED: 0}.get(EventKind(entry.kind), entry.seq)
    flag = before.flag
    if entry.kind == EventKind.DYING:
        flag = _FLAGS.get(entry.reason, 2)
    elif entry.kind == EventKind.CLAIMED:
        flag = 3
    elif entry.kind == EventKind.RELEASED:
        flag = 0
    return RestoredDelivery(offset, nonce, before.count, before.first_received_at_ms, flag, time)


class UnitState:
    """What the journal says of one unit: entries in seq order, repeated ones dropped."""

    __slots__ = ("last_seq", "tags")

    def __init__(self, tags: Iterable[int]) -> None:
        self.tags = {tag: TagState() for tag in tags}
        self.last_seq = 0

    def apply(self, record: JournalRecord) -> None:
        for entry in record.entries:
            if entry.seq > self.last_seq:
                self.last_seq = entry.seq
                tag = self.tags.get(entry.tag)
                if tag is not None:
                    tag.apply(entry)


class Rebuilder:
    """Rebuilds queues, one scan of the journal for all that are asked for at a time."""

    def __init__(self, core: Core, worker: str) -> None:
        self._core = core
        self._worker = worker
        self._pending: dict[str, asyncio.Future[None]] = {}
        self._task: asyncio.Task[None] | None = None
        core.recover = self.recover

    async def stop(self) -> None:
        await end(self._task)

    async def recover(self, queue: Queue) -> None:
        """Returns when the queue's state serves again. Raises Rebuilding when that takes over 8 s, QueueNotFound."""
        await self._core.control.sync()
        if queue.incarnation not in self._core.control.by_incarnation:
            raise QueueNotFound(f"queue {queue.name!r} was deleted", field="queue", given=queue.name)
        future = self._pending.get(queue.incarnation)
        if future is None:
            future = self._pending[queue.incarnation] = asyncio.get_running_loop().create_future()
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._run())
        try:
            await asyncio.wait_for(asyncio.shield(future), PATIENCE_S)
        except TimeoutError:
            raise Rebuilding(f"the state of queue {queue.name!r} is being rebuilt from Kafka") from None

    async def _run(self) -> None:
        await asyncio.sleep(0.01)
        while self._pending:
            batch = dict(self._pending)
            queues = [q for inc in batch if (q := self._core.control.by_incarnation.get(inc))]
            error: Exception | None = None
            try:
                await self._rebuild(queues)
            except Exception as caught:  # the waiters must hear of it; they ask again
                logger.warning("action=rebuild error=%s", caught)
                error = Rebuilding(f"a rebuild failed: {caught}")
                await asyncio.sleep(0.2)
            for incarnation, future in batch.items():
                self._pending.pop(incarnation, None)
                if not future.done():
                    if error is None:
                        future.set_result(None)
                    else:
                        future.set_exception(error)
                        future.exception()

    async def _rebuild(self, queues: list[Queue]) -> None:
        """Owns the units that lost their state, reads their journal once, writes their state, lets them serve."""
        mine: dict[Unit, tuple[Queue, int]] = {}
        others: list[Unit] = []
        for queue in queues:
            for unit in queue.units:
                owned = await self._core.store.own(unit, self._worker, lease_ms=LEASE_MS * 10)
                if owned.generation is not None and owned.generation >= self._core.control.generation:
                    # Serves, but a tag may be missing (its creator died between control record and open).
                    starts = [(tag.id, tag.start_offsets[unit.partition]) for tag in queue.tags]
                    await self._core.store.open(unit, self._core.control.generation, starts)
                elif owned.ours:
                    mine[unit] = (queue, owned.number)
                else:
                    others.append(unit)
        if mine:
            logger.warning("action=rebuild units=%d queues=%d", len(mine), len(queues))
            self._core.count("rebuilds_total", len(mine))
            for unit, (queue, epoch) in mine.items():
                await Loader(self._core, queue, unit.partition, epoch).drain()
            states = await self._read_journal(mine)
            for unit, (queue, epoch) in mine.items():
                await self._write(queue, unit, epoch, states[unit])
        for unit in others:
            await self._wait_for(unit)

    async def _read_journal(self, mine: dict[Unit, tuple[Queue, int]]) -> dict[Unit, UnitState]:
        states = {unit: UnitState(queue.tag_ids) for unit, (queue, _) in mine.items()}
        topic, count = self._core.control.journal_topic, self._core.settings.journal_partitions
        partitions = sorted({journal_partition(unit, count) for unit in mine})
        await asyncio.gather(*(self._scan(topic, partition, states) for partition in partitions))
        return states

    async def _scan(self, topic: str, partition: int, states: dict[Unit, UnitState]) -> None:
        parts = [(topic, partition)]
        offset = (await self._core.log.start_offsets(parts)).get(parts[0], 0)
        end = (await self._core.log.end_offsets(parts)).get(parts[0], 0)
        while offset < end:
            chunk = await self._core.log.fetch(topic, partition, offset, 5000, 8_000_000, wait_ms=200)
            for record in chunk.records:
                try:
                    value = decode(record.value or b"")
                except UndecodableRecord as error:
                    self._core.count("undecodable_records_total")
                    logger.error("action=park topic=%s partition=%d offset=%d error=%s", topic, partition, record.offset, error)
                    continue
                if isinstance(value, JournalRecord):
                    state = states.get(Unit(value.incarnation, value.partition))
                    if state is not None:
                        state.apply(value)
            offset = chunk.next_offset

    async def _write(self, queue: Queue, unit: Unit, epoch: int, state: UnitState) -> None:
        store = self._core.store
        await store.forget([unit], queue.tag_ids, keep_owner=True)
        starts = []
        for tag in queue.tags:
            tag_state = state.tags[tag.id]
            floor = tag_state.cut(tag.start_offsets[unit.partition])
            settled, deliveries = sorted(tag_state.settled), list(tag_state.deliveries.values())
            for at in range(0, max(len(settled), len(deliveries), 1), SLICE):
                await store.restore(
                    unit,
                    epoch,
                    tag.id,
                    cursor=floor,
                    settled=settled[at : at + SLICE],
                    deliveries=deliveries[at : at + SLICE],
                )
            starts.append((tag.id, floor))
        seq = state.last_seq + SEQ_GAP if state.last_seq else 0
        await store.open(unit, self._core.control.generation, starts, epoch=epoch, seq=seq)

    async def _wait_for(self, unit: Unit) -> None:
        """Another worker rebuilds this unit."""
        for _ in range(160):
            try:
                owned = await self._core.store.own(unit, self._worker, lease_ms=LEASE_MS)
            except StateError:
                owned = None
            if owned is not None and owned.generation is not None:
                return
            if owned is not None and owned.ours:
                raise Rebuilding("the worker that rebuilt it was lost")
            await asyncio.sleep(0.05)
        raise Rebuilding("another worker is still rebuilding it")
