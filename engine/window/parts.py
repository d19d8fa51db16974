"""Builds the room of the window: what every verb needs of a queue's state and bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.catalog.ground import Ground
from engine.rules.queue import Ids, Queue
from engine.window.body_source import BodyCache, BodySource
from engine.window.delays import Delays
from engine.window.entry import WriteThrough
from engine.window.retention import Retention
from engine.window.topic_retention import TopicRetention
from engine.window.window import Recovery, Window
from runtime.signals import Signal


@dataclass(frozen=True, kw_only=True)
class WindowParts:
    """One of each for a worker. `receivable`: (incarnation, partition, visible since in ms or 0 =
    not known); `suspect`: a queue whose topic may be gone.
    """

    receivable: Signal[[str, int, int]]
    suspect: Signal[[Queue]]
    ids: Ids
    window: Window
    bodies: BodyCache
    body_source: BodySource
    retention: Retention
    topic_retention: TopicRetention
    delays: Delays
    write_through: WriteThrough


def wire_window(*, ground: Ground, recovery: Recovery, is_kept_elsewhere: Callable[[Queue], bool]) -> WindowParts:
    """Builds them; nothing is started. `is_kept_elsewhere`: whether the plane keeps
    the bodies of a queue.
    """
    settings, log, store, catalog, counters = ground.settings, ground.log, ground.store, ground.catalog, ground.counters
    receivable, suspect = Signal[[str, int, int]](), Signal[[Queue]]()
    bodies = BodyCache(settings.kept_bytes, is_kept_elsewhere)
    window = Window(catalog, recovery)
    retention = Retention(log, store.leases, window, counters, suspect)
    topic_retention = TopicRetention(log, catalog, store.deferred)
    parts = WindowParts(
        receivable=receivable,
        suspect=suspect,
        ids=Ids(settings.secret, settings.secret_old),
        window=window,
        bodies=bodies,
        body_source=BodySource(log, bodies, retention),
        retention=retention,
        topic_retention=topic_retention,
        delays=Delays(store.upkeep, topic_retention),
        write_through=WriteThrough(log, store, catalog, bodies, counters, receivable, suspect),
    )
    for part in (bodies, topic_retention, parts.delays):
        ground.queue_gone.connect(part.forget_queue)
    return parts
