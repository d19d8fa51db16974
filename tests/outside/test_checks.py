"""Each check sees what was planted for it, and nothing in a book where all is right. No
services.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.outside import matrix, weather
from tests.outside.book import Book, body_of, read, token_of
from tests.outside.judge import CHECKS, judge, printed
from tests.outside.planted import BENT, BROKEN, Plant, clean
from tests.outside.story import Story
from tests.outside.table import table


def test_a_right_book_breaks_nothing_and_gives_every_check_something_to_look_at() -> None:
    story = Story(clean().rows)
    verdicts = {name: check(story) for name, check in CHECKS.items()}
    assert {name: verdict.breaches for name, verdict in verdicts.items() if verdict.breaches} == {}
    assert [name for name, verdict in verdicts.items() if not verdict.looked] == []


@pytest.mark.parametrize(("check", "what", "plant"), BROKEN, ids=[f"{check}: {what}" for check, what, _ in BROKEN])
def test_a_planted_breach_is_seen(check: str, what: str, plant: Callable[[], Plant]) -> None:
    verdict = CHECKS[check](Story(plant().rows))
    assert verdict.breaches, f"{check} did not see: {what}"


@pytest.mark.parametrize(("check", "what", "plant"), BENT, ids=[f"{check}: {what}" for check, what, _ in BENT])
def test_what_the_documents_let_bend_is_excused_and_counted(check: str, what: str, plant: Callable[[], Plant]) -> None:
    verdict = CHECKS[check](Story(plant().rows))
    assert not verdict.breaches, what
    assert verdict.excused


def test_a_letter_may_wait_for_a_fault_that_is_noted_as_over_a_moment_after_it() -> None:
    """The harness notes that Kafka is back when it has looked; letters came before that."""
    plant = Plant().add("run", 0, load=0).lane("e-dead", is_dead_of="e").lane("e", dead="e-dead", dies_after=1)
    plant.send("e", "z", 10).got("e", "z", t0=11, lease=1).fault("kill kafka", 20, 112).got("e-dead", "z", t0=110)
    verdict = CHECKS["late letters"](Story(plant.rows))
    assert (verdict.looked, verdict.breaches) == (1, [])


def test_a_delivery_counts_as_seen_though_its_answer_came_after_that_of_a_later_receive() -> None:
    """Its worker stood still before it could answer; the lease was over meanwhile."""
    plant = clean().send("q", "z", 10).got("q", "z", t0=11).got("q", "z", t0=19, count=2)
    plant.rows[-2]["t1"] = 20
    assert CHECKS["uncarried"](Story(plant.rows)).breaches == []


def test_every_check_has_a_planted_breach() -> None:
    assert {check for check, _, _ in BROKEN} == set(CHECKS)


def test_a_report_says_what_was_broken_and_the_table_counts_it() -> None:
    told = {"seed": 7, "workers": 2, "load": 0, "seconds": 60, "struck": ["kill kafka"], "load_average": [1.0]}
    good, bad = told | judge(clean().rows), told | judge(clean().send("q", "z", 10).rows)
    assert good["held"]
    assert not bad["held"]
    assert "BROKEN lost" in printed(bad)
    assert "| 0 |" in table([good])
    assert "lost 1" in table([good, bad])


def test_a_matrix_repeats_no_run_and_tells_what_broke(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert matrix.numbers("1-3,7") == [1, 2, 3, 7]
    asked = ["--seeds", "7", "--workers", "2", "--load", "0", "--folder", str(tmp_path)]
    told = {"seed": 7, "workers": 2, "load": 0, "seconds": 60, "struck": ["kill kafka"], "load_average": [1.0]}
    report = tmp_path / "seed-7-workers-2-load-0.json"
    report.write_text(json.dumps(told | judge(clean().rows)))
    assert matrix.main(asked) == 0 and "| 0 |" in capfd.readouterr().out
    report.write_text(json.dumps(told | judge(clean().send("q", "z", 10).rows)))
    assert matrix.main(asked) == 1 and "lost 1" in capfd.readouterr().out


def test_a_book_is_read_as_it_was_written(tmp_path: Path) -> None:
    book = Book(tmp_path / "book.jsonl")
    book.write("send", 1.5, place="q")
    book.close()
    book.write("late", 2.0)
    (row,) = read(book.path)
    assert (row["n"], row["op"], row["t0"], row["place"]) == (1, "send", 1.5, "q")


def test_a_body_says_its_token_and_whether_it_is_whole() -> None:
    assert token_of(body_of("tk-a-1")) == ("tk-a-1", True)
    assert token_of(body_of("tk-a-1") + "x") == ("tk-a-1", False)


def test_a_seed_names_its_weather() -> None:
    def first(seed: int) -> list[weather.Gust]:
        gusts = weather.schedule(seed)
        return [next(gusts) for _ in range(2 * len(weather.KINDS))]

    assert first(1) == first(1) != first(2)
    assert {gust.name for gust in first(1)[: len(weather.KINDS)]} == set(weather.KINDS)
