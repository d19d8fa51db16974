"""A Redis that refuses writes for now is unavailable, not broken: with the words of 6.2, whose
scripts wrap them, and of 7.
"""

from __future__ import annotations

import contextlib
import secrets

import pytest
import redis

from state.errors import StateUnavailable
from state.keys import Unit
from state.packed import pack_body
from state.replies import LoadEntry
from state.store import Store
from tests.services import Services


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "1gb")),
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
    ],
    ids=["out of memory", "read-only"],
)
async def test_a_refused_script_is_unavailable_and_changes_nothing(
    stack: Services, store: Store, begin: tuple[str, ...], end: tuple[str, ...]
) -> None:
    unit = Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(unit, 1, [(0, 0)])
    entry = LoadEntry(0, pack_body(1000, 1000, None, b"x"), "1", "")
    with contextlib.closing(redis.Redis.from_url(stack.redis_url)) as direct:
        direct.execute_command(*begin)  # type: ignore[no-untyped-call]
        try:
            with pytest.raises(StateUnavailable):
                await store.leases.load(unit, 1, [0], [entry], now_ms=1000)
            with pytest.raises(StateUnavailable):
                await store.upkeep.own(unit, "me", lease_ms=1000)
        finally:
            direct.execute_command(*end)  # type: ignore[no-untyped-call]
    loaded = await store.leases.load(unit, 1, [0], [entry], now_ms=1000)
    assert (loaded.cursors, loaded.taken) == ([1], 1)
