"""What follows from what the plane tells, and what it hears of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from engine.catalog.catalog import Catalog
from engine.loading.owner import UnitOwner
from engine.log.client.plane_options import plane_options
from engine.meters.meters import Meters
from engine.plane import library as lib
from engine.plane.drains import Drains
from engine.plane.durable import DurableAcks
from engine.plane.news import PlaneNews
from engine.plane.plane import Plane
from engine.receive.returns import Returns
from engine.rules.contention import Activity
from engine.rules.queue import Queue
from engine.rules.rights import Targets
from engine.settings import EngineSettings
from engine.window.delays import Delays
from engine.window.write_through import WriteThrough
from runtime.background import Background
from runtime.signals import Signal
from schemas.records import TagRecord
from state.redis.calls import Templates
from state.redis.connection import Connection
from state.replies import Dying, Window

# For so long messages with delays may be sent that were allowed.
DELAYS_S = 3600.0


def wire_plane(
    settings: EngineSettings,
    worker: str,
    connection: Connection,
    catalog: Catalog,
    targets: Targets,
    wakes_as: Callable[[], str | None],
    meters: Meters,
) -> PlaneNews:
    """The plane of a worker, which is off until a library starts it, and what it tells."""
    templates = Templates(settings.topic_prefix, Window(settings.window_messages, settings.window_bytes))
    kafka = partial(plane_options, settings.kafka_bootstrap, f"{worker}-plane", settings.send_timeout_ms, settings.kafka_client())
    return PlaneNews(Plane(settings, connection, catalog, targets, templates, wakes_as, kafka), meters)


def join_drains(news: PlaneNews, drains: Drains) -> None:
    """Has the plane drain outboxes for as long as it is on."""
    news.plane.started.connect(drains.start)
    news.plane.stopping.connect(drains.stop)
    news.drained.connect(drains.ended)


def join_delays(news: PlaneNews, delays: Delays, receiving: Background) -> None:
    """Has the plane send messages with delays, as many as `delays` has room for."""

    async def allow(number: int, queue: Queue) -> None:
        if count := await delays.spare(queue):
            news.plane.tell(lib.GRANT_DELAYS, [number, count, round(DELAYS_S * 1000)])

    news.low_delays.connect(lambda number, queue: receiving.start(allow(number, queue), "delays"))


def join_plane(
    news: PlaneNews,
    catalog: Catalog,
    owner: UnitOwner,
    activity: Activity,
    returns: Returns,
    receiving: Background,
    move: Callable[[Queue, TagRecord, int, Sequence[Dying]], None],
    woken: Callable[[str, int, int], object],
    wakes: Iterable[Signal[[str, int, int]]],
    write_through: WriteThrough,
) -> None:
    """Joins the plane to the parts that serve requests which it does not. `wakes` tell what may be
    receivable, to `woken` too.
    """
    for wake in wakes:
        wake.connect(woken)
        wake.connect(news.plane.woken)
    owner.workers_changed.connect(news.plane.close_all)
    news.plane.visible.connect(woken)
    news.used.connect(owner.note_use)
    news.suspect.connect(write_through.suspect)
    news.unloaded.connect(write_through.note_failed)
    news.ahead.connect(lambda queue, partition, cursor: receiving.start(write_through.check_length(queue, partition, cursor), "check"))
    news.seen.connect(owner.note_receive)
    news.seen.connect(lambda queue, partition, seen: activity.note_receive(queue.incarnation, asyncio.get_running_loop().time()))
    news.wanting.connect(lambda queue: receiving.start(owner.refresh(queue), "refresh"))
    news.dying.connect(move)
    durable = DurableAcks(news.plane, catalog, owner.journaled.wait)
    news.written.connect(lambda *written: receiving.start(durable.wait(*written), "durable acks"))
    news.returned.connect(returns.returned)
    news.unreturned.connect(lambda queue, tag, partition, rows: receiving.start(returns.rows(queue, tag, partition, rows), "give back"))
