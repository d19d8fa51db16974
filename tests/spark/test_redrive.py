"""Which dead letters `leaseway redrive` chooses, and what it says without a service;
`service/` runs it against one.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from facade.programs.cli.cli import main
from spark.dead_letters.selection import selected_of
from spark.frames.columns import DEAD_LETTERS
from tests.spark.rows import at, frame, rows_of


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
