"""The small size of `undelivered.py`, which runs by itself with a hundred thousand messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.outside.undelivered import Plan, run


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("workers", [1, 2])
def test_no_message_dies_that_nobody_was_given(tmp_path: Path, workers: int) -> None:
    verdict = run(Plan(1_000, stop_s=3.0, workers=workers, within_s=120), tmp_path)
    print(verdict)
    assert (verdict.letters, verdict.undelivered, verdict.twice, verdict.lost, verdict.other_counts) == (
        1_000,
        0,
        0,
        0,
        0,
    )
    assert verdict.left > 20
