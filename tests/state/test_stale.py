"""Each verb on handles says why a handle is good for nothing, and then changes nothing."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

import pytest

from engine.rules.fifo import group_digest
from schemas.records import OpenDelivery
from schemas.vocabulary import UNCALLED, StaleReason
from state.keys import Unit
from state.packed import pack_body
from state.replies import AtOnce, LoadEntry, Received
from state.store import Store

NOW = 1_000_000
LEASE_MS = 1_000
RETENTION_MS = 10**9
# Offset, nonce and the deadline that a handle names, 0 = none.
Row = tuple[int, int, int]


class Case:
    """A unit with one message at offset 0, and what a handle of it has."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.unit = Unit(secrets.token_hex(6), 0)
        self.now = NOW
        self.late = True

    async def open(self, *, fifo: bool = False) -> None:
        await self.store.upkeep.open(self.unit, 1, [(0, 0)], fifo=fifo)
        entry = LoadEntry(0, pack_body(NOW, NOW, None, b"x"), "1", "", "", group_digest("g") if fifo else b"", b"")
        await self.store.leases.load(self.unit, 1, [0], [entry], scan=(0, 1), now_ms=NOW)

    async def receive(self, *, retention_ms: int = RETENTION_MS, dies: int = 0, parks: int = 0) -> Received:
        return await self.store.leases.receive(
            self.unit, 1, 0, max=1, lease_ms=LEASE_MS, queue_lease_ms=LEASE_MS, max_receive_count=dies,
            retention_ms=retention_ms,
            move_ms=1000, at_once=AtOnce(0, parks), now_ms=self.now,
        )  # fmt: skip

    async def lease(self) -> Row:
        received = await self.receive()
        assert [one.offset for one in received.leased] == [0]
        return (0, received.nonce, 0)

    async def words(self, verb: str, *rows: Row) -> list[str]:
        """What a verb says of handles."""
        how = {"late": self.late, "now_ms": self.now}
        if verb == "ack":
            return (await self.store.leases.ack(self.unit, 1, 0, rows, **how)).words  # type: ignore[arg-type]
        if verb == "extend":
            asked = [(offset, nonce, 5_000, until) for offset, nonce, until in rows]
            extended = await self.store.leases.extend(self.unit, 1, 0, asked, **how)  # type: ignore[arg-type]
            assert all(bool(one.time_ms) == (one.status == "ok") for one in extended)
            return [one.status for one in extended]
        if verb == "release":
            return [one.status for one in await self.store.leases.release(self.unit, 1, 0, rows, **how)]  # type: ignore[arg-type]
        return [one.status for one in await self.store.leases.kill(self.unit, 1, 0, rows, move_ms=1000, **how)]  # type: ignore[arg-type]


async def superseded(case: Case) -> Row:
    handle = await case.lease()
    case.now += LEASE_MS
    await case.lease()
    return handle


async def released(case: Case) -> Row:
    handle = await case.lease()
    assert await case.words("release", handle) == ["ok"]
    return handle


async def unread(case: Case) -> Row:
    """The worker has given it back: no answer carried it."""
    handle = await case.lease()
    assert await case.store.leases.give_back(case.unit, 1, 0, [(*handle[:2], NOW)], rest_ms=1, now_ms=case.now) == [
        "ok"
    ]
    return handle


async def forgotten(case: Case) -> Row:
    """Redis was rebuilt from a journal that lacks the delivery, and what is stored is not loaded
    yet.
    """
    case.unit = Unit(secrets.token_hex(6), 0)
    await case.store.upkeep.open(case.unit, 1, [(0, 0)])
    return (0, 7, 0)


async def forgotten_and_loaded(case: Case) -> Row:
    return (0, 7, 0)


async def earlier(case: Case) -> Row:
    """Redis was rebuilt from a journal that has an earlier delivery."""
    case.unit = Unit(secrets.token_hex(6), 0)
    epoch = (await case.store.upkeep.own(case.unit, "w", lease_ms=10_000, now_ms=NOW)).number
    deliveries = [OpenDelivery(0, 3, 1, NOW, 0, NOW + 1)]
    await case.store.upkeep.restore(case.unit, epoch, 0, cursor=0, settled=[], deliveries=deliveries, now_ms=NOW)
    await case.store.upkeep.open(case.unit, 1, [(0, 0)], epoch=epoch, seq=5)
    return (0, 7, 0)


async def acked(case: Case) -> Row:
    handle = await case.lease()
    assert await case.words("ack", handle) == ["ok"]
    return handle


