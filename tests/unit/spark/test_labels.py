"""Numbers, durations, sizes and times as the page writes them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from spark.page.labels import NONE, clock, count, duration, moment, share, short, size, text

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (count(1_234_567), "1,234,567"),
        (short(950), "950"),
        (short(1_200), "1.2k"),
        (short(3_000_000), "3M"),
        (duration(0.4), "0.4 ms"),
        (duration(840), "840 ms"),
        (duration(12_500), "12.5 s"),
        (duration(204_000), "3.4 min"),
        (duration(1.3 * DAY_MS), "1.3 d"),
        (size(1_023), "1,023 B"),
        (size(1_024), "1.0 KiB"),
        (size(5 * 1024**3), "5.0 GiB"),
        (share(0.123), "12.3 %"),
        (share(1), "100 %"),
        (share(0), "0 %"),
        (moment(datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)), "2026-03-01 12:00:05"),
        (text("orders"), "orders"),
    ],
)
def test_a_value_is_written_as_people_read_it(written: str, expected: str) -> None:
    assert written == expected


def test_what_is_not_known_is_a_dash() -> None:
    assert {count(None), duration(None), size(None), share(None), moment(None), text(None), text("")} == {NONE}


@pytest.mark.parametrize(
    ("span_ms", "expected"), [(DAY_MS, "12:30"), (3 * DAY_MS, "03-01 12:30"), (5 * DAY_MS, "03-01")]
)
def test_an_axis_has_the_day_when_it_is_longer_than_two(span_ms: int, expected: str) -> None:
    at = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    assert clock(int(at.timestamp() * 1000), span_ms) == expected
