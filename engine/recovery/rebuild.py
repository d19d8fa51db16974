"""The state of a queue from Kafka alone: journal in, Redis out.

A unit that lost its state answers LOST to every verb (fenced) until `open` sets its generation
again as the last step. What a rebuild can't know is what had not been drained (up to DRAIN_S):
those leases end early and those acks are forgotten.
"""

from __future__ import annotations

import asyncio
import logging

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, Rebuilding
from engine.journal.outbox import LEASE_MS, Journal
from engine.journal.reader import JournalReader
from engine.recovery.lives import Holding, Lives
from engine.recovery.redis_lives import RedisLives
from engine.recovery.round import Round, UnitWriter
from engine.rules.queue import Queue
from runtime.background import Background
from runtime.cancel import before
from runtime.deadline import state_until
from runtime.signals import Signal
from state.errors import StateError
from state.keys import Unit
from state.upkeep import UpkeepScripts

logger = logging.getLogger(__name__)

# Units of a round, about: the queues of one answer when it is done, and their leases last for that
# long only.
ROUND_UNITS = 500
# How often it is asked whether another worker has rebuilt a unit: less and less often.
ELSEWHERE_S = 0.05, 0.5


class Rebuilder:
    """Rebuilds queues in rounds of some units each, and those first that somebody waits for. The
    journal is read once for all rounds that follow each other.
    """

    def __init__(
        self,
        worker: str,
        lives: RedisLives,
        upkeep: UpkeepScripts,
        catalog: Catalog,
        journal: Journal,
        reader: JournalReader,
        writer: UnitWriter,
    ) -> None:
        self._worker = worker
        self._redis_lives = lives
        self._upkeep = upkeep
        self._catalog = catalog
        self._journal = journal
        self._reader = reader
        self._writer = writer
        self.rebuilt: Signal[[Unit]] = Signal()
        self._held: set[Unit] = set()
        # By incarnation: when a queue is done, and which queues the next rounds are to rebuild,
        # with whether somebody waits for it.
        self._pending: dict[str, asyncio.Future[None]] = {}
        self._requested: dict[str, bool] = {}
        self._task: asyncio.Task[None] | None = None
        self._background = Background()
        self._soon: dict[str, asyncio.Task[None]] = {}

    async def stop(self) -> None:
        await self._background.stop()

    def holds(self, unit: Unit) -> bool:
        """Whether a unit is being rebuilt here: its lease must not get shorter, nor end as idle."""
        return unit in self._held

    async def recover(self, queue: Queue, until: float) -> None:
        """Returns when the state of the queue serves again. Raises Rebuilding at `until` (loop
        time), QueueNotFound, QueueRenewed.
        """

        def late() -> Rebuilding:
            return Rebuilding(f"the state of queue {queue.name!r} is being rebuilt from Kafka")

        future = await before(until, self._request(queue, until, waited=True), late)
        await before(until, asyncio.shield(future), late)

    def recover_soon(self, queue: Queue) -> None:
        """As `recover`, for loops that have to go on for other queues: their leases must be
        renewed, their outboxes drained.
        """
        if queue.incarnation not in self._soon and queue.incarnation not in self._pending:
            task = self._soon[queue.incarnation] = self._background.start(self._request_quietly(queue), "recover")
            task.add_done_callback(lambda _: self._soon.pop(queue.incarnation, None))

    async def _request_quietly(self, queue: Queue) -> None:
        try:
            await self._request(queue, state_until(), waited=False)
        except (EngineError, StateError) as error:
            logger.debug("action=recover queue=%s error=%s", queue.name, error)

    async def _request(self, queue: Queue, until: float, *, waited: bool) -> asyncio.Future[None]:
        """What tells when a queue is done, which the next rounds are to rebuild."""
        await self._redis_lives.trust(until)
        await self._catalog.sync()
        incarnation = queue.incarnation
        if incarnation not in self._catalog.by_incarnation:
            raise self._catalog.ended(queue)
        future = self._pending.get(incarnation)
        if future is None:
            future = self._pending[incarnation] = asyncio.get_running_loop().create_future()
            self._requested[incarnation] = waited
            if self._task is None or self._task.done():
                self._task = self._background.start(self._run(), "rebuild")
        elif waited and incarnation in self._requested:
            self._requested[incarnation] = True
        return future

    async def _run(self) -> None:
        await asyncio.sleep(0.01)
        lives = Lives(self._journal, self._reader, self._upkeep)
        while self._requested:
            queues = self._next_queues()
            work = Round(self._upkeep, self._catalog, self._journal, self._writer, self.rebuilt, queues)
            try:
                async with Holding(self._upkeep, self._worker, self._background, self._held) as holding:
                    await work.run(holding, lives)
            except Exception as caught:  # the waiters must hear of it; they ask again
                logger.warning("action=rebuild error=%s", caught)
                await asyncio.sleep(0.2)
                lives = Lives(self._journal, self._reader, self._upkeep)
                for queue in queues:
                    self._end(queue.incarnation, Rebuilding(f"a rebuild failed: {caught}"))
            else:
                for queue in queues:
                    self._end_round(queue, work)

    def _next_queues(self) -> list[Queue]:
        """Some of those that are to be rebuilt: first those that somebody waits for, in the order
        in which they were asked for.
        """
        queues: list[Queue] = []
        units = 0
        for incarnation in sorted(self._requested, key=lambda each: not self._requested[each]):
            if units >= ROUND_UNITS:
                break
            del self._requested[incarnation]
            queue = self._catalog.by_incarnation.get(incarnation)
            if queue is None:
                self._end(incarnation, None)
            else:
                queues.append(queue)
                units += len(queue.units)
        return queues

    def _end_round(self, queue: Queue, work: Round) -> None:
        """Tells who waits for a queue what became of it, once other workers have done theirs."""
        errors = [error for unit in queue.units if (error := work.failed.get(unit)) is not None]
        theirs = [unit for unit in work.others if unit.incarnation == queue.incarnation]
        if errors:
            self._end(queue.incarnation, Rebuilding(f"a rebuild failed: {errors[0]}"))
        elif theirs:
            # Not here: two workers that wait for each other's units would both keep from
            # rebuilding those that are asked for next.
            self._background.start(self._end_after(queue.incarnation, theirs), "await_rebuild")
        else:
            self._end(queue.incarnation, None)

    async def _end_after(self, incarnation: str, units: list[Unit]) -> None:
        """Tells who waits for a queue when other workers have rebuilt these units of it."""
        try:
            await asyncio.gather(*(self._wait_for(unit) for unit in units))
        except Rebuilding as error:
            self._end(incarnation, error)
        else:
            for unit in units:
                self.rebuilt(unit)
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

    async def _wait_for(self, unit: Unit) -> None:
        """Returns when another worker has rebuilt a unit. Raises Rebuilding."""
        pause_s, longest_s = ELSEWHERE_S
        until = state_until()
        while asyncio.get_running_loop().time() < until:
            try:
                owned = await self._upkeep.own(unit, self._worker, lease_ms=LEASE_MS)
            except StateError:
                owned = None
            if owned is not None and owned.generation is not None:
                return
            if owned is not None and owned.ours:
                raise Rebuilding("the worker that rebuilt it was lost")
            await asyncio.sleep(pause_s)
            pause_s = min(longest_s, pause_s * 1.3)
        raise Rebuilding("another worker is still rebuilding it")
