"""Where messages go: turns of a standard queue, one place for a FIFO group and for all copies of a
move, and for each priority.
"""

from __future__ import annotations

from msgspec.structs import replace

from engine.rules.placement import (
    RUN,
    Turn,
    fixed_partition,
    moved_partition,
    priority_of,
    with_priority,
)
from schemas.records import Message
from schemas.vocabulary import PRIORITIES
from tests.unit.records import queue_record

RECORD = queue_record(partitions=8)
PRIORITY = replace(RECORD, priority=True, partitions=PRIORITIES)
FIFO = replace(RECORD, fifo=True, dedup_scope="group")


def test_single_sends_stay_in_a_partition_for_a_run_and_then_take_the_next() -> None:
    turn = Turn(6)
    places = [turn.next(8, 1) for _ in range(3 * RUN)]
    assert places == [6] * RUN + [7] * RUN + [0] * RUN


def test_batches_of_a_run_take_another_partition_each_time() -> None:
    turn = Turn(0)
    assert [turn.next(3, RUN) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def message(group: str | None = None, priority: int = 8, sender: str = "alice") -> Message:
    return Message(b"m", group=group, priority=priority, sender=sender)


def test_a_fifo_group_has_one_partition_and_groups_are_spread_where_the_scope_lets_them() -> None:
    assert fixed_partition(RECORD, "g", 1) is None
    assert {fixed_partition(replace(FIFO, dedup_scope="queue"), f"g{n}", 8) for n in range(50)} == {0}
    places = {group: fixed_partition(FIFO, group, 8) for group in (f"g{n}" for n in range(200))}
    assert set(places.values()) == set(range(8))
    assert all(fixed_partition(FIFO, group, 8) == place for group, place in places.items())


def test_each_copy_of_a_move_goes_to_one_partition_and_a_group_keeps_its_own() -> None:
    assert moved_partition(RECORD, message(), "id", "default") == moved_partition(RECORD, message("g"), "id", "default")
    assert len({moved_partition(RECORD, message(), f"id{n}", "default") for n in range(100)}) == 8
    assert moved_partition(FIFO, message("g"), "id", "default") == fixed_partition(FIFO, "g", 8)


def test_each_priority_has_a_partition_of_its_own_also_after_a_move() -> None:
    places = [fixed_partition(PRIORITY, None, number) for number in range(1, PRIORITIES + 1)]
    assert places == list(range(PRIORITIES))
    assert [priority_of(place) for place in places if place is not None] == list(range(1, PRIORITIES + 1))
    assert {moved_partition(PRIORITY, message(priority=3), f"id{n}", "default") for n in range(20)} == {2}


def test_a_native_message_has_the_priority_of_its_partition() -> None:
    assert with_priority(PRIORITY, 0, message(sender="")).priority == 1
    assert with_priority(PRIORITY, 0, message(priority=5)).priority == 5
    assert with_priority(RECORD, 0, message(sender="")).priority == 8
