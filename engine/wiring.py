"""Builds every part of the engine once and connects the signals: the only place that does either,
but for the parts of transactions and of alerts, which their own rooms build.

What a part needs is in its constructor, in the order in which parts are built here: no part knows
one that comes after it, except through a signal.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from engine.alerts.parts import Watching, wire_watching
from engine.catalog.candidates import Candidates
from engine.catalog.catalog import Catalog
from engine.journal.outbox import Journal
from engine.journal.snapshots import Snapshots
from engine.loading.deferrals import Deferrals
from engine.loading.loader import Loading
from engine.loading.owner import UnitOwner
from engine.loading.wheel import Wheel
from engine.log import Log
from engine.move.destinations import Destinations
from engine.move.mover import Mover
from engine.move.parking import Parking
from engine.move.progress import Progress
from engine.move.redrive import Tasks
from engine.move.task_runner import TaskRunner
from engine.plane.allowances import Allowances
from engine.plane.drains import Drains
from engine.plane.news import PlaneNews
from engine.plane.parts import join_drains, join_plane, wire_plane
from engine.queues.alarms import AlarmMonitor
from engine.queues.callers.access import Access
from engine.queues.callers.audit import Audit
from engine.queues.callers.grants import Grants
from engine.queues.callers.guesses import Guesses
from engine.queues.callers.keys import Keys, KeyUses
from engine.queues.callers.quotas import Quotas, UserBounds
from engine.queues.callers.users import Users
from engine.queues.clock_skew import ClockWatch
from engine.queues.creations import Creations
from engine.queues.info import Info
from engine.queues.queues import Queues
from engine.queues.tags import Tags
from engine.queues.topic_loss import TopicGuard
from engine.queues.topics import QueueTopics
from engine.receive.browse import Browse
from engine.receive.deliveries import Deliveries
from engine.receive.filtered import FilteredReceives
from engine.receive.handles.attempts import Attempts
from engine.receive.handles.leases import Leases
from engine.receive.poll import Poller
from engine.receive.pump import Pump
from engine.receive.receiver import Receiver
from engine.receive.returns import Returns
from engine.receive.waiters import WaitLists
from engine.recovery.maintenance import Attached, Maintenance
from engine.recovery.rebuild import Rebuilder
from engine.recovery.redis_lives import RedisLives
from engine.recovery.sealing import Sealing
from engine.recovery.verify import Verifier
from engine.rules.contention import Activity
from engine.rules.ids import Ids
from engine.rules.queue import Queue
from engine.rules.rights import Targets
from engine.runtime.counters import Alarms, Counters
from engine.runtime.failpoints import arm
from engine.runtime.meters import Meters
from engine.runtime.signals import Signal
from engine.send.schedule import Schedule
from engine.send.sender import Sender
from engine.settings import EngineSettings
from engine.transactions.parts import Transacted, wire_transactions
from engine.window.batches.skips import Skips
from engine.window.body_cache import BodyCache
from engine.window.body_source import BodySource
from engine.window.delays import Delays
from engine.window.retention import Retention
from engine.window.topic_retention import TopicRetention
from engine.window.window import Window
from engine.window.write_through import WriteThrough
from schemas.records import TagRecord
from state.allotments import Allotments, LastUses
from state.background import Background
from state.clock.keeper import ClockKeeper
from state.keys import Unit
from state.redis.connection import Connection
from state.redis.wake import Wake
from state.replies import Dying
from state.replies import Window as Bounds
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
    snapshots: Snapshots
    lives: RedisLives
    rebuilder: Rebuilder
    queue_gone: Signal[[Queue]]
    rebuilt: Signal[[Unit]]


def wire_base(settings: EngineSettings, candidates: Candidates | None = None) -> Base:
    """Clients of Kafka and Redis that are not connected yet, and what stands on them alone."""
    queue_gone, rebuilt = Signal[[Queue]](), Signal[[Unit]]()
    worker = f"{os.getpid()}-{secrets.token_hex(4)}"
    connection = Connection(settings.redis_url)
    log = Log(settings.kafka_bootstrap, settings.send_timeout_ms, settings.kafka_client(), service=connection.clock)
    clock = ClockKeeper(connection, settings.topic_prefix)
    store = Store(connection, settings.topic_prefix, Bounds(settings.window_messages, settings.window_bytes))
    counters, alarms = Counters(), Alarms()
    catalog = Catalog(settings, log, connection, queue_gone, counters, alarms, candidates=candidates)
    uses = KeyUses(LastUses(connection, settings.topic_prefix))
    access = Access(settings, catalog, uses, Guesses(counters))
    journal = Journal(log, store, catalog, counters, drains := Drains(settings.topic_prefix, log.clock.note))
    snapshots = Snapshots(settings.topic_prefix, log, connection, catalog, counters, alarms)
    lives = RedisLives(log, connection, catalog, alarms)
    rebuilder = Rebuilder(worker, log, lives, store, catalog, journal, snapshots, counters, rebuilt)
    return Base(
        worker, log, connection, clock, store, catalog, access, uses, Targets(catalog, access), counters, alarms, Meters(), drains, journal,
        snapshots, lives, rebuilder, queue_gone, rebuilt,
    )  # fmt: skip


def wire_maintenance(settings: EngineSettings) -> Maintenance:
    """What `leaseway verify` and `rebuild` need, beside running workers."""
    base = wire_base(settings)
    log, store, catalog, counters = base.log, base.store, base.catalog, base.counters
    verifier = Verifier(base.worker, log, store, catalog, base.journal, base.snapshots)
    return Maintenance(_attached(settings, base), base.worker, log, store, catalog, counters, base.lives, base.rebuilder, verifier)


def wire_sealing(settings: EngineSettings, *, copied: bool = False) -> Sealing:
    """What `leaseway seal` needs, beside running workers."""
    base = wire_base(settings, candidates := Candidates())
    return Sealing(_attached(settings, base), base.catalog, candidates, copied=copied)


def _attached(settings: EngineSettings, base: Base) -> Attached:
    return Attached(settings.kafka_bootstrap, base.log, base.connection, base.clock, base.catalog)


@dataclass(frozen=True)
class Units:
    """What works on units, below the verbs. `receivable`: (incarnation, partition, visible since in
    ms or 0 = not known); `suspect`: a queue whose topic may be gone.
    """

    receivable: Signal[[str, int, int]]
    suspect: Signal[[Queue]]
    ids: Ids
    activity: Activity
    bodies: BodyCache
    wait_lists: WaitLists
    window: Window
    retention: Retention
    topic_retention: TopicRetention
    owner: UnitOwner
    body_source: BodySource
    write_through: WriteThrough
    plane_news: PlaneNews


def _wire_units(settings: EngineSettings, base: Base) -> Units:
    log, store, catalog, counters = base.log, base.store, base.catalog, base.counters
    receivable, suspect = Signal[[str, int, int]](), Signal[[Queue]]()
    bounds = Bounds(settings.window_messages, settings.window_bytes)
    news = wire_plane(settings, base.worker, base.connection, catalog, base.targets, store.name, lambda: bodies.is_only_worker, base.meters)
    join_drains(news, base.drains)
    plane = news.plane
    activity, wait_lists = Activity(), WaitLists(plane.waits)
    catalog.rights_changed.connect(wait_lists.ask_again)
    wait_lists.watched.connect(plane.watch)
    bodies = BodyCache(settings.kept_bytes, lambda: plane.is_on)
    window = Window(catalog, base.rebuilder)
    retention = Retention(log, store, window, counters, suspect)
    topic_retention = TopicRetention(log, catalog, store)
    loading = Loading(settings.topic_prefix, bounds, log, store, catalog, retention, topic_retention, counters, receivable, Skips(counters))
    deferrals = Deferrals(log, store, catalog, Wheel(settings, log, counters), counters, receivable)
    owner = UnitOwner(base.worker, loading, base.journal, base.rebuilder, wait_lists, activity, bodies, deferrals)
    for part in (bodies, owner, topic_retention):
        base.queue_gone.connect(part.forget_queue)
    base.rebuilt.connect(owner.forget_cursors)
    return Units(
        receivable=receivable,
        suspect=suspect,
        ids=Ids(settings.secret, settings.secret_old),
        activity=activity,
        bodies=bodies,
        wait_lists=wait_lists,
        window=window,
        retention=retention,
        topic_retention=topic_retention,
        owner=owner,
        body_source=BodySource(log, bodies, retention),
        write_through=WriteThrough(log, store, catalog, bodies, counters, owner.note_use, receivable, suspect),
        plane_news=news,
    )


def _beside(receiving: Background, mover: Mover, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying]) -> None:
    receiving.start(mover.move_dead(queue, tag, partition, dying), "move_dead")


@dataclass(frozen=True)
class Messages:
    """What the verbs of messages are made of."""

    sender: Sender
    mover: Mover
    poller: Poller
    deliveries: Deliveries
    receiver: Receiver
    wake: Wake
    leases: Leases
    attempts: Attempts
    browse: Browse
    schedule: Schedule
    parking: Parking


def _wire_messages(settings: EngineSettings, base: Base, units: Units) -> Messages:
    log, store, catalog, counters, targets = base.log, base.store, base.catalog, base.counters, base.targets
    ids, window, bodies, owner = units.ids, units.window, units.bodies, units.owner
    receivable, activity, wait_lists = units.receivable, units.activity, units.wait_lists
    delays = Delays(store)
    sender = Sender(log, catalog, ids, bodies, units.write_through, delays, units.topic_retention, activity, units.suspect)
    mover = Mover(log, store, catalog, targets, window, ids, units.body_source, units.write_through, counters)
    receiving = Background()

    move_beside = partial(_beside, receiving, mover)
    returns = Returns(store, window, ids, receivable, counters, lambda work: receiving.start(work, "give back"))
    deliveries = Deliveries(store, window, ids, units.body_source, returns, lambda work: receiving.start(work, "return"))
    poller = Poller(store, targets, window, counters, owner.note_receive, owner.load_soon, move_beside)
    pump = Pump(catalog, wait_lists, poller, deliveries, returns, activity, receiving, owner.refresh, units.plane_news.plane.empty)
    heard: Signal[[str, int, int]] = Signal()
    wake = Wake(settings.redis_url, settings.topic_prefix, store.name, heard)
    base.lives.moved.connect(wake.reconnect)
    browse = Browse(log, store, targets, window, ids, owner.note_use, owner.refresh)
    filtered = FilteredReceives(store, targets, window, browse, poller, pump, owner.refresh)
    receiver = Receiver(catalog, ids, wait_lists, poller, returns, pump, activity, receiving, wake, owner.refresh, filtered)
    leases = Leases(
        store, catalog, targets, window, ids, bodies, delays, owner.note_use, owner.journaled.wait, mover.kill, receivable, base.meters
    )  # fmt: skip
    join_plane(units.plane_news, owner, activity, returns, receiving, move_beside, pump.woken, (heard, receivable), units.write_through)
    base.rebuilt.connect(returns.tell_again)
    for part in (delays, sender, receiver):
        base.queue_gone.connect(part.forget_queue)
    return Messages(
        sender=sender,
        mover=mover,
        poller=poller,
        deliveries=deliveries,
        receiver=receiver,
        wake=wake,
        leases=leases,
        attempts=Attempts(log, store, window, leases),
        browse=browse,
        parking=Parking(log, store, window, ids, mover, counters, leases.check_policy, owner.note_use, owner.journaled.wait),
        schedule=Schedule(log, store, window, delays, units.topic_retention, browse.address, owner.note_use, owner.journaled.wait),
    )


@dataclass(frozen=True)
class Administration:
    """What the verbs of queues, tags, keys and tasks are made of."""

    audit: Audit
    keys: Keys
    grants: Grants
    quotas: Quotas
    users: Users
    info: Info
    queues: Queues
    tags: Tags
    topic_guard: TopicGuard
    alarm_monitor: AlarmMonitor
    clock_watch: ClockWatch
    tasks: Tasks


def _wire_administration(settings: EngineSettings, base: Base, units: Units, mover: Mover) -> Administration:
    log, store, catalog, window, owner = base.log, base.store, base.catalog, units.window, units.owner
    prefix = settings.topic_prefix
    info = Info(log, store, base.targets, window, owner.note_use, units.plane_news.plane.show)
    topics = QueueTopics(settings, log, units.topic_retention)
    bounds = UserBounds(settings, catalog)
    creations = Creations(settings, bounds, catalog)
    queues = Queues(
        settings, creations, log, store, catalog, base.access, base.targets, window, info, topics, units.topic_retention, owner.note_use
    )
    topic_guard = TopicGuard(log, store, catalog, window, queues, base.counters)
    progress = Progress(log, store, catalog, window, base.journal, owner.journaled.reach)
    destinations = Destinations(catalog, base.access, base.targets)
    runner = TaskRunner(prefix, log, base.connection, store, catalog, window, destinations, mover, progress, owner.note_use)
    tasks = Tasks(prefix, log, base.connection, catalog, units.ids, info.backlog, destinations, progress, runner)
    alarm_monitor = AlarmMonitor(
        log, store, catalog, base.targets, window, units.retention, units.topic_retention, base.alarms, queues.finish_deletions,
        owner.troubles, owner.note_use, units.suspect,
    )  # fmt: skip
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
        grants=Grants(catalog, queues),
        quotas=quotas,
        users=Users(catalog, settings.secret, bounds),
        info=info,
        queues=queues,
        tags=Tags(prefix, log, store, catalog, window, queues),
        topic_guard=topic_guard,
        alarm_monitor=alarm_monitor,
        clock_watch=clock_watch,
        tasks=tasks,
    )


@dataclass(frozen=True)
class Parts:
    """All parts of a worker's engine."""

    base: Base
    units: Units
    messages: Messages
    administration: Administration
    transactions: Transacted
    watching: Watching

    def counts(self) -> dict[str, float]:
        """Counters of this process."""
        base, units = self.base, self.units
        waiting, most = units.plane_news.plane.waiting()
        return {
            **base.counters.values,
            "redis_scripts_total": base.store.calls,
            "transactions_open": self.transactions.book.open_count,
            "long_polls_waiting": units.wait_lists.waiting + waiting,
            "long_polls_waiting_of_one": max(units.wait_lists.most_waiting, most),
            "quota_refusals_total": self.administration.quotas.refused + units.wait_lists.refused,
            "units_owned": len(units.owner.owned),
            "queues": len(base.catalog.queues),
            "partitions": sum(queue.record.partitions for queue in base.catalog.queues.values()),
            "journal_lag_seconds": units.owner.journaled.lag_s(),
            "background_failures_total": Background.failures,
        }


def wire(settings: EngineSettings) -> Parts:
    """The engine of a worker, with its failpoints armed. Nothing is started."""
    arm(settings.failpoints)
    base = wire_base(settings)
    units = _wire_units(settings, base)
    messages = _wire_messages(settings, base, units)
    asked = _wire_administration(settings, base, units, messages.mover)
    transacted = wire_transactions(
        settings, units.ids.secret, base.log, base.connection, base.catalog, base.access, units.write_through, base.counters
    )
    watching = wire_watching(
        settings,
        worker=base.worker,
        log=base.log,
        connection=base.connection,
        catalog=base.catalog,
        meters=base.meters,
        counters=base.counters,
        tags_of=asked.info.tags,
    )
    base.queue_gone.connect(watching.reporter.forget_queue)
    return Parts(base, units, messages, asked, transacted, watching)
