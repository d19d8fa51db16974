"""Random ids of deduplication, sent again and again, and a loss of the unit (real Redis): whatever
had been settled, each message that repeated none comes, in order, and of those that did repeat one
only such as nobody can know any more.

The model judges the whole log, the unit what is left to look at. LEASEWAY_PROPERTY_SEED and
LEASEWAY_PROPERTY_RUNS choose the runs.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from engine.rules.fifo import group_digest
from schemas.vocabulary import DEDUP_WINDOW_MS, LOG_TIME_MARGIN_MS
from state.keys import Unit
from state.packed import pack_body
from state.redis.connection import Connection
from state.replies import LoadEntry, Prime, Window
from state.store import Store

RUNS = int(os.environ.get("LEASEWAY_PROPERTY_RUNS", "60"))
SEED = int(os.environ.get("LEASEWAY_PROPERTY_SEED", "20261126"))
MINUTE_MS = 60_000
BACK_MS = 2 * DEDUP_WINDOW_MS + LOG_TIME_MARGIN_MS
LEASE_MS = 10**9
DAY_MS = 86_400_000


class Record(NamedTuple):
    offset: int
    dedup: str
    at: int


@pytest.fixture
async def store(stack: Any) -> AsyncIterator[Store]:
    connection = Connection(stack.redis_url)
    await connection.start()
    yield Store(connection, f"doubt{secrets.token_hex(3)}", Window(10_000, 10**7))
    await connection.stop()


def log_of(chance: random.Random) -> list[Record]:
    """Some ids with pauses, some without."""
    log: list[Record] = []
    at = DAY_MS
    for offset in range(chance.randint(20, 120)):
        at += chance.choice([0, 1_000, 20_000, MINUTE_MS, 2 * MINUTE_MS])
        log.append(Record(offset, chance.choice(["a", "b", "b", "c", f"id{offset}"]), at))
    return log


def originals_of(log: list[Record]) -> set[int]:
    """The offsets that repeat none, by the rule of docs/decisions/0004."""
    first: dict[str, int] = {}
    kept = set()
    for record in log:
        if record.dedup not in first or record.at - first[record.dedup] > DEDUP_WINDOW_MS:
            first[record.dedup] = record.at
            kept.add(record.offset)
    return kept


def in_doubt(log: list[Record], begin_ms: int, record: Record) -> bool:
    """Whether an id was met within five minutes after `begin_ms`, when the scan begins, and went on
    without a pause of five minutes.
    """
    times = [one.at for one in log[: record.offset + 1] if one.dedup == record.dedup and one.at >= begin_ms]
    return times[0] < begin_ms + DEDUP_WINDOW_MS and all(
        later - earlier <= DEDUP_WINDOW_MS for earlier, later in pairwise(times)
    )


def entry(record: Record) -> LoadEntry:
    packed = pack_body(record.at, record.at, None, b"body-%d" % record.offset)
    return LoadEntry(record.offset, packed, "1", "", "", group_digest("g"), record.dedup.encode())


class Unknown:
    """A unit that Redis has lost, of which everything before `start` was settled."""

    def __init__(self, store: Store, log: list[Record], start: int) -> None:
        self.store, self.log, self.start = store, log, start
        self.unit = Unit(secrets.token_hex(6), 0)
        self.now = log[-1].at
        self.begin_ms = log[start].at - BACK_MS
        self.begin = next(record.offset for record in log if record.at >= self.begin_ms)

    async def find_again(self, chance: random.Random) -> None:
        """As the loader does, in chunks."""
        await self.store.upkeep.open(self.unit, 1, [(0, self.start)], fifo=True)
        at = self.begin
        prime: Prime | None = Prime(self.begin_ms + DEDUP_WINDOW_MS, len(self.log))
        while at < len(self.log):
            end = min(len(self.log), at + chance.randint(1, 40))
            rows = [entry(record) for record in self.log[at:end]]
            loaded = await self.store.leases.load(self.unit, 1, [0], rows, scan=(at, end), prime=prime, now_ms=self.now)
            assert loaded.seen == end
            at, prime = end, None

    async def send(self, dedup: str, after_ms: int) -> int:
        """A message that is sent now: its offset, or that of the one it repeats."""
        self.now += after_ms
        record = Record(len(self.log), dedup, self.now)
        self.log.append(record)
        loaded = await self.store.leases.load(self.unit, 1, [0], [entry(record)], now_ms=self.now)
        return loaded.repeats.get(record.offset, record.offset)

    async def receive(self) -> list[int]:
        got = await self.store.leases.receive(
            self.unit, 1, 0, max=1_000, lease_ms=LEASE_MS, queue_lease_ms=1, max_receive_count=0, retention_ms=10**12,
            move_ms=1,
            now_ms=self.now,
        )  # fmt: skip
        return [leased.offset for leased in got.leased]


async def test_after_a_loss_what_repeated_none_comes_whatever_was_before(store: Store) -> None:
    again = 0
    for number in range(RUNS):
        chance = random.Random(SEED + number)
        log = log_of(chance)
        originals = originals_of(log)
        run = Unknown(store, log, chance.randrange(len(log)))
        await run.find_again(chance)
        came = await run.receive()
        due = {offset for offset in originals if offset >= run.start}
        assert came == sorted(came) and due <= set(came), f"seed {SEED + number}: {due - set(came)} did not come"
        for offset in set(came) - due:
            assert in_doubt(log, run.begin_ms, log[offset]), f"seed {SEED + number}: {offset} came and repeats one"
        again += len(set(came) - due)
        first = await run.send(log[-1].dedup, 0)
        assert await run.send(log[-1].dedup, 0) == first, "what is sent after the loss is known"
        sent = log[-2]
        if not in_doubt(log, run.begin_ms, sent):
            assert (first == sent.offset) == (sent.offset in originals_of(log))
        await store.upkeep.forget([run.unit], [0])
    assert again, "no id was ever in doubt: the log of this test is too short"


async def test_ids_that_had_a_pause_are_known_after_a_loss(store: Store) -> None:
    log = [Record(0, "x", DAY_MS), Record(1, "y", DAY_MS + 6 * MINUTE_MS), Record(2, "y", DAY_MS + 10 * MINUTE_MS)]
    log += [Record(3, "x", DAY_MS + 11 * MINUTE_MS), Record(4, "x", DAY_MS + 12 * MINUTE_MS)]
    run = Unknown(store, log, 3)
    await run.find_again(random.Random(1))
    assert await run.receive() == [3]


async def test_a_scan_that_began_before_the_order_was_unknown_passes_no_message(store: Store) -> None:
    """A tag that begins earlier is made while the loader reads on."""
    run = Unknown(store, [Record(n, f"id{n}", DAY_MS + n) for n in range(20)], 10)
    await store.upkeep.open(run.unit, 1, [(0, 10)], fifo=True)
    loaded = await store.leases.load(
        run.unit, 1, [0], [entry(one) for one in run.log[10:]], scan=(10, 20), now_ms=run.now
    )
    assert (loaded.cursors, loaded.seen) == ([10], -1)
    await run.find_again(random.Random(1))
    assert await run.receive() == [*range(10, 20)]


async def test_an_id_that_comes_again_and_again_does_not_keep_others_from_being_forgotten(store: Store) -> None:
    log = [Record(n, "again" if n % 5 else f"id{n}", DAY_MS + n * 10_000) for n in range(2_000)]
    run = Unknown(store, log, 0)
    run.begin_ms = -DEDUP_WINDOW_MS  # nothing is in doubt
    await run.find_again(random.Random(1))
    assert await store.units.scripts.ask("HLEN", store.units.of(run.unit).dedup) <= 31


async def test_an_id_in_doubt_does_not_keep_others_from_being_forgotten(store: Store) -> None:
    log = [Record(n, "doubt" if n % 4 == 0 else f"id{n}", DAY_MS + n * MINUTE_MS) for n in range(400)]
    run = Unknown(store, log, 20)
    await run.find_again(random.Random(1))
    assert await store.units.scripts.ask("HLEN", store.units.of(run.unit).dedup) < 12
