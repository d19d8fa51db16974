"""The series of queues."""

from __future__ import annotations

import time

from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from engine.meters.shapes import ReceiveCounts
from engine.shapes import QueueCounts
from facade.http.queue_metrics import (
    AGE,
    BOUNDS,
    DONE,
    EMPTY,
    FAMILIES,
    GROUPS,
    IN_FLIGHT_LIMIT,
    MESSAGES,
    NOISY,
    PAUSED,
    RECEIVES,
    RETENTION,
    SENT,
    SET_BACK,
    STATES,
    TOTAL,
    WAITING,
    bounds,
    lines,
    receives,
    totals,
)
from state.shared.overview import Done
from tests.unit.facade.double import RECORD

DONES = {"default": Done(9, 8, 7, 6, 5), "b": Done(4)}
ROWS = [
    QueueCounts(
        "orders", 15, 1, 2, 3, 4, 5, 1_500, 9_000, sent=40, done=DONES, set_back=11, noisy=2, groups_in_flight=3
    ),
    QueueCounts("empty", as_of_ms=9_000, paused=True),
    QueueCounts("ahead", 1, 1, oldest_at_ms=11_000, as_of_ms=9_000),
    QueueCounts("not-counted"),
]


def _samples(text: str) -> dict[tuple[str, str, str], float]:
    """What Prometheus' own parser reads, by name, queue, and state or tag."""
    return {
        (sample.name, labels.get("queue", ""), labels.get("state", labels.get("tag", ""))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        for labels in (sample.labels,)
    }


def test_each_queue_that_was_counted_has_its_numbers_and_age() -> None:
    found = _samples("".join(lines(ROWS, FAMILIES, 10_000)))
    assert [found[MESSAGES, "orders", state] for state in STATES] == [1, 2, 3, 4, 5]
    assert (found[AGE, "orders", ""], found[AGE, "empty", ""], found[AGE, "ahead", ""]) == (8.5, 0, 0)
    assert (found[PAUSED, "orders", ""], found[PAUSED, "empty", ""]) == (0, 1)
    assert [found[SENT, queue, ""] for queue in ("orders", "empty", "ahead")] == [40, 0, 0]
    of_groups = [[found[family, queue, ""] for family in (SET_BACK, NOISY, GROUPS)] for queue in ("orders", "empty")]
    assert of_groups == [[11, 2, 3], [0, 0, 0]]
    assert [found[family, "orders", "default"] for family in DONE] == [9, 8, 7, 6, 5]
    assert [found[family, "orders", "b"] for family in DONE] == [4, 0, 0, 0, 0]
    assert len(found) == 3 * (len(STATES) + 6) + 2 * len(DONE)


def test_one_family_alone() -> None:
    assert {name for name, _, _ in _samples("".join(lines(ROWS, [AGE], 10_000)))} == {AGE}


def test_totals() -> None:
    found = _samples("".join(totals([ROWS[0], ROWS[0]])))
    assert {state: found[TOTAL, "", state] for state in STATES} == dict(zip(STATES, (2, 4, 6, 8, 10), strict=True))


def test_2000_queues_are_written_in_a_tenth_of_a_second() -> None:
    done = {"default": Done(9, 8, 7, 6, 5)}
    rows = [QueueCounts(f"queue-{n}", 15, 1, 2, 3, 4, 5, 1_500, 9_000, sent=40, done=done) for n in range(2000)]
    began = time.process_time()
    text = "".join(lines(rows, FAMILIES, 10_000))
    assert time.process_time() - began < 0.1, "seconds"
    assert text.count("\n") == len(FAMILIES) * 2 + 2000 * (len(STATES) + 6 + len(DONE))


def test_receives_of_a_worker_say_whose_they_are() -> None:
    rows = [ReceiveCounts("orders", "default", 7, 2), ReceiveCounts("orders", "b", 0, 1)]
    found = {
        (one.name, one.labels["tag"], one.labels["worker"]): one.value
        for family in text_string_to_metric_families("".join(receives(rows, RECEIVES, "1")))
        for one in family.samples
    }
    assert found == {
        (EMPTY, "default", "1"): 7,
        (EMPTY, "b", "1"): 0,
        (WAITING, "default", "1"): 2,
        (WAITING, "b", "1"): 1,
    }
    alone = "".join(receives(rows, [WAITING], ""))
    assert f'{WAITING}{{queue="orders",tag="b"}} 1' in alone


def test_what_a_queue_is_set_to_is_shown_for_shares_of_it() -> None:
    records = {"orders": RECORD, "steps": structs.replace(RECORD, retention_ms=90_500, max_in_flight=7)}

    found = _samples("".join(bounds(["orders", "gone", "steps"], BOUNDS, records.get)))

    assert found == {
        (RETENTION, "orders", ""): 345_600,
        (RETENTION, "steps", ""): 90.5,
        (IN_FLIGHT_LIMIT, "orders", ""): 120_000,
        (IN_FLIGHT_LIMIT, "steps", ""): 7,
    }
