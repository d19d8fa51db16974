"""How often one line of the log is written."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from facade.programs.stack.worker import BURST, LogRate


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lines(clock: Clock) -> Iterator[Lines]:
    handler = Lines()
    handler.addFilter(LogRate(clock))
    log = logging.getLogger("tests.log_rate")
    log.addHandler(handler)
    yield handler
    log.removeHandler(handler)


def say(number: int) -> None:
    logging.getLogger("tests.log_rate").warning("action=refuse number=%d", number)


def test_a_flood_of_one_line_is_bounded_and_counted(lines: Lines, clock: Clock) -> None:
    for number in range(10_000):
        say(number)
    assert len(lines.texts) == BURST
    clock.now += 3.0
    for number in range(10):
        say(number)
    assert len(lines.texts) == BURST + 3
    assert lines.texts[BURST] == f"action=refuse number=0 ({10_000 - BURST} such lines were left out)"
    clock.now += 1.0
    say(77)
    assert lines.texts[-1] == "action=refuse number=77 (7 such lines were left out)"


def test_another_line_is_written_beside_a_flood(lines: Lines) -> None:
    for number in range(1_000):
        say(number)
    logging.getLogger("tests.log_rate").error("action=alarm kind=other")
    assert lines.texts[-1] == "action=alarm kind=other"
    assert len(lines.texts) == BURST + 1


def test_a_quiet_line_is_always_written(lines: Lines, clock: Clock) -> None:
    for number in range(500):
        clock.now += 1.0
        say(number)
    assert len(lines.texts) == 500
