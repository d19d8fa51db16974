"""Why the plane does not serve a queue, and the words for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.plane.whys import LANE, MOST_CALLS, OF_LIBRARY, VERBS, WHYS, of_queue, of_settings, of_tag
from engine.settings import Settings
from schemas.records import Pause, TagRecord
from schemas.vocabulary import Verb
from tests.unit.engine.plane.conftest import RECORD, Known

NATIVE = Path(__file__).parents[4] / "native" / "src"


def whys_of(**changes: Any) -> dict[Verb, str]:
    partitions = changes.get("partitions", RECORD.partitions)
    tags = [TagRecord(tag.id, tag.name, 1, 0, [0] * partitions) for tag in RECORD.tags]
    known = Known()
    known.put("queue", "orders", msgspec.structs.replace(RECORD, tags=tags, **changes), 0)
    return of_queue(known.queues["orders"])


def test_a_queue_without_features_is_served() -> None:
    assert whys_of() == {}
    assert whys_of(partitions=MOST_CALLS) == {}


@pytest.mark.parametrize(
    ("why", "changes"),
    [
        ("fifo", {"fifo": True}),
        ("priority", {"priority": True}),
        ("on_exhausted", {"on_exhausted": "park"}),
        ("retention_from", {"retention_from": "send"}),
        ("partitions", {"partitions": MOST_CALLS + 1}),
        ("fifo", {"fifo": True, "delay_ms": 5}),
    ],
)
def test_a_feature_keeps_all_verbs_from_the_plane(why: str, changes: dict[str, Any]) -> None:
    assert whys_of(**changes) == dict.fromkeys(VERBS.values(), why)


def test_a_pause_keeps_receives_of_its_tag_from_the_plane_and_nothing_else() -> None:
    pause = Pause("me", 1)
    other = TagRecord(1, "other", 1, 0, [0])
    tags = [*RECORD.tags, other]
    known = Known()
    for paused, whys in (
        ({"paused": pause}, [{Verb.RECEIVE: "paused"}] * 2),
        ({"tags": [*RECORD.tags, msgspec.structs.replace(other, paused=pause)]}, [{}, {Verb.RECEIVE: "paused"}]),
        ({"paused": pause, "fifo": True}, [dict.fromkeys(VERBS.values(), "fifo")] * 2),
    ):
        known.put("queue", "orders", msgspec.structs.replace(RECORD, **{"tags": tags, **paused}), 0)
        assert [of_tag(known.queues["orders"], tag) for tag in (0, 1)] == whys


def test_delays_and_durable_acks_keep_nothing_from_the_plane() -> None:
    assert whys_of(delay_ms=5, durable_acks=True) == {}


def test_both_languages_have_the_same_words() -> None:
    enum = re.search(r"pub enum Why \{(.*?)\n\}", (NATIVE / "plane" / "whys.rs").read_text(), re.DOTALL)
    assert enum is not None
    assert tuple(name.lower() for name in re.findall(r"^    (\w+),$", enum[1], re.MULTILINE)) == OF_LIBRARY
    assert OF_LIBRARY[LANE] == "lane" and "lane" not in WHYS
    assert len(WHYS) == len(set(WHYS))


def test_settings_by_which_a_worker_has_no_plane() -> None:
    assert of_settings(Settings(plane="auto")) == ""
    assert of_settings(Settings(plane="auto", audit="management")) == ""
    assert of_settings(Settings(plane="off", audit="all")) == "LEASEWAY_PLANE=off"
    assert (
        of_settings(Settings(plane="auto", audit="all")) == "LEASEWAY_AUDIT=all: requests are written down one by one"
    )
