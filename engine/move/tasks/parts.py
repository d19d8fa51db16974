"""Builds redrive tasks."""

from __future__ import annotations

from engine.catalog.ground import Ground
from engine.journal.outbox import Journal
from engine.move.mover import Mover
from engine.move.tasks.destinations import Destinations
from engine.move.tasks.preview import Previews
from engine.move.tasks.progress import Progress
from engine.move.tasks.redrive import Backlog, Tasks
from engine.move.tasks.redrive_step import RedriveStep
from engine.move.tasks.task_runner import TaskRunner
from engine.window.batches.message_log import MessageLog
from engine.window.parts import WindowParts
from engine.window.window import Journaled
from state.redis.lock import Locks


def wire_tasks(*, ground: Ground, window: WindowParts, mover: Mover, journal: Journal, journaled: Journaled, backlog: Backlog) -> Tasks:
    """Builds the tasks of a worker; nothing is started. `backlog`: as of Tasks."""
    log, store, catalog, calls = ground.log, ground.store, ground.catalog, window.window
    progress = Progress(log, store, catalog, calls, journal, journaled)
    destinations = Destinations(catalog, ground.access, ground.targets)
    step = RedriveStep(MessageLog(log), store.leases, calls, destinations, mover)
    runner = TaskRunner(Locks(ground.connection, ground.settings.topic_prefix), catalog, destinations, progress, step)
    previews = Previews(MessageLog(log), store.leases, calls, destinations, window.ids)
    return Tasks(log, catalog, window.ids, backlog, destinations, runner, previews)
