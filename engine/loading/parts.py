"""Builds the room of loading."""

from __future__ import annotations

from engine.catalog.ground import Ground
from engine.journal.outbox import Journal
from engine.loading.deferrals import Deferrals
from engine.loading.loader import Loading, Rebuilding, Waiting
from engine.loading.owner import UnitOwner
from engine.loading.wheel import Wheel
from engine.window.batches.skips import Skips
from engine.window.parts import WindowParts


def wire_loading(
    *, ground: Ground, window: WindowParts, journal: Journal, rebuilder: Rebuilding, waiting: Waiting
) -> UnitOwner:
    """Builds the owner of a worker's units, and connects it; nothing is started."""
    settings, log, store, catalog, counters = ground.settings, ground.log, ground.store, ground.catalog, ground.counters
    loading = Loading(
        settings.topic_prefix, store.units.window, log, store, catalog, window.retention, window.topic_retention,
        counters, window.receivable, Skips(counters),
    )  # fmt: skip
    deferrals = Deferrals(log, store.deferred, catalog, Wheel(settings, log, counters), counters, window.receivable)
    owner = UnitOwner(ground.worker, loading, journal, rebuilder, waiting, window.bodies, deferrals)
    for used in (window.window.used, window.write_through.used):
        used.connect(owner.note_use)
    ground.queue_gone.connect(owner.forget_queue)
    return owner
