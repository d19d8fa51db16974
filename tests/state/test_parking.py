"""A group of a FIFO unit is parked when its first message was received too often; what else sees
that, and what does not count it.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest

from engine.rules.fifo import group_digest
from schemas.vocabulary import LAST_MS
from state.keys import Unit
from state.packed import pack_body
from state.redis.connection import Connection
from state.replies import AtOnce, LoadEntry, Received, Window
from state.store import Store
from tests.services import Services

NOW = 1_000_000
RETENTION = 500_000


class Ordered:
    """A unit with two tags, whose groups are parked after two receives."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.unit = Unit(secrets.token_hex(6), 0)
        self.now = NOW
        self.end = 0

    async def add(self, *groups: str, tags: tuple[int, ...] = (0, 1)) -> None:
        entries = []
        for offset, group in enumerate(groups, self.end):
            packed = pack_body(self.now, self.now, None, b"m%d" % offset)
            entries.append(LoadEntry(offset, packed, "11", "", "", group_digest(group), b""))
        start, self.end = self.end, self.end + len(groups)
        await self.store.leases.load(self.unit, 1, tags, entries, scan=(start, self.end), now_ms=self.now)

    async def receive(self, max: int = 10, tag: int = 0, lease_ms: int = 1, park: int = 2, dies: int = 0) -> Received:
        return await self.store.leases.receive(
            self.unit, 1, tag, max=max, lease_ms=lease_ms, queue_lease_ms=1, max_receive_count=dies,
            retention_ms=RETENTION, move_ms=1,
            at_once=AtOnce(0, park), now_ms=self.now,
        )  # fmt: skip

    async def exhaust(self, tag: int = 0) -> Received:
        """Receives what there is as often as may be, and once more."""
        for _ in range(2):
            await self.receive(1000, tag)
            self.now += 10
        return await self.receive(1000, tag)

    async def held(self, tag: int = 0) -> list[tuple[int, int]]:
        return [(one.offset, one.held) for one in await self.store.deferred.parked(self.unit, 1, tag, max=10)]


@pytest.fixture
async def ordered(stack: Services) -> AsyncIterator[Ordered]:
    connection = Connection(stack.redis_url)
    await connection.start()
    store = Store(connection, f"p{secrets.token_hex(3)}", Window(10_000, 10**7))
    one = Ordered(store)
    await store.upkeep.open(one.unit, 1, [(0, 0), (1, 0)], fifo=True)
    yield one
    await connection.stop()


async def test_a_spent_message_parks_its_group_and_no_other(ordered: Ordered) -> None:
    await ordered.add("a")
    for _ in range(2):
        got = await ordered.receive(1)
        assert [one.offset for one in got.leased] == [0]
        ordered.now += 10
    await ordered.add("b", "a")
    got = await ordered.receive()
    assert (list(got.parked), [one.offset for one in got.leased]) == ([0], [1])
    ordered.now += 10
    (again,) = (await ordered.receive()).leased
    assert again.offset == 1
    assert await ordered.held() == [(0, 1)]
    assert await ordered.held(1) == []  # the other tag is not concerned
    assert [one.offset for one in (await ordered.receive(tag=1)).leased] == [0, 2, 1]
    (told,) = await ordered.store.upkeep.info(ordered.unit, 1, [0], now_ms=ordered.now)
    assert (told.ready, told.leased, told.parked) == (1, 1, 1)
    states = await ordered.store.leases.states(ordered.unit, 1, 0, [0, 1, 2], now_ms=ordered.now)
    assert [(one.state, one.count, one.next_visible_at_ms) for one in states] == [
        ("parked", 2, None),
        ("leased", 2, NOW + 31),
        ("ready", 0, NOW + 20),
    ]


async def test_nobody_has_a_parked_message_nor_will_have(ordered: Ordered) -> None:
    await ordered.add("a", "a")
    got = await ordered.receive(1)
    ordered.now += 10
    got = await ordered.receive(1)
    handle = (0, got.nonce)
    ordered.now += 10
    got = await ordered.receive()
    expires = NOW + RETENTION  # so that somebody asks then
    assert (list(got.parked), got.leased, got.head_ms, got.wait_ms) == ([0], [], expires, expires - ordered.now)
    store, unit = ordered.store, ordered.unit
    assert (await store.leases.ack(unit, 1, 0, [handle], now_ms=ordered.now)).words == ["parked"]
    assert [one.status for one in await store.leases.release(unit, 1, 0, [handle], now_ms=ordered.now)] == ["parked"]
    assert await store.deferred.cancel(unit, 1, [0, 1], 0, NOW, [0, 0], now_ms=ordered.now) == ("due", 0)
    assert (
        await store.leases.peek_next(
            unit, 1, 0, max=10, max_receive_count=2, retention_ms=RETENTION, now_ms=ordered.now
        )
        == []
    )
    probed = await store.leases.probe(unit, 1, 0, now_ms=ordered.now)
    assert (probed.head_ms, probed.wait_ms, probed.open) == (expires, expires - ordered.now, 2)


