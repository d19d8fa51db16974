"""What was ever done under a tag: each script counts what it does, once for a call, and the journal
says the same.
"""

from __future__ import annotations

import secrets

import pytest

from engine.rules.fifo import group_digest
from schemas.records import OpenDelivery, Totals
from state.keys import Unit
from state.packed import pack_body
from state.redis.connection import Connection
from state.redis.scripts import read_scripts
from state.replies import LoadEntry, Received, Window
from state.store import Store
from tests.totals import journaled

NOW = 1_000_000
KINDS = ("standard", "fair", "fifo")
TAG = 3


class Case:
    """A unit of a kind, with six messages in two groups where it has groups."""

    def __init__(self, store: Store, kind: str) -> None:
        self.store = store
        self.kind = kind
        self.unit = Unit(secrets.token_hex(6), 0)
        self.now = NOW

    async def open(self) -> None:
        await self.store.upkeep.open(self.unit, 1, [(TAG, 0)], fifo=self.kind == "fifo")
        body = pack_body(NOW, NOW, None, b"")
        groups = [b"" if self.kind == "standard" else group_digest("ab"[n % 2]) for n in range(6)]
        entries = [LoadEntry(n, body, "1", group=group) for n, group in enumerate(groups)]
        await self.store.leases.load(self.unit, 1, [TAG], entries, scan=(0, 6), now_ms=NOW)

    async def receive(self, most: int, *, lease_ms: int = 1_000, max_receive_count: int = 0) -> Received:
        return await self.store.leases.receive(
            self.unit, 1, TAG, max=most, lease_ms=lease_ms, queue_lease_ms=1, max_receive_count=max_receive_count,
            retention_ms=10**9, move_ms=1_000, now_ms=self.now,
        )  # fmt: skip

    async def totals(self) -> Totals:
        """What Redis has, if the journal says the same."""
        (counts,) = await self.store.upkeep.info(self.unit, 1, [TAG], now_ms=self.now)
        dump = await self.store.upkeep.dump(self.unit, 1, [TAG])
        assert counts.totals == dump.tags[0].totals == (await journaled(self.store, self.unit)).tag(TAG).totals()
        return counts.totals


@pytest.fixture(params=[(kind, plain) for kind in KINDS for plain in (True, False)], ids=lambda p: f"{p[0]}-{p[1]}")
async def case(connection: Connection, request: pytest.FixtureRequest) -> Case:
    """With what stands before a script for its common case, and without."""
    kind, plain = request.param
    window = Window(100, 1_000_000)
    made = Case(Store(connection, f"s{secrets.token_hex(3)}", window, read_scripts(plain=plain)), kind)
    await made.open()
    return made


async def test_each_script_counts_what_it_does(case: Case) -> None:
    assert await case.totals() == Totals()
    leases, unit = case.store.leases, case.unit
    got = await case.receive(4)
    held = [(one.offset, got.nonce) for one in got.leased]
    assert len(held) == 4
    assert await case.totals() == Totals(leased=4)
    await leases.ack(unit, 1, TAG, held[:1], now_ms=case.now)
    await leases.ack(unit, 1, TAG, held[:1], now_ms=case.now)
    now = await case.totals()
    assert (now.acked, now.released, now.returned) == (1, 0, 0), "an ack that comes again counts no more"
    await leases.release(unit, 1, TAG, held[1:2], delay_ms=0, now_ms=case.now)
    await leases.release(unit, 1, TAG, held[1:2], delay_ms=0, now_ms=case.now)
    assert (await case.totals()).released == 1
    await leases.give_back(unit, 1, TAG, [(*held[2], NOW)] * 2, rest_ms=1, now_ms=case.now)
    now = await case.totals()
    assert (now.returned, now.returned_again) == (1, 0)
    await leases.extend(unit, 1, TAG, [(*held[3], 5_000)], now_ms=case.now)
    assert await case.totals() == now, "an extension is none of these"
    killed = await leases.kill(unit, 1, TAG, held[3:], move_ms=1_000, now_ms=case.now)
    assert await case.totals() == now, "it is dead when another queue has it"
    dying = [(held[3][0], killed[0].dying.nonce)]
    assert await leases.settle(unit, 1, TAG, "dead", dying, now_ms=case.now) == ["ok"]
    assert await leases.settle(unit, 1, TAG, "dead", dying, now_ms=case.now) == ["stale"]
    assert (await case.totals()).dead == 1


async def test_a_second_delivery_is_one_again_and_given_back_it_is_none(case: Case) -> None:
    first = await case.receive(6, lease_ms=5)
    case.now += 10
    again = await case.receive(6)
    old, new = len(first.leased), len(again.leased)
    assert old == new == 6
    assert await case.totals() == Totals(leased=12, leased_again=6)
    back = [(one.offset, again.nonce, NOW) for one in again.leased[:2]]
    assert await case.store.leases.give_back(case.unit, 1, TAG, back, rest_ms=1, now_ms=case.now) == ["ok", "ok"]
    assert await case.totals() == Totals(leased=12, leased_again=6, returned=2, returned_again=2)
    third = await case.receive(6)
    assert [one.count for one in third.leased] == [2, 2]
    assert await case.totals() == Totals(leased=14, leased_again=8, returned=2, returned_again=2)


async def test_a_rebuild_writes_them_and_a_tag_that_is_closed_leaves_none(case: Case) -> None:
    upkeep, unit = case.store.upkeep, case.unit
    epoch = (await upkeep.own(unit, "one", lease_ms=10_000)).number
    await upkeep.clear(unit, epoch, [TAG])
    totals = Totals(2**53, 0, 3, 4, 5, 6, 7)
    leased = OpenDelivery(4, nonce=77, count=2, first_received_at_ms=NOW - 9, flag=0, time_ms=NOW + 500)
    group = {4: group_digest("a")} if case.kind == "fifo" else {}
    for settled in ([0], [1]):
        await upkeep.restore(
            unit, epoch, TAG, cursor=0, settled=settled, deliveries=[leased], groups=group, totals=totals
        )
    await upkeep.open(unit, 1, [(TAG, 0)], fifo=case.kind == "fifo", epoch=epoch, seq=1000)
    (counts,) = await upkeep.info(unit, 1, [TAG], now_ms=NOW)
    assert counts.totals == totals
    assert (await case.store.leases.ack(unit, 1, TAG, [(4, 77)], now_ms=NOW)).words == ["ok"]
    (counts,) = await upkeep.info(unit, 1, [TAG], now_ms=NOW)
    assert counts.totals.acked == totals.acked + 1
    await upkeep.close(unit, TAG)
    await upkeep.open(unit, 1, [(TAG, 0)], serving=True)
    (counts,) = await upkeep.info(unit, 1, [TAG], now_ms=NOW)
    assert counts.totals == Totals()
