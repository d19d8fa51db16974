"""Random verbs of several clients on the scripts (real Redis) and on the model: after each step
both must agree.

Half of the runs have groups: noisy ones go behind the others, and what Redis counts of each group
is what the model counts.

LEASEWAY_PROPERTY_SEED and LEASEWAY_PROPERTY_RUNS choose the runs; a failure names its seed and
step.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from engine.rules.fifo import group_digest
from state.keys import Unit
from state.packed import pack_body
from state.redis.connection import Connection
from state.replies import LoadEntry, Window
from state.store import Store
from tests.property.model import Message, Model, Tag
from tests.totals import check_totals

RUNS = int(os.environ.get("LEASEWAY_PROPERTY_RUNS", "500"))
SEED = int(os.environ.get("LEASEWAY_PROPERTY_SEED", "20261121"))
STEPS = 40
GENERATION = 7
RETENTION = 30_000
QUEUE_LEASE = 3_000
# As in lua/include/fair.lua.
APART = 10**9


@pytest.fixture
async def store(stack: Any) -> AsyncIterator[Store]:
    connection = Connection(stack.redis_url)
    await connection.start()
    yield Store(connection, f"prop{secrets.token_hex(3)}", Window(10_000, 10_000_000))
    await connection.stop()


class Run:
    """One seeded history: a unit, its model, and the handles that clients hold (stale ones too)."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.random = random.Random(seed)
        self.unit = Unit(secrets.token_hex(6), self.random.randrange(64))
        starts = {0: 0} | {t: self.random.choice([0, 0, 5]) for t in range(1, self.random.choice([1, 2, 4]))}
        self.model = Model({number: Tag(start) for number, start in starts.items()})
        self.handles: list[tuple[int, int, int]] = []
        self.log: list[int] = []
        self.max_count = self.random.choice([0, 0, 1, 3])
        self.next_nonce = 0
        self.bare = self.random.random() < 0.5
        self.groups: list[str | None] = [None, "a", "a", "a", "b", "c"] if self.random.random() < 0.5 else [None]

    async def open(self) -> None:
        await self.store.upkeep.open(self.unit, GENERATION, [(n, t.start) for n, t in self.model.tags.items()])

    def entry(self, offset: int) -> LoadEntry:
        m = self.model.messages[offset]
        mask = "".join("1" if t in m.wanted else "0" for t in self.tags)
        group = group_digest(m.group) if m.group else b""
        body = b"" if m.bare else b"body-%d" % offset
        return LoadEntry(offset, pack_body(m.sent, m.due, m.lease, body), mask, group=group)

    def entries(self, offsets: list[int]) -> list[LoadEntry]:
        """Messages without bodies that follow each other and are alike are one entry."""
        found: list[LoadEntry] = []
        for entry in map(self.entry, offsets):
            last = found[-1] if found else None
            bare = self.model.messages[entry.offset].bare and not entry.group
            if (
                last
                and bare
                and last == replace(entry, offset=last.offset, count=last.count)
                and entry.offset == last.offset + last.count
            ):
                found[-1] = replace(last, count=last.count + 1)
            else:
                found.append(entry)
        return found

    @property
    def tags(self) -> list[int]:
        return list(self.model.tags)

    async def append_and_load(self) -> None:
        r, now = self.random, self.model.now
        new = []
        delays = r.choice([[0], [0, 0, 0, 500, 4_000, 90_000]])
        for _ in range(r.randint(1, 4)):
            offset = len(self.log)
            self.log.append(offset)
            delay = r.choice(delays)
            wanted = {t for t in self.tags if t == 0 or r.random() < 0.6}
            lease, bare = r.choice([(None, False), (None, self.bare), (1_000, False)])
            self.model.messages[offset] = Message(offset, now + delay, now, lease, wanted, r.choice(self.groups), bare)
            new.append(offset)
        if r.random() < 0.75:
            # Write-through: maybe a part, in any order, maybe twice.
            some = r.choice([new, r.sample(new, r.randint(1, len(new)))])
            await self.store.leases.load(self.unit, GENERATION, self.tags, self.entries(some), now_ms=now)
            self.model.load(self.tags, some)

    async def scan(self) -> None:
        """The loader: everything from a cursor on, in order."""
        now = self.model.now
        start = self.random.randrange(len(self.log) + 1)
        end = self.random.randint(start, len(self.log))
        entries = self.entries(list(range(start, end)))
        await self.store.leases.load(self.unit, GENERATION, self.tags, entries, scan=(start, end), now_ms=now)
        self.model.load(self.tags, list(range(start, end)))

    async def receive(self) -> None:
        r, model = self.random, self.model
        tag, count, lease = r.choice(self.tags), r.randint(1, 5), r.choice([None, 0, 700, 5_000])
        free, dying, expired = model.receivable(tag, self.max_count, RETENTION)
        noisy = model.noisy(tag)
        got = await self.store.leases.receive(
            self.unit, GENERATION, tag, max=count, lease_ms=lease, queue_lease_ms=QUEUE_LEASE,
            max_receive_count=self.max_count,
            retention_ms=RETENTION, move_ms=2_000, now_ms=model.now,
        )  # fmt: skip
        offsets = [m.offset for m in got.leased]
        assert len(set(offsets)) == len(offsets) and set(offsets) <= set(free)
        assert len(offsets) == min(count, len(free))
        groups, left = ([model.messages[o].group for o in some] for some in (offsets, set(free) - set(offsets)))
        if any(group is None or group not in {*model.in_flight(tag), *groups} for group in left):
            assert not noisy.intersection(groups), f"{groups} leased, {left} left, noisy {noisy}"
        assert {d.offset for d in got.dying} <= set(dying)
        for d in got.dying:
            m = model.tags[tag].open[d.offset]
            assert d.count == m.count and d.reason == ("killed" if m.flag == 1 else "exhausted")
            assert bool(d.again_ms) == (m.flag in (1, 2))
            m.flag, m.nonce, m.visible = m.flag or 2, d.nonce, model.now + 2_000
            if r.random() < 0.7:
                assert await self.store.leases.settle(
                    self.unit, GENERATION, tag, "dead", [(d.offset, d.nonce)], now_ms=model.now
                ) == ["ok"]
                del model.tags[tag].open[d.offset]
        for leased in got.leased:
            assert leased.deadline_ms == model.leased(tag, leased.offset, got.nonce, lease, QUEUE_LEASE)
            opened = model.tags[tag].open[leased.offset]
            assert (leased.count, leased.first_received_at_ms) == (opened.count, opened.first)
            assert not leased.packed or (
                leased.packed.endswith(b"body-%d" % leased.offset) and not model.messages[leased.offset].bare
            )
            self.handles.append((tag, leased.offset, got.nonce))
        self._drop_expired(tag, expired, await self._states(tag, expired))

    async def _states(self, tag: int, offsets: list[int]) -> list[str]:
        if not offsets:
            return []
        return [
            s.state for s in await self.store.leases.states(self.unit, GENERATION, tag, offsets, now_ms=self.model.now)
        ]

    def _drop_expired(self, tag: int, offsets: list[int], states: list[str]) -> None:
        for offset, state in zip(offsets, states, strict=True):
            if state == "settled":
                del self.model.tags[tag].open[offset]

    def some_handles(self) -> tuple[int, list[tuple[int, int]]]:
        tag = self.random.choice(self.tags)
        mine = [(o, n) for t, o, n in self.handles if t == tag]
        return tag, self.random.sample(mine, min(len(mine), self.random.randint(1, 3)))

    async def ack(self) -> None:
        tag, pairs = self.some_handles()
        late = self.random.random() < 0.5
        if pairs:
            expected = []
            for o, n in pairs:
                expected.append(self.model.held(tag, o, n, late))
                if expected[-1] == "ok":
                    del self.model.tags[tag].open[o]
            acked = await self.store.leases.ack(self.unit, GENERATION, tag, pairs, late=late, now_ms=self.model.now)
            assert acked.words == expected and (acked.seq > 0 or "ok" not in expected)
            # What was settled before names the last entry, which may be its own.
            assert acked.seq == 0 or {"ok", "settled"} & set(expected)

    async def extend(self) -> None:
        tag, pairs = self.some_handles()
        late, lease = self.random.random() < 0.5, self.random.choice([0, 900, 9_000])
        expected = []
        for o, n in dict(pairs).items():
            word = self.model.held(tag, o, n, late)
            expected.append((word, self.model.now + lease if word == "ok" else 0))
            if word == "ok":
                self.model.tags[tag].open[o].visible = self.model.now + lease
        if pairs:
            rows = [(o, n, lease) for o, n in dict(pairs).items()]
            got = await self.store.leases.extend(self.unit, GENERATION, tag, rows, late=late, now_ms=self.model.now)
            assert [(e.status, e.time_ms) for e in got] == expected

    async def release(self) -> None:
        tag, pairs = self.some_handles()
        late, delay = self.random.random() < 0.5, self.random.choice([0, 0, 1_500])
        expected = []
        for o, n in pairs:
            word = self.model.held(tag, o, n, late)
            expected.append(word)
            if word == "ok":
                m = self.model.tags[tag].open[o]
                m.nonce, m.visible = 0, self.model.now + delay
        if pairs:
            got = await self.store.leases.release(
                self.unit, GENERATION, tag, pairs, delay_ms=delay, late=late, now_ms=self.model.now
            )
            assert [e.status for e in got] == expected

    async def give_back(self) -> None:
        tag, pairs = self.some_handles()
        rows, expected = [], []
        for o, n in pairs:
            word = self.model.held(tag, o, n, True)
            expected.append(word)
            rows.append((o, n, self.random.choice([self.model.messages[o].due, 0])))
            if word == "ok":
                m = self.model.tags[tag].open[o]
                m.nonce, m.count = 0, m.count - 1
                m.first = m.first if m.count else 0
                m.visible = min(rows[-1][2], self.model.now) or self.model.now + 1_100
        if rows:
            told = ["ok" if word == "ok" else "stale" for word in expected]
            assert (
                await self.store.leases.give_back(
                    self.unit, GENERATION, tag, rows, rest_ms=1_100, now_ms=self.model.now
                )
                == told
            )

    async def kill(self) -> None:
        tag, pairs = self.some_handles()
        expected = [self.model.held(tag, o, n, True) for o, n in dict(pairs).items()]
        if pairs:
            got = await self.store.leases.kill(
                self.unit, GENERATION, tag, list(dict(pairs).items()), move_ms=2_000, now_ms=self.model.now
            )
            assert [k.status for k in got] == expected
            for k in got:
                if k.status == "ok":
                    m = self.model.tags[tag].open[k.dying.offset]
                    assert k.dying.count == m.count
                    m.flag, m.nonce, m.visible = 1, k.dying.nonce, self.model.now + 2_000

    async def delete(self) -> None:
        if not self.log:
            return
        offset = self.random.choice(self.log)
        opens = {t: tag.open[offset] for t, tag in self.model.tags.items() if offset in tag.open}
        beyond = [tag for tag in self.model.tags.values() if offset >= tag.start and offset not in tag.taken]
        busy = any(m.nonce and m.visible > self.model.now for m in opens.values())
        # Whether only what nobody has received may go: then what is settled under a tag stays under
        # the others.
        wants = [offset >= self.model.tags[tag].start for tag in self.tags] if self.random.random() < 0.5 else []
        ended = any(
            offset in self.model.tags[t].taken and t not in opens
            for t, wanted in zip(self.tags, wants, strict=False)
            if wanted
        )
        received = bool(wants) and (ended or any(m.count for m in opens.values()))
        digits = "".join("1" if wanted else "0" for wanted in wants)
        got = await self.store.deferred.delete(
            self.unit, GENERATION, self.tags, offset, wanted=digits, now_ms=self.model.now
        )
        assert got == ("busy" if busy else "settled" if not opens and not beyond else "received" if received else "ok")
        if got == "ok":
            for tag in self.model.tags.values():
                tag.open.pop(offset, None)
                tag.taken.add(offset)

    async def purge(self) -> None:
        if self.random.random() < 0.1:
            below = self.random.randrange(len(self.log) + 1)
            await self.store.deferred.purge(self.unit, GENERATION, self.tags, below, now_ms=self.model.now)
            for tag in self.model.tags.values():
                tag.taken.update(range(below))
                tag.open = {o: m for o, m in tag.open.items() if o >= below}

    async def wait(self) -> None:
        self.model.now += self.random.choice([1, 300, 2_000, 20_000])

    async def check(self) -> None:
        """Invariants: counts are exact, one state per message, floor below all that is open, bytes
        add up.
        """
        counts = await self.store.upkeep.info(self.unit, GENERATION, self.tags, now_ms=self.model.now)
        for tag, got in zip(self.tags, counts, strict=True):
            assert (got.ready, got.delayed, got.leased) == self.model.counts(tag), f"tag {tag}"
            await self.check_groups(tag)
            opened = self.model.tags[tag].open
            assert got.floor <= min(opened, default=got.cursor) or not opened
            unseen = [o for o in self.log if o >= self.model.tags[tag].start and o not in self.model.tags[tag].taken]
            assert got.cursor <= min(unseen, default=max(len(self.log), self.model.tags[tag].start)), (
                "the cursor passed a record that was not taken"
            )

    async def check_groups(self, tag: int) -> None:
        """What Redis counts of each group is what there is; what is set back is due."""
        keys = self.store.units.of(self.unit).tag(tag)
        rows = await self.store.units.scripts.ask("ZRANGE", keys.groups, 0, -1, "WITHSCORES")
        scores = {member: int(score) for member, score in zip(rows[::2], rows[1::2], strict=True)}
        total = scores.pop(b"total", 2 * APART)
        counts = {group_digest(group): count for group, count in self.model.in_flight(tag).items()}
        assert total - 2 * APART == sum(counts.values()), f"tag {tag}: {total} in flight, {counts}"
        assert {group: score % APART for group, score in scores.items() if score % APART} == counts
        back = await self.store.units.scripts.ask("ZRANGE", keys.order, 0, -1)
        assert {member[:8] for member in back} == {group for group, score in scores.items() if score < APART}
        due = {int.from_bytes(member[8:]) for member in back}
        rows = await self.store.units.scripts.ask("ZRANGEBYSCORE", keys.visible, "-inf", "(0")
        assert {int(row) for row in rows} == due <= set(self.model.due(tag))

    async def at_rest(self) -> None:
        """Everything loaded, everything acked: nothing is left but cursors."""
        now = self.model.now = self.model.now + 10**9
        await self.store.leases.load(
            self.unit, GENERATION, self.tags, [self.entry(o) for o in self.log], scan=(0, len(self.log)), now_ms=now
        )
        self.model.load(self.tags, self.log)
        for tag in self.tags:
            seen: set[int] = set()
            for _ in range(200):
                got = await self.store.leases.receive(
                    self.unit, GENERATION, tag, max=100, lease_ms=1, queue_lease_ms=1, max_receive_count=0,
                    retention_ms=10**12,
                    move_ms=1, now_ms=now,
                )  # fmt: skip
                if not got.leased:
                    break
                seen.update(m.offset for m in got.leased)
                await self.store.leases.ack(
                    self.unit, GENERATION, tag, [(m.offset, got.nonce) for m in got.leased], now_ms=now
                )
            assert seen == set(self.model.tags[tag].open), "a message was lost or came back"
            info = (await self.store.upkeep.info(self.unit, GENERATION, [tag], now_ms=now))[0]
            assert (info.ready, info.delayed, info.leased, info.floor) == (0, 0, 0, info.cursor)
        assert await self.store.upkeep.leftovers(self.unit) == (0, 0, 0), "bodies, holders or bytes are left"
        await check_totals(self.store, self.unit, GENERATION, self.tags, now)


async def test_scripts_and_model_agree_after_every_step(store: Store) -> None:
    verbs = (
        ["append_and_load"] * 4
        + ["receive"] * 5
        + ["ack"] * 4
        + ["scan", "extend", "release", "give_back", "kill", "delete", "purge", "wait", "wait"]
    )
    for number in range(RUNS):
        seed = SEED + number
        run = Run(store, seed)
        await run.open()
        for step in range(STEPS):
            verb = run.random.choice(verbs)
            try:
                await getattr(run, verb)()
                await run.check()
            except AssertionError as error:
                raise AssertionError(f"seed {seed} step {step} verb {verb}: {error}") from error
        try:
            await run.at_rest()
        except AssertionError as error:
            raise AssertionError(f"seed {seed} at rest: {error}") from error
        await store.upkeep.forget([run.unit], run.tags)
    print(f"property runs: {RUNS}, steps each: {STEPS}, first seed: {SEED}")
