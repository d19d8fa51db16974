"""Which queues the plane serves, and when it is told that it serves them no more."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.plane import library as lib
from engine.plane.plane import Plane
from engine.plane.whys import VERBS
from engine.settings import Settings
from engine.shapes import Principal
from engine.wiring.worker import Parts, wire
from runtime.clock import now_ms
from schemas.filters import Condition, Filter
from schemas.records import GenerationRecord, KeyRecord, QueueRecord, TagRecord
from schemas.records.settings import RedrivePolicy
from schemas.vocabulary import DEFAULT_TAG, Verb
from state.redis.server import Server

BY = Principal("shop")
NATIVE = Path(__file__).parents[4] / "native" / "src"


class Recording:
    """A library that notes what it is told."""

    def __init__(self) -> None:
        self.started: list[Any] = []
        self.told: list[tuple[int, Any]] = []
        self.waiting: list[int] = []
        self.waiters: list[Any] = []
        self.times: list[Any] = []
        self.counts: list[Any] = []
        self.forgotten = 0

    def start_plane(self, told: list[Any]) -> None:
        self.started.append(told)

    def tell(self, what: int, told: list[Any] | int) -> None:
        msgspec.msgpack.encode(told)
        self.told.append((what, told))

    def ask(self, what: int) -> list[Any]:
        return {
            lib.WAITING: list(self.waiting),
            lib.WAITERS: self.waiters,
            lib.TIMES: self.times,
            lib.COUNTS: self.counts,
        }.get(what, [])

    def forget(self) -> None:
        self.forgotten += 1

    def kinds(self) -> list[int]:
        """What was told since the last time."""
        kinds = [what for what, _ in self.told]
        self.told.clear()
        return kinds


class Stage:
    """A worker's engine that is not started, with a queue."""

    def __init__(self) -> None:
        self.parts: Parts = wire(Settings(secret="s", plane="auto"))
        self.catalog = self.parts.base.catalog
        self.plane: Plane = self.parts.units.plane_news.plane
        self.library = Recording()
        self.plane.start(self.library, (0.001, 1.0))
        self.put(RECORD)

    def put(self, record: QueueRecord | None, name: str = "q") -> None:
        self.catalog.put("queue", name, record, 0)

    def whys(self, tag: str | None = None, lane: int = 1, by: Principal = BY) -> dict[Verb, str]:
        queue = self.catalog.queues["q"]
        most = {"some": 1, "most_bytes": 1000, "most_leased_ms": 7000}
        return self.plane.route(by, queue, queue.tag(tag), lane, {}, **most, bounds=(), counts_bytes=False)

    def route(self, tag: str | None = None, lane: int = 1, by: Principal = BY) -> bool:
        return len(self.whys(tag, lane, by)) < len(VERBS)


TAGS = [TagRecord(1, DEFAULT_TAG, 0, 0, [0, 0]), TagRecord(2, "red", 0, 0, [0, 0], filter=Filter([Condition("color")]))]
RECORD = QueueRecord(
    "q",
    "0123456789ab",
    "shop",
    0,
    0,
    partitions=2,
    retention_ms=86_400_000,
    max_message_bytes=1000,
    receive_wait_ms=0,
    max_receive_messages=10,
    tags=TAGS[:1],
    next_tag_id=2,
)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_the_first_request_opens_a_queue_and_the_others_have_routes(stage: Stage) -> None:
    assert stage.route() and stage.route(lane=2)
    assert stage.library.kinds() == [lib.OPEN, lib.ROUTE, lib.ROUTE]
    assert stage.plane.may_serve(stage.catalog.queues["q"])


