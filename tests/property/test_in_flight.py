"""`max_in_flight` over the scripts, with histories at random: the messages of a tag that are leased
are counted here by what callers were told, and never exceed the number, in all partitions.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from engine.rules.fifo import group_digest
from state.errors import StateLost
from state.keys import Unit
from state.packed import pack_body
from state.redis.connection import Connection
from state.replies import AtOnce, LoadEntry, Received, Window
from state.store import Store
from tests.services import Services

SEED = int(os.environ.get("LEASEWAY_TEST_SEED", "1"))
RUNS = int(os.environ.get("LEASEWAY_TEST_RUNS", "12"))
STEPS = 120
PARTITIONS = 3
GENERATION, TAG = 1, 2


@pytest.fixture
async def store(stack: Services) -> AsyncIterator[Store]:
    connection = Connection(stack.redis_url)
    await connection.start()
    yield Store(connection, f"f{secrets.token_hex(3)}", Window(100, 1_000_000))
    await connection.stop()


@dataclass
class Open:
    """A message that is not settled: `held` says for whom it is invisible until `visible`."""

    visible: int
    held: str = ""
    nonce: int = 0


class Run:
    """One history of a tag with three partitions."""

    def __init__(self, store: Store, seed: int, kind: str) -> None:
        self.store = store
        self.random = random.Random(seed)
        self.kind = kind
        self.now = 1_000_000
        self.bound = self.random.randint(1, 6)
        incarnation = secrets.token_hex(6)
        self.units = [Unit(incarnation, p) for p in range(PARTITIONS)]
        self.next = [0] * PARTITIONS
        self.open: dict[tuple[int, int], Open] = {}

    async def begin(self) -> None:
        for unit in self.units:
            await self.store.upkeep.open(unit, GENERATION, [(TAG, 0)], fifo=self.kind == "fifo")

    def in_flight(self, *held: str) -> int:
        return sum(m.visible > self.now and m.held in held for m in self.open.values())

    def due(self, partition: int) -> list[int]:
        return sorted(offset for (p, offset), m in self.open.items() if p == partition and m.visible <= self.now)

    async def load(self) -> None:
        p, r = self.random.randrange(PARTITIONS), self.random
        for _ in range(r.randint(1, 5)):
            delay = 0 if self.kind == "fifo" else r.choice([0, 0, 0, 900])
            group = {"plain": "", "fair": r.choice(["", "a", "b"]), "fifo": r.choice("abc")}[self.kind]
            offset, digest = self.next[p], group_digest(group) if group else b""
            packed = pack_body(self.now, self.now + delay, None, r.choice([b"", b"body"]))
            entry = LoadEntry(offset, packed, "1", group=digest)
            await self.store.leases.load(
                self.units[p], GENERATION, [TAG], [entry], scan=(offset, offset + 1), now_ms=self.now
            )
            self.next[p] += 1
            self.open[p, offset] = Open(self.now + delay)

    async def receive(self) -> None:
        r, p, count = self.random, self.random.randrange(PARTITIONS), self.random.randint(1, 5)
        due, room = self.due(p), max(0, self.bound - self.in_flight("leased", "dying", "claimed"))
        terms = {
            "lease_ms": r.choice([None, 0, 500, 3_000]), "queue_lease_ms": 1_000, "max_receive_count": 0,
            "retention_ms": 10**12, "move_ms": 700, "at_once": AtOnce(0, 0, self.bound, PARTITIONS), "now_ms": self.now,
        }  # fmt: skip
        if self.kind != "fifo" and r.random() < 0.3:
            asked = r.sample(due, min(len(due), count))
            got = await self.store.leases.pick(self.units[p], GENERATION, TAG, asked, **terms)  # type: ignore[arg-type]
        else:
            asked = due
            got = await self.store.leases.receive(self.units[p], GENERATION, TAG, max=count, **terms)  # type: ignore[arg-type]
        again = sum(self.open[p, row.offset].held == "dying" for row in got.dying)
        assert not got.dying or again, "nothing dies by its count"
        self.take(p, got)
        if got.leased:
            assert self.in_flight("leased") <= self.bound, f"{self.in_flight('leased')} of {self.bound}"
        if self.kind != "fifo" and not got.dying:
            assert len(got.leased) == min(count, room, len(asked))
        if not room and due:
            assert got.leased == [] and got.head_ms is not None
            # When the oldest became visible. FIFO: a group of which one is leased has nothing due.
            assert got.full is (got.head_ms <= self.now)
            assert got.full or self.kind == "fifo"

    def take(self, p: int, got: Received) -> None:
        for one in got.leased:
            assert self.open[p, one.offset].visible <= self.now
            self.open[p, one.offset] = Open(one.deadline_ms, "leased", got.nonce)
        for row in got.dying:
            self.open[p, row.offset] = Open(self.now + 700, "dying", row.nonce)

    def some(self, held: str) -> tuple[int, dict[int, Open]]:
        """A partition, and messages there that are held."""
        p = self.random.randrange(PARTITIONS)
        found = {offset: m for (at, offset), m in self.open.items() if at == p and m.held == held}
        return p, dict(self.random.sample(sorted(found.items()), min(len(found), 2)))

    async def settle(self) -> None:
        held = self.random.choice(["leased", "dying", "claimed"])
        p, some = self.some(held)
        pairs = [(offset, m.nonce) for offset, m in some.items()]
        if not pairs:
            return
        if held == "leased":
            words = (await self.store.leases.ack(self.units[p], GENERATION, TAG, pairs, now_ms=self.now)).words
        else:
            words = await self.store.leases.settle(self.units[p], GENERATION, TAG, "moved", pairs, now_ms=self.now)
        assert words == ["ok"] * len(pairs)
        for offset in some:
            del self.open[p, offset]

    async def release(self) -> None:
        p, some = self.some("leased")
        delay = 0 if self.kind == "fifo" else self.random.choice([0, 800])
        pairs = [(offset, m.nonce) for offset, m in some.items()]
        got = await self.store.leases.release(self.units[p], GENERATION, TAG, pairs, delay_ms=delay, now_ms=self.now)
        assert [one.status for one in got] == ["ok"] * len(pairs)
        for offset in some:
            self.open[p, offset] = Open(self.now + delay)

    async def extend(self) -> None:
        p, some = self.some("leased")
        more = self.random.choice([0, 400, 2_000])
        # A lapsed lease may be had again by this: it needs no room, and is no receive.
        rows = [(offset, m.nonce, more) for offset, m in some.items() if m.visible > self.now]
        await self.store.leases.extend(self.units[p], GENERATION, TAG, rows, now_ms=self.now)
        for offset, *_ in rows:
            self.open[p, offset].visible = self.now + more

    async def give_back(self) -> None:
        p, some = self.some("leased")
        rows = [(offset, m.nonce, self.random.choice([0, self.now])) for offset, m in some.items()]
        await self.store.leases.give_back(self.units[p], GENERATION, TAG, rows, rest_ms=300, now_ms=self.now)
        for offset, _, due in rows:
            self.open[p, offset] = Open(self.now if due else self.now + 300)

    async def kill(self) -> None:
        p, some = self.some("leased")
        pairs = [(offset, m.nonce) for offset, m in some.items()]
        for got in await self.store.leases.kill(self.units[p], GENERATION, TAG, pairs, move_ms=700, now_ms=self.now):
            self.open[p, got.dying.offset] = Open(self.now + 700, "dying", got.dying.nonce)

    async def claim(self) -> None:
        """Of what is ready or delayed: a task holds what it is about to move."""
        p = self.random.randrange(PARTITIONS)
        free = [offset for (at, offset), m in self.open.items() if at == p and not m.held]
        if self.kind == "fifo" or not free:
            return
        offset = self.random.choice(free)
        claimed = await self.store.leases.claim(
            self.units[p], GENERATION, TAG, [(offset, b"", "")], claim_ms=1_200, now_ms=self.now
        )
        assert claimed.words == [("ok", 0)]
        self.open[p, offset] = Open(self.now + 1_200, "claimed", claimed.nonce)

    async def wait(self) -> None:
        self.now += self.random.choice([1, 200, 700, 4_000])

    async def change(self) -> None:
        self.bound = self.random.randint(1, 6)


VERBS = ["load"] * 5 + ["receive"] * 10 + ["settle"] * 3 + ["release", "extend", "give_back", "kill", "claim"]


@pytest.mark.parametrize("kind", ["plain", "fair", "fifo"])
async def test_never_are_more_leased_than_may_be(store: Store, kind: str) -> None:
    for seed in range(SEED, SEED + RUNS):
        run = Run(store, seed, kind)
        await run.begin()
        for step in range(STEPS):
            verb = run.random.choice([*VERBS, "wait", "wait", "change"])
            try:
                await getattr(run, verb)()
            except AssertionError as error:
                raise AssertionError(f"{kind} seed {seed} step {step} verb {verb}: {error}") from error


@pytest.mark.parametrize("key", ["meta", f"visible:{TAG}", f"delayed:{TAG}"])
async def test_nothing_is_leased_while_another_partition_has_lost_something(store: Store, key: str) -> None:
    run = Run(store, SEED, "plain")
    await run.begin()
    run.bound = 2
    for p in (0, 1):
        for offset, delay in ((0, 0), (1, 0), (2, 900)):
            packed = pack_body(run.now, run.now + delay, None, b"")
            entry = [LoadEntry(offset, packed, "1")]
            await store.leases.load(run.units[p], GENERATION, [TAG], entry, scan=(offset, offset + 1), now_ms=run.now)
    at_once = AtOnce(0, 0, 2, PARTITIONS)

    async def leased(p: int) -> int:
        got = await store.leases.receive(
            run.units[p], GENERATION, TAG, max=9, lease_ms=900, queue_lease_ms=1, max_receive_count=0,
            retention_ms=10**9, move_ms=1, at_once=at_once, now_ms=run.now,
        )  # fmt: skip
        return len(got.leased)

    assert (await leased(1), await leased(0)) == (2, 0)
    unit = run.units[1]
    await store.units.scripts.ask("DEL", f"{store.units.prefix}:{{{unit.incarnation}:{unit.partition}}}:{key}")
    for p in (0, 1):
        with pytest.raises(StateLost):
            await leased(p)
    # The one that has lost something serves nothing before it is rebuilt; the other one is whole.
    assert await store.upkeep.info(run.units[0], GENERATION, [TAG], now_ms=run.now)
    with pytest.raises(StateLost):
        await store.upkeep.info(run.units[1], GENERATION, [TAG], now_ms=run.now)
