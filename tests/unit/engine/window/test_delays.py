"""How many delayed messages may be sent without asking, and that they count."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

from engine.errors import TooManyDelayed
from engine.rules.limits import MAX_DELAYED
from engine.rules.queue import Queue
from engine.window.delays import SPARE, Delays
from state.keys import Unit
from tests.unit.engine.plane.conftest import RECORD, Known


class State:
    """Each partition has so many delayed messages."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.looks = 0
        self.units = self.scripts = self

    def now_ms(self) -> int:
        return 1

    async def delayed(self, unit: Unit, tags: Sequence[int], at_ms: int) -> int:
        self.looks += 1
        return self.count

    async def soon(self, call: Callable[[], Awaitable[Any]]) -> Any:
        return await call()


def queue() -> Queue:
    known = Known()
    known.put("queue", "orders", RECORD, 0)
    return known.queues["orders"]


@pytest.mark.parametrize(
    ("count", "spare"), [(0, SPARE), (MAX_DELAYED - 800, 100), (MAX_DELAYED - 1, 0), (MAX_DELAYED + 5, 0)]
)
async def test_a_part_of_the_room_may_be_used_without_asking(count: int, spare: int) -> None:
    assert await Delays(cast(Any, State(count)), cast(Any, None)).spare(queue()) == spare


async def test_what_may_be_sent_without_asking_counts_as_sent() -> None:
    state, orders = State(MAX_DELAYED - 8_000), queue()
    delays = Delays(cast(Any, state), cast(Any, None))
    assert await delays.spare(orders) == 1_000
    assert await delays.spare(orders) == 875
    with pytest.raises(TooManyDelayed):
        await delays.check(orders, 6_126)
    await delays.check(orders, 6_125)
    assert state.looks == 1
