"""Which dead letters `leaseway redrive` chooses, and what it says without a service;
`test_end_to_end.py` runs it against one.

And what it says when a worker is killed before a task has written what it moved.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from facade.programs.cli.cli import main
from spark.dead_letters.selection import selected_of
from spark.frames.columns import DEAD_LETTERS
from tests.conftest import StartUp
from tests.spark.drive import DEAD, QUEUE, Books
from tests.spark.rows import at, frame, rows_of
from tests.spark.story import Jobs


def test_dead_letters_that_are_settled_or_have_no_address_are_not_chosen(spark_session: SparkSession) -> None:
    dead_letters = frame(
        spark_session,
        DEAD_LETTERS,
        {"queue": "a", "address": "i/0/1", "reason": "killed"},
        {"queue": "a", "address": "i/0/2", "reason": "exhausted"},
        {"queue": "a", "address": "i/0/3", "reason": "killed", "settled_how": "moved", "settled_at": at(0)},
        {"queue": "b", "address": "j/0/1", "reason": "killed"},
        {"queue": "b", "address": None, "reason": "killed"},
        {"queue": "b", "address": "j/0/2", "reason": None},
    )

    assert rows_of(selected_of(dead_letters, "reason = 'killed'", None), "address") == [("i/0/1",), ("j/0/1",)]
    assert rows_of(selected_of(dead_letters, "reason = 'killed' OR reason IS NULL", "b"), "address") == [
        ("j/0/1",),
        ("j/0/2",),
    ]


def test_redrive_says_in_one_line_that_no_stack_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redrive", "--data", "/nowhere", "--where", "true"]) == 2
    assert capsys.readouterr().err == "leaseway redrive: no `leaseway up` runs in /nowhere (it has no run.json)\n"


def test_what_a_killed_worker_has_moved_was_not_settled_by_others(leaseway_up: StartUp, tmp_path: Path) -> None:
    armed = tmp_path / "kill"
    up = leaseway_up("--workers", "1", environment={"LEASEWAY_FAILPOINTS": f"move.after_settle=kill@{armed}"})
    jobs = Jobs(tmp_path, up.data)
    try:
        up.wait_ready(120)
        with contextlib.closing(Books(up.endpoint)) as books:
            books.make_queues()
            for _ in range(10):
                books.send("alice", ["to be killed"] * 2)
            books.kill(books.receive(20))
            books.wait_dead(20)
            armed.touch()
            said = jobs.run("redrive", "--queue", DEAD, "--where", "true")
            assert not armed.exists(), "no worker was killed"
            backlog = books.olga.call("GET", f"/v1/queues/{QUEUE}")["tags"][0]["backlog"]
    finally:
        jobs.kill()

    assert said == [f"leaseway: {DEAD}: 20 dead letters chosen, 20 moved, 0 failed, 0 settled by others", "status 0"]
    assert backlog == 20
