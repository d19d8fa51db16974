"""Redrive policies: whether one may be set, by whom and for which queue."""

from __future__ import annotations

from engine.catalog.catalog import Catalog
from engine.errors import NotAllowedOnQueue, QueueNotFound
from engine.rules.fifo import KINDS
from engine.rules.queue import Queue
from engine.rules.rights import Rights, Targets
from engine.shapes import Principal
from schemas.records.settings import ANY, RedrivePolicy
from schemas.vocabulary import Verb


class Policies:
    """Any number of tasks may ask."""

    def __init__(self, catalog: Catalog, rights: Rights, targets: Targets) -> None:
        self._catalog = catalog
        self._rights = rights
        self._targets = targets

    def checked(self, by: Principal, name: str, policy: RedrivePolicy | None, *, fifo: bool, dead_letter: bool) -> RedrivePolicy | None:
        """The policy with who sets it and the life that it means; to be called with the right to
        change the queue, so that it is the one that was asked about.

        The dead-letter queue exists, and there are no chains (reference/emq.md 3.5), but a queue
        may be its own. Who sets a policy sends by it, so they must be allowed to.
        """
        if policy is None:
            return None
        target = self._checked_target(by, name, policy.dead_letter_queue, fifo=fifo)
        why = "was made as a dead-letter queue" if dead_letter else ""
        if not why and (sources := [source for source in self._sources(name) if source != name]):
            why = f"is the dead-letter queue of {', '.join(sources)}"
        if why:
            raise NotAllowedOnQueue(
                f"{name!r} {why}, so it can't have a redrive policy", field="queue", limit="one that is no dead-letter queue", given=name
            )
        return RedrivePolicy(target.name, policy.max_receive_count, target.incarnation, by.id)

    def _checked_target(self, by: Principal, name: str, target: str, *, fifo: bool) -> Queue:
        """The queue `target`. Raises QueueNotFound, NotAuthorised, NotAllowedOnQueue unless it can
        have the dead letters of `name`.
        """
        queue = self._catalog.queues.get(target)
        if queue is None or not self._rights.knows(by, queue):
            raise QueueNotFound(f"the dead-letter queue {target!r} does not exist", field="dead_letter_queue", given=target)
        self._rights.authorise(by, Verb.SEND, queue)
        if queue.record.fifo != fifo:
            raise NotAllowedOnQueue(
                f"the dead-letter queue of a {_kind(fifo)} queue must be one too, {target!r} is a {_kind(queue.record.fifo)} queue",
                field="dead_letter_queue",
                limit=_kind(fifo),
                given=target,
            )
        if queue.dead_letter_queues and target != name:
            raise NotAllowedOnQueue(
                f"{target!r} has a redrive policy, so it can't be a dead-letter queue",
                field="dead_letter_queue",
                limit="one without a redrive policy",
                given=target,
            )
        if ANY not in queue.record.allowed_sources and name not in queue.record.allowed_sources:
            raise NotAllowedOnQueue(
                f"{target!r} does not allow {name!r} as a source",
                field="dead_letter_queue",
                limit="one that allows the queue as a source",
                given=target,
            )
        return queue

    def _sources(self, name: str) -> list[str]:
        """Queues whose policy means this one."""
        queue = self._catalog.queues.get(name)
        return [] if queue is None else self._targets.sources(queue)


def _kind(fifo: bool) -> str:
    return KINDS[fifo]
