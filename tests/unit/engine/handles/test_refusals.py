"""What is answered, counted and written down of handles that are good for nothing."""

from __future__ import annotations

import logging

import pytest

from engine.handles.handles import Refusals
from engine.meters.meters import Meters
from engine.rules.queue import Queue
from engine.shapes import EntryResult
from facade.http.metrics import Metrics
from schemas.identity import Handle
from schemas.vocabulary import GONE, EntryStatus, StaleReason
from tests.unit.records import queue_record

QUEUE = Queue(queue_record(), "lw.q.")


def handle(offset: int) -> Handle:
    return Handle("0123456789ab", 0, 0, offset, 7)


def judged(reason: StaleReason, over: EntryStatus) -> str:
    return Refusals(Meters().note_stale).judge(QUEUE, ["a"], [handle(0)], [reason], over)[0].status


@pytest.mark.parametrize("over", [EntryStatus.STALE, EntryStatus.LAPSED, EntryStatus.SUPERSEDED])
@pytest.mark.parametrize("reason", StaleReason)
def test_only_a_message_that_is_open_is_told_apart(reason: StaleReason, over: EntryStatus) -> None:
    if reason is StaleReason.EXPIRED:
        assert judged(reason, over) == EntryStatus.LAPSED
    else:
        assert judged(reason, over) == (EntryStatus.STALE if reason in GONE else over)


def test_results_have_reasons_and_times() -> None:
    words = [("ok", 5_000), ("settled", 0), ("ok", 0)]
    assert Refusals(Meters().note_stale).judge_timed(QUEUE, ["a", "b", "c"], [handle(n) for n in range(3)], words) == [
        EntryResult("a", "ok", 5_000),
        EntryResult("b", "stale", reason="settled"),
        EntryResult("c", "ok"),
    ]


def test_each_refused_handle_is_counted_and_written_down(caplog: pytest.LogCaptureFixture) -> None:
    meters = Meters()
    refusals = Refusals(meters.note_stale)
    with caplog.at_level(logging.DEBUG, "engine.handles.handles"):
        refusals.judge(QUEUE, ["a", "b"], [handle(3), handle(4)], ["ok", "used"])
        refusals.note(QUEUE, 2, [(5, "used"), (6, "dying")])

    assert caplog.messages == [
        "action=stale queue=orders partition=0 offset=4 reason=used",
        "action=stale queue=orders partition=2 offset=5 reason=used",
        "action=stale queue=orders partition=2 offset=6 reason=dying",
    ]
    rows = [
        line
        for line in Metrics(lambda: refusals.counts).text().decode().splitlines()
        if line.startswith("leaseway_stale_handles_total")
    ]
    assert rows == [
        'leaseway_stale_handles_total{reason="used"} 2.0',
        'leaseway_stale_handles_total{reason="dying"} 1.0',
    ]
    taken = meters.take_stale()
    assert taken == {(QUEUE.incarnation, "used"): 2, (QUEUE.incarnation, "dying"): 1} and not meters.take_stale()
