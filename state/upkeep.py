"""What keeps the state of units: who owns one, its outbox, how it opens, is rebuilt and closes.

Every method raises StateUnavailable (no Redis; the outcome is unknown) and, where it says so,
StateLost or Fenced. Each call is one atomic script on one unit, or one plain command. `now_ms` 0 =
the time of the service (others: tests). The loader, the recovery and the alarms of `engine` call
it. Longer than 250 lines: a method per script, so that
the contract test finds each by its name.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from schemas.records import OpenDelivery, Totals
from schemas.vocabulary import PARKED_MS
from state.keys import Unit, wake_channel, wake_up
from state.redis.calls import drain_call
from state.redis.wire import Argument
from state.replies import Dump, Entry, Owned, TagCounts, TagDump
from state.unit_caller import UnitCaller

# As lua/include/unit.lua packs it: nonce, receive count, first receive, flag, time.
_DELIVERY = struct.Struct(">QIQBQ")
_WORDS = msgspec.msgpack.Decoder(list[str])
# Of the meta hash: a tag's cursor, and the mark of one that is being closed.
_TAG_FIELDS = ("c", "x")
NO_TOTALS: Final = Totals()
# Units whose leases are asked for in one write.
GROUP = 128
# Offsets of a bitmap, as lua/include/far.lua.
EXCEPT_CHUNK = 1024


class UpkeepScripts:
    """The scripts of upkeep as methods. Safe for any number of tasks of one loop."""

    def __init__(self, units: UnitCaller) -> None:
        self.units: Final = units

    async def workers(self) -> int:
        """How many workers listen for wake-ups, this one included. Raises StateUnavailable."""
        _, listeners = await self.units.scripts.ask("PUBSUB", "NUMSUB", wake_channel(self.units.prefix, ""))
        return int(listeners)

    async def wake(self, incarnations: Iterable[str]) -> None:
        """Tells all who wait for these queues to look at every partition. Raises
        StateUnavailable.
        """
        for incarnation in incarnations:
            await self.units.scripts.ask(
                "PUBLISH", wake_channel(self.units.prefix, incarnation), wake_up(-1, self.units.name)
            )

    async def info(self, unit: Unit, generation: int, tags: Sequence[int], *, now_ms: int = 0) -> list[TagCounts]:
        """Exact counts of the window, cursor, floor, what was taken ahead of the cursor, and what
        was ever done, per tag. Raises StateLost.
        """
        keys = self.units.of(unit)
        names = [keys.meta, keys.outbox]
        for tag in tags:
            names += (keys.tag(tag).visible, keys.tag(tag).delayed, keys.tag(tag).delivery, keys.tag(tag).groups)
        _, out = await self.units.scripts.run("info", names, (generation, now_ms, *tags))
        return [TagCounts(*[*out[i : i + 12], Totals(*out[i + 12 : i + 19])]) for i in range(0, len(out), 19)]

    async def dump(self, unit: Unit, generation: int, tags: Sequence[int]) -> Dump:
        """One moment of a unit under `tags`. Holds Redis up for about 2 us per open message. Raises
        StateLost.
        """
        keys = self.units.of(unit)
        names = [keys.meta, keys.outbox, keys.far, keys.except_]
        for tag in tags:
            t = keys.tag(tag)
            names += (t.visible, t.delivery, t.ahead)
        _, seq, waiting, rows, far, excepted = await self.units.scripts.run("dump", names, (generation, *tags))
        slots, maps = _slots(far), _excepted(excepted)
        told = [(slots.get(tag, {}), maps.get(tag, set())) for tag in tags]
        return Dump(seq, waiting, [_tag_dump(row, *more) for row, more in zip(rows, told, strict=True)])

    async def own(self, unit: Unit, worker: str, *, lease_ms: int, now_ms: int = 0) -> Owned:
        """Takes or renews the loader's lease of a unit. Another's lease is over by the time of the
        service, or when this worker has seen it go without a renewal for the whole of it.
        """
        meta = self.units.of(unit).meta
        seen = self.units.sightings.over(meta)
        status, number, generation, beat, owner_ms = await self.units.scripts.run(
            "own", (meta,), (now_ms, worker, lease_ms, seen)
        )
        if status == b"OWNED":
            self.units.sightings.forget(meta)
        else:
            self.units.sightings.note(meta, beat.decode(), owner_ms)
        return Owned(status == b"OWNED", number, int(generation) if generation else None)

    async def own_each(self, units: Sequence[Unit], worker: str, *, lease_ms: int) -> AsyncIterator[tuple[Unit, Owned]]:
        """As `own` for each, in groups whose commands leave together: others get in between. Raises
        StateUnavailable; those before it are given by then.
        """
        for at in range(0, len(units), GROUP):
            some = units[at : at + GROUP]
            for unit, owned in zip(
                some, await asyncio.gather(*(self.own(u, worker, lease_ms=lease_ms) for u in some)), strict=True
            ):
                yield unit, owned

    async def seize(self, unit: Unit, worker: str, *, lease_ms: int, now_ms: int = 0) -> int:
        """Takes a unit out of service and its lease from whoever has it; the new epoch. What waits
        in the outbox stays there.
        """
        return int((await self.units.scripts.run("seize", (self.units.of(unit).meta,), (now_ms, worker, lease_ms)))[1])

    async def disown(self, unit: Unit, epoch: int) -> bool:
        """Gives the lease up; False when entries wait in the outbox. Raises Fenced."""
        keys = self.units.of(unit)
        reply = await self.units.scripts.run("disown", (keys.meta, keys.outbox), (epoch,))
        return bool(reply[0] == b"OK")

    async def drain(self, unit: Unit, epoch: int, *, done_seq: int, max: int) -> list[Entry]:
        """Drops entries up to `done_seq` (the journal has them) and returns the next ones. Raises
        Fenced.
        """
        _, packed = await self.units.scripts.run(
            "drain", *drain_call(self.units.of(unit), epoch=epoch, done_seq=done_seq, most=max)
        )
        return [_entry(data) for data in packed]

    async def open(
        self,
        unit: Unit,
        generation: int,
        starts: Sequence[tuple[int, int]],
        *,
        fifo: bool = False,
        serving: bool = False,
        again: bool = False,
        epoch: int = 0,
        seq: int = 0,
    ) -> None:
        """Makes a unit serve; `starts` = (tag, first offset). `serving`: only adds tags to one that
        serves; `again`: FIFO, its order is found again if these, which it has, lag behind that.

        Raises StateLost (other generation, or it does not serve), Fenced.
        """
        keys = self.units.of(unit)
        arguments: list[Argument] = [generation, epoch, seq, int(fifo), 2 if again else int(serving)]
        for start in starts:
            arguments += start
        await self.units.scripts.run("open", (keys.meta, keys.dedup, keys.ids), arguments)

    async def restore(
        self,
        unit: Unit,
        epoch: int,
        tag: int,
        *,
        cursor: int,
        settled: Sequence[int],
        deliveries: Sequence[OpenDelivery],
        groups: Mapping[int, bytes] = MappingProxyType({}),
        totals: Totals = NO_TOTALS,
        now_ms: int = 0,
    ) -> None:
        """Writes a slice (1,000 deliveries at most) of a rebuild of one tag, and its totals;
        `groups` by offset in FIFO units. Raises Fenced.
        """
        keys = self.units.of(unit)
        t = keys.tag(tag)
        arguments: list[Argument] = [
            epoch,
            now_ms,
            tag,
            cursor,
            " ".join(map(str, astuple(totals))),
            len(settled),
            *settled,
        ]
        for d in deliveries:
            arguments += (
                d.offset,
                d.nonce,
                d.count,
                d.first_received_at_ms,
                d.flag,
                d.time_ms,
                groups.get(d.offset, b""),
            )
        await self.units.scripts.run(
            "restore", (keys.meta, t.ahead, t.delivery, t.visible, t.delayed, t.order, t.groups), arguments
        )

    async def recall(self, unit: Unit, epoch: int, moves: Sequence[tuple[str, int]]) -> None:
        """Writes moves (key, offset of the first copy) that a rebuild knows of, 1,000 at most.
        Raises Fenced.
        """
        keys = self.units.of(unit)
        arguments: list[Argument] = [epoch]
        for move in moves:
            arguments += move
        await self.units.scripts.run("recall", (keys.meta, keys.origins), arguments)

    async def clear(self, unit: Unit, epoch: int, tags: Sequence[int]) -> None:
        """Empties a unit before a rebuild, of other tags that it knows too; its loader's lease
        stays. Raises Fenced.
        """
        keys = self.units.of(unit)
        names = keys.all() + [name for tag in {*tags, *await self.known_tags(unit)} for name in keys.tag(tag).all()]
        await self.units.scripts.run("clear", names, (epoch,))

    async def known_tags(self, unit: Unit) -> set[int]:
        """The tags of which a unit has something, also those that are not closed to their end."""
        fields = (
            name.decode().partition(":") for name in await self.units.scripts.ask("HKEYS", self.units.of(unit).meta)
        )
        return {int(tag) for kind, _, tag in fields if kind in _TAG_FIELDS}

    async def close(self, unit: Unit, tag: int) -> None:
        """Forgets a tag of a unit; what is cut off is known as one of `known_tags`, to be closed
        again.
        """
        keys = self.units.of(unit)
        t = keys.tag(tag)
        names = (keys.meta, t.visible, t.delivery, keys.body, keys.refs, t.ahead, t.delayed, t.order, t.groups,
                 keys.far, keys.except_, keys.pointers)  # fmt: skip
        while (await self.units.scripts.run("close", names, (tag, 1000)))[1]:
            pass

    async def last_seq(self, unit: Unit) -> int:
        """The seq of the unit's last journal entry, 0 = none."""
        return int(await self.units.scripts.ask("HGET", self.units.of(unit).meta, "seq") or 0)

    async def drained_seq(self, unit: Unit) -> tuple[int, int]:
        """(base, drained): the journal has the entries of this life of the state, which begins
        above `base`, up to `drained`; 0 = none.
        """
        base, drained = await self.units.scripts.ask("HMGET", self.units.of(unit).meta, "base", "drained")
        return int(base or 0), int(drained or 0)

    async def undrained(self, unit: Unit) -> int:
        """How many journal entries wait in the outbox."""
        return int(await self.units.scripts.ask("LLEN", self.units.of(unit).outbox))

    async def delayed(self, unit: Unit, tags: Sequence[int], now_ms: int) -> int:
        """How many messages of the tag with the most are delayed beyond a time. Raises
        StateUnavailable.
        """
        return await self._most("ZCOUNT", [self.units.of(unit).tag(tag).delayed for tag in tags], f"({now_ms}", "+inf")

    async def not_due(self, unit: Unit, tags: Sequence[int], now_ms: int) -> int:
        """How many open messages of the tag with the most are not due at a time: leased, delayed or
        released with a delay; not those of parked groups. Raises StateUnavailable.
        """
        return await self._most(
            "ZCOUNT", [self.units.of(unit).tag(tag).visible for tag in tags], f"({now_ms}", f"({PARKED_MS}"
        )

    async def parked_most(self, unit: Unit, tags: Sequence[int]) -> int:
        """How many groups of the tag with the most are parked. Raises StateUnavailable."""
        return await self._most("ZCOUNT", [self.units.of(unit).tag(tag).visible for tag in tags], PARKED_MS, "+inf")

    async def open_most(self, unit: Unit, tags: Sequence[int]) -> int:
        """How many messages of the tag with the most are open. Raises StateUnavailable."""
        return await self._most("ZCARD", [self.units.of(unit).tag(tag).visible for tag in tags])

    async def _most(self, command: str, names: Sequence[str], *bounds: Argument) -> int:
        """The greatest of what a command counts in each key."""
        return max(map(int, await asyncio.gather(*(self.units.scripts.ask(command, name, *bounds) for name in names))))

    async def dedup_firsts(self, unit: Unit, ids: Sequence[bytes]) -> tuple[int, list[int | None]]:
        """FIFO: (next offset in order or -1, offset of the message that has each id now). Raises
        StateUnavailable.
        """
        keys = self.units.of(unit)
        seen, packed = await asyncio.gather(
            self.units.scripts.ask("HGET", keys.meta, "seen"), self.units.scripts.ask("HMGET", keys.dedup, *ids)
        )
        return int(seen or -1), [struct.unpack_from(">QQ", p)[1] if p else None for p in packed]

    async def leftovers(self, unit: Unit) -> tuple[int, int, int]:
        """(bodies, shared bodies, bytes) that a unit holds: all 0 when nothing is open."""
        keys = self.units.of(unit)
        bodies, refs, size = await asyncio.gather(
            self.units.scripts.ask("HLEN", keys.body),
            self.units.scripts.ask("HLEN", keys.refs),
            self.units.scripts.ask("HGET", keys.meta, "bytes"),
        )
        return bodies, refs, int(size or 0)

    async def forget(self, units: Sequence[Unit], tags: Sequence[int]) -> None:
        """Drops every key of units whose queue is gone."""
        for unit in units:
            keys = self.units.of(unit)
            known = await self.known_tags(unit)
            self.units.forget(unit)
            await self.units.scripts.ask(
                "UNLINK", *keys.all(), *(name for tag in {*tags, *known} for name in keys.tag(tag).all())
            )


