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


async def test_which_groups_are_noisy_is_told_and_how_much_of_theirs_is_set_back(store: Store) -> None:
    unit = Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(unit, 1, [(0, 0)])
    groups = [b"groupone"] * 3 + [b"grouptwo"] + [b"groupone"] * 4 + [b"group%3d" % n for n in range(40)]
    rows = [LoadEntry(offset, PACKED, "1", group=group) for offset, group in enumerate(groups)]

    async def told() -> tuple[int, set[bytes]]:
        (counts,) = await store.upkeep.info(unit, 1, [0], now_ms=NOW)
        return counts.set_back, {*counts.noisy}

    await store.leases.load(unit, 1, [0], rows[:2], now_ms=NOW)
    assert await told() == (0, set()), "nothing is in flight"
    assert await receive(store, unit) == ([0], 2)
    assert await told() == (0, {b"groupone"})
    await store.leases.load(unit, 1, [0], rows[2:], now_ms=NOW)
    assert await told() == (5, {b"groupone"})
    ((offset,), _) = await receive(store, unit)
    assert await told() == (6, {b"groupone", groups[offset]}), "it has met the one that was there before"
    for _ in range(40):
        await receive(store, unit)
    assert (await told())[1] == set(), "none has more than a tenth of 42"


async def test_groups_of_which_a_message_is_leased_are_counted(store: Store) -> None:
    for fifo, late in ((False, False), (True, False), (True, True)):
        unit = Unit(secrets.token_hex(6), 0)
        await store.upkeep.open(unit, 1, [(0, 0)], fifo=fifo)
        names = [b"groupone", b"groupone", b"grouptwo", b"groupsix"]
        packed = [PACKED] * 3 + [pack_body(NOW, NOW + 10_000 * late, None, b"x")]
        rows = [
            LoadEntry(n, packed[n], "1", group=name, dedup=b"id%d" % n if fifo else b"") for n, name in enumerate(names)
        ]
        await store.leases.load(unit, 1, [0], rows, now_ms=NOW)
        counts = []
        for _ in range(4):
            (found,) = await store.upkeep.info(unit, 1, [0], now_ms=NOW)
            counts.append((found.leased, found.groups_in_flight))
            await receive(store, unit)
        assert counts[:3] == [(0, 0), (1, 1), (2, 2)], "a delayed message is in nobody's hands"
        assert counts[3] == ((2, 2) if late else (3, 3))


async def test_a_fifo_group_is_in_flight_while_one_behind_what_came_back_is_leased(store: Store) -> None:
    unit = Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(unit, 1, [(0, 0)], fifo=True)
    rows = [LoadEntry(n, PACKED, "1", group=b"groupone", dedup=b"id%d" % n) for n in range(2)]
    await store.leases.load(unit, 1, [0], rows, now_ms=NOW)
    got = await store.leases.receive(
        unit,
        1,
        0,
        max=2,
        lease_ms=None,
        queue_lease_ms=1000,
        max_receive_count=0,
        retention_ms=10**9,
        move_ms=1,
        now_ms=NOW,
    )
    first, second = got.leased
    await store.leases.release(unit, 1, 0, [(first.offset, got.nonce)], now_ms=NOW)
    (between,) = await store.upkeep.info(unit, 1, [0], now_ms=NOW)
    assert (between.ready, between.leased, between.groups_in_flight) == (1, 1, 1)
    await store.leases.ack(unit, 1, 0, [(second.offset, got.nonce)], now_ms=NOW)
    (after,) = await store.upkeep.info(unit, 1, [0], now_ms=NOW)
    assert (after.ready, after.leased, after.groups_in_flight) == (1, 0, 0)


async def test_a_group_of_which_all_is_set_back_is_not_in_flight(store: Store) -> None:
    unit = Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(unit, 1, [(0, 0)])
    rows = [LoadEntry(n, PACKED, "1", group=b"groupone") for n in range(3)]
    await store.leases.load(unit, 1, [0], rows[:1], now_ms=NOW)
    await receive(store, unit)
    await store.leases.load(unit, 1, [0], rows[1:], now_ms=NOW)
    (before,) = await store.upkeep.info(unit, 1, [0], now_ms=NOW)
    assert (before.groups_in_flight, before.set_back) == (1, 2)
    # The journal entry of the receive was the first.
    assert (await store.leases.ack(unit, 1, 0, [(0, 1)], now_ms=NOW)).seq == 2
    (after,) = await store.upkeep.info(unit, 1, [0], now_ms=NOW)
    assert (after.groups_in_flight, after.set_back) == (0, 2)


async def test_units_without_groups_and_fifo_units_have_no_noisy_ones(store: Store) -> None:
    for fifo in (False, True):
        unit = Unit(secrets.token_hex(6), 0)
        await store.upkeep.open(unit, 1, [(0, 0)], fifo=fifo)
        rows = [LoadEntry(n, PACKED, "1", group=b"groupone" if fifo else b"", dedup=b"id%d" % n) for n in range(3)]
        await store.leases.load(unit, 1, [0], rows, now_ms=NOW)
        await receive(store, unit)
        (counts,) = await store.upkeep.info(unit, 1, [0], now_ms=NOW)
        assert (counts.set_back, [*counts.noisy]) == (0, [])
