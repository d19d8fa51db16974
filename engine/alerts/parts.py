"""Builds what watches queues: meters, metrics, statistics, alerts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from engine.alerts.judge import Judge
from engine.alerts.mail import Mail
from engine.alerts.messenger import Messenger
from engine.alerts.watches import Watches
from engine.alerts.webhook import Webhook
from engine.catalog.catalog import Catalog
from engine.log import Log
from engine.meters.day_tables import DayTables
from engine.meters.history import History
from engine.meters.meters import Meters
from engine.meters.reporter import Reporter
from engine.meters.series import Metrics
from engine.meters.statistics import Statistics
from engine.rules.queue import Queue
from engine.settings import EngineSettings
from engine.shapes import TagInfo
from runtime.counters import Counters
from schemas.records import TagRecord
from state.redis.connection import Connection
from state.redis.lock import Locks


@dataclass(frozen=True)
class Watching:
    """What watches queues."""

    reporter: Reporter
    metrics: Metrics
    statistics: Statistics
    watches: Watches
    judge: Judge

    async def start(self) -> None:
        """Counts and judges from now on."""
        await self.reporter.start()
        await self.judge.start()

    async def stop(self) -> None:
        """Judges no more; the reporter is stopped when nothing is counted any more."""
        await self.judge.stop()


def wire_watching(
    settings: EngineSettings,
    *,
    worker: str,
    log: Log,
    connection: Connection,
    catalog: Catalog,
    meters: Meters,
    counters: Counters,
    tags_of: Callable[[Queue, Sequence[TagRecord]], Awaitable[list[TagInfo]]],
) -> Watching:
    """Returns the parts of a worker; nothing is started. `tags_of` counts what is in a queue."""
    prefix, minute_ms = settings.topic_prefix, settings.meter_minute_s * 1000
    history = History(prefix, log)
    statistics, watches = Statistics(history, DayTables(settings.statistics_folder)), Watches(catalog)
    webhook = Webhook(settings.secret, private=settings.webhook_addresses == "all")
    messenger = Messenger(catalog, watches, statistics, webhook, Mail(settings), counters)
    return Watching(
        reporter=Reporter(worker, prefix, minute_ms, log, catalog, meters, counters),
        metrics=Metrics(history),
        statistics=statistics,
        watches=watches,
        judge=Judge(settings, Locks(connection, prefix), log, catalog, watches, messenger, tags_of),
    )
