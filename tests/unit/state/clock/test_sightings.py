"""When a worker takes the holder of something in Redis for gone."""

from __future__ import annotations

import pytest

import state.clock.sightings
from state.clock.sightings import Sightings


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(state.clock.sightings, "monotonic", lambda: now[0])
    return now


def test_a_beat_that_does_not_change_for_its_time_is_over(clock: list[float]) -> None:
    seen = Sightings()
    assert seen.over("unit") == ""
    seen.note("unit", "b1", 3_000)
    clock[0] += 2.9
    assert seen.over("unit") == ""
    seen.note("unit", "b1", 3_000)
    clock[0] += 0.1
    assert seen.over("unit") == "b1", "to see it once more does not begin anew"


def test_a_renewal_begins_anew(clock: list[float]) -> None:
    seen = Sightings()
    seen.note("unit", "b1", 3_000)
    clock[0] += 2.9
    seen.note("unit", "b2", 3_000)
    clock[0] += 2.9
    assert seen.over("unit") == ""
    clock[0] += 0.1
    assert seen.over("unit") == "b2"


def test_each_holder_is_watched_by_itself_and_forgotten(clock: list[float]) -> None:
    seen = Sightings()
    seen.note("one", "b", 1_000)
    seen.note("two", "b", 5_000)
    clock[0] += 1.0
    assert (seen.over("one"), seen.over("two")) == ("b", "")
    seen.forget("one")
    seen.forget("never seen")
    assert seen.over("one") == ""


def test_no_more_than_a_bound_are_watched(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state.clock.sightings, "MOST", 3)
    seen = Sightings()
    for number in range(4):
        seen.note(str(number), "b", 1_000)
    clock[0] += 1.0
    assert [seen.over(str(number)) for number in range(4)] == ["", "b", "b", "b"]
