"""Owners of units and holders of locks are judged by their renewals: a wall clock that is stepped
back gives a dead one no time, and one that renews loses nothing.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from time import monotonic

import pytest
import redis

from state.keys import Unit, lock_key
from state.redis.connection import Connection
from state.redis.lock import Hold, LockBusy, lock
from state.replies import Window
from state.store import Store
from tests.services import Services

NOW = 1_700_000_000_000
BACK = NOW - 300_000
LEASE_MS = 200


@pytest.fixture
async def other(stack: Services, store: Store) -> AsyncIterator[Store]:
    """The store of another worker, over the same keys."""
    opened = Connection(stack.redis_url)
    await opened.start()
    yield Store(opened, store.units.prefix, Window(100, 1_000_000))
    await opened.stop()


@pytest.fixture
def unit() -> Unit:
    return Unit(secrets.token_hex(6), 0)


async def test_a_dead_owner_keeps_a_unit_for_its_lease_when_the_clock_was_stepped_back(
    store: Store, other: Store, unit: Unit
) -> None:
    first = await store.upkeep.own(unit, "dead", lease_ms=LEASE_MS, now_ms=NOW)
    died_at = monotonic()
    while not (owned := await other.upkeep.own(unit, "heir", lease_ms=LEASE_MS, now_ms=BACK)).ours:
        assert monotonic() - died_at < 20, "the owner that died keeps the unit by a clock that was stepped back"
        await asyncio.sleep(0.02)
    assert monotonic() - died_at >= LEASE_MS / 1000
    assert owned.number > first.number


async def test_an_owner_that_renews_is_not_replaced_whatever_the_clock_shows(
    store: Store, other: Store, unit: Unit
) -> None:
    await store.upkeep.own(unit, "owner", lease_ms=LEASE_MS, now_ms=NOW)
    for renewal in range(30):
        assert (await store.upkeep.own(unit, "owner", lease_ms=LEASE_MS, now_ms=BACK + renewal)).ours
        assert not (await other.upkeep.own(unit, "heir", lease_ms=LEASE_MS, now_ms=BACK)).ours
        await asyncio.sleep(LEASE_MS / 3000)


async def test_a_contender_watches_for_the_lease_of_the_owner_not_for_its_own(
    store: Store, other: Store, unit: Unit
) -> None:
    await store.upkeep.own(unit, "rebuilder", lease_ms=60_000, now_ms=NOW)
    until = monotonic() + 3 * LEASE_MS / 1000
    while monotonic() < until:
        assert not (await other.upkeep.own(unit, "heir", lease_ms=LEASE_MS, now_ms=BACK)).ours
        await asyncio.sleep(0.05)


async def test_a_contender_that_stood_still_does_not_take_what_was_renewed_meanwhile(
    store: Store, other: Store, unit: Unit
) -> None:
    await store.upkeep.own(unit, "owner", lease_ms=LEASE_MS, now_ms=NOW)
    assert not (await other.upkeep.own(unit, "heir", lease_ms=LEASE_MS, now_ms=BACK)).ours
    await asyncio.sleep(2 * LEASE_MS / 1000)
    await store.upkeep.own(unit, "owner", lease_ms=LEASE_MS, now_ms=BACK)
    assert not (await other.upkeep.own(unit, "heir", lease_ms=LEASE_MS, now_ms=BACK)).ours


async def test_a_rebuilder_that_died_after_it_cleared_a_unit_is_replaced_too(
    store: Store, other: Store, unit: Unit
) -> None:
    epoch = await store.upkeep.seize(unit, "dead", lease_ms=LEASE_MS, now_ms=NOW)
    await store.upkeep.clear(unit, epoch, [0])
    died_at = monotonic()
    while not (await other.upkeep.own(unit, "heir", lease_ms=60_000, now_ms=BACK)).ours:
        assert monotonic() - died_at < 20
        await asyncio.sleep(0.02)
    assert monotonic() - died_at >= LEASE_MS / 1000


async def test_a_lock_of_a_dead_holder_is_taken_after_its_time_when_the_clock_was_stepped_back(
    connection: Connection, stack: Services
) -> None:
    # A holder whose time ends in five minutes by the clock of Redis: what a step back leaves.
    name = secrets.token_hex(4)
    with redis.Redis.from_url(stack.redis_url) as client:
        client.set(lock_key("s", name), f"{'0' * 16} {LEASE_MS} {2 * NOW}")
    taken_at = monotonic()
    async with lock(connection, "s", name, hold_ms=LEASE_MS, wait_s=20) as hold:
        assert hold.is_valid
    assert monotonic() - taken_at >= LEASE_MS / 1000


async def test_a_lock_whose_holder_renews_stays_his_whatever_the_clock_shows(
    connection: Connection, stack: Services
) -> None:
    name = secrets.token_hex(4)
    async with lock(connection, "s", name, hold_ms=600, wait_s=1) as hold:
        with pytest.raises(LockBusy):
            async with lock(connection, "s", name, hold_ms=600, wait_s=2):
                pass
        assert hold.is_valid


async def test_one_who_does_not_wait_remembers_what_it_saw_of_a_lock(connection: Connection, stack: Services) -> None:
    name = secrets.token_hex(4)
    with redis.Redis.from_url(stack.redis_url) as client:
        client.set(lock_key("s", name), f"{'0' * 16} {LEASE_MS} {2 * NOW}")
    assert not await Hold(connection, "s", name, LEASE_MS).take()
    await asyncio.sleep(LEASE_MS / 1000 + 0.05)
    assert await Hold(connection, "s", name, LEASE_MS).take()


async def test_a_lock_that_a_worker_of_an_earlier_version_left_is_taken_after_its_time(
    connection: Connection, stack: Services
) -> None:
    name = secrets.token_hex(4)
    with redis.Redis.from_url(stack.redis_url) as client:
        client.set(lock_key("s", name), "0" * 16)
    async with lock(connection, "s", name, hold_ms=LEASE_MS, wait_s=20) as hold:
        assert hold.is_valid


async def test_a_holder_that_was_replaced_changes_nothing(connection: Connection, stack: Services) -> None:
    name = secrets.token_hex(4)
    first, second = Hold(connection, "s", name, 50), Hold(connection, "s", name, 60_000)
    assert await first.take()
    await asyncio.sleep(0.1)
    assert await second.take()
    assert not await first.renew()
    await first.give_up()
    assert not await Hold(connection, "s", name, 50).take()
    with redis.Redis.from_url(stack.redis_url) as client:
        left_ms = client.pttl(lock_key("s", name))
        assert isinstance(left_ms, int) and left_ms > 3_600_000, "what nobody takes again leaves Redis at last"
