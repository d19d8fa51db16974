"""A day of far delays in small, as `python -m benchmarks.far` runs it with a million messages."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
import redis

from benchmarks.far.day import BY, QUEUE, Day, Plan
from schemas.records.settings import QueueSettings
from tests.clock import ScriptClock
from tests.integration.conftest import MakeEngine
from tests.integration.test_rebuild import wipe
from tests.services import Services

# 3,000 messages that waited in Redis would need twice as much. In the first hours pointers wait to
# be filed.
MOST_BYTES, FIRST_HOURS = 400 * 1024, 4


@pytest.mark.long
@pytest.mark.parametrize("wipes", [False, True], ids=["", "and Redis loses everything"])
async def test_each_of_a_days_messages_comes_once_and_never_early(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch, stack: Services, wipes: bool
) -> None:
    plan = Plan(3_000, step_s=3_600, looks=6, look_s=1.0, long_look_s=1.0, wipe=wipes)
    clock, engine = ScriptClock(monkeypatch), await make_engine()
    await engine.queues.create_queue(BY, QUEUE, QueueSettings(partitions=1, lease_ms=600_000))
    with redis.Redis.from_url(stack.redis_url) as store:
        before = int(store.info("memory")["used_memory"])
        day = Day(plan, engine, clock, store, partial(wipe, stack, engine))
        await asyncio.wait_for(day.run(), 360)
    in_the_day = [used - before for hour, used in day.memory.items() if hour >= FIRST_HOURS]
    print(f"sent in {day.send_s} s; Redis {max(in_the_day)} bytes more at most")
    assert (len(day.came), day.early, day.twice, day.ordinary) == (3_000, 0, 0, 100)
    assert (day.wiped_at is not None) is wipes
    assert sum(look.missed for look in day.looks) == 0
    assert max(in_the_day) < MOST_BYTES
