"""The data: 3,376 airports of the package vega-datasets, and what has to be right in a row before
it is of use.

Nothing is made worse here: the rows are sent as they ship, and those that fail are wrong in the
data set.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from facade.programs.demo.errors import DemoError
from facade.programs.demo.states import BOXES

PACKAGE, FILE = "vega_datasets", "airports.csv"
FIELDS = ("iata", "name", "city", "state", "country", "latitude", "longitude")
MISSING = frozenset({"", "NA"})  # the file was written by R, whose word for a missing value is NA
PACIFIC = ("AK", "AS", "CA", "CQ", "GU", "HI", "OR", "WA")
HONOLULU = (21.32, -157.92)
EARTH_KM = 6371.0

Row = Mapping[str, str]


class BadRow(Exception):
    """A row that a job can't use: `kind` groups such rows, the text says what is wrong with this
    one.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class Job(Protocol):
    """What a consumer does with its rows. The same row may come twice (delivery is at least once)
    and counts once.
    """

    def take(self, row: Row) -> None:
        """Use a row. Raises BadRow."""

    def made(self) -> str:
        """What came of it, in a line."""


def source() -> Path:
    """The file. Raises DemoError when the package is absent."""
    # Found, not imported: importing it would load pandas for nothing.
    found = find_spec(PACKAGE)
    for folder in (found.submodule_search_locations if found else None) or ():
        if (file := Path(folder) / "_data" / FILE).is_file():
            return file
    raise DemoError(f"{FILE} of the package vega-datasets is not installed: run `make demo`, or install leaseway[demo]")


def rows() -> Iterator[dict[str, str]]:
    """The rows, one by one, as they are. Raises DemoError when the file isn't the one we know."""
    with source().open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != FIELDS:
            raise DemoError(f"{FILE} has columns {reader.fieldnames}, expected {list(FIELDS)}")
        yield from reader


def position_of(row: Row) -> tuple[float, float]:
    """Latitude and longitude in degrees. Raises BadRow unless both are numbers and inside the row's
    state.
    """
    box = BOXES.get(_given(row, "state"))
    if box is None:
        raise BadRow("state unknown", f"state {row['state']!r} is none of the {len(BOXES)} we know")
    latitude, longitude = _degrees(row, "latitude"), _degrees(row, "longitude")
    for name, value, least, most in (
        ("latitude", latitude, box.south, box.north),
        ("longitude", longitude, box.west, box.east),
    ):
        if not least <= value <= most:
            raise BadRow(
                f"{name} outside its state", f"{name} {value:.2f}, but {row['state']} lies between {least} and {most}"
            )
    return latitude, longitude


class Directory:
    """Airports by code. A row must be complete and its position possible."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}

    def take(self, row: Row) -> None:
        """Enter an airport. Raises BadRow."""
        for name in FIELDS:
            _given(row, name)
        position_of(row)
        self._states[row["iata"]] = row["state"]

    def made(self) -> str:
        """How many airports, and where most of them are."""
        counts = Counter(self._states.values())
        most = ", ".join(f"{state} {count}" for state, count in counts.most_common(3))
        return f"a directory of {len(self._states):,} airports in {len(counts)} states and territories (most: {most})"


class Distances:
    """How far airports are from Honolulu. A row needs a code and a possible position."""

    def __init__(self) -> None:
        self._km: dict[str, float] = {}

    def take(self, row: Row) -> None:
        """Measure an airport. Raises BadRow."""
        code = _given(row, "iata")
        self._km[code] = _great_circle_km(HONOLULU, position_of(row))

    def made(self) -> str:
        """How many airports, and the one farthest away."""
        if not self._km:
            return "no distances"
        code = max(self._km, key=self._km.__getitem__)
        return f"{len(self._km):,} distances from Honolulu (farthest: {code}, {self._km[code]:,.0f} km)"


def _given(row: Row, name: str) -> str:
    value = row.get(name) or ""
    if value in MISSING:
        raise BadRow(f"{name} missing", f"{name} is {value!r}")
    return value


def _degrees(row: Row, name: str) -> float:
    try:
        value = float(_given(row, name))
    except ValueError:
        raise BadRow(f"{name} not a number", f"{name} is {row[name]!r}") from None
    return value


def _great_circle_km(one: tuple[float, float], other: tuple[float, float]) -> float:
    (south, west), (north, east) = (tuple(map(math.radians, point)) for point in (one, other))
    half = math.sin((north - south) / 2) ** 2 + math.cos(south) * math.cos(north) * math.sin((east - west) / 2) ** 2
    return 2 * EARTH_KM * math.asin(math.sqrt(half))
