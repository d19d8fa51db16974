"""Whose turn it is to be counted: each kind of queue has its share."""

from __future__ import annotations

from engine.queues.overview.turns import AT_A_TIME, CHANGED, MOVING, MOVING_S, NEW, STILL, STILL_S, Turns, groups, size
from engine.rules.queue import Queue
from tests.unit.records import queue_record


def _queues(count: int, partitions: int = 1) -> dict[str, Queue]:
    found = [Queue(queue_record(f"q{n}", partitions, incarnation=f"{n:012x}"), "lw") for n in range(count)]
    return {queue.incarnation: queue for queue in found}


def _count(turns: Turns, due: list[Queue], now: float, moves: bool = False) -> None:
    for queue in due:
        turns.note_counted(queue.incarnation, now, moves=moves)


def test_all_are_counted_though_more_are_in_use_than_a_round_counts() -> None:
    known = _queues(3 * CHANGED)
    in_use = list(known)[: 2 * CHANGED]
    turns, seen, now = Turns(), set(), 0.0
    for _ in range(20):
        turns.note_changed(in_use)
        due = turns.due(known, now)
        assert len(due) <= CHANGED + NEW + MOVING + STILL
        seen |= {queue.incarnation for queue in due}
        _count(turns, due, now)
        now += 1
    assert seen == known.keys()


def test_those_in_use_come_in_turn() -> None:
    known = _queues(2 * CHANGED)
    turns, last = Turns(), dict.fromkeys(known, 0)
    for number in range(1, 13):
        turns.note_changed(known)
        due = turns.due(known, float(number))
        _count(turns, due, float(number))
        last |= {queue.incarnation: number for queue in due}
        assert number < 4 or min(last.values()) >= number - 3


def test_what_moves_comes_after_two_seconds_and_the_rest_after_thirty() -> None:
    known = _queues(2)
    turns = Turns()
    first, second = turns.due(known, 0.0)
    turns.note_counted(first.incarnation, 0.0, moves=True)
    turns.note_counted(second.incarnation, 0.0, moves=False)
    assert turns.due(known, MOVING_S - 0.1) == []
    assert turns.due(known, MOVING_S) == [first]
    assert turns.due(known, STILL_S) == [first, second]


def test_a_share_is_of_partitions_and_never_less_than_a_queue() -> None:
    known = _queues(10, partitions=64)
    assert len(Turns().due(known, 0.0)) == NEW // 64
    wide = _queues(2, partitions=1024)
    assert len(Turns().due(wide, 0.0)) == 1


def test_a_queue_without_a_row_is_counted_again_and_one_that_is_gone_is_not() -> None:
    known = _queues(3)
    turns = Turns()
    _count(turns, turns.due(known, 0.0), 0.0)
    kept, lost, gone = known
    turns.keep_rows({kept})
    assert (turns.rows, [queue.incarnation for queue in turns.due(known, 1.0)]) == ({kept}, [lost, gone])
    _count(turns, turns.due(known, 1.0), 1.0)
    del known[gone]
    assert turns.gone(known) == [gone]
    turns.forget([gone])
    assert turns.gone(known) == []


def test_groups_have_all_in_order() -> None:
    queues = list(_queues(9, partitions=48).values())
    found = list(groups(queues))
    assert [queue for some in found for queue in some] == queues
    assert all(sum(map(size, some[:-1])) < AT_A_TIME for some in found)
    assert len(found) == 3
