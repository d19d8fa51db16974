"""Builds what moves messages that die, what holds groups back, and redrive tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.catalog.ground import Ground
from engine.journal.outbox import Journal
from engine.move.copies import Copies
from engine.move.dead_letters import DeadLetters
from engine.move.mover import Mover
from engine.move.parking import CheckPolicy, ParkedGroups, Parking
from engine.move.tasks.preview import Previews
from engine.move.tasks.progress import Progress
from engine.move.tasks.redrive import Backlog, Tasks
from engine.move.tasks.redrive_step import RedriveStep
from engine.move.tasks.selection import Destinations
from engine.move.tasks.task_runner import TaskRunner
from engine.rules.queue import Queue
from engine.window.batches.message_log import MessageLog
from engine.window.parts import WindowParts
from engine.window.window import Journaled
from runtime.background import Background
from schemas.records import TagRecord
from state.redis.lock import Locks
from state.replies import Dying


@dataclass(frozen=True, kw_only=True)
class MoveParts:
    """One of each for a worker."""

    mover: Mover
    dead_letters: DeadLetters

    def move_beside(
        self, moving: Background, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying]
    ) -> None:
        """Begins to move what is dying."""
        moving.start(self.dead_letters.move_dead(queue, tag, partition, dying), "move_dead")


@dataclass(frozen=True, kw_only=True)
class ParkingParts:
    """One of each for a worker."""

    parked: ParkedGroups
    parking: Parking


def wire_moves(*, ground: Ground, window: WindowParts) -> MoveParts:
    """Builds them; nothing is started."""
    log, store, ids, calls = ground.log, ground.store, window.ids, window.window
    copies = Copies(log, store.units, ids)
    mover = Mover(log, store.leases, calls, ids, window.write_through, ground.counters, copies)
    dead_letters = DeadLetters(mover, copies, store.leases, ground.catalog, ground.targets, calls, window.body_source)
    return MoveParts(mover=mover, dead_letters=dead_letters)


def wire_parking(
    *, ground: Ground, window: WindowParts, dead_letters: DeadLetters, check_policy: CheckPolicy, journaled: Journaled
) -> ParkingParts:
    """Builds them. `check_policy` and `journaled`: as of Parking."""
    deferred, calls = ground.store.deferred, window.window
    return ParkingParts(
        parked=ParkedGroups(ground.log, deferred, calls, window.ids),
        parking=Parking(deferred, calls, dead_letters, ground.counters, check_policy, journaled),
    )


def wire_tasks(
    *, ground: Ground, window: WindowParts, mover: Mover, journal: Journal, journaled: Journaled, backlog: Backlog
) -> Tasks:
    """Builds the tasks of a worker; nothing is started. `backlog`: as of Tasks."""
    log, store, catalog, calls = ground.log, ground.store, ground.catalog, window.window
    progress = Progress(log, store, catalog, calls, journal, journaled)
    destinations = Destinations(catalog, ground.access, ground.targets)
    step = RedriveStep(MessageLog(log), store.leases, calls, destinations, mover)
    runner = TaskRunner(Locks(ground.connection, ground.settings.topic_prefix), catalog, destinations, progress, step)
    previews = Previews(MessageLog(log), store.leases, calls, destinations, window.ids)
    return Tasks(log, catalog, window.ids, backlog, destinations, runner, previews)
