"""Builds what receives are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from engine.catalog.ground import Ground
from engine.journal.outbox import Journal
from engine.receive.browse import Browse
from engine.receive.deliveries import Deliveries
from engine.receive.events import Events
from engine.receive.filtered import FilteredReceives
from engine.receive.poll import Move, Poller
from engine.receive.receiver import LongPolls, Receiver, ShortPolls
from engine.receive.returns import Returns
from engine.receive.serving import Completing, EmptyPlane, Serving
from engine.receive.waits.wait_lists import WaitLists
from engine.rules.linger import Activity
from engine.rules.queue import Queue
from engine.window.parts import WindowParts
from engine.window.window import Journaled
from runtime.signals import Signal
from state.redis.wake import Wake
from state.replies import Probed, Received


class Loads(Protocol):
    """Has the window of a partition filled."""

    def note_receive(self, queue: Queue, partition: int, seen: Received) -> None:
        """Notes what a receive has seen."""

    def load_soon(self, queue: Queue, partition: int, seen: Received | Probed) -> None:
        """Loads beside the caller, if somebody may want it."""

    async def refresh(self, queue: Queue) -> bool:
        """Loads what Kafka has beyond the window; returns whether there was something."""


@dataclass(frozen=True, kw_only=True)
class ReceiveParts:
    """One of each for a worker. `heard` tells what other workers say may be receivable, `move`
    moves what is dying.
    """

    poller: Poller
    deliveries: Deliveries
    returns: Returns
    browse: Browse
    events: Events
    receiver: Receiver
    wake: Wake
    heard: Signal[[str, int, int]]
    move: Move


def wire_receives(
    *,
    ground: Ground,
    window: WindowParts,
    wait_lists: WaitLists,
    activity: Activity,
    loads: Loads,
    move: Move,
    empty_plane: EmptyPlane,
    journal: Journal,
    journaled: Journaled,
) -> ReceiveParts:
    """Builds them; nothing is started. `empty_plane` gives back what the plane has leased ahead."""
    store, catalog, counters, settings = ground.store, ground.catalog, ground.counters, ground.settings
    ids, calls, scripts, receiving = window.ids, window.window, ground.store.leases, wait_lists.background
    returns = Returns(scripts, calls, ids, window.receivable, counters, lambda work: receiving.start(work, "give back"))
    deliveries = Deliveries(
        scripts, calls, ids, window.body_source, returns, lambda work: receiving.start(work, "return")
    )
    poller = Poller(scripts, ground.targets, calls, counters, loads.note_receive, loads.load_soon, move)
    completing = Completing(catalog, deliveries, returns, empty_plane)
    serving = Serving(catalog, poller, completing, activity, receiving, loads.refresh)
    heard: Signal[[str, int, int]] = Signal()
    wake = Wake(settings.redis_url, settings.topic_prefix, store.units.name, heard)
    browse = Browse(ground.log, store, ground.targets, calls, ids, loads.refresh)
    filtered = FilteredReceives(store, calls, browse, poller, completing, loads.refresh)
    long_polls = LongPolls(wait_lists, serving.serve, wake, returns, receiving)
    short_polls = ShortPolls(poller, completing, loads.refresh)
    ground.queue_gone.connect(long_polls.forget_queue)
    ground.catalog.resumed.connect(lambda queue: wait_lists.woken(queue.incarnation, -1))
    return ReceiveParts(
        poller=poller,
        deliveries=deliveries,
        returns=returns,
        browse=browse,
        events=Events(ground.log, store, catalog, calls, journal, journaled, ids),
        receiver=Receiver(catalog, ids, short_polls, long_polls, filtered, returns, receiving),
        wake=wake,
        heard=heard,
        move=move,
    )
