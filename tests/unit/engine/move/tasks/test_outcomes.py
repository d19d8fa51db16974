"""Outcomes of letters in the record of a task."""

from __future__ import annotations

import pytest

from engine.move.tasks import outcomes
from engine.move.tasks.outcomes import Row, rows_of, with_rows

ROWS = [Row(0, 7, "moved", "0123456789ab/1/3"), Row(0, 9, "leased"), Row(1, 0, "gone")]


def test_rows_come_back_in_their_order() -> None:
    packed = with_rows(with_rows(b"", ROWS[:1]), ROWS[1:])

    assert rows_of(packed) == ROWS
    assert with_rows(packed, []) is packed
    assert rows_of(b"") == []


def test_no_more_rows_are_kept_than_a_record_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "MOST", 2)
    packed = with_rows(b"", ROWS)

    assert rows_of(packed) == ROWS[:2]
    assert with_rows(packed, ROWS) is packed


def test_as_many_as_may_be_chosen_take_little_room() -> None:
    rows = [Row(n % 4, n, "moved", f"0123456789ab/{n % 8}/{5 * n}") for n in range(10_000)]

    assert len(with_rows(b"", rows)) < 200_000
