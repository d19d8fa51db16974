"""A service starts and stops in any order and number, and one bad round does not end it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from runtime.service import Periodic


async def test_any_number_of_tasks_may_start_and_stop_a_service() -> None:
    """10 tasks x 50: whatever the order, at most one loop runs, and none is left."""
    running = most = rounds = 0

    async def job() -> None:
        nonlocal running, most, rounds
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(0)
            rounds += 1
        finally:
            running -= 1

    service = Periodic("stress", job, 0.0)

    async def caller(number: int) -> None:
        for turn in range(50):
            await (service.start() if (number + turn) % 3 else service.stop())
            await asyncio.sleep(0.001)

    before = asyncio.all_tasks()
    await asyncio.gather(*(caller(number) for number in range(10)))
    await service.stop()
    await service.stop()
    assert rounds > 10 and most == 1 and running == 0
    assert asyncio.all_tasks() == before


async def test_the_first_round_has_its_own_time_and_a_stop_ends_the_one_under_way() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def job() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    service = Periodic("slow", job, 60.0, first_s=0.0)
    await service.start()
    await asyncio.wait_for(began.wait(), 5)
    await service.stop()
    assert ended.is_set()


async def test_a_round_that_fails_is_told_unless_it_is_expected_and_the_next_one_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors: list[Exception] = [OSError("expected"), ValueError("a bug")]
    done = asyncio.Event()

    async def job() -> None:
        if errors:
            raise errors.pop(0)
        done.set()

    service = Periodic("failing", job, 0.0, quiet=(OSError,))
    with caplog.at_level(logging.INFO):
        await service.start()
        await asyncio.wait_for(done.wait(), 5)
        await service.stop()
    assert [record.exc_info is not None and str(record.exc_info[1]) for record in caplog.records] == ["a bug"]
