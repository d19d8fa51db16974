"""What every room of the engine stands on: the clients of Kafka and Redis, and the catalog."""

from __future__ import annotations

from dataclasses import dataclass

from engine.catalog.catalog import Catalog
from engine.log import Log
from engine.rules.queue import Queue
from engine.rules.rights import Rights, Targets
from engine.settings import EngineSettings
from runtime.counters import Alarms, Counters
from runtime.signals import Signal
from state.redis.connection import Connection
from state.store import Store


@dataclass(frozen=True, kw_only=True)
class Ground:
    """One of each for a worker or a command. `queue_gone` tells of each queue that is deleted."""

    settings: EngineSettings
    worker: str
    log: Log
    connection: Connection
    store: Store
    catalog: Catalog
    access: Rights
    targets: Targets
    counters: Counters
    alarms: Alarms
    queue_gone: Signal[[Queue]]
