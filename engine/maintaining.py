"""What maintains an installation from outside, wired: for `leaseway verify`, `rebuild` and `seal`.

Neighbours: `facade.cli` runs it beside workers, or without any.
"""

from __future__ import annotations

from engine.recovery.maintenance import Maintenance
from engine.recovery.verify import Verifier
from engine.settings import EngineSettings
from engine.wiring import wire_base


def wire_maintenance(settings: EngineSettings, *, adopt: bool = False) -> Maintenance:
    """What `leaseway verify`, `rebuild` and `seal` need, beside running workers. `adopt` as in
    `Catalog`.
    """
    base = wire_base(settings, adopt=adopt)
    log, store, catalog, counters = base.log, base.store, base.catalog, base.counters
    verifier = Verifier(base.worker, log, store, catalog, base.journal, base.snapshots, counters)
    bootstrap = settings.kafka_bootstrap
    return Maintenance(bootstrap, base.worker, log, base.connection, store, catalog, counters, base.rebuilder, verifier)
