"""Builds what watches queues: meters, metrics, statistics, alerts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from engine.alerts.judge import Judge
from engine.alerts.messenger import Mail, Messenger, Webhook
from engine.alerts.watches import Watches
from engine.catalog.ground import Ground
from engine.meters.day_tables import DayTables
from engine.meters.history import History
from engine.meters.meters import Meters
from engine.meters.reporter import Reporter
from engine.meters.series import Metrics
from engine.meters.statistics import Statistics
from engine.rules.queue import Queue
from engine.shapes import TagInfo
from schemas.records import TagRecord
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
    *, ground: Ground, meters: Meters, tags_of: Callable[[Queue, Sequence[TagRecord]], Awaitable[list[TagInfo]]]
) -> Watching:
    """Returns the parts of a worker; nothing is started. `tags_of` counts what is in a queue."""
    settings, log, catalog, counters = ground.settings, ground.log, ground.catalog, ground.counters
    prefix, minute_ms = settings.topic_prefix, settings.meter_minute_s * 1000
    history = History(prefix, log)
    statistics, watches = Statistics(history, DayTables(settings.statistics_folder)), Watches(catalog)
    webhook = Webhook(settings.secret, private=settings.webhook_addresses == "all")
    messenger = Messenger(catalog, watches, statistics, webhook, Mail(settings), counters)

    def dropped(records: int) -> None:
        counters.count("meter_records_dropped_total", records)

    reporter = Reporter(ground.worker, prefix, minute_ms, log, catalog, meters, dropped)
    ground.queue_gone.connect(reporter.forget_queue)
    return Watching(
        reporter=reporter,
        metrics=Metrics(history),
        statistics=statistics,
        watches=watches,
        judge=Judge(settings, Locks(ground.connection, prefix), log, catalog, watches, messenger, tags_of),
    )
