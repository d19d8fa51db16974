"""A receive finds out of which kind a unit is, asks the script of that kind, and remembers it."""

from __future__ import annotations

import secrets

from state.keys import Unit
from state.packed import pack_body
from state.replies import LoadEntry
from state.store import Store

NOW = 1_000_000
PACKED = pack_body(NOW, NOW, None, b"x")


async def receive(store: Store, unit: Unit) -> tuple[list[int], int]:
    """The offsets of one receive, and how many scripts it ran."""
    before = store.units.scripts.calls
    got = await store.leases.receive(
        unit,
        1,
        0,
        max=1,
        lease_ms=None,
        queue_lease_ms=1000,
        max_receive_count=0,
        retention_ms=10**9,
        move_ms=1,
        now_ms=NOW,
    )
    return [one.offset for one in got.leased], store.units.scripts.calls - before


async def test_a_standard_unit_is_asked_once(store: Store) -> None:
    unit = Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(unit, 1, [(0, 0)])
    await store.leases.load(unit, 1, [0], [LoadEntry(0, PACKED, "1")], now_ms=NOW)
    assert await receive(store, unit) == ([0], 1)


async def test_a_fifo_unit_is_asked_once_after_the_first_time(store: Store) -> None:
    unit = Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(unit, 1, [(0, 0)], fifo=True)
    rows = [
        LoadEntry(offset, PACKED, "1", group=b"groupone" if offset < 2 else b"grouptwo", dedup=b"id%d" % offset)
        for offset in range(3)
    ]
    await store.leases.load(unit, 1, [0], rows, now_ms=NOW)
    assert [await receive(store, unit) for _ in range(3)] == [([0], 2), ([2], 1), ([], 1)]


async def test_a_unit_with_its_first_group_is_fair_and_after_a_rebuild_without_groups_standard(store: Store) -> None:
    unit = Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(unit, 1, [(0, 0)])
    await store.leases.load(unit, 1, [0], [LoadEntry(0, PACKED, "1")], now_ms=NOW)
    assert await receive(store, unit) == ([0], 1)
    rows = [
        LoadEntry(1, PACKED, "1", group=b"groupone"),
        LoadEntry(2, PACKED, "1"),
        LoadEntry(3, PACKED, "1", group=b"groupone"),
    ]
    await store.leases.load(unit, 1, [0], rows, now_ms=NOW)
    assert [await receive(store, unit) for _ in range(3)] == [([1], 2), ([2], 1), ([3], 1)]
    epoch = (await store.upkeep.own(unit, "one", lease_ms=10_000)).number
    await store.upkeep.clear(unit, epoch, [0])
    await store.upkeep.open(unit, 1, [(0, 4)], epoch=epoch)
    await store.leases.load(unit, 1, [0], [LoadEntry(4, PACKED, "1"), LoadEntry(5, PACKED, "1")], now_ms=NOW)
    assert [await receive(store, unit) for _ in range(2)] == [([4], 2), ([5], 1)]


async def test_a_forgotten_queue_leaves_no_kind_behind(store: Store) -> None:
    unit = Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(unit, 1, [(0, 0)], fifo=True)
    await receive(store, unit)
    await store.upkeep.forget([unit], [0])
    assert store.units.kinds == {}
