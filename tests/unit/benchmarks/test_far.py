"""Which runs of far delays miss a bar, and the picture of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from benchmarks.far.chart import svg
from benchmarks.far.outcome import Look, Outcome, percentile, read, write

MIB = 2**20


def outcome(**other: Any) -> Outcome:
    """A run that keeps every bar, but for what is given."""
    looks = [Look(hour, 10.0, sorted((hour * 7 + n) % 40 for n in range(100)), 0) for hour in range(24)]
    memory = [(-1.0, 1 * MIB), (-0.9, 3 * MIB), *((hour / 4, 2 * MIB) for hour in range(96))]
    figures = (1_000_000, 24.0, 1_000_000, 0, 0, 0.1, 90.0, 900.0, (1.0, 2.0), looks, memory)
    kept = Outcome("python -m benchmarks.far", "a machine", "abc", *figures)
    return msgspec.structs.replace(kept, **other)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({}, []),
        ({"came": 999_999}, ["1 of 1000000 never came"]),
        ({"early": 1}, ["1 came early"]),
        ({"twice": 2}, ["2 came twice"]),
        ({"memory": [(0.0, 64 * MIB)]}, ["Redis had 64.0 MiB, the bar is 64"]),
        ({"looks": [Look(1.0, 10.0, [5] * 98 + [1_000] * 2, 0)]}, ["p99 is 1000 ms, the bar is 1000"]),
        ({"looks": [Look(1.0, 10.0, [5], 3)]}, ["3 did not come within a minute"]),
    ],
)
def test_a_bar_that_is_missed_is_told(other: dict[str, Any], said: list[str]) -> None:
    assert outcome(**other).broken() == said


def test_a_percentile_is_one_of_the_numbers() -> None:
    assert [percentile(list(range(1, 101)), part) for part in (0, 50, 99, 100)] == [1, 51, 100, 100]
    assert percentile([], 99) == 0


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    assert read(tmp_path) == []
    wiped = outcome(wiped_at=12.0)
    write(wiped, tmp_path)
    write(outcome(), tmp_path)
    assert read(tmp_path) == [outcome(), wiped]


@pytest.mark.parametrize("runs", [1, 2])
def test_the_picture_is_drawn(runs: int) -> None:
    picture = svg([outcome(), outcome(wiped_at=12.0)][:runs])
    root = ElementTree.fromstring(picture)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for points in re.findall(r'points="([^"]+)"', picture):
        places = [tuple(map(float, point.split(","))) for point in points.split()]
        assert places and all(0 <= x <= width and 0 <= y <= height for x, y in places)
    assert ("Redis emptied" in picture) is (runs == 2)
