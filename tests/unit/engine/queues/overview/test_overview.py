"""Pages of what was counted, in each order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.errors import InvalidValue, StoreUnavailable
from engine.log.log_clock import LogClock
from engine.queues.overview.overview import Overview, page
from engine.rules.limits import SORTS
from engine.shapes import QueueCounts
from schemas.records import TagRecord
from state.errors import StateUnavailable
from state.shared.overview import Counted, Done

ROWS = [
    QueueCounts("b", backlog=5, ready=5, oldest_at_ms=2_000, as_of_ms=9),
    QueueCounts("a", backlog=5, ready=1, leased=4, oldest_at_ms=1_000, as_of_ms=9),
    QueueCounts("d"),
    QueueCounts("c", backlog=7, delayed=7, oldest_at_ms=3_000, as_of_ms=9),
]


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("name", "abcd"),
        ("backlog", "cabd"),
        ("ready", "bacd"),
        ("leased", "abcd"),
        ("delayed", "cabd"),
        ("oldest", "abcd"),
    ],
)
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_pages_have_each_row_once_in_order(sort: str, names: str, limit: int) -> None:
    found, cursor = "", ""
    while True:
        rows, after = page(ROWS, sort, limit, cursor)
        assert 0 < len(rows) <= limit
        found += "".join(row.name for row in rows)
        if after is None:
            break
        cursor = after
    assert found == names


def test_every_order_is_one_of_rows() -> None:
    for sort in SORTS:
        assert len(page(ROWS, sort, 10, "")[0]) == 4


@pytest.mark.parametrize("cursor", ["x", "bm9uc2Vuc2U", "WzEsMl0", "é", '[1,"a"]'])
def test_a_cursor_of_nobody_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidValue, match="cursor"):
        page(ROWS, "name", 1, cursor)


class _Store:
    def __init__(self) -> None:
        self.reads = 0
        self.away = False

    async def all(self) -> dict[str, Counted]:
        self.reads += 1
        await asyncio.sleep(0)
        if self.away:
            raise StateUnavailable("away")
        return {"1" * 12: Counted(1, 2, 3, 4, 5, 6, 7, 8, {0: Done(9, 1, 5), 1: Done(), 2: Done(3)})}


class _Queue:
    def __init__(self, name: str, incarnation: str) -> None:
        self.name = name
        self.incarnation = incarnation
        self.paused = frozenset[int]()
        self.tags = [TagRecord(0, "default", 0, 0, [0]), TagRecord(2, "billing", 0, 0, [0])]


async def test_who_asks_at_once_shares_a_read() -> None:
    store: Any = _Store()
    overview = Overview(store, LogClock())
    queues: Any = [_Queue("a", "1" * 12), _Queue("b", "2" * 12)]
    found = await asyncio.gather(*(overview.of(queues) for _ in range(5)))
    assert found[0] == [
        QueueCounts("a", 15, 1, 2, 3, 4, 5, 6, 7, sent=8, done={"default": Done(9, 1, 5), "billing": Done(3)}),
        QueueCounts("b"),
    ]
    assert all(one == found[0] for one in found)
    assert store.reads == 1


async def test_a_read_that_failed_is_made_again() -> None:
    store: Any = _Store()
    store.away = True
    overview = Overview(store, LogClock())
    with pytest.raises(StoreUnavailable):
        await overview.of([])
    store.away = False
    assert await overview.of([]) == []
    assert store.reads == 2
