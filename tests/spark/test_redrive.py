"""Which letters `leaseway redrive` chooses, and what it says without a service; `test_end_to_end.py` runs it against one."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from facade.cli import main
from spark.choose import chosen_of
from spark.columns import DEAD_LETTERS
from tests.spark.rows import at, frame, rows_of


def test_letters_that_are_settled_or_have_no_address_are_not_chosen(spark_session: SparkSession) -> None:
    letters = frame(
        spark_session,
        DEAD_LETTERS,
        {"queue": "a", "address": "i/0/1", "reason": "killed"},
        {"queue": "a", "address": "i/0/2", "reason": "exhausted"},
        {"queue": "a", "address": "i/0/3", "reason": "killed", "settled_how": "moved", "settled_at": at(0)},
        {"queue": "b", "address": "j/0/1", "reason": "killed"},
        {"queue": "b", "address": None, "reason": "killed"},
        {"queue": "b", "address": "j/0/2", "reason": None},
    )

    assert rows_of(chosen_of(letters, "reason = 'killed'", None), "address") == [("i/0/1",), ("j/0/1",)]
    assert rows_of(chosen_of(letters, "reason = 'killed' OR reason IS NULL", "b"), "address") == [("j/0/1",), ("j/0/2",)]


def test_redrive_says_in_one_line_that_no_stack_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redrive", "--data", "/nowhere", "--where", "true"]) == 2
    assert capsys.readouterr().err == "leaseway redrive: no `leaseway up` runs in /nowhere (it has no run.json)\n"
