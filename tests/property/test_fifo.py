"""Random verbs on a FIFO unit (real Redis): after each receive the order rules hold; at the end
each message came once, in order.

The model is a list of records per group, written the obvious way. LEASEWAY_PROPERTY_SEED and
LEASEWAY_PROPERTY_RUNS choose the runs.
"""

from __future__ import annotations

import itertools
import os
import random
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from engine.rules.fifo import group_digest
from schemas.vocabulary import DEDUP_WINDOW_MS
from state.keys import Unit
from state.packed import pack_body
from state.redis.connection import Connection
from state.replies import LoadEntry, Window
from state.store import Store

RUNS = int(os.environ.get("LEASEWAY_PROPERTY_RUNS", "60"))
SEED = int(os.environ.get("LEASEWAY_PROPERTY_SEED", "20261121"))
STEPS = 60
RETENTION = 10**12
TAGS = [0, 1]


@pytest.fixture
async def stores(stack: Any) -> AsyncIterator[list[Store]]:
    """One with room, one whose tags take five messages, so that they fall behind each other, and
    one that holds three bodies.
    """
    connection, prefix = Connection(stack.redis_url), f"fifo{secrets.token_hex(3)}"
    await connection.start()
    yield [
        Store(connection, prefix, w)
        for w in (Window(10_000, 10**7), Window(10_000, 10**7, max_open=5), Window(3, 10**7))
    ]
    await connection.stop()


@dataclass
class Record:
    offset: int
    group: str
    dedup: str
    at: int


@dataclass
class Lease:
    nonce: int
    until: int


@dataclass
class Side:
    """One tag: what a consumer of it was told."""

    leases: dict[int, Lease] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)
    settled: set[int] = field(default_factory=set)