@pytest.mark.parametrize(
    ("why", "changes"),
    [
        ("fifo", {"fifo": True}),
        ("priority", {"priority": True}),
        ("on_exhausted", {"on_exhausted": "park", "max_receive_count": 3}),
        ("retention_from", {"retention_from": "send"}),
        ("partitions", {"partitions": 600}),
    ],
)
def test_what_is_not_plain_is_not_opened(stage: Stage, why: str, changes: dict[str, Any]) -> None:
    tags = [msgspec.structs.replace(TAGS[0], start_offsets=[0] * changes.get("partitions", 2))]
    stage.put(msgspec.structs.replace(RECORD, tags=tags, **changes))
    assert stage.whys() == dict.fromkeys(VERBS.values(), why)
    assert stage.library.kinds() == []
    assert not stage.plane.may_serve(stage.catalog.queues["q"])


def test_verbs_that_need_more_than_the_scripts_are_not_allowed(stage: Stage) -> None:
    held = lib.MAY_EXTEND | lib.MAY_RELEASE
    cases: list[tuple[dict[str, Any], int, dict[Verb, str]]] = [
        ({}, held | lib.MAY_SEND | lib.MAY_SEND_ATTRIBUTES | lib.MAY_RECEIVE | lib.MAY_ACK, {}),
        ({"tags": TAGS, "next_tag_id": 3}, held | lib.MAY_SEND | lib.MAY_RECEIVE | lib.MAY_ACK, {}),
        ({"durable_acks": True}, held | lib.MAY_SEND | lib.MAY_SEND_ATTRIBUTES | lib.MAY_RECEIVE | lib.MAY_ACK, {}),
        ({"delay_ms": 5}, held | lib.MAY_SEND | lib.MAY_SEND_ATTRIBUTES | lib.MAY_RECEIVE | lib.MAY_ACK, {}),
    ]
    for changes, may, whys in cases:
        stage.put(msgspec.structs.replace(RECORD, **changes))
        assert stage.whys() == whys
        times = [7000, changes.get("delay_ms", 0), 299_999]
        assert [(told[3], told[-3:]) for what, told in stage.library.told if what == lib.ROUTE] == [(may, times)]
        stage.library.kinds()


def test_a_queue_is_closed_before_a_change_of_it_counts(stage: Stage) -> None:
    stage.route()
    stage.library.kinds()
    seen: list[list[int]] = []
    stage.catalog.changing.connect(lambda kind, name: seen.append(stage.library.kinds()))
    stage.put(msgspec.structs.replace(RECORD, lease_ms=1))
    assert seen == [[lib.CLOSE]]
    assert stage.route(), "it is opened as it is now"


def test_a_queue_is_closed_while_somebody_changes_it(stage: Stage) -> None:
    stage.route()
    stage.catalog.held("q", True)
    assert stage.library.kinds() == [lib.OPEN, lib.ROUTE, lib.CLOSE]
    assert stage.whys() == dict.fromkeys(VERBS.values(), "changed")
    stage.catalog.held("q", False)
    assert stage.route()


def test_a_queue_whose_messages_may_die_is_closed_by_any_change_of_a_queue(stage: Stage) -> None:
    stage.put(msgspec.structs.replace(RECORD, redrive_policy=RedrivePolicy("dead", 3)))
    stage.route()
    stage.library.kinds()
    stage.put(msgspec.structs.replace(RECORD, name="dead", incarnation="ba9876543210"), "dead")
    assert stage.library.kinds() == [lib.CLOSE]


def test_rights_quotas_and_lives_of_redis(stage: Stage) -> None:
    stage.route()
    stage.library.kinds()
    stage.catalog.put("key", "k", KeyRecord("k", "s", "shop", False, 0), 0)
    assert stage.library.forgotten
    before = stage.library.forgotten
    stage.catalog.put("user", "shop", None, 0)
    assert stage.library.forgotten > before
    stage.catalog.put("generation", "generation", GenerationRecord(2, "r", 0), 0)
    assert lib.CLOSE in stage.library.kinds()


def test_a_key_that_ends_soon_has_no_route(stage: Stage) -> None:
    by = msgspec.structs.replace(BY, key_id="k")
    for left_ms, is_served in [(30_000, False), (600_000, True)]:
        stage.catalog.put("key", "k", KeyRecord("k", "s", "shop", False, 0, expires_at_ms=now_ms() + left_ms), 0)
        assert stage.route(by=by) is is_served


