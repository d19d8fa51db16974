"""Deferred messages: those with a far due time, which the window has passed. And what is done to
messages by their ids, or to parked groups.

Every method raises StateUnavailable and, where it says so, StateLost, Fenced or OutboxFull. Each
call is one atomic script on one unit. `now_ms` 0 = the time of the service (others: tests).
`loading` files and brings what a unit has deferred, `recovery` restores it, `browse` ends it or
changes it by its id. include/far.lua has the rules. Longer than 250 lines: a method per script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from state.keys import Unit, UnitKeys, wake_channel, wake_up
from state.redis.wire import Argument
from state.replies import Dying, Parked
from state.unit_caller import UnitCaller


class Mark(Struct, frozen=True, order=True):
    """Deferred messages of a tag are brought up to here: by due time, then by offset."""

    ms: int
    offset: int

    @classmethod
    def parse(cls, text: str) -> Mark:
        """Of `ms:offset`, as scripts and journal spell it."""
        ms, _, offset = text.partition(":")
        return cls(int(ms), int(offset))

    def __str__(self) -> str:
        return f"{self.ms}:{self.offset}"


class TagDeferred(Struct, frozen=True):
    """What a tag has deferred: its mark, the offset below which all was purged or is not its own,
    how many in all, and in each slot that begins soon.
    """

    mark: Mark
    bound: int
    total: int
    slots: dict[int, int]


class Deferred(Struct, frozen=True):
    """A unit's deferred messages at a time of the log; `pointers` are (due ms, offset) that
    the wheel does not have yet, in that order.
    """

    now_ms: int
    pointers: list[tuple[int, int]]
    tags: list[TagDeferred]


class Pointed(Struct, frozen=True):
    """A message that is to be brought: `packed` as in a LoadEntry, b"" = the tag does not want
    it.
    """

    offset: int
    due_ms: int
    packed: bytes
    group: bytes = b""


class Brought(Struct, frozen=True):
    """How many were brought, where the mark is now, whether the window takes no more, and when the
    first of what was brought is visible (ms), 0 = nothing was. `stale`: the mark was another,
    nothing was done.
    """

    count: int
    mark: Mark
    full: bool
    head_ms: int = 0
    stale: bool = False


class DeferredScripts:
    """The scripts of deferred messages as methods. Safe for any number of tasks of one loop."""

    def __init__(self, units: UnitCaller) -> None:
        self.units: Final = units

    async def deferred(
        self, unit: Unit, generation: int, tags: Sequence[int], *, ahead_ms: int, now_ms: int = 0
    ) -> Deferred:
        """What the unit has deferred; of slots those that begin up to `ahead_ms` from now. Raises
        StateLost.
        """
        keys = self.units.of(unit)
        names = (keys.meta, keys.far, keys.except_, keys.pointers)
        early_ms = self.units.clock.early_ms  # due times, and so the slots, are of the log's clock
        _, now, flat, rows = await self.units.scripts.run(
            "deferred", names, (generation, now_ms, ahead_ms - early_ms, *tags)
        )
        return Deferred(
            now - early_ms,
            [(flat[i + 1], flat[i]) for i in range(0, len(flat), 2)],
            [_tag_deferred(*row) for row in rows],
        )

    async def file(self, unit: Unit, epoch: int, offsets: Sequence[int]) -> None:
        """Forgets pointers that the wheel has. Raises Fenced."""
        keys = self.units.of(unit)
        await self.units.scripts.run("file", (keys.meta, keys.far, keys.except_, keys.pointers), (epoch, *offsets))

    async def bring(
        self,
        unit: Unit,
        generation: int,
        epoch: int,
        tag: int,
        found: Mark,
        to: Mark,
        messages: Sequence[Pointed],
        *,
        now_ms: int = 0,
    ) -> Brought:
        """Takes deferred messages into a tag's window, in the order of their due times and offsets:
        all that there are between the mark as it was `found` and `to`.

        Raises StateLost, Fenced, OutboxFull.
        """
        keys, w = self.units.of(unit), self.units.window
        t = keys.tag(tag)
        names = (keys.meta, keys.body, keys.refs, keys.outbox, keys.far, keys.except_, keys.pointers,
                 t.visible, t.ahead, t.delayed, t.delivery, t.order, t.groups)  # fmt: skip
        channel = "" if self.units.alone else wake_channel(self.units.prefix, unit.incarnation)
        payload = "" if self.units.alone else wake_up(unit.partition, self.units.name)
        arguments: list[Argument] = [
            generation, epoch, now_ms, channel, payload, w.messages, w.bytes, w.max_open, tag, str(found), to.ms,
            to.offset, self.units.clock.early_ms,
        ]  # fmt: skip
        for one in messages:
            arguments += (one.offset, one.due_ms, one.packed, one.group)
        reply = await self.units.scripts.run("bring", names, arguments)
        if reply[0] == b"STALE":
            return Brought(0, found, False, stale=True)
        return Brought(reply[1], Mark.parse(reply[2].decode()), bool(reply[3]), reply[4])

    async def passed(
        self, unit: Unit, generation: int, tag: int, below: int, *, max: int, only_due: bool = False, now_ms: int = 0
    ) -> list[int]:
        """The lowest offsets below a floor whose messages are open: they were deferred, and then
        brought or rescheduled. Holds Redis up for about 0.1 us per open message. Raises StateLost.
        """
        keys = self.units.of(unit)
        names = (keys.meta, keys.tag(tag).visible, keys.except_)
        return list(
            (await self.units.scripts.run("passed", names, (generation, now_ms, tag, below, int(only_due), max)))[1]
        )

    async def redefer(
        self,
        unit: Unit,
        epoch: int,
        tag: int,
        *,
        mark: Mark,
        bound: int,
        slots: Mapping[int, int],
        excepted: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Writes what a rebuild knows of a tag's deferred messages; `excepted` are (offset, slot),
        1,000 at most, `slots` of the first call only. Raises Fenced.
        """
        keys = self.units.of(unit)
        arguments: list[Argument] = [epoch, tag, str(mark), bound, len(slots)]
        for pair in (*slots.items(), *excepted):
            arguments += pair
        await self.units.scripts.run("redefer", (keys.meta, keys.far, keys.except_, keys.pointers), arguments)

    def _message(self, keys: UnitKeys, tags: Sequence[int]) -> list[str]:
        names = [keys.meta, keys.body, keys.refs, keys.outbox, keys.far, keys.except_, keys.pointers]
        for tag in tags:
            names += keys.tag(tag).all()
        return names

    async def purge(self, unit: Unit, generation: int, tags: Sequence[int], below: int, *, now_ms: int = 0) -> int:
        """Settles all below offset `below` under `tags`; returns how many were open in the window.
        Raises StateLost.
        """
        keys = self.units.of(unit)
        names = self._message(keys, tags)
        names[4:4] = (keys.dedup, keys.pending)
        reply = await self.units.scripts.run("purge", names, (generation, now_ms, below, *tags))
        return int(reply[1])

    async def delete(
        self,
        unit: Unit,
        generation: int,
        tags: Sequence[int],
        offset: int,
        dues: Sequence[int] = (),
        *,
        wanted: str = "",
        now_ms: int = 0,
    ) -> str:
        """Settles one message under all tags: ok, busy (leased under one; nothing changed) or
        settled. With `wanted`, a digit per tag, 1 = it wants the message: received (under one, or
        settled there; nothing changed) too. `dues` as of `cancel`, () = it is not far. Raises
        StateLost.
        """
        keys, channel = self.units.of(unit), wake_channel(self.units.prefix, unit.incarnation)
        arguments: list[Argument] = [generation, now_ms, channel, unit.partition, offset, wanted]
        for pair in zip(tags, dues or [0] * len(tags), strict=True):
            arguments += pair
        reply = await self.units.scripts.run("delete", self._message(keys, tags), arguments)
        return reply[0].decode().lower()  # type: ignore[no-any-return]

    async def cancel(
        self,
        unit: Unit,
        generation: int,
        tags: Sequence[int],
        offset: int,
        due_ms: int,
        dues: Sequence[int],
        *,
        now_ms: int = 0,
    ) -> tuple[str, int]:
        """Settles one delayed message under all tags: (ok, due (nothing changed) or settled; seq of
        its journal entry, 0 = none).

        `due_ms` is when it was due as it was sent, `dues` the same for each tag if it is far and
        the tag wants it, else 0. Raises StateLost, OutboxFull.
        """
        keys, channel = self.units.of(unit), wake_channel(self.units.prefix, unit.incarnation)
        arguments: list[Argument] = [generation, now_ms, channel, unit.partition, offset, due_ms]
        for pair in zip(tags, dues, strict=True):
            arguments += pair
        word, seq = await self.units.scripts.run("cancel", self._message(keys, tags), arguments)
        return word.decode().lower(), seq

    async def reschedule(
        self,
        unit: Unit,
        generation: int,
        tags: Sequence[int],
        offset: int,
        due_ms: int,
        dues: Sequence[int],
        *,
        time_ms: int,
        group: bytes = b"",
        now_ms: int = 0,
    ) -> tuple[str, int]:
        """Gives one delayed message another due time under all tags: (ok, due, stored or settled;
        seq as of `cancel`). Raises StateLost, OutboxFull.
        """
        keys, channel = self.units.of(unit), wake_channel(self.units.prefix, unit.incarnation)
        arguments: list[Argument] = [
            generation,
            now_ms,
            channel,
            unit.partition,
            offset,
            due_ms,
            time_ms + self.units.clock.early_ms,
            group,
        ]
        for pair in zip(tags, dues, strict=True):
            arguments += pair
        word, seq = await self.units.scripts.run("reschedule", self._message(keys, tags), arguments)
        return word.decode().lower(), seq

    async def parked(
        self, unit: Unit, generation: int, tag: int, *, max: int, after: tuple[int, int] | None = None
    ) -> list[Parked]:
        """The parked groups of a tag, by when the retention of their first messages ends, behind
        the one whose (until ms, offset) is `after`. Changes nothing. Raises StateLost.
        """
        keys = self.units.of(unit)
        t = keys.tag(tag)
        after_ms, after_offset = after or (-1, -1)
        names = (keys.meta, t.visible, t.delivery, t.order, t.groups)
        _, out = await self.units.scripts.run("parked", names, (generation, tag, max, after_ms, after_offset))
        return [Parked(*out[i : i + 5]) for i in range(0, len(out), 5)]

    async def unpark(
        self, unit: Unit, generation: int, tag: int, group: bytes, *, move_ms: int = 0, now_ms: int = 0
    ) -> tuple[int, Dying] | None:
        """Resumes a parked group: (seq of the journal entry, its first message). None = it is not
        parked. With `move_ms` the message is dying, and the caller moves it. Raises StateLost,
        OutboxFull.
        """
        keys = self.units.of(unit)
        t = keys.tag(tag)
        names = (keys.meta, t.visible, t.delivery, keys.body, keys.outbox, t.order, t.groups)
        channel = wake_channel(self.units.prefix, unit.incarnation)
        word, seq, found = await self.units.scripts.run(
            "unpark", names, (generation, now_ms, tag, channel, unit.partition, group, move_ms)
        )
        if word == b"NONE":
            return None
        offset, count, first, nonce, body = found
        return seq, Dying(offset, count, first, nonce, 0, "killed", body)


def _tag_deferred(mark: bytes, bound: int, total: int, slots: list[Any]) -> TagDeferred:
    return TagDeferred(Mark.parse(mark.decode()), bound, total, dict(zip(slots[::2], slots[1::2], strict=True)))