async def test_a_message_parks_its_group_only_when_it_is_the_first(ordered: Ordered) -> None:
    """A consumer that acks the first of two was given the second as often."""
    await ordered.add("a", "a")
    for _ in range(2):
        got = await ordered.receive()
        ordered.now += 10
    assert await ordered.store.leases.give_back(
        ordered.unit, 1, 0, [(0, got.nonce, NOW)], rest_ms=0, now_ms=ordered.now
    ) == ["ok"]
    got = await ordered.receive()
    assert (list(got.parked), [one.offset for one in got.leased]) == ([], [0])
    assert (await ordered.store.leases.ack(ordered.unit, 1, 0, [(0, got.nonce)], now_ms=ordered.now)).words == ["ok"]
    assert list((await ordered.receive()).parked) == [1]


async def test_unparked_it_is_as_if_it_had_never_been_received(ordered: Ordered) -> None:
    await ordered.add("a", "a")
    await ordered.exhaust()
    store, unit = ordered.store, ordered.unit
    assert await store.deferred.unpark(unit, 1, 1, group_digest("a"), now_ms=ordered.now) is None
    assert await store.deferred.unpark(unit, 1, 0, group_digest("b"), now_ms=ordered.now) is None
    found = await store.deferred.unpark(unit, 1, 0, group_digest("a"), now_ms=ordered.now)
    assert found is not None and found[1].offset == 0
    assert await store.deferred.unpark(unit, 1, 0, group_digest("a"), now_ms=ordered.now) is None
    got = await ordered.receive()
    # Also what was received with it, which would park the group at once.
    assert [(one.offset, one.count, one.first_received_at_ms) for one in got.leased] == [(0, 1, NOW), (1, 1, NOW)]
    ordered.now += 10
    assert [one.count for one in (await ordered.receive(1)).leased] == [2]
    ordered.now += 10
    assert list((await ordered.receive()).parked) == [0]


async def test_what_somebody_has_behind_the_first_stays_theirs(ordered: Ordered) -> None:
    await ordered.add("a", "a", "a")
    await ordered.receive()
    ordered.now += 10
    got = await ordered.receive()
    store, unit = ordered.store, ordered.unit
    await store.leases.extend(unit, 1, 0, [(1, got.nonce, 5_000)], now_ms=ordered.now)
    await store.leases.release(unit, 1, 0, [(2, got.nonce)], delay_ms=700, now_ms=ordered.now)
    ordered.now += 10
    assert list((await ordered.receive()).parked) == [0]
    assert await store.deferred.unpark(unit, 1, 0, group_digest("a"), now_ms=ordered.now) is not None
    assert [(one.offset, one.count) for one in (await ordered.receive()).leased] == [(0, 1)]
    assert (await store.leases.ack(unit, 1, 0, [(1, got.nonce)], now_ms=ordered.now)).words == ["ok"]
    states = await store.leases.states(unit, 1, 0, [2], now_ms=ordered.now)
    assert [(one.state, one.count) for one in states] == [("delayed", 2)]


async def test_what_is_parked_may_be_killed_deleted_or_moved(ordered: Ordered) -> None:
    await ordered.add("a", "b", "c", "a", "b", "c")
    await ordered.exhaust()
    store, unit = ordered.store, ordered.unit
    assert [offset for offset, _ in await ordered.held()] == [0, 1, 2]
    killed = await store.deferred.unpark(unit, 1, 0, group_digest("a"), move_ms=1_000, now_ms=ordered.now)
    assert killed is not None and (killed[1].reason, killed[1].packed[24:]) == ("killed", b"m0")
    assert [one.offset for one in (await ordered.receive()).leased] == []  # it is dying
    assert await store.leases.settle(unit, 1, 0, "dead", [(0, killed[1].nonce)], now_ms=ordered.now) == ["ok"]
    assert await store.deferred.delete(unit, 1, [0, 1], 1, now_ms=ordered.now) == "ok"
    claimed = await store.leases.claim(unit, 1, 0, [(2, group_digest("c"), "")], claim_ms=1_000, now_ms=ordered.now)
    assert claimed.words == [("ok", 0)]
    assert await store.leases.settle(unit, 1, 0, "moved", [(2, claimed.nonce)], now_ms=ordered.now) == ["ok"]
    assert await ordered.held() == []
    # Those were received with the first ones, and only who unparks begins anew.
    got = await ordered.receive()
    assert ([one.offset for one in got.leased], list(got.parked)) == ([3], [4, 5])


async def test_a_claim_that_lapses_parks_again(ordered: Ordered) -> None:
    await ordered.add("a")
    await ordered.exhaust()
    await ordered.store.leases.claim(ordered.unit, 1, 0, [(0, group_digest("a"), "")], claim_ms=10, now_ms=ordered.now)
    assert await ordered.held() == []
    ordered.now += 11
    got = await ordered.receive()
    assert (list(got.parked), got.leased) == ([0], [])


