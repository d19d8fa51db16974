"""What the plane may lease ahead of receives, and when it has to give that back."""

from __future__ import annotations

from typing import Any, cast

import pytest

from engine.plane import library as lib
from engine.plane.plane import Plane
from engine.settings import EngineSettings
from state.redis.calls import Templates
from state.redis.connection import Connection
from state.replies import Window
from tests.unit.engine.plane.conftest import RECORD, Known, Told, route


@pytest.mark.parametrize("alone", [True, False])
def test_only_a_worker_that_is_alone_leases_ahead(known: Known, library: Told, alone: bool) -> None:
    settings, templates = EngineSettings(plane="auto"), Templates("lw", Window(100, 1_000_000))
    made = Plane(
        settings,
        Connection("redis://x"),
        cast(Any, known),
        cast(Any, None),
        templates,
        lambda: None if alone else "me",
        dict,
    )
    made.start(library, [0.1])
    assert route(made, known, 1)

    (told,) = library.of(lib.OPEN)
    assert [may_hold for _, may_hold, *_ in told[2]] == [int(alone)]


async def test_a_receive_of_python_stops_it_for_a_while_and_a_count_for_a_moment(
    plane: Plane, known: Known, library: Told
) -> None:
    assert route(plane, known, 1)
    (number, *_), *_ = library.of(lib.OPEN)
    await plane.empty(RECORD.incarnation, 0)
    await plane.show(RECORD.incarnation, 0)

    assert library.of(lib.EMPTY) == [[number, 0, 5000], [number, 0, 40]]


async def test_a_queue_that_is_not_open_has_nothing(plane: Plane, library: Told) -> None:
    await plane.show(RECORD.incarnation, 0)

    assert library.of(lib.EMPTY) == []
