"""A second's quota among workers: no more than the limit is given, and the next second begins
anew.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest

from state.allotments import Allotments, Allotted
from state.redis.connection import Connection
from tests.services import Services

NOW = 1_000_000


@pytest.fixture
async def quotas(stack: Services) -> AsyncIterator[Allotments]:
    connection = Connection(stack.redis_url)
    await connection.start()
    yield Allotments(connection, f"a{secrets.token_hex(3)}")
    await connection.stop()


async def test_all_parts_of_a_second_are_no_more_than_the_limit(quotas: Allotments) -> None:
    given = await asyncio.gather(*(quotas.allot("q/read", 100, 30, now_ms=NOW) for _ in range(6)))
    assert sorted(one.granted for one in given) == [0, 0, 10, 30, 30, 30]
    assert {one.left_ms for one in given} == {1000}


async def test_the_next_second_begins_anew_and_quotas_do_not_know_each_other(quotas: Allotments) -> None:
    assert await quotas.allot("q/read", 2, 5, now_ms=NOW + 400) == Allotted(2, 600)
    assert await quotas.allot("q/read", 2, 5, now_ms=NOW + 999) == Allotted(0, 1)
    assert await quotas.allot("q/write", 2, 1, now_ms=NOW + 999) == Allotted(1, 1)
    assert await quotas.allot("q/read", 2, 5, now_ms=NOW + 1000) == Allotted(2, 1000)


async def test_a_limit_that_is_lowered_counts_at_once(quotas: Allotments) -> None:
    assert (await quotas.allot("q/read", 100, 50, now_ms=NOW)).granted == 50
    assert (await quotas.allot("q/read", 10, 5, now_ms=NOW)).granted == 0
