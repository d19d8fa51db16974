"""Builds what the verbs of queues are made of, and what sees to queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engine.catalog.ground import Ground
from engine.queues.alarms import AlarmMonitor, Troubles
from engine.queues.callers.quotas import UserBounds
from engine.queues.clock_skew import ClockWatch
from engine.queues.depths import Depths
from engine.queues.info import Info, ShowPlane
from engine.queues.leftovers import Leftovers
from engine.queues.lives.creating import Creating
from engine.queues.lives.creations import Creations
from engine.queues.lives.deletions import Deletions
from engine.queues.lives.making import Making
from engine.queues.lives.pauses import Pauses
from engine.queues.lives.purges import Purges
from engine.queues.lives.topic_loss import TopicGuard
from engine.queues.lives.topics import QueueTopics
from engine.queues.overview.collector import Collector
from engine.queues.overview.counting import Counting
from engine.queues.overview.history import History
from engine.queues.overview.overview import Overview
from engine.queues.overview.sampler import Sampler
from engine.queues.overview.saving import Saving
from engine.queues.policies import Policies
from engine.queues.queues import Queues
from engine.queues.records import QueueRecords
from engine.queues.tags import Tags
from engine.window.parts import WindowParts
from engine.window.window import Recovery
from state.clock.keeper import ClockKeeper
from state.keys import Unit
from state.redis.lock import Locks
from state.shared.history import HistoryStore
from state.shared.overview import OverviewStore


@dataclass(frozen=True, kw_only=True)
class QueueParts:
    """One of each for a worker."""

    info: Info
    records: QueueRecords
    making: Making
    creating: Creating
    changes: Queues
    deletions: Deletions
    purges: Purges
    pauses: Pauses
    tags: Tags
    overview: Overview
    history: History
    collector: Collector


def wire_queues(
    *,
    ground: Ground,
    window: WindowParts,
    bounds: UserBounds,
    show_plane: ShowPlane,
    recovery: Recovery,
    owned: Callable[[], Iterable[Unit]],
) -> QueueParts:
    """Builds them; nothing is started. `show_plane` has the plane give back what it has leased
    ahead, `owned` gives the units of this worker.
    """
    settings, log, store, catalog = ground.settings, ground.log, ground.store, ground.catalog
    prefix, calls, topic_retention = settings.topic_prefix, window.window, window.topic_retention
    records, policies = QueueRecords(catalog, ground.targets), Policies(catalog, ground.access, ground.targets)
    info = Info(log, store.upkeep, ground.targets, calls, show_plane)
    topics = QueueTopics(settings, log, topic_retention)
    making = Making(store.upkeep, catalog, topics, records)
    deletions = Deletions(prefix, log, store.upkeep, catalog, topics, records)
    counts, histories = OverviewStore(ground.connection, prefix), HistoryStore(ground.connection, prefix)
    locks, saving = Locks(ground.connection, prefix), Saving(prefix, histories, log, catalog)
    counting = Counting(log, store.upkeep, catalog, recovery, ground.connection.clock)
    return QueueParts(
        info=info,
        records=records,
        making=making,
        creating=Creating(settings.default_partitions, Creations(settings, bounds, catalog), catalog, policies, making, deletions),
        changes=Queues(catalog, records, policies, info, topic_retention),
        deletions=deletions,
        purges=Purges(log, store.deferred, catalog, calls, records),
        pauses=Pauses(catalog, records),
        tags=Tags(prefix, log, store.upkeep, catalog, calls, records, policies),
        overview=Overview(counts, log.clock),
        history=History(histories, ground.connection.clock),
        collector=Collector(counts, locks, catalog, owned, counting, Sampler(histories, saving)),
    )


@dataclass(frozen=True, kw_only=True)
class QueueWatch:
    """What sees to queues beside requests, one of each for a worker."""

    topic_guard: TopicGuard
    alarm_monitor: AlarmMonitor
    clock_watch: ClockWatch


def watch_queues(*, ground: Ground, window: WindowParts, queues: QueueParts, clock: ClockKeeper, troubles: Troubles) -> QueueWatch:
    """Builds and connects them; nothing is started."""
    log, store, catalog, calls, suspect = ground.log, ground.store, ground.catalog, window.window, window.suspect
    depths = Depths(store.upkeep, calls, window.retention, window.topic_retention, suspect)
    leftovers = Leftovers(store.upkeep, catalog, calls, queues.deletions.finish_deletions)
    watch = QueueWatch(
        topic_guard=TopicGuard(log, store, catalog, calls, queues.making, ground.counters),
        alarm_monitor=AlarmMonitor(log, catalog, ground.targets, ground.alarms, troubles, depths, leftovers),
        clock_watch=ClockWatch(log, clock, ground.alarms),
    )
    log.clock.known.connect(watch.clock_watch.compare_log)
    suspect.connect(watch.topic_guard.suspect)
    ground.queue_gone.connect(watch.alarm_monitor.forget_queue)
    return watch