def _entry(data: bytes) -> Entry:
    seq, at_ms, kind, tag, offsets, times, reason = msgspec.msgpack.decode(data)
    return Entry(seq, at_ms, kind, tag, offsets, times or [], reason)


def _slots(far: list[bytes]) -> dict[int, dict[int, int]]:
    """How many are deferred, by tag and slot."""
    found: dict[int, dict[int, int]] = {}
    for i in range(0, len(far), 2):
        _, tag, slot = far[i].decode().split(":")
        found.setdefault(int(tag), {})[int(slot)] = int(far[i + 1])
    return found


def _excepted(maps: list[bytes]) -> dict[int, set[tuple[int, int]]]:
    """(offset, slot) of what is deferred no longer, by tag."""
    found: dict[int, set[tuple[int, int]]] = {}
    for i in range(0, len(maps), 2):
        tag, slot, chunk = map(int, maps[i].decode().split(":"))
        bits = int.from_bytes(maps[i + 1], "little")
        found.setdefault(tag, set()).update(
            (chunk * EXCEPT_CHUNK + n, slot) for n in range(bits.bit_length()) if bits >> n & 1
        )
    return found


def _tag_dump(row: list[Any], slots: dict[int, int], excepted: set[tuple[int, int]]) -> TagDump:
    cursor, floor, visible, deliveries, ahead, mark, totals = row
    scores = _WORDS.decode(visible)
    # A negative time: the message is set back (lua/include/fair.lua).
    open_at = {int(scores[i]): _time(abs(int(float(scores[i + 1])))) for i in range(0, len(scores), 2)}
    leased = {}
    for i in range(0, len(deliveries), 2):
        # Behind it is the message's group. What has a group has an entry before it is leased, too:
        # that is none of a delivery.
        delivery = OpenDelivery(int(deliveries[i]), *_DELIVERY.unpack_from(deliveries[i + 1]))
        if delivery.nonce or delivery.count or delivery.flag:
            leased[delivery.offset] = msgspec.structs.replace(delivery, time_ms=_time(delivery.time_ms))
    taken = set(map(int, _WORDS.decode(ahead)))
    return TagDump(cursor, floor, open_at, leased, taken, mark.decode(), slots, excepted, Totals(*totals))


def _time(ms: int) -> int:
    """The time that the journal has of a message; Redis has another one of what is parked."""
    return ms - PARKED_MS if ms >= PARKED_MS else ms
