"""What the commands need that run beside workers."""

from __future__ import annotations

from engine.catalog.candidates import Candidates
from engine.recovery.maintenance import Attached, Maintenance
from engine.recovery.sealing import Sealing
from engine.recovery.verify import Verifier
from engine.settings import EngineSettings
from engine.wiring.foundation import Base, wire_base


def wire_maintenance(settings: EngineSettings) -> Maintenance:
    """What `leaseway verify` and `rebuild` need, beside running workers."""
    base = wire_base(settings)
    upkeep = base.store.upkeep
    verifier = Verifier(base.worker, base.log, upkeep, base.catalog, base.journal, base.reader)
    return Maintenance(_attached(settings, base), base.worker, upkeep, base.counters, base.lives, base.rebuilder, verifier)


def wire_sealing(settings: EngineSettings, *, copied: bool = False) -> Sealing:
    """What `leaseway seal` needs, beside running workers."""
    base = wire_base(settings, candidates := Candidates())
    return Sealing(_attached(settings, base), base.catalog, candidates, copied=copied)


def _attached(settings: EngineSettings, base: Base) -> Attached:
    return Attached(settings.kafka_bootstrap, base.log, base.connection, base.clock, base.catalog)
