"""Which hours of what is due are brought together."""

from __future__ import annotations

import pytest

from engine.loading import deferrals
from engine.loading.deferrals import LAST_OFFSET, _first_hours
from schemas.vocabulary import SLOT_MS

NOW = 100 * SLOT_MS + 5


def test_hours_are_taken_together_while_they_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferrals, "HOURS_POINTERS", 10)
    assert _first_hours({100: 3, 7: 4, 20: 3}, NOW) == ([7, 20, 100], (NOW, LAST_OFFSET))
    # All before the next hour is over when it has been brought, also what is counted there wrongly.
    assert _first_hours({100: 3, 7: 4, 20: 4}, NOW) == ([7, 20], (100 * SLOT_MS, -1))


def test_an_hour_of_its_own_is_taken_however_large_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferrals, "HOURS_POINTERS", 10)
    assert _first_hours({100: 50}, NOW) == ([100], (NOW, LAST_OFFSET))
    assert _first_hours({99: 50, 100: 1}, NOW) == ([99], (100 * SLOT_MS, -1))
