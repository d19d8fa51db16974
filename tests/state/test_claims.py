"""A claim holds a message for a redrive task: who may take it over, and when; and what is not
claimed behind one that waits.
"""

from __future__ import annotations

import secrets

import pytest

from engine.rules.fifo import group_digest
from state.keys import Unit
from state.packed import pack_body
from state.replies import AtOnce, LoadEntry
from state.store import Store

NOW = 1_000_000
GROUPS = "aab"


@pytest.fixture(params=[False, True], ids=["standard", "fifo"])
async def unit(store: Store, request: pytest.FixtureRequest) -> Unit:
    """With three messages; with an order if the parameter says so."""
    unit, fifo = Unit(secrets.token_hex(6), 0), request.param
    await store.upkeep.open(unit, 1, [(0, 0)], fifo=fifo)
    body = pack_body(NOW, NOW, None, b"m")
    entries = [
        LoadEntry(n, body, "1", "", "", group_digest(group) if fifo else b"", b"") for n, group in enumerate(GROUPS)
    ]
    await store.leases.load(unit, 1, [0], entries, scan=(0, len(entries)), now_ms=NOW)
    return unit


async def claim(store: Store, unit: Unit, *offsets: int, now_ms: int = NOW) -> list[tuple[str, int]]:
    """For 60 ms, of which another task waits for 30."""
    wanted = [(offset, group_digest(GROUPS[offset]), "") for offset in offsets]
    return (await store.leases.claim(unit, 1, 0, wanted, claim_ms=60, early_ms=30, now_ms=now_ms)).words


async def received(store: Store, unit: Unit, now_ms: int) -> list[int]:
    got = await store.leases.receive(
        unit, 1, 0, max=10, lease_ms=1, queue_lease_ms=1, max_receive_count=0, retention_ms=10**9, move_ms=1,
        at_once=AtOnce(0, 0), now_ms=now_ms,
    )  # fmt: skip
    return [one.offset for one in got.leased]


async def test_a_task_may_take_a_claim_over_before_a_consumer_gets_the_message(store: Store, unit: Unit) -> None:
    assert await claim(store, unit, 0, 1, 2) == [("ok", 0)] * 3
    assert (await claim(store, unit, 0, now_ms=NOW + 29))[0][0] == "held"
    assert await received(store, unit, NOW + 59) == []
    assert await claim(store, unit, 0, 1, 2, now_ms=NOW + 30) == [("ok", NOW + 60)] * 3
    assert await received(store, unit, NOW + 89) == []
    assert await received(store, unit, NOW + 90) == [0, 1, 2]


@pytest.mark.parametrize("unit", [True], indirect=True, ids=["fifo"])
async def test_at_once_nothing_is_claimed_behind_what_another_holds(store: Store, unit: Unit) -> None:
    assert await claim(store, unit, 1) == [("ok", 0)]
    assert [word for word, _ in await claim(store, unit, 0, 1, 2)] == ["ok", "held", "held"]
    # The last one was left alone.
    assert await received(store, unit, NOW) == [2]


@pytest.mark.parametrize("unit", [False], indirect=True, ids=["standard"])
async def test_without_an_order_the_others_are_claimed(store: Store, unit: Unit) -> None:
    assert await claim(store, unit, 1) == [("ok", 0)]
    assert [word for word, _ in await claim(store, unit, 0, 1, 2)] == ["ok", "held", "ok"]


@pytest.mark.parametrize("unit", [False], indirect=True, ids=["standard"])
async def test_a_delayed_message_that_was_claimed_is_delayed_no_longer(store: Store, unit: Unit) -> None:
    """It was counted as delayed until its time, so as leased one less than there are."""
    got = await store.leases.receive(
        unit, 1, 0, max=1, lease_ms=None, queue_lease_ms=999, max_receive_count=0, retention_ms=10**9, move_ms=1,
        now_ms=NOW,
    )  # fmt: skip
    await store.leases.release(unit, 1, 0, [(0, got.nonce)], delay_ms=60_000, now_ms=NOW)
    (counts,) = await store.upkeep.info(unit, 1, [0], now_ms=NOW)
    assert (counts.ready, counts.delayed, counts.leased) == (2, 1, 0)
    claimed = await store.leases.claim(unit, 1, 0, [(0, b"", "")], claim_ms=1_000, now_ms=NOW)
    (counts,) = await store.upkeep.info(unit, 1, [0], now_ms=NOW)
    assert (counts.ready, counts.delayed, counts.leased) == (2, 0, 1)
    await store.leases.settle(unit, 1, 0, "moved", [(0, claimed.nonce)], now_ms=NOW)
    (counts,) = await store.upkeep.info(unit, 1, [0], now_ms=NOW)
    assert (counts.ready, counts.delayed, counts.leased) == (2, 0, 0)
