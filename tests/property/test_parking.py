"""Random verbs on a FIFO unit whose groups are parked (real Redis): nobody receives anything of a
parked group, all others go on, each tag for itself, also after a loss of Redis; at the end each
message came in order.

The model is that of `test_fifo.py`, and counts deliveries. LEASEWAY_PROPERTY_SEED and
LEASEWAY_PROPERTY_RUNS choose the runs.
"""

from __future__ import annotations

from collections import Counter

from engine.journal.fold import UnitState
from engine.recovery.compare import compare
from engine.rules.fifo import group_digest
from schemas.vocabulary import MessageState
from state.replies import AtOnce, Prime
from state.store import Store
from tests.property.draining import drain_into
from tests.property.test_fifo import RETENTION, RUNS, SEED, STEPS, TAGS, Lease, Run, stores

__all__ = ["stores"]

GROUPS = "abcd"
# How often a message is received under each tag before it parks its group.
PARK = {0: 2, 1: 3}


class ParkingRun(Run):
    """A history in which groups are parked, unparked, and lost with Redis."""

    def __init__(self, store: Store, seed: int, *, roomy: bool) -> None:
        super().__init__(store, seed, roomy=roomy)
        self.counts: dict[int, Counter[int]] = {tag: Counter() for tag in TAGS}
        self.parked: dict[int, dict[str, int]] = {tag: {} for tag in TAGS}
        self.history = UnitState("q")
        self.epoch = 0

    async def open(self) -> None:
        self.epoch = (await self.store.upkeep.own(self.unit, "w", lease_ms=10**9, now_ms=self.now)).number
        await self.store.upkeep.open(self.unit, 1, [(tag, 0) for tag in TAGS], fifo=True)

    def free_of(self, tag: int, group: str) -> list[int]:
        if group in self.parked[tag]:
            return []
        free = super().free_of(tag, group)
        spent = next((place for place, o in enumerate(free) if self.counts[tag][o] >= PARK[tag]), len(free))
        return free[:spent]

    def spent_of(self, tag: int) -> dict[str, int]:
        """The first messages of groups that the next receive parks, if it comes to them."""
        firsts = {
            group: super(ParkingRun, self).free_of(tag, group)[:1] for group in GROUPS if group not in self.parked[tag]
        }
        return {group: first[0] for group, first in firsts.items() if first and self.counts[tag][first[0]] >= PARK[tag]}

    async def receive(self, tag: int | None = None, max: int | None = None) -> int:
        r = self.random
        tag = r.choice(TAGS) if tag is None else tag
        side = self.sides[tag]
        free, spent = {group: self.free_of(tag, group) for group in GROUPS}, self.spent_of(tag)
        count, lease = max or r.randint(1, 5), r.choice([400, 3_000])
        got = await self.store.leases.receive(
            self.unit, 1, tag, max=count, lease_ms=lease, queue_lease_ms=1, max_receive_count=0, retention_ms=RETENTION,
            move_ms=1,
            at_once=AtOnce(r.choice([0, 1]), PARK[tag]), now_ms=self.now,
        )  # fmt: skip
        by_group: dict[str, list[int]] = {}
        for leased in got.leased:
            by_group.setdefault(self.log[leased.offset].group, []).append(leased.offset)
            self.counts[tag][leased.offset] += 1
            assert leased.count == self.counts[tag][leased.offset]
        for group, offsets in by_group.items():
            assert offsets == free[group][: len(offsets)], f"group {group} leased {offsets}, it may lease {free[group]}"
        for offset in got.parked:
            group = self.log[offset].group
            assert spent[group] == offset, f"{offset} has parked group {group}, spent are {spent}"
            self.parked[tag][group] = offset
            side.leases.pop(offset, None)
        if self.roomy and not self.unloaded and len(got.leased) < count:
            assert len(got.parked) == len(spent), f"parked {got.parked} of {spent}"
            assert {group for group, some in free.items() if some} == by_group.keys()
        for leased in got.leased:
            side.held.pop(leased.offset, None)
            side.leases[leased.offset] = Lease(got.nonce, leased.deadline_ms)
        return len(got.leased)

    async def give_back(self, tag: int, offset: int) -> None:
        group = self.log[offset].group
        for o in self.sides[tag].leases:
            if o >= offset and self.log[o].group == group:
                self.counts[tag][o] -= 1
        await super().give_back(tag, offset)

    def is_busy(self, tag: int, offset: int) -> bool:
        side = self.sides[tag]
        return side.held.get(offset, 0) > self.now or (offset in side.leases and side.leases[offset].until > self.now)

    async def unpark(self, tag: int | None = None, group: str | None = None) -> None:
        tag, group = self.random.choice(TAGS) if tag is None else tag, group or self.random.choice(GROUPS)
        dies = self.random.random() < 0.3
        first = self.parked[tag].pop(group, None)
        behind = [o for o in self.open_of(tag, group)[1:] if self.counts[tag][o] and not self.is_busy(tag, o)]
        found = await self.store.deferred.unpark(
            self.unit, 1, tag, group_digest(group), move_ms=1_000 if dies else 0, now_ms=self.now
        )
        assert (found and found[1].offset) == first
        assert await self.store.deferred.unpark(self.unit, 1, tag, group_digest(group), now_ms=self.now) is None
        if found is None or first is None:
            return
        if dies:
            assert await self.store.leases.settle(
                self.unit, 1, tag, "dead", [(first, found[1].nonce)], now_ms=self.now
            ) == ["ok"]
            self.sides[tag].settled.add(first)
        side = self.sides[tag]
        for o in [first, *behind]:
            self.counts[tag][o] = 0
            side.held.pop(o, None)
            side.leases.pop(o, None)

    async def delete(self) -> None:
        """A parked message by its id."""
        parked = [offset for tag in TAGS for offset in self.parked[tag].values()]
        if not parked:
            return
        offset = self.random.choice(parked)
        busy = any(offset in side.leases and side.leases[offset].until > self.now for side in self.sides.values())
        word = await self.store.deferred.delete(self.unit, 1, TAGS, offset, now_ms=self.now)
        assert word == ("busy" if busy else "ok")
        if busy:
            return
        for tag, side in self.sides.items():
            side.settled.add(offset)
            side.leases.pop(offset, None)
            self.parked[tag] = {group: o for group, o in self.parked[tag].items() if o != offset}

    async def drain(self) -> None:
        await drain_into(self.history, self.store, self.unit, self.epoch)

    async def lose(self) -> None:
        """Redis loses the unit; it is rebuilt as `recovery` does it."""
        await self.drain()
        if self.random.random() < 0.5:
            self.history = UnitState.from_snapshot(self.history.snapshot(self.unit.incarnation, 0, self.now))
        await self.store.upkeep.forget([self.unit], TAGS)
        self.epoch = (await self.store.upkeep.own(self.unit, "w", lease_ms=10**9, now_ms=self.now)).number
        groups = {record.offset: group_digest(record.group) for record in self.log}
        starts = []
        for tag in TAGS:
            known = self.history.tag(tag)
            starts.append((tag, known.raise_floor(0)))
            await self.store.upkeep.restore(
                self.unit, self.epoch, tag, cursor=known.floor, settled=sorted(known.settled),
                deliveries=list(known.deliveries.values()),
                groups=groups, totals=known.totals(), now_ms=self.now,
            )  # fmt: skip
        seq = self.history.last_seq + 1_000_000
        await self.store.upkeep.open(self.unit, 1, starts, fifo=True, epoch=self.epoch, seq=seq)
        self.history.last_seq = seq
        rows = [self.entry(record) for record in self.log]
        await self.store.leases.load(
            self.unit, 1, TAGS, rows, scan=(0, len(self.log)), prime=Prime(0, 0), now_ms=self.now
        )
        self.unloaded = []
        await self.check()

    async def check(self) -> None:
        """Redis has what the model and the journal have."""
        await self.drain()
        for tag in TAGS:
            first: list[int] = []
            after = None
            while some := await self.store.deferred.parked(self.unit, 1, tag, max=2, after=after):
                first += [one.offset for one in some]
                after = (some[-1].until_ms, some[-1].offset)
                if self.roomy and not self.unloaded:
                    assert [one.held for one in some] == [
                        len(self.open_of(tag, self.log[one.offset].group)) - 1 for one in some
                    ]
            assert sorted(first) == sorted(self.parked[tag].values())
            assert {
                state.state for state in await self.store.leases.states(self.unit, 1, tag, first, now_ms=self.now)
            } <= {MessageState.PARKED}
        counts = await self.store.upkeep.info(self.unit, 1, TAGS, now_ms=self.now)
        dump = await self.store.upkeep.dump(self.unit, 1, TAGS)
        await self.drain()  # floors have risen
        for tag, told, here in zip(TAGS, counts, dump.tags, strict=True):
            assert told.parked == len(self.parked[tag])
            assert told.leased == sum(lease.until > self.now for lease in self.sides[tag].leases.values())
            assert compare(here, self.history.tag(tag), 0, 0, len(self.log)).found == []

    async def at_rest(self) -> None:
        self.now += 10**7
        for tag in TAGS:
            side = self.sides[tag]
            order: dict[str, list[int]] = {}
            dead: dict[str, list[int]] = {}
            expected = {group: self.open_of(tag, group) for group in GROUPS}
            await self.scan()
            while await self.receive(tag, 3) or self.parked[tag]:
                for group in list(self.parked[tag]):
                    before = set(side.settled)
                    await self.unpark(tag, group)
                    dead.setdefault(group, []).extend(side.settled - before)
                for offset, lease in sorted(side.leases.items()):
                    if lease.until > self.now:
                        order.setdefault(self.log[offset].group, []).append(offset)
                        assert (
                            await self.store.leases.ack(self.unit, 1, tag, [(offset, lease.nonce)], now_ms=self.now)
                        ).words == ["ok"]
                        side.settled.add(offset)
                        del side.leases[offset]
                await self.scan()
            for group in GROUPS:
                assert order.get(group, []) == [o for o in expected[group] if o not in dead.get(group, [])]
            info = (await self.store.upkeep.info(self.unit, 1, [tag], now_ms=self.now))[0]
            assert (info.ready, info.delayed, info.leased, info.parked) == (0, 0, 0, 0)


async def test_a_parked_group_waits_for_somebody_and_all_others_go_on(stores: list[Store]) -> None:
    parks = 0
    for number in range(RUNS):
        run = ParkingRun(stores[number % 3], SEED + number, roomy=number % 3 == 0)
        await run.open()
        steps = [
            "append",
            "scan",
            "receive",
            "receive",
            "receive",
            "receive",
            "settle",
            "settle",
            "wait",
            "unpark",
            "delete",
            "lose",
        ]
        trail = []
        try:
            for _ in range(STEPS):
                trail.append(run.random.choice(steps))
                await getattr(run, trail[-1])()
                parks += trail[-1] == "receive" and any(run.parked.values())
            await run.check()
            await run.at_rest()
        except AssertionError as error:
            raise AssertionError(f"seed {SEED + number}, after {trail[-8:]}: {error}") from error
        await run.store.upkeep.forget([run.unit], TAGS)
    assert parks > RUNS  # the histories are not about nothing
