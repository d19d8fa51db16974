"""The history as clients write it, the seed of the weather, and a matrix of runs. No services."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.judge.book import clean
from tests.judge.checkers import check
from tests.judge.history import read
from tests.judge.report import report
from tests.judge.story import Story
from tests.outside import matrix, weather
from tests.outside.book import DONE, UNKNOWN, Book, body_of, token_of


def test_a_matrix_repeats_no_run_and_tells_what_broke(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert matrix.numbers("1-3,7") == [1, 2, 3, 7]
    asked = ["--seeds", "7", "--workers", "2", "--load", "0", "--folder", str(tmp_path)]
    file = tmp_path / "seed-7-workers-2-load-0.json"
    file.write_text(_report(clean().story))
    assert matrix.main(asked) == 0 and "| 2 workers, load 0 | 1 |" in capfd.readouterr().out
    file.write_text(_report(clean().send(500, "x").story))
    assert matrix.main(asked) == 1 and "no acked send lost 1" in capfd.readouterr().out


def _report(story: Story) -> str:
    return json.dumps({"seed": 7, "workers": 2, "load": 0, **report(story, check(story, 20))})


def test_an_operation_is_read_as_it_was_written(tmp_path: Path) -> None:
    book = Book(tmp_path / "book.jsonl")
    began = book.now()
    book.op("purge", began, DONE, queue="q")
    book.op("purge", began, UNKNOWN, queue="q")
    book.close()
    book.note("late")
    done, unknown = read(book.path).ops
    assert (done.ok, done.line.queue, done.where()) == (True, "q", "line 2")
    assert done.began <= done.ended < unknown.ended and unknown.outcome == "info"
    assert unknown.left - unknown.began < 10**9


def test_a_body_says_its_token_and_whether_it_is_whole() -> None:
    assert token_of(body_of("tk-a-1")) == ("tk-a-1", True)
    assert token_of(body_of("tk-a-1") + "x") == ("tk-a-1", False)


def test_a_seed_names_its_weather() -> None:
    def first(seed: int) -> list[weather.Gust]:
        gusts = weather.schedule(seed)
        return [next(gusts) for _ in range(2 * len(weather.KINDS))]

    assert first(1) == first(1) != first(2)
    assert {gust.name for gust in first(1)[: len(weather.KINDS)]} == set(weather.KINDS)
