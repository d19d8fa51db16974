"""The verbs of redrive tasks: dead letters go back to where they came from, or elsewhere; and those
of parked groups.

Each method passes the authoriser before anything else.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.catalog.catalog import Catalog
from engine.gate import Gate
from engine.move.parts import ParkingParts
from engine.move.tasks.destinations import no_task
from engine.move.tasks.redrive import Tasks
from engine.queues.callers.access import Access
from engine.rules.limits import check_name
from engine.services.accounts import task_for
from engine.services.bounded import bounded
from engine.shapes import ParkedPage, Principal, TaskInfo
from runtime.asked import note
from runtime.deadline import CHANGE_S, MESSAGES_S
from schemas.accounts import full
from schemas.filters import Filter
from schemas.records import TaskRecord
from schemas.vocabulary import Verb


class TaskService:
    """Redrive tasks and parked groups."""

    def __init__(self, gate: Gate, catalog: Catalog, access: Access, tasks: Tasks, parking: ParkingParts) -> None:
        self._gate = gate
        self._catalog = catalog
        self._access = access
        self._tasks = tasks
        self._parked = parking.parked
        self._parking = parking.parking

    @bounded(CHANGE_S)
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
        where it came from: to that life of the queue, if `by` may send there at that time.

        `alone`: raises NotAllowedOnQueue unless `queue` is somebody's dead-letter queue and no
        other task is emptying it. `ids`: only these, 1 to 10,000 message ids or addresses
        `incarnation/partition/offset`.
        """
        subject = "" if destination is None else full(by.account, destination)
        note(by.id, by.key_id, Verb.REDRIVE, full(by.account, queue), subject=subject)
        found = await self._gate.queue(by, Verb.REDRIVE, queue)
        target = None
        if destination is not None:
            check_name("destination", destination)
            target = await self._gate.queue(by, Verb.SEND, destination)
        return _shown(by, await self._tasks.redrive(found, by.id, target, filter, rate, alone=alone, ids=ids))

    @bounded(MESSAGES_S)
    async def list_tasks(self, by: Principal, queue: str) -> list[TaskInfo]:
        """The tasks that empty `queue` or did in the last three days, newest first."""
        return [_shown(by, task) for task in self._tasks.of_queue(await self._gate.queue(by, Verb.REDRIVE, queue))]

    @bounded(MESSAGES_S)
    async def get_task(self, by: Principal, id: str) -> TaskInfo:
        task = await self._tasks.get(id)
        queue = self._catalog.by_incarnation.get(task.source_incarnation)
        if queue is not None and not self._access.knows(by, queue):
            raise no_task(id)
        self._access.authorise(by, Verb.REDRIVE, queue)
        return _shown(by, task)

    @bounded(CHANGE_S)
    async def cancel_task(self, by: Principal, id: str) -> TaskInfo:
        await self.get_task(by, id)
        return _shown(by, await self._tasks.cancel(id))

    @bounded(MESSAGES_S)
    async def parked_groups(self, by: Principal, queue: str, tag: str | None, limit: int, next: str | None) -> ParkedPage:
        """A page of the groups of a FIFO queue that are held back under a tag. Raises
        NotAllowedOnQueue, InvalidValue.
        """
        found = await self._gate.queue(by, Verb.QUERY, queue, tag)
        return await self._parked.groups(found, found.tag(tag), limit, next)

    @bounded(MESSAGES_S)
    async def unpark(self, by: Principal, queue: str, tag: str | None, group: str, *, kill: bool = False) -> bool:
        """Resumes a parked group under a tag; False = it is not parked. Its first message is
        received again, as if it never had been; with `kill` it goes to the dead-letter queue.
        """
        found = await self._gate.queue(by, Verb.UNPARK, queue, tag)
        return await self._parking.unpark(found, found.tag(tag), group, kill=kill)


def _shown(by: Principal, task: TaskRecord) -> TaskInfo:
    return task_for(by.account, task_info(task))


def task_info(task: TaskRecord) -> TaskInfo:
    """A redrive task."""
    return TaskInfo(
        id=task.id,
        status=task.status,
        source=task.source,
        destination=task.destination or None,
        filter=task.filter,
        rate=task.rate,
        moved=task.moved,
        failed=task.failed,
        total=task.total,
        created_at_ms=task.created_at_ms,
        modified_at_ms=task.modified_at_ms,
        failure=task.failure,
        expected=task.expected,
    )
