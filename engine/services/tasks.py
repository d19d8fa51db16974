"""The verbs of redrive tasks: dead letters go back to where they came from, or elsewhere; and those
of parked groups.

Each method passes the authoriser before anything else.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from engine.catalog.catalog import Catalog
from engine.errors import InvalidValue
from engine.gate import Gate, bounded
from engine.move.parts import ParkingParts
from engine.move.shapes import Letters, Preview
from engine.move.tasks.preview import new_scan
from engine.move.tasks.redrive import Tasks
from engine.move.tasks.selection import no_task
from engine.queues.callers.access import Access
from engine.rules.limits import check_asked, check_name
from engine.rules.masks.mask import HIDDEN, Mask
from engine.rules.masks.sight import masked
from engine.rules.queue import Queue
from engine.services.accounts import task_for
from engine.services.letters import choice_of, letters_of, preview_for, sources
from engine.shapes import ParkedPage, Principal, TaskInfo
from runtime.asked import look, note
from runtime.deadline import CHANGE_S, MESSAGES_S
from runtime.scan import Scan
from schemas.accounts import account_of, full
from schemas.filters import Filter
from schemas.records import Choice, TaskRecord
from schemas.vocabulary import TaskStatus, Verb


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
        choice: Choice | None = None,
    ) -> TaskInfo:
        """Starts a task that sends the dead letters of `queue` to `destination`, None = each to
        where it came from: to that life of the queue, if `by` may send there at that time.

        `alone`: raises NotAllowedOnQueue unless `queue` is somebody's dead-letter queue and no
        other task is emptying it. `ids`: only these, 1 to 10,000 message ids or addresses
        `incarnation/partition/offset`; `choice`: only such.
        """
        subject = "" if destination is None else full(by.account, destination)
        note(by.id, by.key_id, Verb.REDRIVE, full(by.account, queue), subject=subject)
        found = await self._gate.queue(by, Verb.REDRIVE, queue)
        target = await self._target(by, destination)
        choice = choice_of(by, choice)
        self._check_sight(by, found, filter, choice)
        task = self._tasks.planned(found, by.id, target, filter, rate, ids=ids, choice=choice)
        return self._shown(by, await self._tasks.begin(found, task, alone=alone))

    async def _target(self, by: Principal, destination: str | None) -> Queue | None:
        if destination is None:
            return None
        check_name("destination", destination)
        return await self._gate.queue(by, Verb.SEND, destination)

    @bounded(CHANGE_S)
    async def redrive_all(
        self,
        by: Principal,
        destination: str | None,
        filter: Filter | None,
        rate: int,
        ids: Sequence[str] | None = None,
        choice: Choice | None = None,
    ) -> list[TaskInfo]:
        """As `redrive`, of all dead-letter queues with letters that `by` may redrive, a task for
        each; with `ids` of those that have these. Those that were started go on when one fails.
        """
        target, choice = await self._target(by, destination), choice_of(by, choice)
        await self._gate.sync()
        found = await sources(by, self._catalog, self._access, self._tasks, ids)
        for queue, _ in found:
            self._check_sight(by, queue, filter, choice)
        plans = [  # what is wrong is said before one is started
            (queue, self._tasks.planned(queue, by.id, target, filter, rate, ids=some, choice=choice))
            for queue, some in found
            if queue is not target
        ]
        started = []
        for queue, task in plans:
            note(by.id, by.key_id, Verb.REDRIVE, queue.name, subject="" if target is None else target.name)
            started.append(self._shown(by, await self._tasks.begin(queue, task)))
        return started

    @bounded(MESSAGES_S)
    @look
    async def preview_redrive(
        self,
        by: Principal,
        queue: str,
        destination: str | None,
        filter: Filter | None,
        ids: Sequence[str] | None = None,
        choice: Choice | None = None,
    ) -> Preview:
        """What `redrive` would do; nothing is held or counted."""
        found = await self._gate.queue(by, Verb.REDRIVE, queue)
        target = await self._target(by, destination)
        return await self._previewed(by, found, target, filter, ids, choice_of(by, choice), new_scan())

    @bounded(MESSAGES_S)
    @look
    async def preview_redrive_all(
        self,
        by: Principal,
        destination: str | None,
        filter: Filter | None,
        ids: Sequence[str] | None = None,
        choice: Choice | None = None,
    ) -> list[Preview]:
        """What `redrive_all` would do, as far as one preview may read."""
        target, choice = await self._target(by, destination), choice_of(by, choice)
        await self._gate.sync()
        found, scan = await sources(by, self._catalog, self._access, self._tasks, ids), new_scan()
        return [
            await self._previewed(by, queue, target, filter, some, choice, scan)
            for queue, some in found
            if queue is not target
        ]

    async def _previewed(
        self,
        by: Principal,
        queue: Queue,
        target: Queue | None,
        filter: Filter | None,
        ids: Sequence[str] | None,
        choice: Choice | None,
        scan: Scan,
    ) -> Preview:
        self._check_sight(by, queue, filter, choice)
        task, _ = await self._tasks.placed(
            queue, self._tasks.planned(queue, by.id, target, filter, 0, ids=ids, choice=choice)
        )
        return preview_for(by.account, await self._tasks.preview(queue, task, scan))

    def _check_sight(self, by: Principal, queue: Queue, filter: Filter | None, choice: Choice | None) -> None:
        """Raises NotAuthorised when `by` chooses letters by what masks hide from them: what is
        moved would tell whether it is there. Letters may be from anywhere, also by policies of
        before, so the mask of any queue counts.
        """
        masks = self._masks(by, queue)
        if masks and choice is not None and choice.text:
            raise masked(by, queue, "choose them by text")
        if any(mask.hides_attributes for mask in masks) and filter is not None:
            raise masked(by, queue, "choose them by attributes")

    def _masks(self, by: Principal, queue: Queue) -> list[Mask]:
        """What may hide something of letters of a queue from `by`."""
        if self._gate.sight(by, queue, queue.tag(None)) is None:
            return []
        account = account_of(queue.name)
        return [
            one.hides
            for one in self._catalog.masked.values()
            if one.hides is not None and account_of(one.name) == account
        ]

    def _shown(self, by: Principal, task: TaskRecord) -> TaskInfo:
        """A task; without what somebody else chose by, where masks hide that from `by`."""
        shown = task_for(by.account, task_info(task))
        queue = self._catalog.by_life.get(task.source_incarnation)
        if task.principal == by.id or queue is None or not (masks := self._masks(by, queue)):
            return shown
        choice = task.choice and structs.replace(task.choice, text=HIDDEN if task.choice.text else "")
        is_hidden = task.filter is not None and any(mask.hides_attributes for mask in masks)
        return structs.replace(shown, choice=choice, filter=None if is_hidden else shown.filter)

    @bounded(MESSAGES_S)
    @look
    async def list_tasks(self, by: Principal, queue: str) -> list[TaskInfo]:
        """The tasks that empty `queue` or did in the last three days, newest first."""
        return [self._shown(by, task) for task in self._tasks.of_queue(await self._gate.queue(by, Verb.REDRIVE, queue))]

    @bounded(MESSAGES_S)
    async def all_tasks(
        self, by: Principal, status: str | None, limit: int, next: str | None
    ) -> tuple[list[TaskInfo], str | None]:
        """A page of the tasks of all queues that `by` may redrive, newest first, and what continues
        it. Raises InvalidValue.
        """
        check_asked("limit", limit)
        if status is not None and status not in set(TaskStatus):
            words = list(TaskStatus)
            raise InvalidValue(
                f"status must be one of {', '.join(words)}", field="status", limit=words, given=status[:100]
            )
        await self._gate.sync()
        tasks = [task for task in self._tasks.all() if self._may_see(by, task) and status in (None, task.status)]
        if next is not None:
            at, _, last = next.partition("-")
            if not (at.isascii() and at.isdecimal() and len(at) <= 16):
                raise InvalidValue("next is not what a page of tasks has given out", field="next", given=next[:100])
            tasks = [task for task in tasks if (task.created_at_ms, task.id) < (int(at), last)]
        page = tasks[:limit]
        more = f"{page[-1].created_at_ms}-{page[-1].id}" if len(tasks) > limit else None
        return [self._shown(by, task) for task in page], more

    def _may_see(self, by: Principal, task: TaskRecord) -> bool:
        queue = self._catalog.by_incarnation.get(task.source_incarnation)
        return by.admin if queue is None else self._access.may(by, Verb.REDRIVE, queue)

    @bounded(MESSAGES_S)
    @look
    async def get_task(self, by: Principal, id: str) -> TaskInfo:
        return self._shown(by, await self._task(by, id))

    async def _task(self, by: Principal, id: str) -> TaskRecord:
        task = await self._tasks.get(id)
        queue = self._catalog.by_incarnation.get(task.source_incarnation)
        if queue is not None and not self._access.knows(by, queue):
            raise no_task(id)
        self._access.authorise(by, Verb.REDRIVE, queue)
        return task

    @bounded(MESSAGES_S)
    @look
    async def task_outcomes(self, by: Principal, id: str, limit: int, next: str | None) -> Letters:
        """A page of what came of each letter that a task has come to. Raises TaskNotFound,
        InvalidValue.
        """
        return letters_of(by, self._catalog, self._tasks.ids, await self._task(by, id), limit, next)

    @bounded(CHANGE_S)
    async def cancel_task(self, by: Principal, id: str) -> TaskInfo:
        await self.get_task(by, id)
        return self._shown(by, await self._tasks.cancel(id))

    @bounded(MESSAGES_S)
    async def parked_groups(
        self, by: Principal, queue: str, tag: str | None, limit: int, next: str | None
    ) -> ParkedPage:
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
        choice=task.choice,
    )