@pytest.mark.parametrize("forever", [False, True])
async def test_a_parked_message_expires_and_its_group_goes_on(ordered: Ordered, forever: bool) -> None:
    await ordered.add("a")
    retention = 2**52 if forever else RETENTION
    for _ in range(3):
        await ordered.store.leases.receive(
            ordered.unit, 1, 0, max=1, lease_ms=1, queue_lease_ms=1, max_receive_count=0, retention_ms=retention,
            move_ms=1,
            at_once=AtOnce(0, 2), now_ms=ordered.now,
        )  # fmt: skip
        ordered.now += 10
    (parked,) = await ordered.store.deferred.parked(ordered.unit, 1, 0, max=10)
    assert parked.until_ms == (LAST_MS if forever else NOW + RETENTION)
    ordered.now = NOW + RETENTION - 1
    await ordered.add("a")
    assert (await ordered.receive()).leased == []
    ordered.now += 1
    if not forever:
        got = await ordered.receive()
        assert [one.offset for one in got.leased] == [1]
        assert await ordered.held() == []
        (told,) = await ordered.store.upkeep.info(ordered.unit, 1, [0], now_ms=ordered.now)
        assert (told.parked, told.leased) == (0, 1)


async def test_a_longer_retention_keeps_it_parked(ordered: Ordered) -> None:
    await ordered.add("a")
    await ordered.exhaust()
    ordered.now = NOW + RETENTION
    got = await ordered.store.leases.receive(
        ordered.unit, 1, 0, max=1, lease_ms=1, queue_lease_ms=1, max_receive_count=0, retention_ms=2 * RETENTION,
        move_ms=1,
        at_once=AtOnce(0, 0), now_ms=ordered.now,  # the queue parks nothing any more
    )  # fmt: skip
    assert (got.leased, list(got.parked)) == ([], [0])
    (parked,) = await ordered.store.deferred.parked(ordered.unit, 1, 0, max=10)
    assert parked.until_ms == NOW + 2 * RETENTION


async def test_many_that_park_at_once_do_not_hide_one_that_is_free(ordered: Ordered) -> None:
    await ordered.add(*(f"g{n}" for n in range(50)))
    for _ in range(2):
        await ordered.receive(1000)
        ordered.now += 10
    await ordered.add("free")
    got = await ordered.receive(1)
    assert ([one.offset for one in got.leased], len(got.parked)) == ([50], 50)


async def test_parked_messages_are_not_in_flight_and_fill_the_window(ordered: Ordered) -> None:
    await ordered.add(*(f"g{n}" for n in range(1500)))
    for _ in range(2):
        got = await ordered.receive(1500)
        assert got.in_flight == 1500
        ordered.now += 10
    while (got := await ordered.receive(1500)).parked:
        pass
    assert (got.in_flight, got.open, got.leased) == (0, 1500, [])
    store = Store(
        ordered.store.units.scripts._connection, ordered.store.units.prefix, Window(10_000, 10**7, max_open=1500)
    )
    entry = LoadEntry(1500, pack_body(ordered.now, ordered.now, None, b"m"), "11", "", "", group_digest("x"), b"")
    loaded = await store.leases.load(ordered.unit, 1, [0, 1], [entry], scan=(1500, 1501), now_ms=ordered.now)
    assert loaded.full == [True, True]  # what is parked is bounded as what is ready is


async def test_killed_messages_die_also_where_exhausted_ones_do_not(ordered: Ordered) -> None:
    """A queue that blocks, or parks, with a redrive policy."""
    await ordered.add("a")
    for _ in range(5):
        (one,) = (await ordered.receive(park=0, dies=2**32)).leased
        ordered.now += 10
    assert one.count == 5
    got = await ordered.receive(park=0, dies=2**32, lease_ms=1_000)
    await ordered.store.leases.kill(ordered.unit, 1, 0, [(0, got.nonce)], move_ms=10, now_ms=ordered.now)
    ordered.now += 11
    got = await ordered.receive(park=2, dies=2**32)
    assert [(one.offset, one.reason) for one in got.dying] == [(0, "killed")]


async def test_pages_go_on_behind_what_is_parked_no_more(ordered: Ordered) -> None:
    await ordered.add("a", "b", "c", "d")
    await ordered.exhaust()
    first = await ordered.store.deferred.parked(ordered.unit, 1, 0, max=2)
    assert [one.offset for one in first] == [0, 1]
    after = (first[1].until_ms, first[1].offset)
    assert [one.offset for one in await ordered.store.deferred.parked(ordered.unit, 1, 0, max=2, after=after)] == [2, 3]
    await ordered.store.deferred.unpark(ordered.unit, 1, 0, group_digest("b"), now_ms=ordered.now)
    # All are of one ms: some may come twice, and none is passed over.
    assert {2, 3} <= {
        one.offset for one in await ordered.store.deferred.parked(ordered.unit, 1, 0, max=10, after=after)
    }
