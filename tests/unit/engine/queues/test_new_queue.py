"""What a new queue is made of, and how many partitions each kind has."""

from __future__ import annotations

import pytest

from engine.errors import InvalidValue
from engine.queues.lives.creating import check_priority_settings, least_partitions, new_record
from engine.shapes import NewTag
from schemas.filters import Condition, Filter
from schemas.records.settings import ANY, TABLE, QueueSettings
from schemas.vocabulary import DEFAULT_TAG, PRIORITIES


def test_a_queue_with_priority_is_not_fifo_and_has_a_partition_for_each() -> None:
    assert least_partitions(QueueSettings(priority=True)) == PRIORITIES
    assert least_partitions(QueueSettings()) is None
    assert (
        least_partitions(QueueSettings(fifo=True)),
        least_partitions(QueueSettings(fifo=True, dedup_scope="group")),
    ) == (1, None)
    check_priority_settings(QueueSettings(priority=True, partitions=PRIORITIES))
    check_priority_settings(QueueSettings(fifo=True, partitions=3))
    for wrong in (QueueSettings(priority=True, fifo=True), QueueSettings(priority=True, partitions=4)):
        with pytest.raises(InvalidValue):
            check_priority_settings(wrong)


def test_what_nobody_named_has_its_default() -> None:
    record = new_record("orders", "alice", QueueSettings(lease_ms=5), 4, (), 1_000)
    assert (record.name, record.owner, record.created_at_ms, record.modified_at_ms) == ("orders", "alice", 1_000, 1_000)
    assert (record.lease_ms, record.retention_ms) == (5, TABLE["retention_ms"].default)
    assert (record.partitions, record.fifo, record.allowed_sources) == (4, False, [ANY])


def test_zero_false_and_empty_are_values_and_no_defaults() -> None:
    record = new_record("orders", "alice", QueueSettings(lease_ms=0, delay_ms=0, allowed_sources=[]), 4, (), 1_000)
    assert (record.lease_ms, record.delay_ms, record.allowed_sources) == (0, 0, [])


def test_named_partitions_come_before_those_of_the_kind_and_those_before_the_services() -> None:
    made = [
        new_record("orders", "alice", settings, 4, (), 1_000).partitions
        for settings in (
            QueueSettings(),
            QueueSettings(fifo=True),
            QueueSettings(fifo=True, partitions=3),
            QueueSettings(priority=True),
        )
    ]
    assert made == [4, 1, 3, PRIORITIES]


def test_tags_come_behind_the_default_one_and_start_at_the_beginning() -> None:
    wanted = Filter([Condition("color", "string", b"red")])
    record = new_record("orders", "alice", QueueSettings(), 2, [NewTag("audit"), NewTag("red", wanted)], 1_000)
    assert [(tag.id, tag.name) for tag in record.tags] == [(0, DEFAULT_TAG), (1, "audit"), (2, "red")]
    assert (record.next_tag_id, record.tags[2].filter) == (3, wanted)
    assert all(tag.start_offsets == [0, 0] for tag in record.tags)


def test_two_lives_of_a_name_are_two_incarnations() -> None:
    first, second = (new_record("orders", "alice", QueueSettings(), 4, (), 1_000) for _ in range(2))
    assert first.incarnation != second.incarnation
    assert len(first.incarnation) == 12 and int(first.incarnation, 16) >= 0
