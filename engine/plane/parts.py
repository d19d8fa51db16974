"""What follows from what the plane tells, and what it hears of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from engine.catalog.catalog import Catalog
from engine.catalog.ground import Ground
from engine.errors import EngineError, LogUnavailable
from engine.loading.owner import UnitOwner
from engine.log.client.plane_options import plane_options
from engine.meters.meters import Meters
from engine.plane import library as lib
from engine.plane.drains import Allowances, Drains
from engine.plane.news import PlaneNews
from engine.plane.plane import Opened, Plane
from engine.receive.parts import ReceiveParts
from engine.receive.waits.wait_lists import WaitLists
from engine.rules.linger import Activity
from engine.rules.queue import Queue
from engine.window.delays import Delays
from engine.window.parts import WindowParts
from engine.window.window import Journaled
from runtime.background import Background
from runtime.deadline import journal_until
from state.redis.calls import Templates
from state.replies import Window

# For so long messages with delays may be sent that were allowed.
DELAYS_S = 3600.0


class DurableAcks:
    """Acks that the plane has made in queues with `durable_acks`: it answers them when the journal
    has their entries. `wait_journaled` as of Journaled.
    """

    def __init__(self, plane: Plane, catalog: Catalog, wait_journaled: Journaled) -> None:
        self._plane = plane
        self._catalog = catalog
        self._wait_journaled = wait_journaled

    async def wait(self, opened: Opened, partition: int, seq: int, number: int) -> None:
        """Tells the plane when the journal has entry `seq`, which a call of acks has written that
        the plane knows by `number`, or why nobody knows whether it will.
        """
        why = "the worker stops"
        try:
            if opened.generation != self._catalog.generation:
                # Then the entry may be of another life of the state than what is asked now.
                raise LogUnavailable(
                    f"another Redis came into use for queue {opened.queue.name!r} meanwhile: this may be forgotten"
                )
            await self._wait_journaled(opened.queue, partition, seq, journal_until())
            why = ""
        except EngineError as error:
            why = str(error)
        finally:
            self._plane.tell(lib.JOURNALED, [number, why.encode()])


def wire_plane(*, ground: Ground, wakes_as: Callable[[], str | None], meters: Meters) -> PlaneNews:
    """The plane of a worker, which is off until a library starts it, and what it tells. `wakes_as`:
    as of Plane.
    """
    settings = ground.settings
    templates = Templates(settings.topic_prefix, Window(settings.window_messages, settings.window_bytes))
    kafka = partial(
        plane_options,
        settings.kafka_bootstrap,
        f"{ground.worker}-plane",
        settings.send_timeout_ms,
        settings.kafka_client(),
    )
    return PlaneNews(
        Plane(settings, ground.connection, ground.catalog, ground.targets, templates, wakes_as, kafka), meters
    )


def wire_allowances(news: PlaneNews, catalog: Catalog) -> Allowances:
    """What the plane may send of a day's bytes."""
    allowances = Allowances(catalog.by_incarnation.get)
    news.plane.started.connect(allowances.start)
    return allowances


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
    *,
    news: PlaneNews,
    ground: Ground,
    window: WindowParts,
    owner: UnitOwner,
    activity: Activity,
    wait_lists: WaitLists,
    receives: ReceiveParts,
) -> None:
    """Joins the plane to the parts that serve requests which it does not."""
    receiving, write_through, returns, woken = (
        wait_lists.background,
        window.write_through,
        receives.returns,
        wait_lists.woken,
    )
    for wake in (receives.heard, window.receivable):
        wake.connect(woken)
        wake.connect(news.plane.woken)
    owner.workers_changed.connect(news.plane.close_all)
    news.plane.visible.connect(woken)
    news.used.connect(owner.note_use)
    news.suspect.connect(write_through.suspect)
    news.unloaded.connect(write_through.note_failed)
    news.ahead.connect(
        lambda queue, partition, cursor: receiving.start(write_through.check_length(queue, partition, cursor), "check")
    )
    news.seen.connect(owner.note_receive)
    news.seen.connect(
        lambda queue, partition, seen: activity.note_receive(queue.incarnation, asyncio.get_running_loop().time())
    )
    news.wanting.connect(lambda queue: receiving.start(owner.refresh(queue), "refresh"))
    news.dying.connect(receives.move)
    durable = DurableAcks(news.plane, ground.catalog, owner.journaled.wait)
    news.written.connect(lambda *written: receiving.start(durable.wait(*written), "durable acks"))
    news.returned.connect(returns.returned)
    news.unreturned.connect(
        lambda queue, tag, partition, rows: receiving.start(returns.rows(queue, tag, partition, rows), "give back")
    )
