"""Kafka's clock is known from appends alone, to half of a round trip."""

from __future__ import annotations

import pytest

from engine.log import log_clock
from engine.log.log_clock import LogClock
from runtime import clock as clocks
from state.clock.boot import boot_s
from state.clock.service_clock import ServiceClock

EPOCH_MS = 1_700_000_000_000


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """This machine's clock, to be set."""
    times = [1000.0]
    monkeypatch.setattr(log_clock, "boot_s", lambda: times[0])
    return times


def kafka_at(seconds: float, skew_ms: float = 0) -> int:
    """What a broker writes at that time of this machine."""
    return int(EPOCH_MS + seconds * 1000 + skew_ms)


def error(clock: LogClock, at: list[float], skew_ms: float = 0) -> float:
    known = clock.now_ms()
    assert known is not None
    return abs(known - kafka_at(at[0], skew_ms))


def test_nothing_is_known_before_the_first_append() -> None:
    clock = LogClock()
    assert clock.now_ms() is None and clock.error_ms == float("inf")


@pytest.mark.parametrize("written", [0.0, 0.2, 0.5, 0.999, 1.0])
def test_the_error_covers_each_moment_at_which_the_broker_may_have_written(at: list[float], written: float) -> None:
    clock = LogClock()
    at[0] = 1000.4
    clock.note(1000.0, 1000.4, kafka_at(1000.0 + 0.4 * written))
    assert error(clock, at) <= clock.error_ms + 1 and clock.error_ms == pytest.approx(200.5)


def test_the_shortest_recent_round_trip_counts(at: list[float]) -> None:
    clock = LogClock()
    clock.note(1000.0, 1000.004, kafka_at(1000.002))
    at[0] = 1001.0
    clock.note(1000.5, 1001.0, kafka_at(1000.99))  # a slow one, of which nobody knows when it was written
    assert clock.error_ms < 4 and error(clock, at) <= 3
    at[0] = 5000.0
    assert clock.error_ms > 3_900  # clocks drift
    clock.note(4999.5, 5000.0, kafka_at(4999.7))
    assert clock.error_ms < 300


@pytest.mark.parametrize("step_ms", [300_000, -300_000, 61_000])
def test_a_clock_of_kafka_that_is_set_is_followed_at_the_next_append(at: list[float], step_ms: int) -> None:
    clock = LogClock()
    clock.note(1000.0, 1000.002, kafka_at(1000.001))
    at[0] = 1001.0
    clock.note(1000.5, 1001.0, kafka_at(1000.7, step_ms))
    assert error(clock, at, step_ms) <= clock.error_ms + 1 < 300


def test_the_wall_clock_of_the_worker_takes_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = LogClock()
    now_s = boot_s()
    clock.note(now_s - 0.01, now_s, EPOCH_MS)
    before = clock.now_ms()
    monkeypatch.setattr(clocks, "time_ns", lambda: 0)
    monkeypatch.setattr(clocks, "time", lambda: 0)
    after = clock.now_ms()
    assert before is not None and after is not None and EPOCH_MS <= before <= after < EPOCH_MS + 10_000


def test_who_asks_hears_once_when_the_time_is_known() -> None:
    clock, heard = LogClock(), list[int | None]()
    clock.known.connect(lambda: heard.append(clock.now_ms()))
    for _ in range(3):
        clock.note(boot_s(), boot_s(), 1_700_000_000_000)
    assert len(heard) == 1
    assert heard[0] is not None


def test_before_the_first_append_the_time_of_the_service_has_to_do_and_then_takes_no_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clocks, "time_ns", lambda: (EPOCH_MS + 300_000) * 1_000_000)
    service = ServiceClock()
    clock = LogClock(service)
    # Nothing is known: the clock of this machine.
    assert clock.earliest_ms() == clock.latest_ms() == EPOCH_MS + 300_000
    service.take(boot_s(), EPOCH_MS)
    assert EPOCH_MS <= clock.earliest_ms() <= clock.latest_ms() < EPOCH_MS + 10_000
    # Another worker has said how far Kafka's is ahead of it.
    service.note_log(-60_000, 250)
    assert EPOCH_MS - 60_250 <= clock.earliest_ms() < EPOCH_MS - 50_000
    assert 499 <= clock.latest_ms() - clock.earliest_ms() < 10_000
    clock.note(boot_s() - 0.01, boot_s(), EPOCH_MS + 7_000_000)
    assert EPOCH_MS + 6_999_980 <= clock.earliest_ms() <= clock.latest_ms() < EPOCH_MS + 7_010_000


def test_the_bounds_hold_between_them_what_the_broker_writes(at: list[float]) -> None:
    clock = LogClock()
    clock.note(1000.0, 1000.4, kafka_at(1000.39))
    for seconds in (1000.4, 1001.0, 1100.0):
        at[0] = seconds
        assert clock.earliest_ms() <= kafka_at(seconds) <= clock.latest_ms()
