"""Redrive tasks: send dead letters on, to where they came from or to one queue; by filter, at a
rate, cancellable.

A task is a control record; one worker at a time runs it (a lock in Redis, renewed by re-taking),
writing its position every second. A crash repeats at most a second of work, and a dead letter that
was moved already is settled, so nothing is moved twice; the journal says that it was this task
(`progress.py`), so it is counted once. Neighbours: `mover.py` moves, script claim holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from engine.catalog.catalog import Catalog, Change
from engine.errors import EngineError, NotAllowedOnQueue, TaskEnded
from engine.log import Log
from engine.move.destinations import Destinations, no_task
from engine.move.mover import Held, Mover, Outcome, outcomes_of
from engine.move.progress import Moved, Progress
from engine.move.selection import Offsets, beyond_key, chosen_offsets, left_of, next_chosen
from engine.rules.ids import Ids
from engine.rules.limits import A_DEAD_LETTER_QUEUE, check_asked, check_filter
from engine.rules.placement import with_priority
from engine.rules.queue import Queue
from engine.runtime.clock import now_ms
from engine.runtime.failpoints import reached
from engine.window.window import MOVER_LEASE_MS, Window
from schemas.filters import Filter, matches
from schemas.records import Message, TaskRecord
from schemas.vocabulary import TaskStatus
from schemas.wire import UndecodableRecord, decode_message
from state.background import Background
from state.cancel import cancel_all
from state.errors import StateError
from state.redis.connection import Connection
from state.redis.lock import LockBusy, lock
from state.store import Store

logger = logging.getLogger(__name__)

STEP = 100
SAVE_S = 1.0
LOCK_MS = 15_000
KEEP_ENDED_MS = 3 * 86_400_000


class Tasks:
    """Redrive tasks: start, look, cancel, and the runner of this worker."""

    def __init__(
        self,
        prefix: str,
        log: Log,
        connection: Connection,
        store: Store,
        catalog: Catalog,
        window: Window,
        ids: Ids,
        backlog: Callable[[Queue], Awaitable[int]],
        destinations: Destinations,
        mover: Mover,
        progress: Progress,
        note_use: Callable[[Queue, int], None],
    ) -> None:
        self._prefix = prefix
        self._log = log
        self._connection = connection
        self._store = store
        self._catalog = catalog
        self._window = window
        self._ids = ids
        self._backlog = backlog
        self._destinations = destinations
        self._mover = mover
        self._progress = progress
        self._note_use = note_use
        self._background = Background()
        self._runner: asyncio.Task[None] | None = None
        self._running: dict[str, asyncio.Task[None]] = {}
        self._reread: set[str] = set()  # tasks that have asked the journal again in this slice
        self._kick = asyncio.Event()

    async def start(self) -> None:
        if self._runner is None:
            self._runner = self._background.keep(self._loop, "run_tasks")

    async def stop(self) -> None:
        await cancel_all(self._runner, *self._running.values())
        self._runner = None

    async def redrive(
        self,
        queue: Queue,
        principal: str,
        destination: Queue | None,
        filter: Filter | None,
        rate: int,
        *,
        alone: bool = False,
        ids: Sequence[str] | None = None,
    ) -> TaskRecord:
        """Starts a task over what is in `queue` now. `rate` messages a second, 0 = no bound. Raises
        InvalidValue, NotAllowedOnQueue.

        `alone`: raises NotAllowedOnQueue unless the queue is somebody's dead-letter queue and no
        other task is emptying it. `ids`: only these messages, see `chosen_offsets`.
        """
        check_asked("rate", rate)
        check_filter(filter)
        if destination is not None and destination.record.fifo != queue.record.fifo:
            raise NotAllowedOnQueue(
                f"{queue.name!r} and {destination.name!r} must both be FIFO queues or both not", field="destination", given=destination.name
            )
        chosen = None if ids is None else chosen_offsets(queue, ids, self._ids)
        catalog = self._catalog
        async with catalog.change(f"redrive/{queue.name}") as change:
            if not alone:
                return await self._begin(queue, principal, destination, filter, rate, chosen, change)
            if not self._destinations.is_dead_letter_queue(queue):
                raise NotAllowedOnQueue(
                    f"{queue.name!r} is the dead-letter queue of no queue", field="source", limit=A_DEAD_LETTER_QUEUE, given=queue.name
                )
            if any(task.status == TaskStatus.RUNNING for task in self.of_queue(queue)):
                raise NotAllowedOnQueue(f"a task is emptying {queue.name!r} already", field="source", given=queue.name)
            return await self._begin(queue, principal, destination, filter, rate, chosen, change)

    async def _begin(
        self,
        queue: Queue,
        principal: str,
        destination: Queue | None,
        filter: Filter | None,
        rate: int,
        chosen: Offsets | None,
        change: Change,
    ) -> TaskRecord:
        parts = [(queue.topic, p) for p in range(len(queue.units))]
        ends = await self._log.end_offsets(parts)
        starts = await self._log.start_offsets(parts)
        backlog = await self._backlog(queue)
        at = now_ms()
        end_offsets = [ends.get(part, 0) for part in parts]
        task = TaskRecord(
            id=secrets.token_hex(8),
            status=TaskStatus.RUNNING,
            source=queue.name,
            source_incarnation=queue.incarnation,
            destination=destination.name if destination is not None else "",
            filter=filter,
            rate=rate,
            created_at_ms=at,
            modified_at_ms=at,
            end_offsets=end_offsets,
            next_offsets=[next_chosen(chosen, p, starts.get(part, 0), end_offsets[p]) for p, part in enumerate(parts)],
            principal=principal,
            expected=backlog if chosen is None else sum(map(len, chosen)),
            chosen=chosen,
            destination_incarnation=destination.incarnation if destination is not None else "",
        )
        await change.write(f"task/{task.id}", task)
        self._kick.set()
        return task

    def of_queue(self, queue: Queue) -> list[TaskRecord]:
        """The tasks of this life of a queue, newest first; those that ended over three days ago are
        forgotten.
        """
        tasks = [task for task in self._catalog.tasks.values() if task.source_incarnation == queue.incarnation]
        return sorted(tasks, key=lambda task: task.created_at_ms, reverse=True)

    async def get(self, id: str) -> TaskRecord:
        """Raises TaskNotFound."""
        task = self._catalog.tasks.get(id)
        if task is None:
            await self._catalog.sync()
            task = self._catalog.tasks.get(id)
        if task is None:
            raise no_task(id)
        return task

    async def cancel(self, id: str) -> TaskRecord:
        """Stops a running task; what was moved stays moved, and the count is final. Raises
        TaskNotFound, TaskEnded.
        """
        async with self._catalog.change(f"task/{id}") as change:
            task = await self.get(id)
            if task.status != TaskStatus.RUNNING:
                raise TaskEnded(f"task {id!r} is {task.status}", field="id", given=id)
            left = left_of(task.chosen, task.next_offsets, ended=True)
            cancelled = msgspec.structs.replace(task, status=TaskStatus.CANCELLED, modified_at_ms=now_ms(), chosen=left)
            await change.write(f"task/{id}", cancelled)
        await self._count(task)
        return await self.get(id)

    async def _count(self, task: TaskRecord) -> None:
        """Returns when nobody works on a task, which was cancelled, and all that it moved is
        counted: who did has written that, or has died or failed, and the journal knows.
        """
        key = f"task/{task.id}"
        try:
            async with lock(self._connection, self._prefix, f"task:{task.id}", hold_ms=LOCK_MS, wait_s=LOCK_MS / 1000 + 1):
                await self._catalog.sync()
                queue = self._catalog.by_incarnation.get(task.source_incarnation)
                current = self._catalog.tasks.get(task.id)
                if queue is None or current is None or (current.next_offsets, current.total) != (task.next_offsets, task.total):
                    return
                beyond = sum(map(len, await self._progress.moved_beyond(queue, task)))
                if beyond:
                    async with self._catalog.change(key) as change:
                        counted = msgspec.structs.replace(current, moved=current.moved + beyond, total=current.total + beyond)
                        await change.write(key, counted)
        except (EngineError, StateError) as error:
            logger.warning("action=cancel task=%s error=%s", task.id, error)

    async def _loop(self) -> None:
        while True:
            for task in list(self._catalog.tasks.values()):
                if task.status == TaskStatus.RUNNING and task.id not in self._running:
                    runner = self._background.start(self._run(task.id), "redrive")
                    self._running[task.id] = runner
                    runner.add_done_callback(lambda _, id=task.id: self._running.pop(id, None))  # type: ignore[misc]
                elif task.status != TaskStatus.RUNNING and now_ms() - task.modified_at_ms > KEEP_ENDED_MS:
                    with contextlib.suppress(EngineError):
                        await self._forget(task.id)
            self._kick.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._kick.wait(), 1.0)

    async def _forget(self, id: str) -> None:
        async with self._catalog.change(f"task/{id}") as change:
            if id in self._catalog.tasks:
                await change.write(f"task/{id}", None)

    async def _run(self, id: str) -> None:
        """Runs slices of a task while this worker gets its lock."""
        connection, prefix = self._connection, self._prefix
        moved: Moved | None = None  # None = another may have worked on it, or a slice of ours has failed: the journal knows
        while (task := self._catalog.tasks.get(id)) is not None and task.status == TaskStatus.RUNNING:
            try:
                async with lock(connection, prefix, f"task:{id}", hold_ms=LOCK_MS, wait_s=0):
                    await self._catalog.sync()
                    task = self._catalog.tasks.get(id)
                    if task is not None and task.status == TaskStatus.RUNNING:
                        known, moved = moved, None
                        moved = await self._slice(task, known)
            except LockBusy:
                moved = None
                await asyncio.sleep(1)
            except (EngineError, StateError) as error:
                moved = None
                logger.warning("action=redrive task=%s error=%s", id, error)
                await asyncio.sleep(1)

    async def _slice(self, task: TaskRecord, moved: Moved | None) -> Moved | None:
        """Works for about a second, then writes how far it got; what it has moved beyond that, None
        = not known any more.
        """
        loop = asyncio.get_running_loop()
        began, before = loop.time(), task
        lives: dict[int, int] = {}  # of the units that it works on
        self._reread.discard(task.id)
        while loop.time() - began < SAVE_S and not self._cancelled(task.id):
            await self._catalog.sync()
            queue = self._catalog.queues.get(task.source)
            if queue is None or queue.incarnation != task.source_incarnation:
                return await self._save(before, task, moved, lives, TaskStatus.FAILED, f"queue {task.source!r} was deleted")
            moved = await self._progress.moved_beyond(queue, task) if moved is None else moved
            if fault := self._destinations.fault(task):
                return await self._save(before, task, moved, lives, TaskStatus.FAILED, fault)
            budget = STEP if not task.rate else min(STEP, int(task.rate * (loop.time() - began + 0.05)) - (task.moved - before.moved))
            if budget <= 0:
                await asyncio.sleep(0.02)
                continue
            partition = next((p for p, end in enumerate(task.end_offsets) if task.next_offsets[p] < end), None)
            if partition is None:
                return await self._save(before, task, moved, lives, TaskStatus.COMPLETED, "")
            if partition not in lives:
                lives[partition] = await self._progress.life(queue, partition)
            task = await self._step(task, queue, partition, budget, moved[partition])
        return await self._save(before, task, moved, lives, TaskStatus.RUNNING, "")

    def _cancelled(self, id: str) -> bool:
        task = self._catalog.tasks.get(id)
        return task is None or task.status != TaskStatus.RUNNING

    async def _save(
        self, before: TaskRecord, task: TaskRecord, moved: Moved | None, lives: dict[int, int], status: TaskStatus, failure: str
    ) -> Moved | None:
        """Writes how far a task got since `before` once the journal has all of that, unless another
        worker has taken it over meanwhile; gives `moved` back if it has not. Raises LogUnavailable
        when Redis was lost since the `lives`: what was moved is to be looked at again.
        """
        queue = self._catalog.by_incarnation.get(task.source_incarnation)
        if queue is not None:
            await self._progress.journaled(queue, lives)
        async with self._catalog.change(f"task/{task.id}") as change:
            current = self._catalog.tasks.get(task.id)
            if current is None or (current.next_offsets, current.total) != (before.next_offsets, before.total):
                logger.warning("action=redrive task=%s outcome=taken over", task.id)
                return None
            if current.status == TaskStatus.CANCELLED:
                status = TaskStatus.CANCELLED
            ended = status != TaskStatus.RUNNING
            left = left_of(task.chosen, task.next_offsets, ended=ended)
            beyond = sum(map(len, moved or ())) if ended else 0
            record = msgspec.structs.replace(
                task,
                status=status,
                failure=failure,
                modified_at_ms=now_ms(),
                chosen=left,
                moved=task.moved + beyond,
                total=task.total + beyond,
            )
            await change.write(f"task/{task.id}", record)
            reached("redrive.saved")
        return moved

    async def _step(self, task: TaskRecord, queue: Queue, partition: int, budget: int, moved: set[int]) -> TaskRecord:
        """Moves up to `budget` dead letters of one partition; counts what lies before its new
        position, of its own work before too (`moved`).
        """
        end = task.end_offsets[partition]
        chunk = await self._log.fetch(queue.topic, partition, task.next_offsets[partition], budget, 4_000_000)
        dead_letters: dict[int, tuple[Message, int]] = {}
        for record in chunk.records:
            try:
                message = with_priority(queue.record, partition, decode_message(record.value, record.headers))
            except UndecodableRecord:
                continue
            may_go = record.offset < end and next_chosen(task.chosen, partition, record.offset, end) == record.offset
            if may_go and matches(task.filter, message.attributes):
                dead_letters[record.offset] = (message, record.timestamp_ms)
        done, failed, settled, held = await self._move(task, queue, partition, dead_letters)
        moved |= done
        if not settled <= moved and task.id not in self._reread:
            # A runner before us that was paused may have settled it since we read.
            self._reread.add(task.id)
            moved |= (await self._progress.moved_beyond(queue, task))[partition]
        nexts = list(task.next_offsets)
        after = end if chunk.at_end else next_chosen(task.chosen, partition, chunk.next_offset, end)
        nexts[partition] = held if held is not None else after
        if held is not None:
            await asyncio.sleep(0.2)
        passed = {offset for offset in moved if offset < nexts[partition]}
        moved -= passed
        bad = sum(offset < nexts[partition] for offset in failed)
        return msgspec.structs.replace(
            task, next_offsets=nexts, moved=task.moved + len(passed), failed=task.failed + bad, total=task.total + len(passed) + bad
        )

    async def _move(
        self, task: TaskRecord, queue: Queue, partition: int, dead_letters: dict[int, tuple[Message, int]]
    ) -> tuple[set[int], set[int], set[int], int | None]:
        """(moved, failed, settled before, first offset that must wait: held by a lost claim or
        mover, or only a load can tell whether it repeats another).

        Settled dead letters are neither moved nor failed; leased ones have failed.
        """
        store, tag, unit = self._store, queue.tag(None), queue.units[partition]
        self._note_use(queue, partition)
        targets = {offset: self._destinations.of(task, message) for offset, (message, _) in dead_letters.items()}
        ready = [offset for offset, target in targets.items() if target is not None]
        failed, waits = set(targets) - set(ready), set[int]()
        settled = set[int]()
        if not ready:
            return set(), failed, settled, None
        states = await self._window.call(queue, lambda g: store.states(unit, g, tag.id, ready))
        wanted = [(offset, b"", beyond_key(queue, dead_letters[offset][0])) for offset in ready]
        claimed = await self._window.call(queue, lambda g: store.claim(unit, g, tag.id, wanted, claim_ms=MOVER_LEASE_MS))
        reached("redrive.claimed")
        moves = {}
        for offset, state, (word, again_ms) in zip(ready, states, claimed.words, strict=True):
            target = targets[offset]
            if word == "ok" and target is not None:
                message, sent_at_ms = dead_letters[offset]
                first_ms = state.first_received_at_ms or 0
                held = Held(offset, claimed.nonce, message, sent_at_ms, state.count, first_ms, "", again_ms)
                moves[offset] = self._mover.move(queue, tag, partition, held, target, task.id)
            elif word in ("held", "stored"):
                waits.add(offset)  # of a lost claim, or the window will have it soon
            elif word == "busy":
                failed.add(offset)
            elif word == "settled":
                settled.add(offset)
        outcomes = await outcomes_of(moves, in_turn=queue.record.fifo)
        failed |= {offset for offset, outcome in outcomes.items() if outcome is Outcome.FAILED}
        waits |= {offset for offset, outcome in outcomes.items() if outcome is Outcome.LATER}
        moved = {offset for offset, outcome in outcomes.items() if outcome is Outcome.MOVED}
        return moved, failed, settled, min(waits, default=None)
