"""Python's receives that wait are told to the plane, whose sends wake them."""

from __future__ import annotations

from engine.plane import library as lib
from engine.plane.plane import Plane
from engine.receive.waits.wait_lists import WaitLists
from engine.rules.rights import NOBODY
from tests.unit.engine.plane.conftest import RECORD, Known, Told, route

AT = RECORD.incarnation, 1


def test_the_plane_knows_at_which_queues_somebody_waits_in_python(plane: Plane, known: Known, library: Told) -> None:
    lists = WaitLists()
    lists.watched.connect(plane.watch)
    lists.enter(NOBODY, AT)
    assert route(plane, known, 1)
    assert library.of(lib.WATCH) == [[1, 1]], "somebody waited before"
    lists.enter(NOBODY, AT)
    lists.leave(NOBODY, AT)
    assert library.of(lib.WATCH) == [[1, 1]]
    lists.enter(NOBODY, AT, in_list=False)
    lists.leave(NOBODY, AT)
    assert library.of(lib.WATCH) == [[1, 1], [1, 0]], "who is in no list is not woken"
    assert lists.waiting_at == {AT: 1}