def test_messages_without_attributes_go_to_the_tags_that_want_them(stage: Stage) -> None:
    stage.put(msgspec.structs.replace(RECORD, tags=TAGS, next_tag_id=3))
    assert stage.route("red")
    (told,) = [told for what, told in stage.library.told if what == lib.OPEN]
    assert told[4] == b"10"
    assert [tag[0] for tag in told[2]] == [1, 2]


def test_another_worker_closes_all(stage: Stage) -> None:
    stage.route()
    stage.library.kinds()
    stage.parts.units.owner.workers_changed()
    assert stage.library.kinds() == [lib.CLOSE]


def test_who_waits_in_python_is_watched_for(stage: Stage) -> None:
    stage.route()
    stage.library.kinds()
    for waiting, told in [(1, [lib.WATCH]), (1, []), (-1, []), (-1, [lib.WATCH])]:
        stage.plane.watch(RECORD.incarnation, waiting)
        assert stage.library.kinds() == told


def test_off_it_is_told_nothing() -> None:
    plane = wire(Settings(secret="s", plane="off")).units.plane_news.plane
    library = Recording()
    plane.start(library, ())
    assert (plane.is_on, plane.state, library.started) == (False, "off: LEASEWAY_PLANE=off", [])


async def test_it_says_whether_it_is_on_and_why_not(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(told: list[Any]) -> None:
        raise OSError("unsupported: sasl.mechanism=GSSAPI")

    plane = wire(Settings(secret="s", plane="auto")).units.plane_news.plane
    assert plane.state == "off: the library does not serve HTTP"
    assert wire(Settings(secret="s", plane="auto", audit="all")).units.plane_news.plane.state.startswith(
        "off: LEASEWAY_AUDIT=all"
    )
    library = Recording()
    monkeypatch.setattr(library, "start_plane", refuse)
    plane.start(library, ())
    assert plane.state == "off: unsupported: sasl.mechanism=GSSAPI"
    nowhere = "off: it is not connected to the Redis in use"
    assert stage.plane.state == nowhere
    stage.plane.link.greeted(1, Server("ab" * 20))
    assert stage.plane.state == "on"
    stage.plane.link.greeted(2, Server("ab" * 20, is_replica=True))
    assert stage.plane.state == nowhere
    await stage.plane.stop()
    assert stage.plane.state == "off: the worker stops"


def test_both_languages_have_the_same_numbers() -> None:
    source = (NATIVE / "net" / "numbers.rs").read_text()
    told = dict(re.findall(r"pub const (\w+): u32 = (\d+);", source))
    assert {name: int(number) for name, number in told.items()} == {name: getattr(lib, name) for name in told}
    assert len(told) >= 37, "the file is read"
    ends = re.search(r"pub enum End \{(.*?)\n\}", (NATIVE / "plane" / "ended.rs").read_text(), re.DOTALL)
    assert ends is not None
    assert re.findall(r"^    (\w+),", ends[1], re.MULTILINE) == ["Done", "Fenced", "NotAppended", "Passed"]
    assert (lib.DONE, lib.FENCED, lib.NOT_APPENDED, lib.PASSED) == (0, 1, 2, 3)
    routes = (NATIVE / "plane" / "routes.rs").read_text()
    assert {n: int(v) for n, v in re.findall(r"pub const (\w+): u8 = (\d+);", routes)} == {
        "MAY_SEND": lib.MAY_SEND,
        "MAY_RECEIVE": lib.MAY_RECEIVE,
        "MAY_ACK": lib.MAY_ACK,
        "MAY_SEND_ATTRIBUTES": lib.MAY_SEND_ATTRIBUTES,
        "COUNTS_BYTES": lib.COUNTS_BYTES,
        "MAY_EXTEND": lib.MAY_EXTEND,
        "MAY_RELEASE": lib.MAY_RELEASE,
    }
