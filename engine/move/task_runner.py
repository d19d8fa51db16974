"""Runs a redrive task while this worker has its lock, a second at a time.

A crash repeats at most a second of work, and a dead letter that was moved already is settled, so
nothing is moved twice; the journal says that it was this task (`progress.py`), so it is counted
once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, QueueNotFound, QueueRenewed
from engine.log import Log
from engine.move.destinations import Destinations
from engine.move.mover import Held, Mover, Outcome
from engine.move.progress import Known, Moved, Progress, place_of
from engine.move.selection import beyond_key, left_of, next_chosen
from engine.rules.placement import with_priority
from engine.rules.queue import Queue
from engine.runtime.clock import now_ms
from engine.runtime.failpoints import reached
from engine.window.batches.message_log import MessageLog
from engine.window.window import MOVER_LEASE_MS, Window
from schemas.filters import matches
from schemas.records import Message, TaskRecord
from schemas.vocabulary import TaskStatus
from schemas.wire import UndecodableRecord, decode_message
from state.errors import StateError
from state.redis.connection import Connection
from state.redis.lock import LockBusy, lock
from state.store import Store

logger = logging.getLogger(__name__)

STEP = 100
SAVE_S = 1.0
LOCK_MS = 15_000
# A window takes a message in seconds: one that it has not taken for so long lies behind too many.
# And a broker knows the end of a log in seconds.
WAIT_S = 60.0

# By partition, dead letters that were settled when a slice passed them, and were not known to be
# its task's own.
Doubtful = list[set[int]]


class Worked(msgspec.Struct):
    """What came of dead letters of one partition: offsets. `settled` were settled before and are
    neither moved nor failed; leased ones have failed.

    `waits`: the first that must wait, None = none; it is held by a lost claim or mover, or
    (`stored`) only a load can tell whether it repeats another.
    """

    moved: set[int]
    failed: set[int]
    settled: set[int]
    waits: int | None = None
    stored: bool = False


class TaskRunner:
    """Runs tasks of this worker; each `run` is one of them. Any number of workers may try: one at
    a time has the lock, and what one does that was paused and has lost it neither moves a dead
    letter twice nor makes the count wrong.
    """

    def __init__(
        self,
        prefix: str,
        log: Log,
        connection: Connection,
        store: Store,
        catalog: Catalog,
        window: Window,
        destinations: Destinations,
        mover: Mover,
        progress: Progress,
        note_use: Callable[[Queue, int], None],
    ) -> None:
        self._prefix = prefix
        self._messages = MessageLog(log)
        self._connection = connection
        self._store = store
        self._catalog = catalog
        self._window = window
        self._destinations = destinations
        self._mover = mover
        self._progress = progress
        self._note_use = note_use
        # By task: for which partition and offset it waits, and since when.
        self._waits: dict[str, tuple[int, int, float]] = {}

    async def run(self, id: str) -> None:
        """Runs slices of a task while this worker gets its lock; returns when the task has
        ended.
        """
        known: Known | None = None  # None = a slice of ours has failed, or there was none: the journal knows
        while self._running(id) is not None:
            try:
                async with lock(self._connection, self._prefix, f"task:{id}", hold_ms=LOCK_MS, wait_s=0):
                    await self._catalog.sync()
                    if (task := self._running(id)) is not None:
                        moved = known.moved if known is not None and known.place == place_of(task) else None
                        known = None
                        known = await self._slice(task, moved)
            except LockBusy:
                known = None  # who has it may move what lies beyond
                await asyncio.sleep(1)
            except (EngineError, StateError) as error:
                self._waits.pop(id, None)
                logger.warning("action=redrive task=%s error=%s", id, error)
                await asyncio.sleep(1)
        self._waits.pop(id, None)

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
        doubtful: Doubtful = [set() for _ in task.next_offsets]
        while task.status == TaskStatus.RUNNING and loop.time() - began < SAVE_S and self._running(task.id) is not None:
            await self._catalog.sync()
            queue = self._catalog.queues.get(task.source)
            if queue is None or queue.incarnation != task.source_incarnation:
                task = _failed(task, f"queue {task.source!r} was deleted")
                continue
            moved = await self._progress.moved_beyond(queue, task) if moved is None else moved
            if fault := self._destinations.fault(task):
                task = _failed(task, fault)
                continue
            budget = STEP if not task.rate else min(STEP, int(task.rate * (loop.time() - began + 0.05)) - (task.moved - before.moved))
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
                task = await self._step(task, queue, partition, budget, moved[partition], doubtful[partition])
            except (QueueNotFound, QueueRenewed):
                await asyncio.sleep(0.02)  # deleted just now: what this slice has counted is written above
        return await self._save(before, task, moved, doubtful, lives)

    async def _save(
        self, before: TaskRecord, task: TaskRecord, moved: Moved | None, doubtful: Doubtful, lives: dict[int, int]
    ) -> Known | None:
        """Writes how far a task got since `before` once the journal has all of that, unless another
        worker has taken it over meanwhile; what is known then. Raises LogUnavailable when Redis was
        lost since the `lives`: what was moved is to be looked at again.
        """
        queue = self._catalog.by_incarnation.get(task.source_incarnation)
        if queue is not None:
            with contextlib.suppress(QueueNotFound, QueueRenewed):  # deleted just now
                await self._progress.journaled(queue, lives)
                task = await self._with_doubtful(queue, before, task, doubtful)
        async with self._catalog.change(f"task/{task.id}") as change:
            current = self._catalog.tasks.get(task.id)
            if current is None or place_of(current) != place_of(before):
                logger.warning("action=redrive task=%s outcome=taken over", task.id)
                return None
            if current.status != TaskStatus.RUNNING:
                task = msgspec.structs.replace(task, status=current.status, failure=current.failure)
            ended = task.status != TaskStatus.RUNNING
            beyond = await self._beyond(queue, before, task, moved) if ended else 0
            record = msgspec.structs.replace(
                task,
                # From then on the journal has what was moved beyond the positions.
                modified_at_ms=task.modified_at_ms if any(moved or ()) and not ended else now_ms(),
                chosen=left_of(task.chosen, task.next_offsets, ended=ended),
                moved=task.moved + beyond,
                total=task.total + beyond,
            )
            await change.write(f"task/{task.id}", record)
            reached("redrive.saved")
        return None if moved is None else Known(place_of(record), moved)

    async def _beyond(self, queue: Queue | None, before: TaskRecord, task: TaskRecord, moved: Moved | None) -> int:
        """How many dead letters a task that has ended has moved at or after its positions, whoever
        ran it; of a queue that is gone those that are known here.
        """
        if task.status == TaskStatus.COMPLETED:
            return 0
        if queue is not None:
            with contextlib.suppress(QueueNotFound, QueueRenewed):
                moved = await self._progress.moved_beyond(queue, before)
        places = zip(moved or (), task.next_offsets, strict=False)
        return sum(offset >= at for offsets, at in places for offset in offsets)

    async def _with_doubtful(self, queue: Queue, before: TaskRecord, task: TaskRecord, doubtful: Doubtful) -> TaskRecord:
        """A runner before us that was paused may have settled some since we read: they count."""
        if not any(doubtful):
            return task
        found = await self._progress.moved_beyond(queue, before)
        own = sum(len(offsets & theirs) for offsets, theirs in zip(doubtful, found, strict=True))
        return msgspec.structs.replace(task, moved=task.moved + own, total=task.total + own)

    async def _step(self, task: TaskRecord, queue: Queue, partition: int, budget: int, moved: set[int], doubtful: set[int]) -> TaskRecord:
        """Moves up to `budget` dead letters of one partition; counts what lies before its new
        position, of its own work before too (`moved`).
        """
        end = task.end_offsets[partition]
        chunk = await self._messages.fetch(queue.topic, partition, task.next_offsets[partition], budget, 4_000_000)
        dead_letters: dict[int, tuple[Message, int]] = {}
        for record in chunk.records:
            try:
                message = with_priority(queue.record, partition, decode_message(record.value, record.headers))
            except UndecodableRecord:
                continue
            may_go = record.offset < end and next_chosen(task.chosen, partition, record.offset, end) == record.offset
            if may_go and matches(task.filter, message.attributes):
                dead_letters[record.offset] = (message, record.timestamp_ms)
        worked = await self._move(task, queue, partition, dead_letters)
        moved |= worked.moved
        nexts = list(task.next_offsets)
        is_short = chunk.at_end and not chunk.records and chunk.next_offset < end
        if worked.waits is not None:
            nexts[partition] = worked.waits
        elif not is_short:
            nexts[partition] = next_chosen(task.chosen, partition, chunk.next_offset, end)
        elif self._waited_s(task, partition, chunk.next_offset) > WAIT_S:
            # A broker that is not up to date knows better by now.
            logger.error("action=redrive task=%s topic=%s partition=%d outcome=log is short", task.id, queue.topic, partition)
            nexts[partition] = end
        passed = {offset for offset in moved if offset < nexts[partition]}
        moved -= passed
        doubtful |= {offset for offset in worked.settled - passed if offset < nexts[partition]}
        bad = sum(offset < nexts[partition] for offset in worked.failed)
        task = msgspec.structs.replace(
            task, next_offsets=nexts, moved=task.moved + len(passed), failed=task.failed + bad, total=task.total + len(passed) + bad
        )
        if worked.waits is not None or is_short:
            await asyncio.sleep(0.2)
        if worked.stored and worked.waits is not None and self._waited_s(task, partition, worked.waits) > WAIT_S:
            place = f"{queue.incarnation}/{partition}/{worked.waits}"
            return _failed(
                task,
                f"the message {place} lies behind more messages of queue {queue.name!r} than its window takes: move or receive those first",
            )
        return task

    def _waited_s(self, task: TaskRecord, partition: int, offset: int) -> float:
        """For how long it has waited there, 0 = it has just begun to."""
        now = asyncio.get_running_loop().time()
        found = self._waits.get(task.id)
        if found is None or found[:2] != (partition, offset):
            self._waits[task.id] = found = (partition, offset, now)
        return now - found[2]

    async def _move(self, task: TaskRecord, queue: Queue, partition: int, dead_letters: dict[int, tuple[Message, int]]) -> Worked:
        """Moves those that nobody holds to where they go."""
        store, tag, unit = self._store, queue.tag(None), queue.units[partition]
        self._note_use(queue, partition)
        targets = {offset: self._destinations.of(task, message) for offset, (message, _) in dead_letters.items()}
        ready = [offset for offset, target in targets.items() if target is not None]
        worked = Worked(set(), set(targets) - set(ready), set())
        if not ready:
            return worked
        states = await self._window.call(queue, lambda g: store.states(unit, g, tag.id, ready))
        wanted = [(offset, b"", beyond_key(queue, dead_letters[offset][0])) for offset in ready]
        until_ms = store.now_ms() + MOVER_LEASE_MS
        claimed = await self._window.call(
            queue, lambda g: store.claim(unit, g, tag.id, wanted, claim_ms=2 * MOVER_LEASE_MS, early_ms=MOVER_LEASE_MS)
        )
        reached("redrive.claimed")
        ours, waits = list[tuple[Held, Queue]](), dict[int, str]()
        for offset, state, (word, again_ms) in zip(ready, states, claimed.words, strict=True):
            target = targets[offset]
            if word == "ok" and target is not None:
                message, sent_at_ms = dead_letters[offset]
                first_ms = state.first_received_at_ms or 0
                held = Held(offset, claimed.nonce, message, sent_at_ms, state.count, first_ms, "", again_ms, until_ms)
                ours.append((held, target))
            elif word in ("held", "stored"):
                waits[offset] = word
            elif word == "busy":
                worked.failed.add(offset)
            elif word == "settled":
                worked.settled.add(offset)
        outcomes = await self._mover.move(queue, tag, partition, ours, task.id)
        worked.moved = {offset for offset, outcome in outcomes.items() if outcome is Outcome.MOVED}
        worked.failed |= {offset for offset, outcome in outcomes.items() if outcome is Outcome.FAILED}
        waits |= {offset: "later" for offset, outcome in outcomes.items() if outcome is Outcome.LATER}
        worked.waits = min(waits, default=None)
        worked.stored = worked.waits is not None and waits[worked.waits] == "stored"
        return worked


def _failed(task: TaskRecord, failure: str) -> TaskRecord:
    return msgspec.structs.replace(task, status=TaskStatus.FAILED, failure=failure)
