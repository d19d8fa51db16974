"""Clients of Kafka and Redis, the catalog, and the way back from Kafka: what workers stand on, and
all that commands need beside them.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass

from engine.catalog.candidates import Candidates
from engine.catalog.catalog import Catalog
from engine.catalog.ground import Ground
from engine.journal.outbox import Journal
from engine.journal.reader import JournalReader
from engine.journal.snapshots import Snapshots
from engine.log import Log
from engine.meters.meters import Meters
from engine.plane.drains import Drains
from engine.queues.callers.access import Access, Guesses
from engine.queues.callers.keys import KeyUses
from engine.recovery.maintenance import Attached, Maintenance, Sealing
from engine.recovery.rebuild import Rebuilder
from engine.recovery.redis_lives import RedisLives
from engine.recovery.round import UnitWriter
from engine.recovery.verify import Verifier
from engine.rules.queue import Queue
from engine.rules.rights import Targets
from engine.settings import EngineSettings
from runtime.counters import Alarms, Counters
from runtime.signals import Signal
from state.clock.keeper import ClockKeeper
from state.keys import Unit
from state.redis.connection import Connection
from state.redis.lock import Locks
from state.replies import Window as Bounds
from state.shared.allotments import LastUses
from state.store import Store


@dataclass(frozen=True, kw_only=True)
class Base(Ground):
    """What workers and maintenance share: the clients, the catalog, and the way back from Kafka."""

    access: Access
    clock: ClockKeeper
    key_uses: KeyUses
    meters: Meters
    drains: Drains
    journal: Journal
    reader: JournalReader
    snapshots: Snapshots
    lives: RedisLives
    rebuilder: Rebuilder
    rebuilt: Signal[[Unit]]


def wire_base(settings: EngineSettings, candidates: Candidates | None = None) -> Base:
    """Clients of Kafka and Redis that are not connected yet, and what stands on them alone."""
    queue_gone = Signal[[Queue]]()
    worker = f"{os.getpid()}-{secrets.token_hex(4)}"
    connection = Connection(settings.redis_url)
    log = Log(settings.kafka_bootstrap, settings.send_timeout_ms, settings.kafka_client(), service=connection.clock)
    clock = ClockKeeper(connection, settings.topic_prefix)
    store = Store(connection, settings.topic_prefix, Bounds(settings.window_messages, settings.window_bytes))
    counters, alarms = Counters(), Alarms()
    catalog = Catalog(settings, log, connection, queue_gone, counters, alarms, candidates=candidates)
    uses = KeyUses(LastUses(connection, settings.topic_prefix))
    access = Access(settings, catalog, uses, Guesses(counters))
    journal = Journal(log, store.upkeep, catalog, counters, drains := Drains(settings.topic_prefix, log.clock.note))
    reader = JournalReader(log, catalog, counters, alarms)
    snapshots = Snapshots(Locks(connection, settings.topic_prefix), log, catalog, counters, reader)
    lives = RedisLives(log, connection, catalog, alarms)
    writer = UnitWriter(log, store, catalog, counters)
    rebuilder = Rebuilder(worker, lives, store.upkeep, catalog, journal, reader, writer)
    return Base(
        settings=settings,
        worker=worker,
        log=log,
        connection=connection,
        clock=clock,
        store=store,
        catalog=catalog,
        access=access,
        key_uses=uses,
        targets=Targets(catalog, access),
        counters=counters,
        alarms=alarms,
        meters=Meters(lambda name: name in catalog.queues),
        drains=drains,
        journal=journal,
        reader=reader,
        snapshots=snapshots,
        lives=lives,
        rebuilder=rebuilder,
        queue_gone=queue_gone,
        rebuilt=rebuilder.rebuilt,
    )


def wire_maintenance(settings: EngineSettings) -> Maintenance:
    """What `leaseway verify` and `rebuild` need, beside running workers."""
    base = wire_base(settings)
    upkeep = base.store.upkeep
    verifier = Verifier(base.worker, base.log, upkeep, base.catalog, base.journal, base.reader)
    return Maintenance(
        _attached(settings, base), base.worker, upkeep, base.counters, base.lives, base.rebuilder, verifier
    )


def wire_sealing(settings: EngineSettings, *, copied: bool = False) -> Sealing:
    """What `leaseway seal` needs, beside running workers."""
    base = wire_base(settings, candidates := Candidates())
    return Sealing(_attached(settings, base), base.catalog, candidates, copied=copied)


def _attached(settings: EngineSettings, base: Base) -> Attached:
    return Attached(settings.kafka_bootstrap, base.log, base.connection, base.clock, base.catalog)
