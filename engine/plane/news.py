"""What the plane tells: where there is traffic, what goes back, what dies, what was counted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from engine.plane import library as lib
from engine.plane.library import Library
from engine.plane.plane import Opened, Plane
from engine.rules.queue import Queue
from engine.runtime.meters import Cell, Meters
from engine.runtime.signals import Signal
from schemas.records import TagRecord
from schemas.vocabulary import Operation
from state.redis.server import Server, read_server
from state.replies import Dying, Received

logger = logging.getLogger(__name__)

# Offset, nonce, due ms of deliveries that nobody got.
Rows = Sequence[tuple[int, int, int]]
# A verb by its number, how many requests, their seconds, and how many by the bounds of the metrics.
Observe = Callable[[int, int, float, Sequence[int]], None]


class PlaneNews:
    """Takes in what the plane of a worker tells.

    `seen` tells what a receive saw of a unit, `wanting` of a queue at which somebody waits for what
    the window does not have, `dying` of messages that are to be moved; `returned` of deliveries
    (tag, partition, rows) that were given back, and of how many it was too late for, `unreturned`
    of those that are to be. Of sends: `used` tells where there are some, `visible` what may be
    receivable, `unloaded` that the window has not got what Kafka has, `ahead` that it is beyond
    what was just stored, `suspect` that a topic may be gone, `low` that few bytes are allowed still
    (the queue's number and the queue). `drained` tells how a drain has ended,
    by its number.
    """

    def __init__(self, plane: Plane, meters: Meters) -> None:
        self.plane = plane
        self._meters = meters
        self.seen: Signal[[Queue, int, Received]] = Signal()
        self.wanting: Signal[[Queue]] = Signal()
        self.dying: Signal[[Queue, TagRecord, int, Sequence[Dying]]] = Signal()
        self.drained: Signal[[int, Sequence[Any]]] = Signal()
        self.suspect: Signal[[Queue]] = Signal()
        self.used: Signal[[Queue, int]] = Signal()
        self.unloaded: Signal[[]] = Signal()
        self.low: Signal[[int, Queue]] = Signal()
        self.ahead: Signal[[Queue, int, int]] = Signal()
        self.visible: Signal[[str, int, int]] = Signal()
        self.returned: Signal[[Queue, int, int, Rows, int]] = Signal()
        self.unreturned: Signal[[Queue, int, int, Rows]] = Signal()

    def take(self, news: Sequence[Any]) -> None:
        """Takes in one thing that the plane tells, but FAILED."""
        kind, first, *rest = news
        if kind == lib.GREETED:
            self.plane.link.greeted(first, read_server(rest[0]))
        elif kind == lib.LOST:
            logger.warning("action=plane part=redis error=%s", rest[0])
            self.plane.link.greeted(0, Server(""))
        elif kind == lib.DRAINED:
            self.drained(first, rest)
        elif (opened := self.plane.opened(first)) is not None:
            self._take_of_queue(kind, opened, rest)

    def _take_of_queue(self, kind: int, opened: Opened, rest: Sequence[Any]) -> None:
        queue = opened.queue
        if kind == lib.SEEN:
            _, partition, open_count, in_flight, cursor, hungry = rest
            self.seen(queue, partition, Received(0, 0, None, None, cursor, open_count, in_flight, bool(hungry), [], []))
        elif (signal := {lib.REFRESH: self.wanting, lib.SUSPECT: self.suspect}.get(kind)) is not None:
            signal(queue)
        elif kind == lib.USED:
            self.used(queue, rest[0])
        elif kind == lib.LOW:
            self.low(opened.number, queue)
        elif kind == lib.UNLOADED:
            self.unloaded()
        elif kind == lib.AHEAD:
            self.ahead(queue, *rest)
        elif kind == lib.VISIBLE:
            self.visible(queue.incarnation, *rest)
        elif kind == lib.CLOSED:
            if self.plane.is_open(opened.number):
                logger.info("action=plane queue=%s closed=%s", queue.name, rest[0])
                self.plane.rest(opened)
        elif kind == lib.DYING:
            tag, partition, flat = rest
            self.dying(queue, opened.tags[tag], partition, [_dying(row) for row in _rows(flat, 7)])
        elif kind == lib.RETURNED:
            tag, partition, flat, late = rest
            self.returned(queue, tag, partition, _deliveries(flat), late)
        else:
            tag, partition, flat = rest
            self.unreturned(queue, tag, partition, _deliveries(flat))

    def collect(self, library: Library, observe: Observe) -> None:
        """Adds what the plane has counted to the meters, and tells `observe`. Closes what was
        idle.
        """
        for number, tag, verb, more, requests, messages, sum_us, max_us, by_meter, by_metric in library.ask(lib.COUNTS):
            observe(verb, requests, sum_us / 1e6, by_metric)
            if (opened := self.plane.opened(number)) is not None:
                counts = {place: count for place, count in enumerate(by_meter) if count}
                cell = Cell(requests, messages, sum_us, max_us, counts)
                self._meters.add(opened.queue.incarnation, tag, _operation(verb, more=bool(more)), cell)
                self.plane.note_use(number)
        self.plane.close_idle()


def _operation(verb: int, *, more: bool) -> Operation:
    """What was asked for. `more`: a receive waited, or a send had several messages."""
    if verb in (lib.SEND, lib.SEND_BATCH, lib.NATIVE_SEND):
        return Operation.BATCH_SEND if more else Operation.SINGLE_SEND
    if verb in (lib.RECEIVE, lib.NATIVE_RECEIVE):
        return Operation.LONG_RECEIVE if more else Operation.SHORT_RECEIVE
    return Operation.DELETE


def _rows(flat: Sequence[Any], width: int) -> Iterator[Sequence[Any]]:
    return (flat[place : place + width] for place in range(0, len(flat), width))


def _deliveries(flat: Sequence[int]) -> Rows:
    return [(offset, nonce, due) for offset, nonce, due in _rows(flat, 3)]


def _dying(row: Sequence[Any]) -> Dying:
    offset, count, first, nonce, again, reason, body = row
    return Dying(offset, count, first, nonce, again, reason.decode(), body)