async def acked_ahead(case: Case) -> Row:
    """It was taken before the one that it follows, so it is beyond the cursor."""
    early = LoadEntry(5, pack_body(NOW, NOW, None, b"x"), "1")
    await case.store.leases.load(case.unit, 1, [0], [early], now_ms=NOW)
    picked = await case.store.leases.pick(
        case.unit,
        1,
        0,
        [5],
        lease_ms=LEASE_MS,
        queue_lease_ms=1,
        max_receive_count=0,
        retention_ms=RETENTION_MS,
        move_ms=1,
        now_ms=NOW,
    )
    nonce = picked.nonce
    assert await case.words("ack", (5, nonce, 0)) == ["ok"]
    return (5, nonce, 0)


async def dead(case: Case) -> Row:
    handle = await case.lease()
    (killed,) = await case.store.leases.kill(case.unit, 1, 0, [handle], move_ms=1000, now_ms=case.now)
    assert await case.store.leases.settle(case.unit, 1, 0, "dead", [(0, killed.dying.nonce)], now_ms=case.now) == ["ok"]
    return handle


async def purged(case: Case) -> Row:
    handle = await case.lease()
    await case.store.deferred.purge(case.unit, 1, [0], 1, now_ms=case.now)
    return handle


async def too_old(case: Case) -> Row:
    handle = await case.lease()
    case.now += LEASE_MS
    assert (await case.receive(retention_ms=LEASE_MS)).leased == []
    return handle


async def expired(case: Case) -> Row:
    handle = await case.lease()
    case.now += LEASE_MS
    case.late = False
    return handle


async def claimed(case: Case) -> Row:
    handle = await case.lease()
    case.now += LEASE_MS
    assert (await case.store.leases.claim(case.unit, 1, 0, [(0, b"", "")], claim_ms=1000, now_ms=case.now)).words == [
        ("ok", 0)
    ]
    return handle


async def killed(case: Case) -> Row:
    handle = await case.lease()
    assert await case.words("kill", handle) == ["ok"]
    return handle


async def exhausted(case: Case) -> Row:
    handle = await case.lease()
    case.now += LEASE_MS
    assert [one.offset for one in (await case.receive(dies=1)).dying] == [0]
    return handle


async def parked(case: Case) -> Row:
    case.unit = Unit(secrets.token_hex(6), 0)
    await case.open(fifo=True)
    handle = await case.lease()
    case.now += LEASE_MS
    assert list((await case.receive(parks=1)).parked) == [0]
    return handle


async def used(case: Case) -> Row:
    offset, nonce, _ = await case.lease()
    handle = (offset, nonce, NOW + LEASE_MS)
    assert await case.words("extend", handle) == ["ok"]
    return handle


CASES: dict[Callable[[Case], Awaitable[Row]], StaleReason] = {
    superseded: StaleReason.SUPERSEDED,
    released: StaleReason.RELEASED,
    unread: StaleReason.RELEASED,
    forgotten: StaleReason.RELEASED,
    forgotten_and_loaded: StaleReason.RELEASED,
    earlier: StaleReason.RELEASED,
    acked: StaleReason.SETTLED,
    acked_ahead: StaleReason.SETTLED,
    dead: StaleReason.SETTLED,
    purged: StaleReason.SETTLED,
    too_old: StaleReason.SETTLED,
    expired: StaleReason.EXPIRED,
    claimed: StaleReason.CLAIMED,
    killed: StaleReason.DYING,
    exhausted: StaleReason.DYING,
    parked: StaleReason.PARKED,
    used: StaleReason.USED,
}


def test_each_reason_that_a_script_gives_has_a_case() -> None:
    assert set(CASES.values()) == set(StaleReason) - UNCALLED


@pytest.mark.parametrize("verb", ["ack", "extend", "release", "kill"])
@pytest.mark.parametrize("prepare", CASES, ids=[prepare.__name__ for prepare in CASES])
async def test_a_handle_is_refused_with_the_reason(
    store: Store, prepare: Callable[[Case], Awaitable[Row]], verb: str
) -> None:
    case = Case(store)
    await case.open()
    handle = await prepare(case)
    before = await store.upkeep.dump(case.unit, 1, [0])

    assert await case.words(verb, handle) == [CASES[prepare].value]
    assert await store.upkeep.dump(case.unit, 1, [0]) == before, "nothing was changed or journaled"


@pytest.mark.parametrize("verb", ["ack", "release", "kill"])
async def test_of_two_handles_of_a_message_the_first_counts(store: Store, verb: str) -> None:
    case = Case(store)
    await case.open()
    handle = await case.lease()

    words = await case.words(verb, handle, handle)
    assert words == ["ok", {"ack": "settled", "release": "released", "kill": "dying"}[verb]]
