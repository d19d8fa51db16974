"""What a worker has counted of receives, by queue and tag."""

from __future__ import annotations

from time import monotonic_ns

from engine.meters.meters import Cell, Meters
from engine.meters.shapes import ReceiveCounts
from engine.plane.tallies import Tallies
from engine.receive.waits.wait_lists import WaitLists
from engine.rules.rights import NOBODY
from schemas.vocabulary import DEFAULT_TAG, Operation
from tests.unit.engine.receive.test_waiters import DEFAULT, QUEUE

AT = QUEUE.incarnation, DEFAULT.id


def row(empty: int, waiting: int) -> list[ReceiveCounts]:
    return [ReceiveCounts(QUEUE.name, DEFAULT_TAG, empty, waiting)]


def test_receives_that_found_nothing_and_those_that_wait_are_counted_here_and_in_the_plane() -> None:
    meters, lists, known, in_plane = Meters(), WaitLists(), {QUEUE.incarnation}, {AT: 2}
    tallies = Tallies(known, meters, lists, lambda: in_plane)
    lists.enter(NOBODY, AT)
    assert tallies.of([QUEUE]) == row(0, 3)
    in_plane.clear()
    lists.leave(NOBODY, AT)
    assert tallies.of([QUEUE]) == row(0, 0), "a series ends with 0"

    for operation, messages in (
        (Operation.LONG_RECEIVE, 0),
        (Operation.SHORT_RECEIVE, 0),
        (Operation.SHORT_RECEIVE, 2),
        (Operation.DELETE, 0),
    ):
        meters.note(*AT, operation, messages, monotonic_ns())
    meters.taken_soon.connect(lambda: meters.add(*AT, Operation.LONG_RECEIVE, Cell(9, 4), 5))
    meters.taken_soon.connect(lambda: meters.add(*AT, Operation.CHANGE, Cell(9, 4), 5))
    assert tallies.of([QUEUE]) == row(2 + 5, 0)
    meters.take()
    assert tallies.of([QUEUE]) == row(2 + 3 * 5, 0), "it goes on when a minute is over"
    assert tallies.of([]) == []


def test_a_queue_that_is_gone_is_forgotten() -> None:
    meters, lists, known = Meters(), WaitLists(), {QUEUE.incarnation}
    tallies = Tallies(known, meters, lists, dict)
    lists.enter(NOBODY, AT)
    meters.note(*AT, Operation.LONG_RECEIVE, 0, monotonic_ns())
    assert tallies.of([QUEUE]) == row(1, 1)
    known.clear()
    lists.leave(NOBODY, AT)
    meters.keep(known)
    assert tallies.of([QUEUE]) == []


def test_bytes_of_sends_here_and_in_the_plane_are_shown_of_queues_that_there_are() -> None:
    meters = Meters()
    tallies = Tallies({QUEUE.incarnation}, meters, WaitLists(), dict)
    assert tallies.stored([QUEUE]) == {}
    meters.note_stored(QUEUE.incarnation, 40)
    meters.note_stored("another life", 7)
    meters.taken_soon.connect(lambda: meters.note_stored(QUEUE.incarnation, 2))
    assert tallies.stored([QUEUE]) == {QUEUE.name: 42}
    assert tallies.stored([]) == {}
    meters.keep({QUEUE.incarnation})
    assert list(meters.stored) == [QUEUE.incarnation]
