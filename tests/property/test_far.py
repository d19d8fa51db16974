"""Random histories of far messages on the scripts (real Redis), with a wheel and a journal in
memory: each message is delivered once under each tag that wants it, never early, whatever is lost
in between.

LEASEWAY_PROPERTY_SEED and LEASEWAY_PROPERTY_RUNS choose the runs; a failure names its seed and
step.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from engine.journal.fold import UnitState
from engine.rules.fifo import group_digest
from schemas.vocabulary import FAR_DELAY_MS, SLOT_MS
from state.deferred import Mark, Pointed
from state.keys import Unit
from state.packed import pack_body
from state.redis.connection import Connection
from state.replies import LoadEntry, Window
from state.store import Store
from tests.property.draining import drain_into

RUNS = int(os.environ.get("LEASEWAY_PROPERTY_RUNS", "60"))
SEED = int(os.environ.get("LEASEWAY_PROPERTY_SEED", "20261124"))
STEPS = 40
GENERATION = 7
AHEAD_MS = 60_000
DELAYS = [0, 0, 100_000, FAR_DELAY_MS, 2 * SLOT_MS, 5 * SLOT_MS]
BEGIN = 1_000_000 * SLOT_MS - 1_800_000


@pytest.fixture
async def store(stack: Any) -> AsyncIterator[Store]:
    connection = Connection(stack.redis_url)
    await connection.start()
    yield Store(connection, f"far{secrets.token_hex(3)}", Window(10_000, 10_000_000))
    await connection.stop()


@dataclass
class Sent:
    """A message as its sender knows it. `ended` and `unsure` are tags: where it must not come (any
    more), and where it may, or may not.
    """

    offset: int
    sent: int
    due: int
    wanted: set[int]
    group: str | None
    natural: int
    ended: set[int] = field(default_factory=set)
    unsure: set[int] = field(default_factory=set)


class Run:
    """One seeded history of a unit with one to three tags, the last of them with a filter."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.random = random.Random(seed)
        self.unit = Unit(secrets.token_hex(6), 0)
        self.tags = list(range(self.random.choice([1, 2, 3])))
        self.starts = {tag: self.random.choice([0, 0, 3]) if tag else 0 for tag in self.tags}
        self.grouped = self.random.random() < 0.3
        self.now = BEGIN
        self.log: list[Sent] = []
        self.wheel: set[tuple[int, int]] = set()
        self.history = UnitState("q")
        self.epoch = 0
        # What changed since the journal had everything: (tag, offset).
        self.undrained: set[tuple[int, int]] = set()

    async def open(self) -> None:
        self.epoch = (await self.store.upkeep.own(self.unit, "w", lease_ms=10**9, now_ms=self.now)).number
        await self.store.upkeep.open(self.unit, GENERATION, list(self.starts.items()))

    def entry(self, m: Sent) -> LoadEntry:
        mask = "".join("1" if tag in m.wanted else "0" for tag in self.tags)
        group = group_digest(m.group) if m.group else b""
        return LoadEntry(m.offset, pack_body(m.sent, m.natural, None, b"body"), mask, group=group)

    async def append(self) -> None:
        r, new = self.random, []
        for _ in range(r.randint(1, 5)):
            wanted = {tag for tag in self.tags if tag == 0 or r.random() < 0.7}
            due = self.now + r.choice(DELAYS)
            offset = len(self.log)
            m = Sent(
                offset,
                self.now,
                due,
                {t for t in wanted if offset >= self.starts[t]},
                r.choice("ab") if self.grouped else None,
                due,
            )
            self.log.append(m)
            new.append(m)
        if r.random() < 0.7:
            some = r.sample(new, r.randint(1, len(new)))
            await self.store.leases.load(self.unit, GENERATION, self.tags, list(map(self.entry, some)), now_ms=self.now)

    async def scan(self, start: int | None = None) -> None:
        start = self.random.choice([0, len(self.log) // 2]) if start is None else start
        entries = [self.entry(m) for m in self.log[start:]]
        await self.store.leases.load(
            self.unit, GENERATION, self.tags, entries, epoch=self.epoch, scan=(start, len(self.log)), now_ms=self.now
        )

    async def file(self) -> None:
        pointers = (
            await self.store.deferred.deferred(self.unit, GENERATION, self.tags, ahead_ms=0, now_ms=self.now)
        ).pointers
        self.wheel.update(pointers)
        if pointers and self.random.random() < 0.7:
            await self.store.deferred.file(self.unit, self.epoch, [offset for _, offset in pointers])
        await self.store.upkeep.info(self.unit, GENERATION, self.tags, now_ms=self.now)  # floors rise

    async def turn(self, slice: int | None = None) -> bool:
        seen = await self.store.deferred.deferred(self.unit, GENERATION, self.tags, ahead_ms=AHEAD_MS, now_ms=self.now)
        if slice is None and self.random.random() < 0.3:
            await self.append()  # between the look and the script
        moved = False
        for tag, state in zip(self.tags, seen.tags, strict=True):
            if not state.slots:
                continue
            until = Mark(self.now + AHEAD_MS, 2**53)
            here = {Mark(*pointer) for pointer in self.wheel if pointer[0] // SLOT_MS in state.slots}
            due = sorted(p for p in here.union(Mark(*pointer) for pointer in seen.pointers) if state.mark < p <= until)
            some = due[: slice or self.random.randint(1, 6)]
            to = some[-1] if len(some) < len(due) else until
            messages = [self.pointed(tag, pointer) for pointer in some]
            for _ in range(self.random.choice([1, 1, 2])):
                done = await self.store.deferred.bring(
                    self.unit, GENERATION, self.epoch, tag, state.mark, to, messages, now_ms=self.now
                )
                moved = moved or bool(done.count)
        return moved

    def pointed(self, tag: int, pointer: Mark) -> Pointed:
        m = self.log[pointer.offset]
        entry = self.entry(m)
        # What is before the start of a tag, its filter would take.
        return Pointed(
            m.offset, pointer.ms, entry.packed if tag in m.wanted or m.offset < self.starts[tag] else b"", entry.group
        )

    async def receive(self) -> bool:
        got = False
        for tag in self.tags:
            received = await self.store.leases.receive(
                self.unit, GENERATION, tag, max=self.random.randint(1, 20), lease_ms=1_000, queue_lease_ms=1_000,
                max_receive_count=0, retention_ms=10**12, move_ms=1, now_ms=self.now,
            )  # fmt: skip
            for one in received.leased:
                m = self.log[one.offset]
                assert tag in m.wanted, f"tag {tag} was given {m}"
                assert tag not in m.ended or tag in m.unsure, f"tag {tag} was given again {m}"
                assert m.due <= self.now or tag in m.unsure, f"tag {tag} was given early at {self.now}: {m}"
                m.ended.add(tag)
                m.unsure.discard(tag)
                self.undrained.add((tag, one.offset))
                got = True
            pairs = [(one.offset, received.nonce) for one in received.leased]
            if pairs:
                assert set((await self.store.leases.ack(self.unit, GENERATION, tag, pairs, now_ms=self.now)).words) == {
                    "ok"
                }
        return got

    def dues(self, m: Sent) -> list[int]:
        far = m.natural - m.sent >= FAR_DELAY_MS
        return [m.natural if far and tag in m.wanted else 0 for tag in self.tags]

    async def end_one(self) -> None:
        """Deletes, cancels or reschedules one."""
        if not self.log:
            return
        m = self.random.choice(self.log)
        left = m.wanted - m.ended
        verb = self.random.choice(["delete", "cancel", "reschedule"])
        if verb == "delete":
            word = await self.store.deferred.delete(
                self.unit, GENERATION, self.tags, m.offset, self.dues(m), now_ms=self.now
            )
        elif verb == "cancel":
            word, _ = await self.store.deferred.cancel(
                self.unit, GENERATION, self.tags, m.offset, m.natural, self.dues(m), now_ms=self.now
            )
        else:
            due = self.now + self.random.choice([0, 1_000, 400_000, 3 * SLOT_MS])
            group = group_digest(m.group) if m.group else b""
            word, _ = await self.store.deferred.reschedule(
                self.unit,
                GENERATION,
                self.tags,
                m.offset,
                m.natural,
                self.dues(m),
                time_ms=due,
                group=group,
                now_ms=self.now,
            )
            if word == "ok":
                m.due = due
        if word != "ok":
            assert word in ("due", "settled", "stored") and (word != "settled" or not left - m.unsure), (
                f"{verb}: {word} {m}"
            )
            return
        assert verb == "delete" or m.due > self.now or verb == "reschedule" or m.unsure, f"cancelled though due: {m}"
        for tag in m.wanted:
            self.undrained.add((tag, m.offset))
        if verb != "reschedule":
            m.ended |= m.wanted

    async def purge(self) -> None:
        if self.random.random() > 0.1 or len(self.log) < max(self.starts.values()):
            return  # no tag begins behind the end of the log
        await self.store.deferred.purge(self.unit, GENERATION, self.tags, len(self.log), now_ms=self.now)
        for m in self.log:
            m.ended |= m.wanted
            m.unsure.clear()
            self.undrained.update((tag, m.offset) for tag in m.wanted)

    async def drain(self) -> None:
        await drain_into(self.history, self.store, self.unit, self.epoch)
        self.undrained.clear()

    async def lose(self) -> None:
        """Redis loses the unit, and what was not drained; it is rebuilt as `recovery` does it."""
        if self.random.random() < 0.7:
            await self.drain()
        for tag, offset in self.undrained:
            self.log[offset].unsure.add(tag)
        self.undrained.clear()
        if self.random.random() < 0.5:
            self.history = UnitState.from_snapshot(self.history.snapshot(self.unit.incarnation, 0, self.now))
        await self.store.upkeep.forget([self.unit], self.tags)
        self.epoch = (await self.store.upkeep.own(self.unit, "w", lease_ms=10**9, now_ms=self.now)).number
        starts = []
        for tag in self.tags:
            known = self.history.tag(tag)
            floor = known.raise_floor(self.starts[tag])
            await self.store.upkeep.restore(
                self.unit, self.epoch, tag, cursor=floor, settled=sorted(known.settled),
                deliveries=list(known.deliveries.values()),
                now_ms=self.now,
            )  # fmt: skip
            later = known.deferred
            await self.store.deferred.redefer(
                self.unit, self.epoch, tag, mark=Mark(*later.mark), bound=max(later.bound, self.starts[tag]),
                slots=later.slots,
                excepted=sorted(later.excepted),
            )  # fmt: skip
            starts.append((tag, floor))
        seq = self.history.last_seq + 1_000_000
        await self.store.upkeep.open(self.unit, GENERATION, starts, epoch=self.epoch, seq=seq)
        self.history.last_seq = seq

    async def pass_time(self) -> None:
        self.now += self.random.choice([10, 50_000, 400_000, SLOT_MS])

    async def check(self) -> None:
        """What the journal says of deferred messages is what Redis has."""
        await self.scan(0)
        await self.drain()
        dump = await self.store.upkeep.dump(self.unit, GENERATION, self.tags)
        for tag, here in zip(self.tags, dump.tags, strict=True):
            known = self.history.tag(tag).deferred
            counts = dict(known.slots)
            for due in known.waiting().values():
                counts[due // SLOT_MS] = counts.get(due // SLOT_MS, 0) + 1
            found, told = (
                (here.mark, here.slots, here.excepted),
                (f"{known.mark[0]}:{known.mark[1]}", counts, known.excepted),
            )
            assert found == told, f"tag {tag}: Redis {found}, journal {told}"
            (counted,) = await self.store.upkeep.info(self.unit, GENERATION, [tag], now_ms=self.now)
            assert counted.lowest == min((*here.open, counted.floor)), (tag, counted, here.open)

    async def end(self) -> None:
        self.now += 40 * SLOT_MS
        busy = True
        while busy:
            await self.scan(0)
            moved = await self.turn(10_000)
            got = await self.receive()
            busy = moved or got
        await self.check()
        missing = [(tag, m) for m in self.log for tag in m.wanted - m.ended - m.unsure]
        assert not missing, f"never delivered: {missing[:3]}"
        for tag, counts in zip(
            self.tags, await self.store.upkeep.info(self.unit, GENERATION, self.tags, now_ms=self.now), strict=True
        ):
            assert counts.deferred == 0, (tag, counts)


@pytest.mark.parametrize("seed", range(SEED, SEED + RUNS))
async def test_each_message_is_delivered_once_and_never_early(store: Store, seed: int) -> None:
    run = Run(store, seed)
    await run.open()
    steps: list[Callable[[], Awaitable[object]]] = (
        [run.append] * 4 + [run.scan, run.file, run.drain, run.lose, run.purge, run.check] + [run.turn] * 3
    )
    steps += [run.receive] * 3 + [run.end_one] * 3 + [run.pass_time] * 3
    step = 0
    try:
        for step in range(STEPS):  # noqa: B007  # the message names it
            await run.random.choice(steps)()
        await run.end()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, step {step}: {error}") from error
    finally:
        await store.upkeep.forget([run.unit], run.tags)
