"""Which dead letters a task with ids may move: by id or address, of this life of the queue only."""

from __future__ import annotations

import pytest

from engine.errors import InvalidValue
from engine.move.tasks.selection import chosen_offsets, left_of, next_chosen
from engine.rules.queue import Ids, Queue
from tests.unit.records import queue_record

QUEUE = Queue(
    queue_record("dlq", partitions=2),
    "lw",
)
IDS = Ids("secret")


def test_ids_and_addresses_name_offsets_once_and_in_order() -> None:
    given = [IDS.message_id(QUEUE, 1, 9), "0123456789ab/0/5", "0123456789ab/1/2", "0123456789ab/1/9"]
    assert chosen_offsets(QUEUE, given, IDS) == [[5], [2, 9]]


@pytest.mark.parametrize(
    "bad", ["", "x", "0123456789ab/2/1", "ffffffffffff/0/1", "0123456789ab/0/-1", "0123456789ab/0/٣"]
)
def test_what_is_no_message_of_this_queue_is_refused(bad: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        chosen_offsets(QUEUE, ["0123456789ab/0/5", bad], IDS)
    assert refused.value.given == bad


@pytest.mark.parametrize("count", [0, 10_001])
def test_a_task_has_1_to_10000_ids(count: int) -> None:
    with pytest.raises(InvalidValue):
        chosen_offsets(QUEUE, ["0123456789ab/0/5"] * count, IDS)


def test_a_task_goes_from_one_chosen_offset_to_the_next_and_ends_at_its_end() -> None:
    chosen = [[5, 9, 30], []]
    assert [next_chosen(chosen, 0, at, 20) for at in (0, 5, 6, 9, 10, 40)] == [5, 5, 9, 9, 20, 20]
    assert next_chosen(chosen, 1, 0, 20) == 20
    assert [next_chosen(None, 0, at, 20) for at in (0, 19, 25)] == [0, 19, 20]


def test_what_is_left_is_from_the_positions_on_and_nothing_of_an_ended_task() -> None:
    chosen = [[5, 9], [1]]
    assert left_of(chosen, [6, 0], ended=False) == [[9], [1]]
    assert left_of(chosen, [6, 0], ended=True) == [[], []]
    assert left_of(None, [6, 0], ended=False) is None
