"""The bars of FIFO queues and move tasks in small, through the Amazon SQS dialect;
benchmarks/fifo.py runs them in full.
"""

from __future__ import annotations

import pytest

from tests.acceptance.fifo_bars import dedup_over_a_wipe, head_latency
from tests.acceptance.move_bar import make_dead_letters, move
from tests.acceptance.order_bar import order_under_kills
from tests.conftest import StartUp
from tests.services import Up


@pytest.fixture(scope="module")
def up(leaseway_up_module: StartUp) -> Up:
    """Two workers."""
    process = leaseway_up_module("--workers", "2")
    process.wait_ready()
    return process


def test_order_holds_and_nothing_is_lost_while_workers_are_killed(up: Up) -> None:
    found = order_under_kills(up, groups=20, each=30, consumers=6, kill_every_s=2.0, kills=6)
    print(found)

    assert found["lost"] == []
    assert (found["breaches"], found["first_breaches"]) == (0, [])
    assert found["workers_killed"] >= 1


def test_the_head_of_a_fresh_group_comes_as_fast_with_many_groups_shut(up: Up) -> None:
    few, many = head_latency(up, 10, 40), head_latency(up, 1000, 40)
    print(few, many)

    assert many["p50_ms"] < few["p50_ms"] * 3 + 10


def test_each_deduplication_id_is_delivered_once_though_redis_is_emptied(up: Up) -> None:
    found = dedup_over_a_wipe(up, 1000, 8)
    print(found)

    assert (found["sends"], found["delivered"], found["distinct"]) == (1000, 500, 500)


@pytest.mark.parametrize(
    ("fifo", "rate"), [(False, None), (False, 200), (True, None)], ids=["as fast as it can", "at a rate", "FIFO"]
)
def test_a_task_moves_each_dead_letter_once_to_its_own_source(up: Up, fifo: bool, rate: int | None) -> None:
    word = f"move-{fifo}-{rate}".lower()
    make_dead_letters(up, word, 800, fifo=fifo)
    found = move(up, word, 800, rate, fifo=fifo, within_s=60)
    print(found)

    assert (found["status"], found["moved"]) == ("COMPLETED", 800)
    assert (found["lost"], found["twice"], found["strangers"], found["left_behind"]) == (0, 0, 0, 0)
    assert rate is None or found["seconds"] >= 800 / rate - 1.5
