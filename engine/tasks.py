"""Redrive tasks: send dead letters on, to where they came from or to one queue; by filter, at a rate, cancellable.

A task is a control record; one worker at a time runs it (a lock in Redis, renewed by re-taking), writing its position every
second. A crash repeats at most a second of work, and a letter that was moved already is settled, so nothing is moved twice.
Neighbours: `mover.py` moves, script claim holds. Must not know HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Sequence

import msgspec

from engine.chosen import Offsets, chosen_offsets, left_of, next_chosen
from engine.core import MOVE_MS, Core, move_key_of, now_ms
from engine.errors import EngineError, NotAllowedOnQueue, TaskEnded, TaskNotFound
from engine.failpoints import reached
from engine.limits import check_filter, check_range
from engine.mover import Held, Mover
from engine.queue import Queue
from engine.show import tag_infos
from schemas.filters import Filter, matches
from schemas.records import Message, TaskRecord
from schemas.vocabulary import TaskStatus
from schemas.wire import UndecodableRecord, decode_message
from state.ending import end
from state.errors import StateError
from state.lock import LockBusy, lock

logger = logging.getLogger(__name__)

STEP = 100
SAVE_S = 1.0
LOCK_MS = 15_000
KEEP_ENDED_MS = 3 * 86_400_000


class Tasks:
    """Redrive tasks: start, look, cancel, and the runner of this worker."""

    def __init__(self, core: Core, mover: Mover) -> None:
        self._core = core
        self._mover = mover
        self._runner: asyncio.Task[None] | None = None
        self._running: dict[str, asyncio.Task[None]] = {}
        self._kick = asyncio.Event()

    async def start(self) -> None:
        if self._runner is None:
            self._runner = asyncio.create_task(self._loop())

    async def stop(self) -> None:
        await end(self._runner, *self._running.values())
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
        """Starts a task over what is in `queue` now. `rate` messages a second, 0 = no bound. Raises InvalidValue, NotAllowedOnQueue.

        `alone`: raises NotAllowedOnQueue unless the queue is somebody's dead-letter queue and no other task is emptying it.
        `ids`: only these messages, see `chosen_offsets`.
        """
        check_range("rate", rate, 0, 100_000)
        check_filter(filter)
        if destination is not None and destination.record.fifo != queue.record.fifo:
            raise NotAllowedOnQueue(
                f"{queue.name!r} and {destination.name!r} must both be FIFO queues or both not", field="destination", given=destination.name
            )
        chosen = None if ids is None else chosen_offsets(queue, ids, self._core.secret)
        if not alone:
            return await self._begin(queue, principal, destination, filter, rate, chosen)
        control = self._core.control
        async with control.change(f"redrive/{queue.name}"):
            if not control.sources.get(queue.name):
                raise NotAllowedOnQueue(f"{queue.name!r} is the dead-letter queue of no queue", field="source", given=queue.name)
            if any(task.status == TaskStatus.RUNNING for task in self.of(queue)):
                raise NotAllowedOnQueue(f"a task is emptying {queue.name!r} already", field="source", given=queue.name)
            return await self._begin(queue, principal, destination, filter, rate, chosen)

    async def _begin(
        self, queue: Queue, principal: str, destination: Queue | None, filter: Filter | None, rate: int, chosen: Offsets | None
    ) -> TaskRecord:
        parts = [(queue.topic, p) for p in range(len(queue.units))]
        ends = await self._core.log.end_offsets(parts)
        starts = await self._core.log.start_offsets(parts)
        (tag,) = await tag_infos(self._core, queue, [queue.tag(None)])
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
            expected=tag.backlog if chosen is None else sum(map(len, chosen)),
            chosen=chosen,
        )
        await self._core.control.write(f"task/{task.id}", task)
        self._kick.set()
        return task

    def of(self, queue: Queue) -> list[TaskRecord]:
        """The tasks of this life of a queue, newest first; those that ended over three days ago are forgotten."""
        tasks = [task for task in self._core.control.tasks.values() if task.source_incarnation == queue.incarnation]
        return sorted(tasks, key=lambda task: task.created_at_ms, reverse=True)

    async def get(self, id: str) -> TaskRecord:
        """Raises TaskNotFound."""
        task = self._core.control.tasks.get(id)
        if task is None:
            await self._core.control.sync()
            task = self._core.control.tasks.get(id)
        if task is None:
            raise TaskNotFound(f"there is no task {id!r}", field="id", given=id[:100])
        return task

    async def cancel(self, id: str) -> TaskRecord:
        """Stops a running task; what was moved stays moved. Raises TaskNotFound, TaskEnded."""
        async with self._core.control.change(f"task/{id}"):
            task = await self.get(id)
            if task.status != TaskStatus.RUNNING:
                raise TaskEnded(f"task {id!r} is {task.status}", field="id", given=id)
            left = left_of(task.chosen, task.next_offsets, ended=True)
            task = msgspec.structs.replace(task, status=TaskStatus.CANCELLED, modified_at_ms=now_ms(), chosen=left)
            await self._core.control.write(f"task/{id}", task)
        return await self.get(id)

    async def _loop(self) -> None:
        while True:
            for task in list(self._core.control.tasks.values()):
                if task.status == TaskStatus.RUNNING and task.id not in self._running:
                    runner = asyncio.create_task(self._run(task.id))
                    self._running[task.id] = runner
                    runner.add_done_callback(lambda _, id=task.id: self._running.pop(id, None))  # type: ignore[misc]
                elif task.status != TaskStatus.RUNNING and now_ms() - task.modified_at_ms > KEEP_ENDED_MS:
                    with contextlib.suppress(EngineError):
                        await self._core.control.write(f"task/{task.id}", None)
            self._kick.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._kick.wait(), 1.0)

    async def _run(self, id: str) -> None:
        """Runs slices of a task while this worker gets its lock."""
        connection, prefix = self._core.connection, self._core.settings.topic_prefix
        while (task := self._core.control.tasks.get(id)) is not None and task.status == TaskStatus.RUNNING:
            try:
                async with lock(connection, prefix, f"task:{id}", hold_ms=LOCK_MS, wait_s=0):
                    await self._core.control.sync()
                    task = self._core.control.tasks.get(id)
                    if task is not None and task.status == TaskStatus.RUNNING:
                        await self._slice(task)
            except LockBusy:
                await asyncio.sleep(1)
            except (EngineError, StateError) as error:
                logger.warning("action=redrive task=%s error=%s", id, error)
                await asyncio.sleep(1)

    async def _slice(self, task: TaskRecord) -> None:
        """Works for about a second, then writes how far it got."""
        loop = asyncio.get_running_loop()
        began, moved_before = loop.time(), task.moved
        while loop.time() - began < SAVE_S and not self._cancelled(task.id):
            queue = self._core.control.queues.get(task.source)
            if queue is None or queue.incarnation != task.source_incarnation:
                return await self._save(task, TaskStatus.FAILED, f"queue {task.source!r} was deleted")
            if task.destination and task.destination not in self._core.control.queues:
                return await self._save(task, TaskStatus.FAILED, f"queue {task.destination!r} was deleted")
            budget = STEP if not task.rate else min(STEP, int(task.rate * (loop.time() - began + 0.05)) - (task.moved - moved_before))
            if budget <= 0:
                await asyncio.sleep(0.02)
                continue
            partition = next((p for p, end in enumerate(task.end_offsets) if task.next_offsets[p] < end), None)
            if partition is None:
                return await self._save(task, TaskStatus.COMPLETED, "")
            task = await self._step(task, queue, partition, budget)
            if task.status != TaskStatus.RUNNING:
                return await self._save(task, TaskStatus(task.status), task.failure)
        await self._save(task, TaskStatus.RUNNING, "")
        return None

    def _cancelled(self, id: str) -> bool:
        task = self._core.control.tasks.get(id)
        return task is None or task.status != TaskStatus.RUNNING

    async def _save(self, task: TaskRecord, status: TaskStatus, failure: str) -> None:
        async with self._core.control.change(f"task/{task.id}"):
            current = self._core.control.tasks.get(task.id)
            if current is not None and current.status == TaskStatus.CANCELLED:
                status = TaskStatus.CANCELLED
            left = left_of(task.chosen, task.next_offsets, ended=status != TaskStatus.RUNNING)
            record = msgspec.structs.replace(task, status=status, failure=failure, modified_at_ms=now_ms(), chosen=left)
            await self._core.control.write(f"task/{task.id}", record)
            reached("redrive.saved")

    async def _step(self, task: TaskRecord, queue: Queue, partition: int, budget: int) -> TaskRecord:
        """Moves up to `budget` letters of one partition."""
        core, end = self._core, task.end_offsets[partition]
        chunk = await core.log.fetch(queue.topic, partition, task.next_offsets[partition], budget, 4_000_000)
        letters: dict[int, tuple[Message, int]] = {}
        for record in chunk.records:
            try:
                message = decode_message(record.value, record.headers)
            except UndecodableRecord:
                continue
            may_go = record.offset < end and next_chosen(task.chosen, partition, record.offset, end) == record.offset
            if may_go and matches(task.filter, message.attributes):
                letters[record.offset] = (message, record.timestamp_ms)
        moved, failed, held = await self._move(task, queue, partition, letters)
        nexts = list(task.next_offsets)
        after = end if chunk.at_end else next_chosen(task.chosen, partition, chunk.next_offset, end)
        nexts[partition] = held if held is not None else after
        if held is not None:
            await asyncio.sleep(0.2)
        return msgspec.structs.replace(
            task, next_offsets=nexts, moved=task.moved + moved, failed=task.failed + failed, total=task.total + moved + failed
        )

    async def _move(
        self, task: TaskRecord, queue: Queue, partition: int, letters: dict[int, tuple[Message, int]]
    ) -> tuple[int, int, int | None]:
        """(moved, failed, first offset that must wait: held by a lost claim, or only a load can tell whether it repeats another).

        Settled letters count as neither moved nor failed; leased ones as failed.
        """
        core, tag, unit = self._core, queue.tag(None), queue.units[partition]
        core.touched(queue, partition)
        targets = {offset: self._target(task, message) for offset, (message, _) in letters.items()}
        ready = [offset for offset, target in targets.items() if target is not None]
        failed, first_held = len(targets) - len(ready), None
        if not ready:
            return 0, failed, None
        states = await core.on_state(queue, lambda g: core.store.states(unit, g, tag.id, ready))
        wanted = [(offset, b"", _beyond_key(queue, letters[offset][0])) for offset in ready]
        claimed = await core.on_state(queue, lambda g: core.store.claim(unit, g, tag.id, wanted, claim_ms=MOVE_MS))
        reached("redrive.claimed")
        moves = []
        for offset, state, (word, again_ms) in zip(ready, states, claimed.words, strict=True):
            target = targets[offset]
            if word == "ok" and target is not None:
                message, sent_at_ms = letters[offset]
                first_ms = state.first_received_at_ms or 0
                held = Held(offset, claimed.nonce, message, sent_at_ms, state.count, first_ms, "", again_ms)
                moves.append(self._mover.move(queue, tag, partition, held, target, "moved"))
            elif word in ("held", "stored") and first_held is None:
                first_held = offset  # of a lost claim, or the window will have it soon
            elif word == "busy":
                failed += 1
        if queue.record.fifo:
            done = [await move for move in moves]
        else:
            # Side by side: one after the other, the answers of Kafka would bound the rate.
            done = await asyncio.gather(*moves)
        return sum(done), failed + len(done) - sum(done), first_held

    def _target(self, task: TaskRecord, message: Message) -> Queue | None:
        if task.destination:
            return self._core.control.queues.get(task.destination)
        return self._core.control.queues.get(message.origin.original_queue) if message.origin is not None else None


def _beyond_key(queue: Queue, message: Message) -> str:
    """The key by which a letter may be claimed beyond the window; FIFO letters go in order, so from the window."""
    origin = message.origin
    return "" if origin is None or queue.record.fifo else move_key_of(origin.from_id, origin.from_tag)
