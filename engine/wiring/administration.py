"""What the verbs of queues, tags, keys and tasks are made of."""

from __future__ import annotations

from dataclasses import dataclass

from engine.move.destinations import Destinations
from engine.move.mover import Mover
from engine.move.progress import Progress
from engine.move.redrive import Tasks
from engine.move.redrive_step import RedriveStep
from engine.move.task_runner import TaskRunner
from engine.plane.allowances import Allowances
from engine.queues.alarms import AlarmMonitor
from engine.queues.callers.audit import Audit
from engine.queues.callers.grants import Grants
from engine.queues.callers.keys import Keys
from engine.queues.callers.quotas import Quotas, UserBounds
from engine.queues.callers.users import Users
from engine.queues.clock_skew import ClockWatch
from engine.queues.depths import Depths
from engine.queues.info import Info
from engine.queues.leftovers import Leftovers
from engine.queues.lives.creating import Creating
from engine.queues.lives.creations import Creations
from engine.queues.lives.deletions import Deletions
from engine.queues.lives.making import Making
from engine.queues.lives.purges import Purges
from engine.queues.lives.topic_loss import TopicGuard
from engine.queues.lives.topics import QueueTopics
from engine.queues.overview.collector import Collector, Counting
from engine.queues.overview.overview import Overview
from engine.queues.parts import QueueParts
from engine.queues.policies import Policies
from engine.queues.queues import Queues
from engine.queues.records import QueueRecords
from engine.queues.tags import Tags
from engine.settings import EngineSettings
from engine.window.batches.message_log import MessageLog
from engine.wiring.foundation import Base
from engine.wiring.units import Units
from state.redis.lock import Locks
from state.shared.allotments import Allotments
from state.shared.overview import OverviewStore


@dataclass(frozen=True)
class Administration:
    """What the verbs of queues, tags, keys and tasks are made of."""

    audit: Audit
    keys: Keys
    grants: Grants
    quotas: Quotas
    users: Users
    queues: QueueParts
    topic_guard: TopicGuard
    alarm_monitor: AlarmMonitor
    clock_watch: ClockWatch
    tasks: Tasks


def _wire_queues(settings: EngineSettings, base: Base, units: Units, bounds: UserBounds) -> QueueParts:
    log, store, catalog, window, prefix = base.log, base.store, base.catalog, units.window, settings.topic_prefix
    records, policies = QueueRecords(catalog, base.targets), Policies(catalog, base.access, base.targets)
    info = Info(log, store.upkeep, base.targets, window, units.plane_news.plane.show)
    topics = QueueTopics(settings, log, units.topic_retention)
    making = Making(store.upkeep, catalog, topics, records)
    deletions = Deletions(prefix, log, store.upkeep, catalog, topics, records)
    creations = Creations(settings, bounds, catalog)
    counting = Counting(log, store.upkeep, catalog, base.rebuilder, base.connection.clock)
    counts, locks = OverviewStore(base.connection, prefix), Locks(base.connection, prefix)
    return QueueParts(
        info=info,
        records=records,
        making=making,
        creating=Creating(settings.default_partitions, creations, catalog, policies, making, deletions),
        changes=Queues(catalog, records, policies, info, units.topic_retention),
        deletions=deletions,
        purges=Purges(log, store.deferred, catalog, window, records),
        tags=Tags(prefix, log, store.upkeep, catalog, window, records, policies),
        overview=Overview(counts, log.clock),
        collector=Collector(counts, locks, catalog, lambda: units.owner.owned, counting),
    )


def wire_administration(settings: EngineSettings, base: Base, units: Units, mover: Mover) -> Administration:
    """Builds and connects them; nothing is started."""
    log, store, catalog, window, owner = base.log, base.store, base.catalog, units.window, units.owner
    prefix = settings.topic_prefix
    queues = _wire_queues(settings, base, units, bounds := UserBounds(settings, catalog))
    topic_guard = TopicGuard(log, store, catalog, window, queues.making, base.counters)
    progress = Progress(log, store, catalog, window, base.journal, owner.journaled.reach)
    destinations = Destinations(catalog, base.access, base.targets)
    step = RedriveStep(MessageLog(log), store.leases, window, destinations, mover)
    runner = TaskRunner(Locks(base.connection, prefix), catalog, destinations, progress, step)
    tasks = Tasks(log, catalog, units.ids, queues.info.backlog, destinations, runner)
    depths = Depths(store.upkeep, window, units.retention, units.topic_retention, units.suspect)
    leftovers = Leftovers(store.upkeep, catalog, window, queues.deletions.finish_deletions)
    alarm_monitor = AlarmMonitor(log, catalog, base.targets, base.alarms, owner.troubles, depths, leftovers)
    clock_watch = ClockWatch(log, base.clock, base.alarms)
    log.clock.known.connect(clock_watch.compare_log)
    units.suspect.connect(topic_guard.suspect)
    base.queue_gone.connect(alarm_monitor.forget_queue)
    allowances = Allowances(catalog.by_incarnation.get)
    units.plane_news.plane.started.connect(allowances.start)
    quotas = Quotas(Allotments(base.connection, prefix), bounds, allowances.unused)
    units.plane_news.low.connect(lambda number, queue: allowances.grant(number, queue, *quotas.spare(queue)))
    base.queue_gone.connect(quotas.forget_queue)
    return Administration(
        audit=Audit(settings, base.worker, log, base.counters),
        keys=Keys(settings, catalog, base.key_uses),
        grants=Grants(catalog, queues.records),
        quotas=quotas,
        users=Users(catalog, settings.secret, bounds),
        queues=queues,
        topic_guard=topic_guard,
        alarm_monitor=alarm_monitor,
        clock_watch=clock_watch,
        tasks=tasks,
    )
