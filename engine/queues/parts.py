"""Builds what the verbs of queues are made of, what sees to queues, and what is known of callers:
keys, rights, quotas, the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engine.catalog.ground import Ground
from engine.queues.alarms import AlarmMonitor, Leftovers, Troubles
from engine.queues.callers.audit import Audit
from engine.queues.callers.audited import AuditReader
from engine.queues.callers.keys import Keys, KeyUses
from engine.queues.callers.quotas import Quotas, Unused, UserBounds
from engine.queues.callers.users import Grants, Users
from engine.queues.clock_skew import ClockWatch
from engine.queues.info import Depths, Info, ShowPlane
from engine.queues.lives.creating import Creating, Creations
from engine.queues.lives.making import Deletions, Making, QueueTopics
from engine.queues.lives.topic_loss import TopicGuard
from engine.queues.overview.collector import Collector
from engine.queues.overview.counting import Counting
from engine.queues.overview.overview import History, Overview
from engine.queues.overview.sampler import Sampler, Saving
from engine.queues.queues import Pauses, Policies, Purges, Queues
from engine.queues.records import QueueRecords
from engine.queues.tags import Tags
from engine.window.parts import WindowParts
from engine.window.window import Recovery
from schemas.topics import audit_topic
from state.clock.keeper import ClockKeeper
from state.keys import Unit
from state.redis.lock import Locks
from state.shared.allotments import Allotments
from state.shared.history import HistoryStore
from state.shared.overview import OverviewStore


@dataclass(frozen=True, kw_only=True)
class CallerParts:
    """One of each for a worker."""

    audit: Audit
    audited: AuditReader
    keys: Keys
    grants: Grants
    quotas: Quotas
    users: Users


def wire_callers(
    *, ground: Ground, bounds: UserBounds, records: QueueRecords, key_uses: KeyUses, unused: Unused
) -> CallerParts:
    """Builds them; nothing is started. `unused`: as of Quotas."""
    settings, catalog = ground.settings, ground.catalog
    quotas = Quotas(Allotments(ground.connection, settings.topic_prefix), bounds, unused)
    ground.queue_gone.connect(quotas.forget_queue)
    return CallerParts(
        audit=Audit(settings, ground.worker, ground.log, ground.counters),
        audited=AuditReader(audit_topic(settings.topic_prefix), ground.log),
        keys=Keys(settings, catalog, key_uses),
        grants=Grants(catalog, records),
        quotas=quotas,
        users=Users(catalog, settings.secret, bounds),
    )


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
        creating=Creating(
            settings.default_partitions, Creations(settings, bounds, catalog), catalog, policies, making, deletions
        ),
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


def watch_queues(
    *, ground: Ground, window: WindowParts, queues: QueueParts, clock: ClockKeeper, troubles: Troubles
) -> QueueWatch:
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
