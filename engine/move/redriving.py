"""The verbs of redrive tasks: dead letters go back to where they came from, or elsewhere.

Each method passes the authoriser before anything else. Neighbours: `engine.py` has the other verbs.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.move.redrive import Tasks
from engine.queues.callers.callers import Callers
from engine.rules.limits import check_name
from engine.shapes import Principal, TaskInfo, task_info
from schemas.filters import Filter
from schemas.vocabulary import Verb


class Redriving(Callers):
    """The part of an engine that knows redrive tasks; the engine gives it `_tasks`."""

    _tasks: Tasks

    async def redrive(
        self,
        by: Principal,
        queue: str,
        destination: str | None,
        filter: Filter | None,
        rate: int,
        alone: bool = False,
        ids: Sequence[str] | None = None,
    ) -> TaskInfo:
        """Starts a task that sends the dead letters of `queue` to `destination`, None = each to
        where it came from.

        `alone`: raises NotAllowedOnQueue unless `queue` is somebody's dead-letter queue and no
        other task is emptying it. `ids`: only these, 1 to 10,000 message ids or addresses
        `incarnation/partition/offset`.
        """
        found = await self._queue(by, Verb.REDRIVE, queue)
        target = None
        if destination is not None:
            check_name("destination", destination)
            target = await self._queue(by, Verb.REDRIVE, destination)
        return task_info(await self._tasks.redrive(found, by.id, target, filter, rate, alone=alone, ids=ids))

    async def list_tasks(self, by: Principal, queue: str) -> list[TaskInfo]:
        """The tasks that empty `queue` or did in the last three days, newest first."""
        return [task_info(task) for task in self._tasks.of_queue(await self._queue(by, Verb.REDRIVE, queue))]

    async def get_task(self, by: Principal, id: str) -> TaskInfo:
        task = await self._tasks.get(id)
        self._access.authorise(by, Verb.REDRIVE, self.catalog.queues.get(task.source))
        return task_info(task)

    async def cancel_task(self, by: Principal, id: str) -> TaskInfo:
        await self.get_task(by, id)
        return task_info(await self._tasks.cancel(id))
