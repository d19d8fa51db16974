"""A redrive task as its record says it."""

from __future__ import annotations

from engine.services.tasks import task_info
from schemas.records import TaskRecord


def task(destination: str) -> TaskRecord:
    return TaskRecord(
        "t1", "running", "dead", "0123456789ab", destination, None, 100, 1, 2, [3], [4], 5, 6, 7, "alice", "no"
    )


def test_a_task_is_told_as_its_record_has_it() -> None:
    told, record = task_info(task("orders")), task("orders")
    assert (told.id, told.status, told.source, told.destination, told.rate) == ("t1", "running", "dead", "orders", 100)
    same = ("moved", "failed", "total", "created_at_ms", "modified_at_ms", "failure", "expected")
    assert [getattr(told, name) for name in same] == [getattr(record, name) for name in same]


def test_a_task_without_destination_goes_back_to_each_letters_source() -> None:
    assert task_info(task("")).destination is None
