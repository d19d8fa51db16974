"""Clients of Kafka and Redis, the catalog, and the way back from Kafka."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass

from engine.catalog.candidates import Candidates
from engine.catalog.catalog import Catalog
from engine.journal.outbox import Journal
from engine.journal.reader import JournalReader
from engine.journal.snapshots import Snapshots
from engine.log import Log
from engine.meters.meters import Meters
from engine.plane.drains import Drains
from engine.queues.callers.access import Access
from engine.queues.callers.guesses import Guesses
from engine.queues.callers.keys import KeyUses
from engine.recovery.rebuild import Rebuilder
from engine.recovery.redis_lives import RedisLives
from engine.recovery.unit_writer import UnitWriter
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


@dataclass(frozen=True)
class Base:
    """What workers and maintenance share: the clients, the catalog, and the way back from Kafka."""

    worker: str
    log: Log
    connection: Connection
    clock: ClockKeeper
    store: Store
    catalog: Catalog
    access: Access
    key_uses: KeyUses
    targets: Targets
    counters: Counters
    alarms: Alarms
    meters: Meters
    drains: Drains
    journal: Journal
    reader: JournalReader
    snapshots: Snapshots
    lives: RedisLives
    rebuilder: Rebuilder
    queue_gone: Signal[[Queue]]
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
        meters=Meters(),
        drains=drains,
        journal=journal,
        reader=reader,
        snapshots=snapshots,
        lives=lives,
        rebuilder=rebuilder,
        queue_gone=queue_gone,
        rebuilt=rebuilder.rebuilt,
    )
