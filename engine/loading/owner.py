"""Which units this worker owns, and the rhythm of their loaders.

A unit is taken up when this worker touches it (a send, a receive, a waiter) and nobody owns it; it
is given up after IDLE_S of silence. So an idle queue costs nothing, and a crashed owner is replaced
by whoever is asked next.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from engine.errors import Unavailable
from engine.journal.outbox import Journal, Outbox
from engine.loading.deferrals import Deferrals, Turns
from engine.loading.loader import Loader, Loading, Rebuilding, Waiting
from engine.loading.renewals import Journaled, LagReporter, Renewals, Troubles
from engine.rules.queue import Queue
from engine.window.body_source import BodyCache
from runtime.background import Background
from runtime.cancel import cancel_all
from runtime.service import Periodic
from runtime.signals import Signal
from state.errors import Fenced, StateError, StateLost
from state.keys import Unit
from state.replies import MAX_OPEN, Owned, Probed, Received

logger = logging.getLogger(__name__)

TICK_S = 0.05
DRAIN_S = 0.1
QUIET_DRAIN_S = 0.5
# How often it is looked for units whose deferred messages have their turn.
TURNS_S = 0.25
ENDS_S = 0.1
QUIET_LOOK_S = 0.5
# A little more than that: how often a tick is waited for what another worker is to load.
ELSEWHERE_TRIES = 14
FLOORS_S = 5.0
# To own a unit costs three calls to Redis a second, to give it up and to take it up again five; but
# its last floor is to be shown first.
IDLE_S = FLOORS_S + 1.0
# While senders load what they send, the log is always ahead of the window by what is on its way:
# not to be read again for that.
GRACE_S = 0.03
# How often it is asked whether another worker is there.
COUNT_S = 1.0
# How long an empty answer may wait for Kafka.
REFRESH_S = 2.0


class UnitOwner:
    """The units that this worker owns. `worker` is its name among all workers."""

    def __init__(
        self,
        worker: str,
        parts: Loading,
        journal: Journal,
        rebuilder: Rebuilding,
        waiting: Waiting,
        bodies: BodyCache,
        deferrals: Deferrals,
    ) -> None:
        self.owned: dict[Unit, Loader] = {}
        self._parts = parts
        self._store = parts.store
        self._catalog = parts.catalog
        self._log = parts.log
        self._journal = journal
        self._rebuilder = rebuilder
        self._renewals = Renewals(parts.store.upkeep, worker, rebuilder)
        self._waiting = waiting
        # Tells of a queue that is in use, and when (loop time).
        self.used: Signal[[str, float]] = Signal()
        self._bodies = bodies
        self._used: dict[Unit, float] = {}
        self._drained_at: dict[Unit, float] = {}
        self._looked: dict[str, float] = {}
        self._looked_at_all = 0.0
        self._looking: dict[str, asyncio.Task[bool]] = {}
        self._loads: dict[Unit, asyncio.Task[None]] = {}
        self._drains: dict[Unit, asyncio.Task[None]] = {}
        self._lag = LagReporter(parts.prefix, parts.log, parts.store.upkeep, parts.catalog)
        self.troubles = Troubles(self.owned, parts.skips)
        self.journaled = Journaled(self._store.upkeep, self._catalog, self.owned, self.note_use)
        self._background = Background()
        self.workers_changed: Signal[[]] = Signal()
        self.turns = Turns(deferrals, self._background, self._guard)
        quiet = (StateError, Unavailable)
        self._services = [
            Periodic("own", self._own_all, TICK_S, quiet=quiet),
            Periodic("drain", self._drain_all, DRAIN_S, quiet=quiet),
            Periodic("poll_ends", self._poll_ends, ENDS_S, quiet=quiet),
            Periodic("turn", lambda: self.turns.start_due(self.owned.values()), TURNS_S, quiet=quiet),
            Periodic("report_lag", lambda: self._lag.commit(list(self.owned.values())), FLOORS_S, quiet=quiet),
            Periodic("count_workers", self._count_workers, COUNT_S, quiet=quiet),
        ]

    async def start(self) -> None:
        for service in self._services:
            await service.start()

    async def stop(self) -> None:
        """Drains what is owned and gives it up."""
        await asyncio.gather(*(service.stop() for service in self._services))
        await cancel_all(
            *self._loads.values(), *self._drains.values(), *self.turns.tasks.values(), *self._looking.values()
        )
        await asyncio.gather(*(self._end(loader) for loader in self.owned.values()))
        self.owned.clear()

    async def _end(self, loader: Loader) -> None:
        with contextlib.suppress(StateError, Unavailable):
            while await loader.outbox.drain():
                pass
            await self._store.upkeep.disown(loader.unit, loader.epoch)

    def note_use(self, queue: Queue, partition: int) -> None:
        """There is traffic on a unit: somebody must own it."""
        now = asyncio.get_running_loop().time()
        self._used[queue.units[partition]] = now
        self.used(queue.incarnation, now)

    def note_receive(self, queue: Queue, partition: int, seen: Received) -> None:
        """A receive used a unit and saw its window."""
        self.note_use(queue, partition)
        self.load_soon(queue, partition, seen)

    def load_soon(self, queue: Queue, partition: int, seen: Received | Probed) -> None:
        """A receive saw the window of a unit: when it runs low, or nothing in it is free, load now,
        not at the next look.
        """
        loader = self.owned.get(queue.units[partition])
        kept = seen.open - seen.in_flight
        low = kept * 2 < self._parts.bounds.messages or (seen.hungry and kept < MAX_OPEN)
        if loader is not None and seen.cursor < loader.end and low and not loader.stalled:
            self._load_if_short(loader)

    def forget_cursors(self, unit: Unit) -> None:
        """The cursors of a unit may have gone back: what its loader knew of them holds no more."""
        loader = self.owned.get(unit)
        if loader is not None:
            loader.forget_cursors()

    async def _own_all(self) -> None:
        """Takes and renews leases; gives up idle units."""
        now = asyncio.get_running_loop().time()
        wanted: list[Unit] = []
        idle: list[tuple[Unit, float]] = []
        for unit, at in list(self._used.items()):
            queue = self._catalog.by_incarnation.get(unit.incarnation)
            if queue is None:
                self._forget(unit)
            elif now - at > IDLE_S and not self._waiting.waits(queue) and not self._rebuilder.holds(unit):
                idle.append((unit, at))
            elif self._renewals.is_due(unit, now):
                wanted.append(unit)
        for unit, at in idle:
            loader = self.owned.get(unit)
            if loader is None:
                self._forget(unit)
            else:
                self._start_drain(loader, partial(self._give_up, loader, at))
        await self._own(wanted)

    async def _own(self, units: Sequence[Unit]) -> None:
        """Takes and renews leases."""
        async for unit, owned in self._renewals.ask(units):
            self._note_owned(unit, owned)

    def _note_owned(self, unit: Unit, owned: Owned) -> None:
        queue = self._catalog.by_incarnation.get(unit.incarnation)
        if not owned.ours or queue is None:
            self._drop(unit)
            return
        loader = self.owned.get(unit)
        if loader is None or loader.epoch != owned.number:
            outbox = Outbox(self._journal, queue.name, unit, owned.number)
            self.owned[unit] = Loader(self._parts, queue, unit.partition, owned.number, outbox)
            self._looked.pop(unit.incarnation, None)
        if owned.generation is None:
            self._rebuilder.recover_soon(queue)

    async def _give_up(self, loader: Loader, used_at: float) -> None:
        """Of a unit that was used last then. One that is used meanwhile is taken again, or is
        already: its outbox may have something since.
        """
        with contextlib.suppress(Fenced):
            if await loader.outbox.drain() or not await self._store.upkeep.disown(loader.unit, loader.epoch):
                return
        if self._used.get(loader.unit) == used_at:
            self._forget(loader.unit)
        else:
            self._lose(loader)

    def _lose(self, loader: Loader) -> None:
        """A unit is no longer ours by this loader. At the next tick it is asked who owns it: maybe
        a rebuild of our own took a new epoch.
        """
        unit = loader.unit
        if self.owned.get(unit) is loader:
            self._drop(unit)
            self._renewals.forget(unit)
            self._used[unit] = asyncio.get_running_loop().time()

    def _forget(self, unit: Unit) -> None:
        self._drop(unit)
        self._used.pop(unit, None)
        self._renewals.forget(unit)

    def _drop(self, unit: Unit) -> None:
        self.owned.pop(unit, None)
        self._drained_at.pop(unit, None)
        task = self._loads.pop(unit, None)
        if task is not None:
            task.cancel()

    async def _drain_all(self) -> None:
        """Drains units with traffic here every DRAIN_S, for the last time when that is DRAIN_S ago
        and all of it is in the outbox.

        The rest (another worker may have traffic on them) every QUIET_DRAIN_S.
        """
        now = asyncio.get_running_loop().time()
        for loader in self.owned.values():
            drained_at = self._drained_at.get(loader.unit, 0.0)
            if drained_at < self._used.get(loader.unit, 0) + DRAIN_S or now - drained_at > QUIET_DRAIN_S:
                self._drained_at[loader.unit] = now
                self._start_drain(loader, loader.outbox.drain)

    def _start_drain(self, loader: Loader, work: Callable[[], Awaitable[object]]) -> None:
        """Drains a unit beside the rhythm, unless that is under way: an append may take ten
        seconds, and the other units don't wait for it.
        """
        unit = loader.unit
        if unit not in self._drains:
            task = self._drains[unit] = self._background.start(self._guard(loader, work), "drain")
            task.add_done_callback(lambda _: self._drains.pop(unit, None))

    async def _guard(self, loader: Loader, work: Callable[[], Awaitable[object]]) -> None:
        """Runs work of a loader; one that is fenced is no longer ours.

        Work is begun here and not by the caller: a task that is cancelled before it ran would leave
        it never awaited.
        """
        try:
            await work()
        except Fenced:
            logger.warning("action=fenced queue=%s partition=%d", loader.queue.name, loader.partition)
            self._lose(loader)
        except StateLost:
            self._rebuilder.recover_soon(loader.queue)
        except (StateError, Unavailable) as error:
            logger.debug("action=load queue=%s partition=%d error=%s", loader.queue.name, loader.partition, error)

    async def _poll_ends(self) -> None:
        """Looks at the ends of the log for queues with traffic, all in one request; every
        QUIET_LOOK_S for the rest (as `_drain_all`).
        """
        now = asyncio.get_running_loop().time()
        queues = {u.incarnation: q for u in self.owned if (q := self._catalog.by_incarnation.get(u.incarnation))}
        if now - self._looked_at_all > QUIET_LOOK_S:
            self._looked_at_all = now
            due = list(queues.values())
        else:
            due = [
                q
                for q in queues.values()
                if self._waiting.waits(q) or any(now - self._used.get(u, 0) < 2 for u in q.units)
            ]
        if due:
            await self._check_ends(due)

    async def refresh(self, queue: Queue) -> bool:
        """Before an empty answer: whether Kafka had more than the window, and some of it is in the
        window now.

        Looks at Kafka at most once in ENDS_S per queue; concurrent callers share a look.
        """
        for partition in range(queue.record.partitions):
            self.note_use(queue, partition)
        now = asyncio.get_running_loop().time()
        if now - self._looked.get(queue.incarnation, -1.0) < ENDS_S:
            return False
        looking = self._looking.get(queue.incarnation)
        if looking is None:
            looking = self._looking[queue.incarnation] = self._background.start(
                self._refresh(queue), "refresh", awaited=True
            )
            looking.add_done_callback(lambda _: self._looking.pop(queue.incarnation, None))
        # Kafka may stand still: then the answer is what the window knows, and the look goes on for
        # those who ask next.
        done, _ = await asyncio.wait({looking}, timeout=REFRESH_S)
        return looking.result() if done else False

    async def _refresh(self, queue: Queue) -> bool:
        try:
            await self._own([unit for unit in queue.units if unit not in self.owned])
            before = self._parts.counters.get("loaded_chunks_total") + self._parts.counters.get("brought_total")
            await self._check_ends([queue])
            loads = [task for unit in queue.units if (task := self._loads.get(unit))]
            loads += self.turns.begin_due([loader for unit in queue.units if (loader := self.owned.get(unit))])
            if loads:
                await asyncio.wait(loads, timeout=2)
            elsewhere = [unit for unit in queue.units if unit not in self.owned]
            loaded = bool(elsewhere) and await self._loaded_elsewhere(queue, elsewhere)
            after = self._parts.counters.get("loaded_chunks_total") + self._parts.counters.get("brought_total")
            return loaded or after > before
        except (StateError, Unavailable) as error:
            logger.debug("action=refresh queue=%s error=%s", queue.name, error)
            return False

    async def _loaded_elsewhere(self, queue: Queue, units: list[Unit]) -> bool:
        """Waits until the owners of units, other workers, have loaded what an empty window lacks:
        after a loss, or what came natively.
        """
        ends = await self._log.stable_offsets([(queue.topic, unit.partition) for unit in units])
        for waits in range(ELSEWHERE_TRIES):
            probes = await asyncio.gather(
                *(self._store.leases.probe(u, self._catalog.generation, queue.tag_ids[0]) for u in units)
            )
            looks = zip(units, probes, strict=True)
            if not any(
                look.bodies == 0 and look.cursor < ends.get((queue.topic, unit.partition), 0) for unit, look in looks
            ):
                return waits > 0
            await asyncio.sleep(TICK_S)
        return False

    async def _check_ends(self, queues: Iterable[Queue]) -> None:
        loaders = [loader for q in queues for unit in q.units if (loader := self.owned.get(unit))]
        if not loaders:
            return
        ends = await self._log.end_offsets([(loader.queue.topic, loader.partition) for loader in loaders])
        now = asyncio.get_running_loop().time()
        for loader in loaders:
            current = self._catalog.by_incarnation.get(loader.unit.incarnation, loader.queue)
            loader.note_end(current, ends.get((current.topic, loader.partition), 0))
            self._looked[loader.unit.incarnation] = now
            self._load_if_short(loader)

    def _load_if_short(self, loader: Loader) -> None:
        known = loader.cursors.keys() == set(loader.queue.tag_ids) and not loader.lags(loader.end)
        if known or loader.unit in self._loads or asyncio.get_running_loop().time() < loader.retry_after:
            return
        task = self._background.start(self._guard(loader, lambda: self._catch_up(loader)), "load")
        self._loads[loader.unit] = task
        task.add_done_callback(
            lambda done: self._loads.pop(loader.unit, None) if self._loads.get(loader.unit) is done else None
        )

    async def _catch_up(self, loader: Loader) -> None:
        """Loads until the window is full or has everything."""
        end, before = loader.end, loader.cursors
        await loader.meet()
        await loader.refresh_cursors()
        if loader.lags(end) and before and loader.cursors != before:
            await asyncio.sleep(GRACE_S)
            await loader.refresh_cursors()
        if not loader.lags(end):
            return
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            if not await loader.load():
                break
            self._parts.counters.count("loaded_chunks_total")
        if loader.stalled:
            loader.rest(loop.time() - began)

    async def _count_workers(self) -> None:
        """What follows from how many workers there are; one that has come just now may have missed
        wake-ups.
        """
        store, bodies = self._store, self._bodies
        try:
            workers = await store.upkeep.workers()
        except StateError:
            workers = 0  # not known
        if bodies.is_only_worker != (workers == 1):
            self.workers_changed()
        bodies.count(workers)
        before = store.units.alone
        store.units.note_alone(bodies.is_only_worker)
        if before and not bodies.is_only_worker:
            await store.upkeep.wake({unit.incarnation for unit in self._used})

    def forget_queue(self, queue: Queue) -> None:
        """A queue is gone: none of its units is owned any more."""
        for unit in queue.units:
            self._forget(unit)
        self._looked.pop(queue.incarnation, None)
        self._parts.skips.forget_queue(queue)
        self._lag.forget(queue.incarnation)
