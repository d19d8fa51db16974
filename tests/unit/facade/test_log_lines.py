"""How a worker writes its log: text and JSON, ids of requests, how often one line is written."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextvars import copy_context

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facade.http.log import request_ids
from facade.http.log.access_log import log as access
from facade.http.log.lines import A_SECOND, ACCESS_BURST, BURST, CHARACTERS, JsonLines, LogRate, TextLines, fields_of


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Lines(logging.StreamHandler[io.StringIO]):
    """What was written, line by line."""

    @property
    def texts(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    @property
    def objects(self) -> list[dict[str, object]]:
        return [json.loads(text) for text in self.texts]


LOG = logging.getLogger("tests.log_lines")


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lines_of(formatter: logging.Formatter, clock: Clock) -> Iterator[Lines]:
    handler = Lines(io.StringIO())
    handler.setFormatter(formatter)
    handler.addFilter(LogRate(clock))
    for log in (LOG, access):
        log.addHandler(handler)
        log.setLevel(logging.INFO)
    yield handler
    for log in (LOG, access):
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)


@pytest.fixture
def text(clock: Clock) -> Iterator[Lines]:
    yield from lines_of(TextLines(), clock)


@pytest.fixture
def as_json(clock: Clock) -> Iterator[Lines]:
    yield from lines_of(JsonLines(), clock)


def say(number: int) -> None:
    LOG.warning("action=refuse number=%d", number)


def test_a_flood_of_one_line_is_bounded_and_counted(text: Lines, clock: Clock) -> None:
    for number in range(10_000):
        say(number)
    assert len(text.texts) == BURST
    clock.now += 3 / A_SECOND
    for number in range(10):
        say(number)
    assert len(text.texts) == BURST + 3
    assert text.texts[BURST].endswith(f"action=refuse number=0 ({10_000 - BURST} such lines were left out)")
    clock.now += 1 / A_SECOND
    say(77)
    assert text.texts[-1].endswith("action=refuse number=77 (7 such lines were left out)")


def test_another_line_is_written_beside_a_flood(text: Lines) -> None:
    for number in range(1_000):
        say(number)
    LOG.error("action=alarm kind=other")
    assert text.texts[-1].endswith("ERROR tests.log_lines: action=alarm kind=other")
    assert len(text.texts) == BURST + 1


def test_a_quiet_line_is_always_written(text: Lines, clock: Clock) -> None:
    for number in range(500):
        clock.now += 1 / A_SECOND
        say(number)
    assert len(text.texts) == 500


def test_the_access_log_has_more_lines_and_a_bound_too(as_json: Lines) -> None:
    for number in range(ACCESS_BURST + 10):
        access.info("action=request number=%d", number)
    assert len(as_json.texts) == ACCESS_BURST


def test_the_words_of_a_line_are_fields_each_as_it_was_given(as_json: Lines) -> None:
    LOG.info("action=move queue=%s count=%d ms=%.1f error=%s part=redis", "a b=c", 3, 1.25, OSError("no room"))
    line = as_json.objects[0]
    assert line.pop("time") and line.pop("pid")
    assert line == {
        "level": "info", "logger": "tests.log_lines", "action": "move", "queue": "a b=c", "count": 3, "ms": 1.2,
        "error": "no room", "part": "redis",
    }  # fmt: skip


@pytest.mark.parametrize("message", ["the front could not read %s", "action=a then words %s", "time=%s action=a"])
def test_any_other_line_is_a_message(as_json: Lines, message: str) -> None:
    LOG.info(message, "it")
    assert as_json.objects[0]["message"] == message % "it"


def test_a_stack_is_a_field_and_one_line(as_json: Lines) -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        LOG.exception("action=fail")
    (line,) = as_json.objects
    assert line["action"] == "fail" and "ValueError: two\nlines" in str(line["exception"])


def test_a_long_text_is_cut(as_json: Lines) -> None:
    LOG.info("action=a error=%s", "x" * 100_000)
    LOG.info("words %s", "x" * 100_000)
    assert [len(str(line.get("error") or line["message"])) for line in as_json.objects] == [CHARACTERS, CHARACTERS]


def test_each_line_names_the_request_that_is_served(text: Lines, as_json: Lines) -> None:
    def serve() -> str:
        number = request_ids.begin()
        say(1)
        return number

    number = copy_context().run(serve)
    say(2)
    assert text.texts[0].endswith(f"number=1 request_id={number}") and "request_id" not in text.texts[1]
    assert [line.get("request_id") for line in as_json.objects] == [number, None]


PLACED = ("time", "level", "logger", "pid", "message", "exception")
WORDS = st.from_regex(r"[a-z_]{1,10}", fullmatch=True).filter(lambda word: word not in PLACED)
VALUES = st.one_of(st.text(), st.integers(), st.booleans())


@given(st.dictionaries(WORDS, VALUES, min_size=1))
def test_whatever_values_are_given_come_back(given: dict[str, object]) -> None:
    template = " ".join(f"{name}=%s" for name in given)
    record = logging.LogRecord("a", logging.INFO, "f", 1, template, tuple(given.values()), None)
    assert fields_of(record) == given
    assert len(JsonLines().format(record).splitlines()) == 1
