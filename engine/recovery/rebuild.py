"""The state of a queue from Kafka alone: journal in, Redis out.

A unit that lost its state answers LOST to every verb (fenced) until `open` sets its generation
again as the last step. What a rebuild can't know is what had not been drained (up to DRAIN_S):
those leases end early and those acks are forgotten.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, QueueInUse, Rebuilding
from engine.journal.deferred import DeferredState
from engine.journal.fold import UnitState
from engine.journal.outbox import LEASE_MS, REBUILD_LEASE_MS, Journal, Outbox
from engine.journal.snapshots import Snapshots
from engine.log import Log, Record
from engine.rules.fifo import group_digest
from engine.rules.queue import Queue
from engine.runtime.clock import now_ms
from engine.runtime.counters import Counters
from engine.runtime.failpoints import reached
from engine.runtime.signals import Signal
from schemas.records import GenerationRecord, JournalEntry, JournalRecord
from schemas.vocabulary import EventKind, Reason
from schemas.wire import AnyRecord, UndecodableRecord, decode_message
from state.background import Background
from state.cancel import cancel_all
from state.delay_store import Mark
from state.errors import StateError
from state.keys import Unit
from state.redis.connection import Connection
from state.store import Store

logger = logging.getLogger(__name__)

PATIENCE_S = 8.0
SLICE = 500
# Slices on their way to Redis at a time: it works on one while the next is packed here.
SIDE_BY_SIDE = 8
# Seqs (= nonces) given out after the last drained entry are unknown: those of the next life begin
# far above them.
SEQ_GAP = 1_000_000


class _Life:
    """A new life of a unit: entries have higher numbers than `seq`. `adopted`: its state in Redis
    is kept as it is.
    """

    __slots__ = ("adopted", "history", "seq")

    def __init__(self, seq: int, history: UnitState, adopted: bool) -> None:
        self.seq = seq
        self.history = history
        self.adopted = adopted

    def apply(self, record: JournalRecord) -> None:
        """What came after the journal was read, up to the entry that begins this life: Redis does
        not have it.
        """
        before = self.history.last_seq
        if any(before < entry.seq < self.seq for entry in record.entries):
            self.adopted = False
        self.history.apply(record)


class Rebuilder:
    """Rebuilds queues, one scan of the journal for all that are asked for at a time."""

    def __init__(
        self,
        worker: str,
        log: Log,
        connection: Connection,
        store: Store,
        catalog: Catalog,
        journal: Journal,
        snapshots: Snapshots,
        counters: Counters,
        rebuilt: Signal[[Unit]],
    ) -> None:
        self._worker = worker
        self._log = log
        self._connection = connection
        self._store = store
        self._catalog = catalog
        self._journal = journal
        self._snapshots = snapshots
        self._counters = counters
        self._rebuilt = rebuilt
        self._held: set[Unit] = set()
        # By incarnation: who waits for a queue, and which queues the next round is to rebuild.
        self._pending: dict[str, asyncio.Future[None]] = {}
        self._asked: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._background = Background()
        self._soon: dict[str, asyncio.Task[None]] = {}

    async def stop(self) -> None:
        await self._background.stop()

    def holds(self, unit: Unit) -> bool:
        """Whether a unit is being rebuilt here: its lease must not get shorter, nor end as idle."""
        return unit in self._held

    async def recover(self, queue: Queue) -> None:
        """Returns when the queue's state serves again. Raises Rebuilding when that takes over 8 s,
        QueueNotFound, QueueRenewed.
        """
        await self.trust()
        await self._catalog.sync()
        if queue.incarnation not in self._catalog.by_incarnation:
            raise self._catalog.ended(queue)
        future = self._pending.get(queue.incarnation)
        if future is None:
            future = self._pending[queue.incarnation] = asyncio.get_running_loop().create_future()
            self._asked.add(queue.incarnation)
            if self._task is None or self._task.done():
                self._task = self._background.start(self._run(), "rebuild")
        try:
            await asyncio.wait_for(asyncio.shield(future), PATIENCE_S)
        except TimeoutError:
            raise Rebuilding(f"the state of queue {queue.name!r} is being rebuilt from Kafka") from None

    def recover_soon(self, queue: Queue) -> None:
        """As `recover`, for loops that have to go on for other queues: their leases must be
        renewed, their outboxes drained.
        """
        if queue.incarnation not in self._soon:
            task = self._soon[queue.incarnation] = self._background.start(self._recover_alone(queue), "recover")
            task.add_done_callback(lambda _: self._soon.pop(queue.incarnation, None))

    async def _recover_alone(self, queue: Queue) -> None:
        try:
            await self.recover(queue)
        except (EngineError, StateError) as error:
            logger.debug("action=recover queue=%s error=%s", queue.name, error)

    async def trust(self) -> None:
        """Redis that was started again may have an older state: a new generation makes every unit
        of it lost, then it is trusted. Raises Rebuilding when another worker takes long over that.
        """
        catalog, run_id = self._catalog, self._connection.run_id
        if self._store.is_trusted(run_id):
            return
        await catalog.sync()
        if catalog.redis_run_id != run_id:
            try:
                await self._distrust(run_id)
            except QueueInUse:
                raise Rebuilding("another worker is about to take the state of Redis for lost") from None
        if self._connection.run_id == run_id:
            self._store.trust(run_id)

    async def _distrust(self, run_id: str) -> None:
        catalog = self._catalog
        async with catalog.change("generation") as change:
            if catalog.redis_run_id != run_id:
                logger.warning("action=distrust part=redis generation=%d", catalog.generation + 1)
                await change.write("generation", GenerationRecord(catalog.generation + 1, run_id, now_ms()))

    async def _run(self) -> None:
        await asyncio.sleep(0.01)
        while self._asked:
            asked, self._asked = self._asked, set()
            queues = [q for inc in asked if (q := self._catalog.by_incarnation.get(inc))]
            try:
                others = await self._rebuild(queues)
            except Exception as caught:  # the waiters must hear of it; they ask again
                logger.warning("action=rebuild error=%s", caught)
                await asyncio.sleep(0.2)
                for incarnation in asked:
                    self._end(incarnation, Rebuilding(f"a rebuild failed: {caught}"))
                continue
            for incarnation in asked:
                # Not here: two workers that wait for each other's units would both keep from
                # rebuilding those that are asked for next.
                theirs = [unit for unit in others if unit.incarnation == incarnation]
                self._background.start(self._end_after(incarnation, theirs), "await_rebuild")

    async def _end_after(self, incarnation: str, units: list[Unit]) -> None:
        """Tells who waits for a queue when other workers have rebuilt these units of it."""
        try:
            await asyncio.gather(*(self._wait_for(unit) for unit in units))
        except Rebuilding as error:
            self._end(incarnation, error)
        else:
            for unit in units:
                self._rebuilt(unit)
            self._end(incarnation, None)
        finally:
            self._end(incarnation, Rebuilding("waiting for another worker's rebuild failed"))  # unless told by now

    def _end(self, incarnation: str, error: Exception | None) -> None:
        future = self._pending.pop(incarnation, None)
        if future is None or future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
            future.exception()

    async def _rebuild(self, queues: list[Queue]) -> list[Unit]:
        """Owns the units that lost their state, reads their journal once, writes their state, lets
        them serve.

        Returns those that another worker rebuilds.
        """
        mine: dict[Unit, tuple[Queue, int]] = {}
        others: list[Unit] = []
        older: set[Unit] = set()
        serving: list[Unit] = []
        for queue in queues:
            for unit in queue.units:
                owned = await self._store.own(unit, self._worker, lease_ms=REBUILD_LEASE_MS)
                if owned.generation is not None and owned.generation >= self._catalog.generation:
                    # Serves, but a tag may be missing (its creator died between control record and
                    # open).
                    starts = [(tag.id, tag.start_offsets[unit.partition]) for tag in queue.tags]
                    await self._store.open(unit, self._catalog.generation, starts, fifo=queue.record.fifo, serving=True)
                    if owned.ours:
                        serving.append(unit)
                elif owned.ours:
                    if owned.generation is not None:
                        older.add(unit)
                    mine[unit] = (queue, owned.number)
                else:
                    others.append(unit)
        if mine:
            keeper = self._background.keep(lambda: self._keep(list(mine)), "keep_units")
            self._held.update(mine)
            try:
                await self._restore(queues, mine, older)
            finally:
                self._held.difference_update(mine)
                await cancel_all(keeper)
        await self._shorten([*mine, *serving])
        return others

    async def _shorten(self, units: list[Unit]) -> None:
        """Our leases are those of any owner again: nobody else journals a unit whose owner dies now
        until its lease is over.
        """
        leases = (self._store.own(unit, self._worker, lease_ms=LEASE_MS) for unit in units)
        await asyncio.gather(*leases, return_exceptions=True)

    async def _keep(self, units: list[Unit]) -> None:
        """Renews our leases (a long journal must not be read for nothing); a unit taken by another
        meanwhile is fenced by its epoch.
        """
        while True:
            await asyncio.sleep(REBUILD_LEASE_MS / 3000)
            renewals = (self._store.own(unit, self._worker, lease_ms=REBUILD_LEASE_MS) for unit in units)
            await asyncio.gather(*renewals, return_exceptions=True)

    async def _restore(self, queues: list[Queue], mine: dict[Unit, tuple[Queue, int]], older: set[Unit]) -> None:
        """Makes owned units serve: what has every entry as it is, the rest from the journal."""
        logger.warning("action=rebuild units=%d queues=%d", len(mine), len(queues))
        reached("rebuild.owned")
        for unit, (queue, epoch) in mine.items():
            await Outbox(self._journal, queue.name, unit, epoch).drain()

        lives = await self._begin_lives(mine, older)
        reached("rebuild.read")
        for unit, (queue, epoch) in mine.items():
            life = lives[unit]
            if life.adopted:
                await self._open(queue, unit, epoch, life.seq, [(tag.id, tag.start_offsets[unit.partition]) for tag in queue.tags])
            else:
                self._counters.count("rebuilds_total")
                await self._write(queue, unit, epoch, life)
            self._rebuilt(unit)

    async def _begin_lives(self, mine: dict[Unit, tuple[Queue, int]], older: set[Unit]) -> dict[Unit, _Life]:
        """The state of units, after an entry in the journal that begins a new life of each.

        An owner of before that was stopped may append what it had drained at any time: what comes
        before our entry counts for every reader, what comes after it has a lower seq than that and
        counts for none.
        """
        journal = self._journal
        partitions = sorted({journal.partition_of(unit) for unit in mine})
        found = await asyncio.gather(*(self._snapshots.read(partition) for partition in partitions))
        folded = dict(zip(partitions, found, strict=True))
        lives: dict[Unit, _Life] = {}
        time_ms = await self._store.time_ms()
        for unit in mine:
            history = folded[journal.partition_of(unit)].units.setdefault(unit, UnitState())
            held = await self._store.last_seq(unit) if unit in older else -1
            # Redis was started again and had lost nothing: its state has every entry of the
            # journal, so it is the true one.
            lives[unit] = _Life(_next_life(max(held, history.last_seq), time_ms), history, held >= history.last_seq)
        reached("rebuild.before_append")
        await asyncio.gather(*(self._append_life(mine[unit][0], unit, life.seq) for unit, life in lives.items()))

        def apply(record: Record, value: AnyRecord | None) -> None:
            if isinstance(value, JournalRecord) and (life := lives.get(Unit(value.incarnation, value.partition))) is not None:
                life.apply(value)

        for partition, fold in folded.items():
            await self._snapshots.scan(self._catalog.journal_topic, partition, fold.offset, apply)
        if any(life.history.last_seq != life.seq for life in lives.values()):
            raise Rebuilding("the journal went on while it was read")
        return lives

    async def _append_life(self, queue: Queue, unit: Unit, seq: int) -> None:
        """An entry that says only which seq is used up (of nothing below offset 0 anything is
        open).
        """
        entry = JournalEntry(seq, now_ms(), EventKind.FLOOR.value, 0, [0], [], Reason.REBUILT.value)
        await self._journal.append(queue.name, unit, [entry])

    async def _open(self, queue: Queue, unit: Unit, epoch: int, seq: int, starts: list[tuple[int, int]]) -> None:
        """Lets a unit serve; cursors that it has stay as they are."""
        await self._store.open(unit, self._catalog.generation, starts, fifo=queue.record.fifo, epoch=epoch, seq=seq)

    async def _write(self, queue: Queue, unit: Unit, epoch: int, life: _Life) -> None:
        store, history = self._store, life.history
        await store.clear(unit, epoch, queue.tag_ids)
        moves = history.newest_moves()
        for at in range(0, len(moves), SLICE):
            await store.recall(unit, epoch, moves[at : at + SLICE])
        starts = []
        for tag in queue.tags:
            known = history.tag(tag.id)
            floor = known.raise_floor(tag.start_offsets[unit.partition])
            settled = sorted(known.settled)
            self._counters.count("rebuilt_settled_total", len(settled))
            self._counters.count("rebuilt_deliveries_total", len(known.deliveries))
            deliveries = list(known.deliveries.values())
            groups = await self._groups(queue, unit.partition, list(known.deliveries)) if queue.record.fifo else {}
            for at in range(0, max(len(settled), len(deliveries), 1), SLICE * SIDE_BY_SIDE):
                slices = [slice(n, n + SLICE) for n in range(at, at + SLICE * SIDE_BY_SIDE, SLICE)]
                await asyncio.gather(
                    *(
                        store.restore(unit, epoch, tag.id, cursor=floor, settled=settled[part], deliveries=deliveries[part], groups=groups)
                        for part in slices
                        if part.start == 0 or settled[part] or deliveries[part]
                    )
                )
                reached("rebuild.restored")
            await self._redefer(unit, epoch, tag.id, known.deferred, tag.start_offsets[unit.partition])
            starts.append((tag.id, floor))
        reached("rebuild.before_open")
        await self._open(queue, unit, epoch, life.seq, starts)

    async def _redefer(self, unit: Unit, epoch: int, tag: int, known: DeferredState, start: int) -> None:
        """What is deferred below the floor; the loader defers again what is above it."""
        mark, bound = Mark(*known.mark), max(start, known.bound)
        excepted = sorted(known.excepted)
        for at in range(0, max(len(excepted), 1), SLICE):
            await self._store.redefer(
                unit, epoch, tag, mark=mark, bound=bound, slots={} if at else known.slots, excepted=excepted[at : at + SLICE]
            )

    async def _groups(self, queue: Queue, partition: int, offsets: list[int]) -> dict[int, bytes]:
        """The groups of open messages: the journal does not have them, so their records are
        read.
        """
        groups = dict.fromkeys(offsets, group_digest(None))
        for offset, record in (await self._log.read_at(queue.topic, partition, offsets)).items():
            with contextlib.suppress(UndecodableRecord):
                groups[offset] = group_digest(decode_message(record.value, record.headers).group)
        return groups

    async def _wait_for(self, unit: Unit) -> None:
        """Another worker rebuilds this unit."""
        for _ in range(160):
            try:
                owned = await self._store.own(unit, self._worker, lease_ms=LEASE_MS)
            except StateError:
                owned = None
            if owned is not None and owned.generation is not None:
                return
            if owned is not None and owned.ours:
                raise Rebuilding("the worker that rebuilt it was lost")
            await asyncio.sleep(0.05)
        raise Rebuilding("another worker is still rebuilding it")


def _next_life(last_seq: int, time_ms: int) -> int:
    """The seq that a unit goes on from: above all of its lives before, also of one of which nothing
    was drained, and below those of whoever begins one later: so by a clock that all workers share,
    that of Redis.
    """
    return max(last_seq + SEQ_GAP, time_ms << 10)
