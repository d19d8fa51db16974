"""Where a redrive task sends a dead letter: to the queue that it names, or home.

Home is the life of the queue that the dead letter came from: its first id names that. A queue that
somebody has created later by the same name is not its home. Whoever asked for the task must be
allowed to send there, and is asked about again at each move.
"""

from __future__ import annotations

from engine.catalog.catalog import Catalog
from engine.errors import TaskNotFound
from engine.rules.queue import Queue
from engine.rules.rights import Rights, Targets
from schemas.identity import incarnation_in
from schemas.records import Message, TaskRecord
from schemas.vocabulary import Verb


class Destinations:
    """Destinations of tasks, by the records of now. No call waits for anything."""

    def __init__(self, catalog: Catalog, rights: Rights, targets: Targets) -> None:
        self._catalog = catalog
        self._rights = rights
        self._targets = targets

    def is_dead_letter_queue(self, queue: Queue) -> bool:
        """Whether a policy of some queue means this one."""
        return bool(self._targets.sources(queue))

    def of(self, task: TaskRecord, message: Message) -> Queue | None:
        """Where a dead letter goes; None = it can't go there."""
        queue = self._named(task) if task.destination else self._home(message)
        return queue if queue is not None and self._may_send(task, queue) else None

    def fault(self, task: TaskRecord) -> str:
        """Why a task can move nothing any more; empty = it can."""
        if not task.destination:
            return ""
        queue = self._named(task)
        if queue is None:
            return f"queue {task.destination!r} was deleted"
        return "" if self._may_send(task, queue) else f"principal {task.principal!r} may not send to queue {task.destination!r}"

    def _named(self, task: TaskRecord) -> Queue | None:
        queue = self._catalog.queues.get(task.destination)
        if queue is None or not task.destination_incarnation:
            # A task of before noted no life: it means the queue that was there when it began.
            return queue if queue is not None and queue.record.created_at_ms <= task.created_at_ms else None
        return queue if task.destination_incarnation in queue.lives else None

    def _home(self, message: Message) -> Queue | None:
        origin = message.origin
        queue = None if origin is None else self._catalog.queues.get(origin.original_queue)
        if origin is None or queue is None:
            return None
        return queue if incarnation_in(origin.original_id) in queue.lives else None

    def _may_send(self, task: TaskRecord, queue: Queue) -> bool:
        return self._rights.still_may(task.principal, Verb.SEND, queue)


def no_task(id: str) -> TaskNotFound:
    """The same for a task that does not exist and for one of a queue that who asks is not told
    of.
    """
    return TaskNotFound(f"there is no task {id!r}", field="id", given=id[:100])
