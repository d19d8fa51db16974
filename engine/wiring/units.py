"""What works on units, below the verbs."""

from __future__ import annotations

from dataclasses import dataclass

from engine.loading.deferrals import Deferrals
from engine.loading.loader import Loading
from engine.loading.owner import UnitOwner
from engine.loading.wheel import Wheel
from engine.plane.news import PlaneNews
from engine.plane.parts import join_drains, wire_plane
from engine.receive.waits.wait_lists import WaitLists
from engine.rules.contention import Activity
from engine.rules.ids import Ids
from engine.rules.queue import Queue
from engine.settings import EngineSettings
from engine.window.batches.skips import Skips
from engine.window.body_cache import BodyCache
from engine.window.body_source import BodySource
from engine.window.retention import Retention
from engine.window.topic_retention import TopicRetention
from engine.window.window import Window
from engine.window.write_through import WriteThrough
from engine.wiring.foundation import Base
from runtime.signals import Signal


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


def wire_units(settings: EngineSettings, base: Base) -> Units:
    """Builds and connects them; nothing is started."""
    log, store, catalog, counters = base.log, base.store, base.catalog, base.counters
    receivable, suspect = Signal[[str, int, int]](), Signal[[Queue]]()

    def wakes_as() -> str | None:
        return None if bodies.is_only_worker else store.units.name

    news = wire_plane(settings, base.worker, base.connection, catalog, base.targets, wakes_as, base.meters)
    join_drains(news, base.drains)
    plane = news.plane
    activity, wait_lists = Activity(), WaitLists(plane.waits)
    bodies = BodyCache(settings.kept_bytes, plane.may_serve)
    window = Window(catalog, base.rebuilder)
    retention = Retention(log, store.leases, window, counters, suspect)
    topic_retention = TopicRetention(log, catalog, store.deferred)
    loading = Loading(
        settings.topic_prefix, store.units.window, log, store, catalog, retention, topic_retention, counters, receivable, Skips(counters)
    )
    deferrals = Deferrals(log, store.deferred, catalog, Wheel(settings, log, counters), counters, receivable)
    owner = UnitOwner(base.worker, loading, base.journal, base.rebuilder, wait_lists, bodies, deferrals)
    write_through = WriteThrough(log, store, catalog, bodies, counters, receivable, suspect)
    units = Units(
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
        write_through=write_through,
        plane_news=news,
    )
    _connect(base, units)
    return units


def _connect(base: Base, units: Units) -> None:
    owner, activity, wait_lists = units.owner, units.activity, units.wait_lists
    base.catalog.rights_changed.connect(wait_lists.ask_again)
    wait_lists.watched.connect(units.plane_news.plane.watch)
    owner.used.connect(activity.note_use)
    for used in (units.window.used, units.write_through.used):
        used.connect(owner.note_use)
    base.queue_gone.connect(lambda queue: activity.forget(queue.incarnation))
    for part in (units.bodies, owner, units.topic_retention):
        base.queue_gone.connect(part.forget_queue)
    base.rebuilt.connect(owner.forget_cursors)
