"""The order in which one partition lends: by when a message is visible, then by its offset."""

from __future__ import annotations

import random
import secrets

import pytest

from state.keys import Unit
from state.packed import pack_body
from state.redis.connection import Connection
from state.replies import LoadEntry, Window
from state.store import Store
from tests.state.test_store import NOW


@pytest.mark.parametrize("body", [b"", b"x"], ids=["without bodies", "with bodies"])
@pytest.mark.parametrize("seed", range(40))
async def test_what_is_visible_first_comes_first_whatever_the_numbers_of_offsets(
    connection: Connection, seed: int, body: bytes
) -> None:
    """Runs of offsets have a ms each, as records of one append, and cross powers of ten."""
    dice = random.Random(seed)
    store, unit = (
        Store(connection, f"old{secrets.token_hex(3)}", Window(10_000, 1_000_000)),
        Unit(secrets.token_hex(6), 0),
    )
    first, due = dice.choice([0, 5, 93, 990, 9_960]), NOW - 10
    await store.upkeep.open(unit, 1, [(0, first)])
    sent: list[tuple[int, int]] = []
    while len(sent) < 150:
        due += dice.choice([-1, 0, 1, 1])
        entries = [
            LoadEntry(first + len(sent) + n, pack_body(NOW, due, None, body), "1")
            for n in range(dice.choice([1, 3, 7, 50, 100]))
        ]
        await store.leases.load(unit, 1, [0], entries, now_ms=NOW)
        sent += [(due, entry.offset) for entry in entries]
    left = sorted(sent)
    while left:
        most = dice.choice([1, 3, 10, 50, 100])
        got = await store.leases.receive(
            unit,
            1,
            0,
            max=most,
            lease_ms=60_000,
            queue_lease_ms=0,
            max_receive_count=0,
            retention_ms=10**9,
            move_ms=1,
            now_ms=NOW,
        )
        assert [one.offset for one in got.leased] == [offset for _, offset in left[:most]]
        left = left[most:]
