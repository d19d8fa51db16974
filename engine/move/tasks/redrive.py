"""Redrive tasks: send dead letters on, to where they came from or to one queue; by filter, at a
rate, cancellable.

A task is a control record; one worker at a time runs it (a lock in Redis, renewed by re-taking),
writing its position every second.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias
from uuid import uuid4

import msgspec

from engine.catalog.catalog import Catalog, Change
from engine.errors import EngineError, NotAllowedOnQueue, TaskEnded
from engine.log import Log
from engine.move.tasks.outcomes import Row
from engine.move.tasks.preview import Previews
from engine.move.tasks.selection import (
    Destinations,
    Offsets,
    check_choice,
    chosen_offsets,
    left_of,
    next_chosen,
    no_task,
)
from engine.move.tasks.task_runner import TaskRunner, write_task
from engine.rules.limits import A_DEAD_LETTER_QUEUE, check_asked, check_filter
from engine.rules.queue import Ids, Queue
from runtime.background import Background
from runtime.clock import now_ms
from schemas.filters import Filter
from schemas.records import Choice, TaskRecord
from schemas.records.moves import LetterOutcome
from schemas.vocabulary import TaskStatus

logger = logging.getLogger(__name__)

KEEP_ENDED_MS = 3 * 86_400_000
# How long, and how often, a worker tries to count what a cancelled task has moved.
COUNT_WITHIN_S = 600.0
COUNT_AGAIN_S = 2.0


Backlog: TypeAlias = Callable[[Queue], Awaitable[int]]


class Tasks:
    """Redrive tasks: start, look, cancel, and the runner of this worker."""

    def __init__(
        self,
        log: Log,
        catalog: Catalog,
        ids: Ids,
        backlog: Backlog,
        destinations: Destinations,
        runner: TaskRunner,
        previews: Previews,
    ) -> None:
        self._log = log
        self._catalog = catalog
        self.ids: Final = ids
        self.backlog: Final = backlog
        self.preview: Final = previews.preview
        self.is_dead_letter_queue: Final = destinations.is_dead_letter_queue
        self._runner = runner
        self._background = Background()
        self._loop_task: asyncio.Task[None] | None = None
        self._running: dict[str, asyncio.Task[None]] = {}
        self._kick = asyncio.Event()

    async def start(self) -> None:
        if self._loop_task is None:
            self._loop_task = self._background.keep(self._loop, "run_tasks")

    async def stop(self) -> None:
        await self._background.stop()
        self._loop_task = None

    async def begin(self, queue: Queue, task: TaskRecord, *, alone: bool = False) -> TaskRecord:
        """Starts a planned task over what is in `queue` now. Raises Unavailable.

        `alone`: raises NotAllowedOnQueue unless the queue is somebody's dead-letter queue and no
        other task is emptying it.
        """
        async with self._catalog.change(f"redrive/{queue.name}") as change:
            if not alone:
                return await self._begin(queue, task, change)
            if not self.is_dead_letter_queue(queue):
                raise NotAllowedOnQueue(
                    f"{queue.name!r} is the dead-letter queue of no queue",
                    field="source",
                    limit=A_DEAD_LETTER_QUEUE,
                    given=queue.name,
                )
            if any(task.status == TaskStatus.RUNNING for task in self.of_queue(queue)):
                raise NotAllowedOnQueue(f"a task is emptying {queue.name!r} already", field="source", given=queue.name)
            return await self._begin(queue, task, change)

    def planned(
        self,
        queue: Queue,
        principal: str,
        destination: Queue | None,
        filter: Filter | None,
        rate: int,
        *,
        ids: Sequence[str] | None = None,
        choice: Choice | None = None,
    ) -> TaskRecord:
        """A task that is not begun. `rate` messages a second, 0 = no bound. `ids`: only these
        messages, see `chosen_offsets`; `choice`: only such. Raises InvalidValue, NotAllowedOnQueue.
        """
        check_asked("rate", rate)
        check_filter(filter)
        check_choice(choice)
        if destination is not None and destination.record.fifo != queue.record.fifo:
            raise NotAllowedOnQueue(
                f"{queue.name!r} and {destination.name!r} must both be FIFO queues or both not",
                field="destination",
                given=destination.name,
            )
        chosen = None if ids is None else chosen_offsets(queue, ids, self.ids)
        at = now_ms()
        return TaskRecord(
            id=str(uuid4()),
            status=TaskStatus.RUNNING,
            source=queue.name,
            source_incarnation=queue.incarnation,
            destination=destination.name if destination is not None else "",
            filter=filter,
            rate=rate,
            created_at_ms=at,
            modified_at_ms=at,
            end_offsets=[],
            next_offsets=[],
            principal=principal,
            chosen=chosen,
            destination_incarnation=destination.incarnation if destination is not None else "",
            choice=choice,
        )

    async def placed(self, queue: Queue, task: TaskRecord) -> tuple[TaskRecord, list[Row]]:
        """A planned task over what is in the queue now, and the outcomes of what was chosen and is
        not there.
        """
        choice, chosen = task.choice or Choice(), task.chosen
        parts = [(queue.topic, p) for p in range(len(queue.units))]
        ends, starts = await self._log.end_offsets(parts), await self._log.start_offsets(parts)
        kept = [(starts.get(part, 0), ends.get(part, 0)) for part in parts]
        spans = kept
        if choice.from_ms:
            at = await self._log.offsets_at(parts, choice.from_ms)
            spans = [(max(low, at.get(part, low)), high) for part, (low, high) in zip(parts, spans, strict=True)]
        if choice.to_ms:
            at = await self._log.offsets_at(parts, choice.to_ms)
            spans = [(low, min(high, at.get(part, high))) for part, (low, high) in zip(parts, spans, strict=True)]
        placed = msgspec.structs.replace(
            task,
            end_offsets=[high for _, high in spans],
            next_offsets=[next_chosen(chosen, p, low, high) for p, (low, high) in enumerate(spans)],
            expected=await self.backlog(queue) if chosen is None else sum(map(len, chosen)),
        )
        return placed, _out_of(chosen or [], kept, spans)

    async def _begin(self, queue: Queue, task: TaskRecord, change: Change) -> TaskRecord:
        task, rows = await self.placed(queue, task)
        await write_task(change, task, rows)
        self._kick.set()
        return task

    def of_queue(self, queue: Queue) -> list[TaskRecord]:
        """The tasks of this life of a queue, newest first; those that ended over three days ago are
        forgotten.
        """
        tasks = [task for task in self._catalog.tasks.values() if task.source_incarnation == queue.incarnation]
        return sorted(tasks, key=lambda task: task.created_at_ms, reverse=True)

    def all(self) -> list[TaskRecord]:
        """All tasks, newest first."""
        return sorted(self._catalog.tasks.values(), key=lambda task: (task.created_at_ms, task.id), reverse=True)

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
        if not await self._runner.count(task):
            self._background.start(self._count_later(task), "count_task")
        return await self.get(id)

    async def _count_later(self, task: TaskRecord) -> None:
        """Counts it when Kafka and Redis are back."""
        deadline = asyncio.get_running_loop().time() + COUNT_WITHIN_S
        while asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(COUNT_AGAIN_S)
            if await self._runner.count(task):
                return
        logger.error("action=count_task task=%s outcome=given up within_s=%d", task.id, COUNT_WITHIN_S)

    async def _loop(self) -> None:
        while True:
            for task in list(self._catalog.tasks.values()):
                if task.status == TaskStatus.RUNNING and task.id not in self._running:
                    runner = self._background.start(self._runner.run(task.id), "redrive")
                    self._running[task.id] = runner
                    runner.add_done_callback(lambda _, id=task.id: self._running.pop(id, None))  # type: ignore[misc]
                elif task.status != TaskStatus.RUNNING and now_ms() - task.modified_at_ms > KEEP_ENDED_MS:
                    await self._forget("task", task.id, self._catalog.tasks)
            for name, page in list(self._catalog.outcomes.items()):
                if page.task not in self._catalog.tasks and now_ms() - page.at_ms > KEEP_ENDED_MS:
                    await self._forget("outcomes", name, self._catalog.outcomes)
            self._kick.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._kick.wait(), 1.0)

    async def _forget(self, kind: str, name: str, known: Mapping[str, object]) -> None:
        """Deletes a control record, now or in the next round."""
        with contextlib.suppress(EngineError):
            async with self._catalog.change(f"{kind}/{name}") as change:
                if name in known:
                    await change.write(f"{kind}/{name}", None)


def _out_of(chosen: Offsets, kept: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]) -> list[Row]:
    """The outcomes of what was chosen and is not in the spans, by partition: Kafka has it no more,
    or the task moves none of that time.
    """
    return [
        Row(p, offset, LetterOutcome.SKIPPED if kept[p][0] <= offset < kept[p][1] else LetterOutcome.GONE)
        for p, offsets in enumerate(chosen)
        for offset in offsets
        if not spans[p][0] <= offset < spans[p][1]
    ]
