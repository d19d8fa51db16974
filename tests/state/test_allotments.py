"""A quota of a span among workers: no more than the limit is given, and the next span begins
anew.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest

from state.redis.connection import Connection
from state.shared.allotments import Allotments, Allotted
from tests.services import Services

NOW = 1_000_000


@pytest.fixture
async def quotas(stack: Services) -> AsyncIterator[Allotments]:
    connection = Connection(stack.redis_url)
    await connection.start()
    yield Allotments(connection, f"a{secrets.token_hex(3)}")
    await connection.stop()


async def test_all_parts_of_a_second_are_no_more_than_the_limit(quotas: Allotments) -> None:
    given = await asyncio.gather(*(quotas.allot("q/read", 100, 30, 1000, now_ms=NOW) for _ in range(6)))
    assert sorted(one.granted for one in given) == [0, 0, 10, 30, 30, 30]
    assert {one.left_ms for one in given} == {1000}


async def test_the_next_second_begins_anew_and_quotas_do_not_know_each_other(quotas: Allotments) -> None:
    assert await quotas.allot("q/read", 2, 5, 1000, now_ms=NOW + 400) == Allotted(2, 600, 2)
    assert await quotas.allot("q/read", 2, 5, 1000, now_ms=NOW + 999) == Allotted(0, 1, 2)
    assert await quotas.allot("q/write", 2, 1, 1000, now_ms=NOW + 999) == Allotted(1, 1, 1)
    assert await quotas.allot("q/read", 2, 5, 1000, now_ms=NOW + 1000) == Allotted(2, 1000, 2)


async def test_a_limit_that_is_lowered_counts_at_once(quotas: Allotments) -> None:
    assert (await quotas.allot("q/read", 100, 50, 1000, now_ms=NOW)).granted == 50
    assert (await quotas.allot("q/read", 10, 5, 1000, now_ms=NOW)).granted == 0


async def test_a_day_is_a_utc_day_and_its_use_can_be_asked_for(quotas: Allotments) -> None:
    day = 86_400_000
    late = 20_000 * day - 5
    assert await quotas.allot("q/bytes", 10**12, 7 * 10**11, day, now_ms=late) == Allotted(7 * 10**11, 5, 7 * 10**11)
    assert await quotas.allot("q/bytes", 10**12, 0, day, now_ms=late + 4) == Allotted(0, 1, 7 * 10**11)
    assert await quotas.allot("q/bytes", 10**12, 5 * 10**11, day, now_ms=late + 4) == Allotted(3 * 10**11, 1, 10**12)
    assert await quotas.allot("q/bytes", 10**12, 0, day, now_ms=late + 5) == Allotted(0, day, 0)


async def test_who_needs_more_than_is_left_gets_nothing(quotas: Allotments) -> None:
    assert await quotas.allot("q/bytes", 100, 60, 1000, least=60, now_ms=NOW) == Allotted(60, 1000, 60)
    assert await quotas.allot("q/bytes", 100, 50, 1000, least=41, now_ms=NOW) == Allotted(0, 1000, 60)
    assert await quotas.allot("q/bytes", 100, 50, 1000, least=40, now_ms=NOW) == Allotted(40, 1000, 100)


async def test_workers_whose_clocks_differ_share_one_span(quotas: Allotments) -> None:
    """One is in the next span already, the other still in the one before: they do not begin anew by
    turns.
    """
    ahead, behind = NOW + 1001, NOW + 998
    assert (await quotas.allot("q/read", 100, 100, 1000, now_ms=behind)).granted == 100
    given = [
        (await quotas.allot("q/read", 100, 100, 1000, now_ms=at)).granted
        for at in (ahead, behind, ahead, behind, ahead)
    ]
    assert given == [100, 0, 0, 0, 0]
    assert await quotas.allot("q/read", 100, 10, 1000, now_ms=behind) == Allotted(0, 1002, 100)
    # A span that is far ahead was of a clock that was wrong.
    assert (await quotas.allot("q/read", 100, 10, 1000, now_ms=NOW - 10_000)).granted == 10
