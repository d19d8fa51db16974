"""Outcomes of letters in the record of a task and its pages."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.move.tasks import outcomes
from engine.move.tasks.outcomes import PAGE, Row, rows_of, with_rows
from schemas.records import OutcomesRecord, TaskRecord
from schemas.wire import encode

ROWS = [Row(0, 7, "moved", "0123456789ab/1/3"), Row(0, 9, "leased"), Row(1, 0, "gone")]
TASK = TaskRecord("t", "running", "dlq", "0" * 12, "", None, 0, 0, 0, [9], [0])


class Topic:
    """The control topic, as far as it goes: `pages` by <task>/<page>."""

    def __init__(self) -> None:
        self.pages: dict[str, OutcomesRecord] = {}
        self.longest = 0

    def add(self, task: TaskRecord, rows: list[Row]) -> TaskRecord:
        task, pages = with_rows(task, rows)
        self.pages |= {key.removeprefix("outcomes/"): page for key, page in pages.items()}
        self.longest = max(self.longest, len(encode(task)), *(len(encode(page)) for page in pages.values()))
        return task


def test_rows_come_back_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "PAGE", 2)
    topic = Topic()
    task = topic.add(topic.add(TASK, ROWS[:1]), ROWS[1:])

    assert rows_of(task, topic.pages) == ROWS
    assert (len(task.outcome_pages), len(topic.pages)) == (1, 1)
    assert with_rows(task, []) == (task, {})
    assert rows_of(TASK, topic.pages) == []


def test_what_two_runners_write_of_one_task_does_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "PAGE", 2)
    topic = Topic()
    stopped = topic.add(TASK, ROWS)
    task = topic.add(TASK, ROWS[1:])

    assert (rows_of(stopped, topic.pages), rows_of(task, topic.pages)) == (ROWS, ROWS[1:])
    # A page that is gone takes no other with it.
    assert rows_of(replace(stopped, outcome_pages=["gone", *stopped.outcome_pages]), topic.pages) == ROWS


def test_no_more_rows_are_kept_than_a_task_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    for page in (1, 2, 3):
        monkeypatch.setattr(outcomes, "PAGE", page)
        monkeypatch.setattr(outcomes, "MOST", 2)
        topic = Topic()
        task = topic.add(TASK, ROWS)

        assert rows_of(task, topic.pages) == ROWS[:2]
        assert rows_of(topic.add(task, ROWS), topic.pages) == ROWS[:2]


def test_a_slow_task_that_is_full_writes_little_each_second() -> None:
    rows = [Row(n % 4, n, "moved", f"0123456789ab/{n % 8}/{5 * n}") for n in range(10_000)]
    topic, task = Topic(), TASK
    for at in range(0, len(rows), 50):
        task = topic.add(task, rows[at : at + 50])

    assert topic.longest < 10_000
    assert rows_of(task, topic.pages) == rows
    assert len(task.outcome_pages) == len(topic.pages) == 10_000 // PAGE
