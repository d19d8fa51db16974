"""Work that threads do for a loop that always has something to do."""

from __future__ import annotations

import asyncio
import statistics
import sys
import threading
import time
from collections.abc import AsyncIterator

import pytest

from engine.log.overdue import OVERDUE_S, SHORT_S, USUAL_S, Overdue

JOBS = 30
WORK_S = 0.003


@pytest.fixture
async def overdue() -> AsyncIterator[Overdue]:
    found = Overdue()
    yield found
    found.stop()


def is_short() -> bool:
    return sys.getswitchinterval() == pytest.approx(SHORT_S, rel=0.1)


async def test_the_interval_is_short_while_work_is_overdue(overdue: Overdue) -> None:
    overdue.began("first")
    overdue.began("second")
    assert not is_short()
    await asyncio.sleep(4 * OVERDUE_S)
    assert is_short()
    overdue.ended("first")
    await asyncio.sleep(4 * OVERDUE_S)
    assert is_short()  # for the second
    overdue.ended("second")
    overdue.ended("never begun")
    await asyncio.sleep(4 * OVERDUE_S)
    assert sys.getswitchinterval() == pytest.approx(USUAL_S)
    overdue.began("third")
    await asyncio.sleep(4 * OVERDUE_S)
    assert is_short()


async def test_an_end_puts_the_interval_back(overdue: Overdue) -> None:
    overdue.began("work")
    await asyncio.sleep(4 * OVERDUE_S)
    assert is_short()
    overdue.stop()
    assert sys.getswitchinterval() == pytest.approx(USUAL_S)
    await asyncio.sleep(4 * OVERDUE_S)
    assert sys.getswitchinterval() == pytest.approx(USUAL_S)


async def test_two_logs_of_a_process_leave_the_usual_interval_behind(overdue: Overdue) -> None:
    other = Overdue()
    overdue.began("work")
    other.began("work")
    await asyncio.sleep(4 * OVERDUE_S)
    overdue.ended("work")
    await asyncio.sleep(4 * OVERDUE_S)
    other.ended("work")
    await asyncio.sleep(4 * OVERDUE_S)
    assert sys.getswitchinterval() == pytest.approx(USUAL_S)


async def lateness(overdue: Overdue | None) -> float:
    """How long a thread that has ended its work waits for the lock of a busy loop, s: the median of
    JOBS.
    """
    late: list[float] = []

    def work() -> None:
        for _ in range(JOBS):
            began = time.perf_counter()
            time.sleep(WORK_S)
            late.append(time.perf_counter() - began - WORK_S)

    thread = threading.Thread(target=work)
    thread.start()
    if overdue is not None:
        overdue.began(thread)
    while thread.is_alive():
        sum(range(10_000))  # some 0.1 ms
        await asyncio.sleep(0)
    thread.join()
    return statistics.median(late)


async def test_a_thread_gets_the_lock_of_a_busy_loop(overdue: Overdue) -> None:
    usual, offered = await lateness(None), await lateness(overdue)
    # 60 to 270 ms and some 2 ms on an idle machine; on a busy one the loop stops often by itself.
    assert offered < max(usual / 2, 0.03), (usual, offered)