class Run:
    """One seeded history of a unit with two tags."""

    def __init__(self, store: Store, seed: int, *, roomy: bool) -> None:
        self.store, self.random, self.roomy = store, random.Random(seed), roomy
        self.unit = Unit(secrets.token_hex(6), 0)
        self.log: list[Record] = []
        self.loaded = 0
        self.sides = {tag: Side() for tag in TAGS}
        self.now = 1_000_000
        self.unloaded: list[int] = []

    def entry(self, record: Record) -> LoadEntry:
        packed = pack_body(record.at, record.at, None, b"body-%d" % record.offset)
        return LoadEntry(record.offset, packed, "11", "", "", group_digest(record.group), record.dedup.encode())

    def originals(self) -> list[Record]:
        """The records that repeat none, by the rule of docs/decisions/0004."""
        first: dict[str, int] = {}
        kept = []
        for record in self.log:
            if record.dedup in first and record.at - first[record.dedup] <= DEDUP_WINDOW_MS:
                continue
            first[record.dedup] = record.at
            kept.append(record)
        return kept

    async def append(self) -> None:
        r = self.random
        for _ in range(r.randint(1, 4)):
            offset = len(self.log)
            again = self.log and r.random() < 0.3
            dedup = r.choice(self.log).dedup if again else f"id{offset}"
            self.log.append(Record(offset, r.choice("abcd"), dedup, self.now))
            self.unloaded.append(offset)
        if r.random() < 0.7:  # write-through, in any order, perhaps not all of it
            some = r.sample(self.unloaded, r.randint(1, len(self.unloaded)))
            for offset in some:
                await self.store.leases.load(self.unit, 1, TAGS, [self.entry(self.log[offset])], now_ms=self.now)

    async def scan(self) -> None:
        """The loader: from a place the unit has seen, to the end."""
        looks = [await self.store.leases.probe(self.unit, 1, tag, now_ms=self.now) for tag in TAGS]
        start = self.random.randint(0, min(look.cursor for look in looks))
        rows = [self.entry(record) for record in self.log[start:]]
        loaded = await self.store.leases.load(self.unit, 1, TAGS, rows, scan=(start, len(self.log)), now_ms=self.now)
        assert loaded.seen == len(self.log)
        assert all(full or cursor == len(self.log) for cursor, full in zip(loaded.cursors, loaded.full, strict=True))
        bodies, _, _ = await self.store.upkeep.leftovers(self.unit)
        assert bodies <= self.store.units.window.messages
        self.unloaded = []

    def open_of(self, tag: int, group: str) -> list[int]:
        return [r.offset for r in self.originals() if r.group == group and r.offset not in self.sides[tag].settled]

    def free_of(self, tag: int, group: str) -> list[int]:
        """What a group may lease: its first messages, up to the first that is leased or held."""
        side = self.sides[tag]
        busy = {o for o, lease in side.leases.items() if lease.until > self.now} | {
            o for o, until in side.held.items() if until > self.now
        }
        return list(itertools.takewhile(lambda o: o not in busy, self.open_of(tag, group)))

    async def receive(self, tag: int | None = None, max: int | None = None) -> int:
        r = self.random
        tag = r.choice(TAGS) if tag is None else tag
        side = self.sides[tag]
        free = {group: self.free_of(tag, group) for group in "abcd"}
        count, lease = max or r.randint(1, 5), r.choice([400, 3_000])
        got = await self.store.leases.receive(
            self.unit, 1, tag, max=count, lease_ms=lease, queue_lease_ms=1, max_receive_count=0, retention_ms=RETENTION,
            move_ms=1,
            now_ms=self.now,
        )  # fmt: skip
        by_group: dict[str, list[int]] = {}
        for leased in got.leased:
            by_group.setdefault(self.log[leased.offset].group, []).append(leased.offset)
        for group, offsets in by_group.items():
            assert offsets == free[group][: len(offsets)], f"group {group} leased {offsets}, it may lease {free[group]}"
        if self.roomy and not self.unloaded:
            assert len(got.leased) == min(count, sum(map(len, free.values()))), f"{by_group} leased of {free}"
        for leased in got.leased:
            side.held.pop(leased.offset, None)
            side.leases[leased.offset] = Lease(got.nonce, leased.deadline_ms)
        return len(got.leased)

    async def settle(self) -> None:
        """Ack, extend, release or kill one lease (perhaps an old one)."""
        r = self.random
        tag = r.choice(TAGS)
        side = self.sides[tag]
        if not side.leases:
            return
        offset, lease = r.choice(list(side.leases.items()))
        pair, verb = (offset, lease.nonce), r.choice(["ack", "ack", "ack", "extend", "release", "give_back", "kill"])
        if verb == "ack":
            assert (await self.store.leases.ack(self.unit, 1, tag, [pair], now_ms=self.now)).words == ["ok"]
            side.settled.add(offset)
        elif verb == "extend":
            more = r.choice([0, 900, 5_000])
            (extended,) = await self.store.leases.extend(self.unit, 1, tag, [(*pair, more)], now_ms=self.now)
            side.leases[offset] = Lease(lease.nonce, extended.time_ms)
            return
        elif verb == "give_back":
            await self.give_back(tag, offset)
            return
        elif verb == "release":
            delay = r.choice([0, 700])
            await self.store.leases.release(self.unit, 1, tag, [pair], delay_ms=delay, now_ms=self.now)
            side.held[offset] = self.now + delay
        else:
            (killed,) = await self.store.leases.kill(self.unit, 1, tag, [pair], move_ms=1_000, now_ms=self.now)
            assert await self.store.leases.settle(
                self.unit, 1, tag, "dead", [(offset, killed.dying.nonce)], now_ms=self.now
            ) == ["ok"]
            side.settled.add(offset)
        del side.leases[offset]

    async def give_back(self, tag: int, offset: int) -> None:
        """As a worker does: a message and what is leased behind it in its group."""
        side, group = self.sides[tag], self.log[offset].group
        rows, expected = [], []
        for o, lease in sorted(side.leases.items()):
            if o >= offset and self.log[o].group == group:
                due = self.random.choice([self.log[o].at, 0])
                rows.append((o, lease.nonce, due))
                expected.append("ok")
                side.held[o] = self.now + 900 if due == 0 else 0
        assert await self.store.leases.give_back(self.unit, 1, tag, rows, rest_ms=900, now_ms=self.now) == expected
        assert await self.store.leases.give_back(self.unit, 1, tag, rows, rest_ms=900, now_ms=self.now) == [
            "stale"
        ] * len(rows)
        for o, _, _ in rows:
            del side.leases[o]

    async def wait(self) -> None:
        self.now += self.random.choice([1, 500, 4_000, 200_000])

    async def at_rest(self) -> None:
        self.now += 10**7
        for tag in TAGS:
            order: dict[str, list[int]] = {}
            expected = {group: self.open_of(tag, group) for group in "abcd"}
            await self.scan()
            while await self.receive(tag, 3):
                side = self.sides[tag]
                current = sorted(
                    (o, lease) for o, lease in side.leases.items() if o not in side.settled and lease.until > self.now
                )
                for offset, lease in current:
                    order.setdefault(self.log[offset].group, []).append(offset)
                    assert (
                        await self.store.leases.ack(self.unit, 1, tag, [(offset, lease.nonce)], now_ms=self.now)
                    ).words == ["ok"]
                    side.settled.add(offset)
                    del side.leases[offset]
                await self.scan()
            assert {g: o for g, o in order.items() if o} == {g: o for g, o in expected.items() if o}
            info = (await self.store.upkeep.info(self.unit, 1, [tag], now_ms=self.now))[0]
            assert (info.ready, info.delayed, info.leased) == (0, 0, 0)


async def test_groups_keep_their_order_and_no_message_comes_twice(stores: list[Store]) -> None:
    for number in range(RUNS):
        run = Run(stores[number % 3], SEED + number, roomy=number % 3 == 0)
        await run.store.upkeep.open(run.unit, 1, [(tag, 0) for tag in TAGS], fifo=True)
        steps = ["append", "append", "scan", "receive", "receive", "receive", "settle", "settle", "wait"]
        trail = []
        try:
            for _ in range(STEPS):
                trail.append(run.random.choice(steps))
                await getattr(run, trail[-1])()
            await run.at_rest()
        except AssertionError as error:
            raise AssertionError(f"seed {SEED + number}, after {trail[-8:]}: {error}") from error
        await run.store.upkeep.forget([run.unit], TAGS)
