"""What is settled unseen is counted once, told once for each cause, and alarms for an hour."""

from __future__ import annotations

import pytest

from engine.window.batches import skips as module
from engine.window.batches.skips import Skip, Skips
from runtime.counters import Counters
from schemas.vocabulary import Reason
from tests.unit.engine.window.batches.test_atomic_batches import QUEUE


def torn(*offsets: int, batch: str = "b") -> list[Skip]:
    return [Skip(offset, Reason.TORN_BATCH, batch, f"batch={batch} records=2 of=3") for offset in offsets]


def test_each_record_counts_once_and_each_batch_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    counters = Counters()
    skips = Skips(counters)
    skips.settled(QUEUE, 0, torn(3, 4))
    skips.settled(QUEUE, 0, torn(3, 4))  # for another tag
    assert counters.get("torn_batch_records_total") == 2 and skips.recent(QUEUE) == 2
    told = [record.getMessage() for record in caplog.records]
    assert told == ["action=skip queue=orders partition=0 offset=3 reason=torn_batch batch=b records=2 of=3"]
    skips.settled(QUEUE, 1, torn(3))
    skips.settled(
        QUEUE,
        0,
        [Skip(9, Reason.UNDECODABLE, 9, "error=x"), Skip(10, Reason.LATE_COMMIT, "t", "transaction=t late_ms=40000")],
    )
    assert skips.recent(QUEUE) == 5 and len(caplog.records) == 4
    assert (counters.get("undecodable_records_total"), counters.get("late_commits_total")) == (1, 1)


def test_the_alarm_ends_after_an_hour_and_with_its_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    at = [1000.0]
    monkeypatch.setattr(module, "boot_s", lambda: at[0])
    skips = Skips(Counters())
    skips.settled(QUEUE, 0, torn(1))
    at[0] += 3000
    skips.settled(QUEUE, 0, torn(2))
    assert skips.recent(QUEUE) == 2
    at[0] += 601
    assert skips.recent(QUEUE) == 1
    skips.forget_queue(QUEUE)
    assert skips.recent(QUEUE) == 0
