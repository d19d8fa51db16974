"""The time of the service in one process; tests/state has how workers agree on it."""

from __future__ import annotations

import pytest

import state.clock.service_clock
from state.clock.service_clock import FOR_EVER_MS, LATE_MS, SLEW, ServiceClock
from state.errors import StateUnavailable

T0 = 1_700_000_000_000


class Boot:
    at_s = 1000.0

    def __call__(self) -> float:
        return self.at_s


@pytest.fixture
def boot(monkeypatch: pytest.MonkeyPatch) -> Boot:
    boot = Boot()
    monkeypatch.setattr(state.clock.service_clock, "boot_s", boot)
    return boot


def test_nothing_is_decided_before_the_time_is_known() -> None:
    clock = ServiceClock()
    assert (clock.is_set, clock.now_ms(), clock.keep_ms) == (False, 0, 0)
    clock.require()
    assert clock.keep_ms == FOR_EVER_MS, "nothing expires before the log's clock is known"
    with pytest.raises(StateUnavailable, match="not known yet"):
        clock.now_ms()


def test_it_goes_on_by_the_clock_that_nobody_sets(boot: Boot) -> None:
    clock = ServiceClock()
    clock.take(boot.at_s, T0)
    boot.at_s += 12.5
    assert clock.now_ms() == T0 + 12_500


@pytest.mark.parametrize("error_ms", [300_000, -300_000, 40, -40])
def test_it_is_moved_slowly_and_never_back(boot: Boot, error_ms: int) -> None:
    clock = ServiceClock()
    clock.take(boot.at_s, T0)
    clock.slew(error_ms)
    before = clock.now_ms()
    for _ in range(1_000):
        boot.at_s += 0.1
        now = clock.now_ms()
        assert 100 * (1 - SLEW) - 1 <= now - before <= 100 * (1 + SLEW) + 1
        before = now
    moved = before - (T0 + 100_000)
    assert abs(moved - max(-1_000, min(1_000, error_ms))) <= 1


@pytest.mark.parametrize(
    ("ahead_ms", "early_ms", "keep_ms"),
    [
        (0.0, 0, 5),
        (-2_000.0, 2_005, 2_005),  # the log is behind: its delays end later, and nothing expires before
        (300.0, 0, 0),  # it is ahead by less than a delay may be late
        (LATE_MS + 6, -1_001, 0),
    ],
)
def test_the_log_s_clock_says_when_delays_end_and_what_expires(ahead_ms: float, early_ms: int, keep_ms: int) -> None:
    clock = ServiceClock()
    clock.note_log(ahead_ms, 5.0)
    assert (clock.early_ms, clock.keep_ms) == (early_ms, keep_ms)
