"""The pump of a wait list: when it serves, and when not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from engine.errors import LogUnavailable
from engine.receive.waits.wait_list import FOREVER, WaitList
from engine.receive.waits.waiter import Waiter
from runtime.background import Background


class Served:
    """Serves the first waiter at each call, as long as there is one and `brings` says so."""

    def __init__(self) -> None:
        self.calls = 0
        self.brings = True
        self.during: Callable[[WaitList], None] = lambda line: None
        self.error: Exception | None = None

    async def serve(self, line: WaitList) -> bool:
        self.calls += 1
        await asyncio.sleep(0)
        self.during(line)
        if self.error is not None:
            raise self.error
        line.looked_at = asyncio.get_running_loop().time()
        line.due = [FOREVER] * len(line.due)
        if self.brings:
            for one in line.pop_batch(alone=True):
                one.served.set_result([])
        return self.brings


def waiter() -> Waiter:
    return Waiter(1, None, asyncio.get_running_loop().create_future())


@pytest.fixture
def served() -> Served:
    return Served()


@pytest.fixture
def line(served: Served) -> WaitList:
    return WaitList(0, 2, served.serve, Background(), "q")


async def turns(number: int = 20) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_who_waits_is_served_at_once_while_a_partition_may_have_something(line: WaitList, served: Served) -> None:
    one, other = waiter(), waiter()
    line.wait(one)
    line.wait(other)
    await asyncio.wait_for(asyncio.gather(one.served, other.served), 5)
    assert served.calls == 2 and not line.waiters
    await turns()
    assert not line.pumping and line.timer is None


async def test_who_waits_is_not_served_while_there_is_nothing_but_a_wake_up_starts_the_pump(
    line: WaitList, served: Served
) -> None:
    served.brings = False
    one = waiter()
    line.wait(one)
    await turns()
    assert served.calls == 1 and not line.pumping and line.timer is not None
    other = waiter()
    line.wait(other)
    await turns()
    assert served.calls == 1, "it asked though nothing was due"
    served.brings = True
    line.wake(1)
    await asyncio.wait_for(asyncio.gather(one.served, other.served), 5)


async def test_a_wake_up_of_a_partition_that_is_not_there_or_of_nobody_is_fine(line: WaitList, served: Served) -> None:
    line.wake(7)
    line.wake(-1)
    await turns()
    assert served.calls == 0 and line.wakes == [1, 1]


async def test_what_wakes_the_list_during_a_call_is_asked_for_behind_it(line: WaitList, served: Served) -> None:
    served.brings = False

    def wake_once(at: WaitList) -> None:
        if served.calls == 1:
            at.wake(0)

    served.during = wake_once
    line.wait(waiter())
    await turns()
    assert served.calls == 2


async def test_the_timer_starts_the_pump_when_something_is_due(line: WaitList, served: Served) -> None:
    served.brings = False
    one = waiter()
    line.wait(one)
    await turns()
    served.brings = True
    line.due[0] = asyncio.get_running_loop().time() + 0.02
    line.set_timer()
    await asyncio.wait_for(one.served, 5)
    assert served.calls == 2


async def test_a_call_that_fails_is_not_repeated_at_once(line: WaitList, served: Served) -> None:
    served.error = LogUnavailable("Kafka does not answer")
    line.wait(waiter())
    await turns()
    assert served.calls == 1 and not line.pumping
    assert line.next_look() > asyncio.get_running_loop().time() + 0.1


async def test_a_list_that_was_stopped_ends_all_waits_with_nothing_and_serves_nobody(
    line: WaitList, served: Served
) -> None:
    served.brings = False
    one, late = waiter(), waiter()
    line.wait(one)
    await turns()
    line.stop()
    assert await asyncio.wait_for(one.served, 5) == []
    line.wake(0)
    line.wait(late)
    assert await asyncio.wait_for(late.served, 5) == []
    assert served.calls == 1
