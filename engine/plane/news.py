"""What the plane tells: where there is traffic, what goes back, what dies, what was counted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from engine.meters.meters import Cell, Meters
from engine.plane import library as lib
from engine.plane.library import Library
from engine.plane.plane import Opened, Plane
from engine.plane.service import WORDS
from engine.rules.queue import Queue
from runtime.signals import Signal
from schemas.records import TagRecord
from schemas.vocabulary import Operation, Verb
from state.redis.server import Server, read_server
from state.replies import Dying, Received

logger = logging.getLogger(__name__)

# Offset, nonce, due ms of deliveries that nobody got.
Rows = Sequence[tuple[int, int, int]]
# A verb by its number, whether the clients have gone, how many requests, their seconds, and how
# many by the bounds of the metrics.
Observe = Callable[[int, bool, int, float, Sequence[int]], None]


class PlaneNews:
    """Takes in what the plane of a worker tells.

    `seen` tells what a receive saw of a unit, `wanting` of a queue at which somebody waits for what
    the window does not have, `dying` of messages that are to be moved; `returned` of deliveries
    (tag, partition, rows) that were given back, and of how many it was too late for, `unreturned`
    of those that are to be; `refused` of handles of a partition (offset, reason)
    that were good for nothing. Of sends: `used` tells where there are some, `unloaded` that the
    window has not got what Kafka has, `ahead` that it is beyond what was just stored, `suspect`
    that a topic may be gone; `low` and `low_delays` that few bytes are allowed still, or few
    messages with delays (the queue's number and the queue). `drained` tells how a drain has ended,
    by its number; `written` of acks in a queue with `durable_acks`: the queue, partition and seq of
    their entry, and the number by which the plane knows them.
    """

    def __init__(self, plane: Plane, meters: Meters) -> None:
        self.plane = plane
        self._meters = meters
        # Tells that somebody is about to look at the meters: what was counted is to be collected.
        self.wanted: Signal[[]] = Signal()
        meters.taken_soon.connect(self.wanted)
        self.seen: Signal[[Queue, int, Received]] = Signal()
        self.wanting: Signal[[Queue]] = Signal()
        self.dying: Signal[[Queue, TagRecord, int, Sequence[Dying]]] = Signal()
        self.drained: Signal[[int, Sequence[Any]]] = Signal()
        self.suspect: Signal[[Queue]] = Signal()
        self.used: Signal[[Queue, int]] = Signal()
        self.unloaded: Signal[[]] = Signal()
        self.written: Signal[[Opened, int, int, int]] = Signal()
        self.low: Signal[[int, Queue]] = Signal()
        self.low_delays: Signal[[int, Queue]] = Signal()
        self.ahead: Signal[[Queue, int, int]] = Signal()
        self.returned: Signal[[Queue, int, int, Rows, int]] = Signal()
        self.unreturned: Signal[[Queue, int, int, Rows]] = Signal()
        self.refused: Signal[[Queue, int, list[tuple[int, str]]]] = Signal()

    def take(self, news: Sequence[Any]) -> None:
        """Takes in one thing that the plane tells, but FAILED and SERVED."""
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
        elif kind == lib.WRITTEN:
            self.plane.tell(lib.JOURNALED, [rest[-1], b"the queue was closed long ago"])

    def _take_of_queue(self, kind: int, opened: Opened, rest: Sequence[Any]) -> None:
        queue = opened.queue
        if kind == lib.SEEN:
            _, partition, open_count, in_flight, cursor, hungry = rest
            self.seen(queue, partition, Received(0, 0, None, None, cursor, open_count, in_flight, bool(hungry), [], []))
        elif kind in (lib.REFRESH, lib.SUSPECT):
            (self.wanting if kind == lib.REFRESH else self.suspect)(queue)
        elif kind in (lib.LOW, lib.LOW_DELAYS):
            (self.low if kind == lib.LOW else self.low_delays)(opened.number, queue)
        elif kind in (lib.DYING, lib.RETURNED, lib.RETURN):
            self._take_rows(kind, opened, rest)
        elif kind == lib.REFUSED:
            partition, rows = rest
            self.refused(queue, partition, [(offset, WORDS[word][2]) for offset, word in _rows(rows, 2)])
        elif kind == lib.USED:
            self.used(queue, rest[0])
        elif kind == lib.WRITTEN:
            self.written(opened, *rest)
        elif kind == lib.UNLOADED:
            self.unloaded()
        elif kind == lib.AHEAD:
            self.ahead(queue, *rest)
        elif kind == lib.VISIBLE:
            self.plane.visible(queue.incarnation, *rest)
        elif self.plane.is_open(opened.number):
            logger.info("action=plane queue=%s closed=%s", queue.name, rest[0])
            self.plane.rest(opened)

    def _take_rows(self, kind: int, opened: Opened, rest: Sequence[Any]) -> None:
        tag, partition, flat, *late = rest
        if kind == lib.DYING:
            self.dying(opened.queue, opened.tags[tag], partition, [_dying(row) for row in _rows(flat, 7)])
        elif kind == lib.RETURNED:
            self.returned(opened.queue, tag, partition, _deliveries(flat), *late)
        else:
            self.unreturned(opened.queue, tag, partition, _deliveries(flat))

    def waiters(self) -> dict[tuple[str, int], int]:
        """Returns how many receives wait in the plane, by incarnation and tag."""
        found = ((self.plane.opened(number), tag, receives) for number, tag, receives in self.plane.ask(lib.WAITERS))
        return {(opened.queue.incarnation, tag): receives for opened, tag, receives in found if opened is not None}

    def collect(self, library: Library, observe: Observe) -> None:
        """Adds what the plane has counted to the meters, and tells `observe`. Closes what was
        idle.
        """
        for (
            number,
            tag,
            verb,
            more,
            gone,
            requests,
            messages,
            empty,
            sum_us,
            max_us,
            by_meter,
            by_metric,
        ) in library.ask(lib.COUNTS):
            observe(verb, bool(gone), requests, sum_us / 1e6, by_metric)
            self.plane.note_use(number)
            if not gone and (opened := self.plane.opened(number)) is not None:
                counts = {place: count for place, count in enumerate(by_meter) if count}
                cell = Cell(requests, messages, sum_us, max_us, counts)
                self._meters.add(opened.queue.incarnation, tag, _operation(verb, more=bool(more)), cell, empty)
        self._meters.times.add(library.ask(lib.TIMES))
        for number, size in library.ask(lib.STORED):
            if (opened := self.plane.opened(number)) is not None:
                self._meters.note_stored(opened.queue.incarnation, size)
        self.plane.close_idle()


def _operation(verb: int, *, more: bool) -> Operation:
    """What was asked for. `more`: a receive waited, or a send had several messages."""
    asked = lib.VERB_OF[verb]
    if asked is Verb.SEND:
        return Operation.BATCH_SEND if more else Operation.SINGLE_SEND
    if asked is Verb.RECEIVE:
        return Operation.LONG_RECEIVE if more else Operation.SHORT_RECEIVE
    return Operation.DELETE if asked is Verb.ACK else Operation.CHANGE


def _rows(flat: Sequence[Any], width: int) -> Iterator[Sequence[Any]]:
    return (flat[place : place + width] for place in range(0, len(flat), width))


def _deliveries(flat: Sequence[int]) -> Rows:
    return [(offset, nonce, due) for offset, nonce, due in _rows(flat, 3)]


def _dying(row: Sequence[Any]) -> Dying:
    offset, count, first, nonce, again, reason, body = row
    return Dying(offset, count, first, nonce, again, reason.decode(), body)
