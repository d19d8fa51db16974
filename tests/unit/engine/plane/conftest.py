"""A plane that tells a recorder what it would tell the library."""

from __future__ import annotations

from typing import Any, cast

import pytest

from engine.catalog.tables import Tables
from engine.plane.plane import Plane
from engine.plane.whys import REFUSED
from engine.rules.queue import Queue
from engine.settings import EngineSettings
from engine.shapes import Principal
from runtime.signals import Signal
from schemas.vocabulary import Verb
from state.redis.calls import Templates
from state.redis.connection import Connection
from state.replies import Window
from tests.unit.records import queue_record

RECORD = queue_record(owner="me")


class Known(Tables):
    def __init__(self) -> None:
        super().__init__("lw", Signal[[Queue]]())
        self.held: Signal[[str, bool]] = Signal()


class Told:
    """Hears what the plane is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, Any]] = []

    def start_plane(self, told: list[Any]) -> None:
        """There is none."""

    def tell(self, what: int, told: Any) -> None:
        self.told.append((what, told))

    def ask(self, what: int) -> list[Any]:
        return []

    def forget(self) -> None:
        self.told.clear()

    def of(self, what: int) -> list[Any]:
        return [told for kind, told in self.told if kind == what]


@pytest.fixture
def known() -> Known:
    made = Known()
    made.put("queue", "orders", RECORD, 0)
    return made


@pytest.fixture
def library() -> Told:
    return Told()


@pytest.fixture
def plane(known: Known, library: Told) -> Plane:
    settings = EngineSettings(plane="auto")
    templates = Templates("lw", Window(100, 1_000_000))
    made = Plane(settings, Connection("redis://x"), cast(Any, known), cast(Any, None), templates, lambda: None, dict)
    made.start(library, [0.1])
    return made


def route(plane: Plane, known: Known, lane: int) -> bool:
    queue = known.queues["orders"]
    refused = {Verb.SEND: REFUSED, Verb.ACK: REFUSED}
    return (
        plane.route(
            Principal("me"),
            queue,
            queue.tags[0],
            lane,
            refused,
            some=1,
            most_bytes=100,
            most_leased_ms=0,
            bounds=(),
            counts_bytes=False,
        )
        == refused
    )
