"""Runs a redrive task while this worker has its lock, a second at a time.

A crash repeats at most a second of work, and a dead letter that was moved already is settled, so
nothing is moved twice; the journal says that it was this task (`progress.py`), so it is counted
once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

import msgspec

from engine.catalog.catalog import Catalog, Change
from engine.errors import EngineError, QueueNotFound, QueueRenewed
from engine.move.tasks.outcomes import Ledger, Row, with_rows
from engine.move.tasks.progress import Known, Moved, Progress, place_of
from engine.move.tasks.redrive_step import RedriveStep, failed
from engine.move.tasks.selection import Destinations, left_of
from engine.rules.queue import Queue
from runtime import deadline
from runtime.clock import now_ms
from runtime.failpoints import reached
from schemas.records import TaskRecord
from schemas.records.moves import LetterOutcome
from schemas.vocabulary import TaskStatus
from state.errors import StateError
from state.redis.lock import LockBusy, Locks

logger = logging.getLogger(__name__)

STEP = 100
SAVE_S = 1.0
LOCK_MS = 15_000


class TaskRunner:
    """Runs tasks of this worker; each `run` is one of them. Any number of workers may try: one at
    a time has the lock, and what one does that was paused and has lost it neither moves a dead
    letter twice nor makes the count wrong.
    """

    def __init__(
        self, locks: Locks, catalog: Catalog, destinations: Destinations, progress: Progress, steps: RedriveStep
    ) -> None:
        self._locks = locks
        self._catalog = catalog
        self._destinations = destinations
        self._progress = progress
        self._steps = steps

    async def run(self, id: str) -> None:
        """Runs slices of a task while this worker gets its lock; returns when the task has
        ended.
        """
        known: Known | None = None  # None = a slice of ours has failed, or there was none: the journal knows
        while self._running(id) is not None:
            try:
                async with self._locks.held(f"task:{id}", hold_ms=LOCK_MS, wait_s=0):
                    await self._catalog.sync()
                    if (task := self._running(id)) is not None:
                        moved = known.moved if known is not None and known.place == place_of(task) else None
                        known = None
                        known = await self._slice(task, moved)
            except LockBusy:
                known = None  # who has it may move what lies beyond
                await asyncio.sleep(1)
            except (EngineError, StateError) as error:
                self._steps.forget(id)
                logger.warning("action=redrive task=%s error=%s", id, error)
                await asyncio.sleep(1)
        self._steps.forget(id)

    async def count(self, task: TaskRecord) -> bool:
        """Returns when nobody works on a task, which was cancelled, and all that it moved is
        counted: who did has written that, or has died or failed, and the journal knows. False = not
        now.
        """
        key, wait_s = f"task/{task.id}", LOCK_MS / 1000 + 1
        try:
            async with self._locks.held(f"task:{task.id}", hold_ms=LOCK_MS, wait_s=wait_s, lost_s=deadline.STATE_S):
                await self._catalog.sync()
                queue = self._catalog.by_incarnation.get(task.source_incarnation)
                if queue is None or not self._as_it_was(task):
                    return True
                beyond = _rows_beyond(task, await self._progress.moved_beyond(queue, task))
                async with self._catalog.change(key) as change:
                    current = self._as_it_was(task)
                    if beyond and current:
                        await write_task(change, _with_beyond(current, beyond), beyond)
                return True
        except (EngineError, StateError) as error:
            logger.warning("action=cancel task=%s error=%s", task.id, error)
            return False

    def _as_it_was(self, task: TaskRecord) -> TaskRecord | None:
        """Its record of now, if no runner has written it since."""
        current = self._catalog.tasks.get(task.id)
        return current if current is not None and place_of(current) == place_of(task) else None

    def _running(self, id: str) -> TaskRecord | None:
        task = self._catalog.tasks.get(id)
        return task if task is not None and task.status == TaskStatus.RUNNING else None

    async def _slice(self, task: TaskRecord, moved: Moved | None) -> Known | None:
        """Works for about a second, then writes how far it got; what it has moved beyond that, None
        = not known any more.
        """
        loop = asyncio.get_running_loop()
        began, before = loop.time(), task
        lives: dict[int, int] = {}  # of the units that it works on
        ledger = Ledger(moved, [set() for _ in task.next_offsets], [])
        while task.status == TaskStatus.RUNNING and loop.time() - began < SAVE_S and self._running(task.id) is not None:
            await self._catalog.sync()
            queue = self._catalog.queues.get(task.source)
            if queue is None or queue.incarnation != task.source_incarnation:
                task = failed(task, f"queue {task.source!r} was deleted")
                continue
            if ledger.moved is None:
                ledger.learn(await self._progress.moved_beyond(queue, task))
            if fault := self._destinations.fault(task):
                task = failed(task, fault)
                continue
            budget = (
                STEP
                if not task.rate
                else min(STEP, int(task.rate * (loop.time() - began + 0.05)) - (task.moved - before.moved))
            )
            if budget <= 0:
                await asyncio.sleep(0.02)
                continue
            partition = next((p for p, end in enumerate(task.end_offsets) if task.next_offsets[p] < end), None)
            if partition is None:
                task = msgspec.structs.replace(task, status=TaskStatus.COMPLETED)
                continue
            try:
                if partition not in lives:
                    lives[partition] = await self._progress.life(queue, partition)
                task = await self._steps.step(task, queue, partition, budget, ledger)
            except (QueueNotFound, QueueRenewed):
                await asyncio.sleep(0.02)  # deleted just now: what this slice has counted is written above
        return await self._save(before, task, ledger, lives)

    async def _save(self, before: TaskRecord, task: TaskRecord, ledger: Ledger, lives: dict[int, int]) -> Known | None:
        """Writes how far a task got since `before` once the journal has all of that, unless another
        worker has taken it over meanwhile; what is known then. Raises LogUnavailable when Redis was
        lost since the `lives`: what was moved is to be looked at again.
        """
        queue = self._catalog.by_incarnation.get(task.source_incarnation)
        if queue is not None:
            with contextlib.suppress(QueueNotFound, QueueRenewed):  # deleted just now
                await self._progress.journaled(queue, lives)
                task = await self._with_doubtful(queue, before, task, ledger)
        async with self._catalog.change(f"task/{task.id}") as change:
            current = self._catalog.tasks.get(task.id)
            if current is None or place_of(current) != place_of(before):
                logger.warning("action=redrive task=%s outcome=taken over", task.id)
                return None
            if current.status != TaskStatus.RUNNING:
                task = msgspec.structs.replace(task, status=current.status, failure=current.failure)
            ended = task.status != TaskStatus.RUNNING
            record = msgspec.structs.replace(
                task,
                # From then on the journal has what was moved beyond the positions.
                modified_at_ms=task.modified_at_ms if any(ledger.moved or ()) and not ended else now_ms(),
                chosen=left_of(task.chosen, task.next_offsets, ended=ended),
            )
            beyond = await self._beyond(queue, before, task, ledger) if ended else []
            record = _with_beyond(record, beyond)
            await write_task(change, record, [*ledger.rows, *beyond])
            reached("redrive.saved")
        return None if ledger.moved is None else Known(place_of(record), ledger.moved)

    async def _beyond(self, queue: Queue | None, before: TaskRecord, task: TaskRecord, ledger: Ledger) -> list[Row]:
        """The dead letters that a task that has ended has moved at or after its positions, whoever
        ran it; of a queue that is gone those that are known here.
        """
        if task.status == TaskStatus.COMPLETED:
            return []
        moved = ledger.moved
        if queue is not None:
            with contextlib.suppress(QueueNotFound, QueueRenewed):
                moved = await self._progress.moved_beyond(queue, before)
        return _rows_beyond(task, moved or [])

    async def _with_doubtful(self, queue: Queue, before: TaskRecord, task: TaskRecord, ledger: Ledger) -> TaskRecord:
        """A runner before us that was paused may have settled some since we read: they count. Those
        of others have an outcome if they were chosen.
        """
        if not any(ledger.doubtful):
            return task
        found, own = await self._progress.moved_beyond(queue, before), 0
        for partition, (offsets, theirs) in enumerate(zip(ledger.doubtful, found, strict=True)):
            for offset in sorted(offsets):
                if offset in theirs:
                    own += 1
                    ledger.rows.append(Row(partition, offset, LetterOutcome.MOVED, theirs[offset]))
                elif task.chosen is not None:
                    ledger.rows.append(Row(partition, offset, LetterOutcome.GONE))
        return msgspec.structs.replace(task, moved=task.moved + own, total=task.total + own)


def _rows_beyond(task: TaskRecord, moved: Moved) -> list[Row]:
    """The outcomes of what was moved at or after the positions of a task."""
    places = enumerate(zip(moved, task.next_offsets, strict=False))
    return [Row(p, o, LetterOutcome.MOVED, copies[o]) for p, (copies, at) in places for o in sorted(copies) if o >= at]


def _with_beyond(task: TaskRecord, rows: list[Row]) -> TaskRecord:
    """A task that counts what was moved beyond its positions."""
    return msgspec.structs.replace(task, moved=task.moved + len(rows), total=task.total + len(rows))


async def write_task(change: Change, task: TaskRecord, rows: list[Row]) -> None:
    """Writes a task with some more outcomes: what it is to name first."""
    task, pages = with_rows(task, rows)
    for key, page in pages.items():
        await change.write(key, page)
        reached("redrive.paged")
    await change.write(f"task/{task.id}", task)
