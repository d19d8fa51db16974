"""Figures of a run and tables of many, on small histories."""

from __future__ import annotations

import pytest

from tests.judge.book import Book, clean, letter
from tests.judge.checkers import check
from tests.judge.report import printed, report
from tests.judge.table import percentile, tables

# What is lost is missing in its batch and in the counts too.
BROKEN = ("no acked send lost", "atomic batches all or none", "counters true at rest")


def hurt() -> Book:
    """Two messages of which one is lost, one delivered again after a wipe; back 0.5 s after the
    heal.
    """
    book = (
        Book()
        .queue(steady=True)
        .send(100, "a", "lost")
        .lease(200, "a")
        .ack(300, "a@205")
        .fault(800, "wipe redis", 1000, loses=True)
    )
    return (
        book.send(1200, "b")
        .lease(1490, "b")
        .ack(1600, "b@1495")
        .lease(6000, "a", count=2)
        .ack(6100, "a@6005")
        .rest(9000)
    )


def told(book: Book, fault: str = "wipe redis") -> dict[str, object]:
    return {**report(book.story, check(book.story, 60)), "fault": fault}


def test_a_report_counts_what_happened() -> None:
    found = told(hurt())
    assert (found["sends"], found["seconds"], found["rate_per_s"]) == (3, 1.1, 3)
    assert (found["lost"], found["altered"], found["again_after_ack"]) == (1, 0, 1)
    assert found["duplicates_per_million"] == pytest.approx(1e6 / 3, abs=0.1)
    assert found["recovery_s"] == {"wipe redis": [0.5]}
    assert found["outage_s"] == {"wipe redis": [0.7]}
    assert found["broken"] == dict.fromkeys(BROKEN, 1)


def test_tables_sum_the_runs_of_a_fault() -> None:
    text = tables([told(hurt()), told(hurt()), told(clean(), "mix")])
    assert "| mix | 1 | 1 |" in text
    broken = ", ".join(f"{name} 2" for name in BROKEN)
    assert f"| wipe redis | 2 | 6 | 3 | 6 | 0 | 0 | 2 | 0 | 333,333 | 2 | {broken} | 0.5 / 0.5 (2) |" in text
    assert "| wipe redis | 2 | 0.5 / 0.5 | 0.7 / 0.7 |" in text


def test_a_run_holds_when_no_promise_is_broken_and_no_client_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    good, bad, defect = told(clean()), told(clean().send(500, "x")), told(clean().note("defect", text="it fell"))
    assert [run["held"] for run in (good, bad, defect)] == [True, False, False]
    assert "BROKEN no acked send lost" in printed(bad) and "lost: x" in printed(bad)
    assert "BROKEN" not in printed(good) and "it fell" in printed(defect)


def test_a_report_says_how_much_spoke_sqs_and_how_many_letters_came() -> None:
    found = told(Book().queue().send(1, "a").lease(20, "a").taken(9000, "a", count=2).rest(20_000))
    assert (found["sent_by_sqs"], found["received_by_sqs"]) == (0.0, 0.5)
    assert told(letter(500))["letters"] == 1


def test_percentiles_are_values_that_were_seen() -> None:
    values = [float(n) for n in range(100, 0, -1)]
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile([], 0.5)) == (51.0, 100.0, 0.0)
