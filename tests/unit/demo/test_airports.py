"""What the demo's jobs can't use of a row, and what comes of those that they can."""

from __future__ import annotations

import pytest

from facade.programs.demo.airports import BadRow, Directory, Distances, position_of

HILO = {
    "iata": "ITO",
    "name": "Hilo",
    "city": "Hilo",
    "state": "HI",
    "country": "USA",
    "latitude": "19.72",
    "longitude": "-155.05",
}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"state": "ZZ"}, "state unknown"),
        ({"state": "NA"}, "state missing"),
        ({"latitude": ""}, "latitude missing"),
        ({"latitude": "north"}, "latitude not a number"),
        ({"longitude": "155.05"}, "longitude outside its state"),
    ],
)
def test_a_row_without_a_possible_position_is_bad(change: dict[str, str], kind: str) -> None:
    with pytest.raises(BadRow) as refused:
        position_of({**HILO, **change})
    assert refused.value.kind == kind


def test_a_directory_wants_complete_rows_and_counts_an_airport_once() -> None:
    directory = Directory()
    for _ in range(2):
        directory.take(HILO)
    with pytest.raises(BadRow, match="city is 'NA'"):
        directory.take({**HILO, "city": "NA"})
    assert directory.made() == "a directory of 1 airports in 1 states and territories (most: HI 1)"


def test_distances_are_great_circles_from_honolulu() -> None:
    distances = Distances()
    assert distances.made() == "no distances"
    distances.take({**HILO, "city": "NA"})
    assert distances.made() == "1 distances from Honolulu (farthest: ITO, 348 km)"
