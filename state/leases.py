"""Loads, leases and moves of messages: one method per script, replies as frozen structs.

Every method raises StateUnavailable (no Redis; the outcome is unknown) and, where it says so,
StateLost, Fenced or OutboxFull. Each call is one atomic script on one unit; any number of tasks and
workers may call at once. `now_ms` 0 = the time of the service (others: tests).
Longer than 250 lines: a method per script, so that the contract test finds each by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Final

from state.errors import StateLost
from state.keys import Unit, wake_channel, wake_up
from state.redis.calls import ack_call, extend_call, give_back_call, load_call, probe_call, receive_call, release_call
from state.redis.wire import Argument
from state.replies import (
    ANY_NUMBER,
    Acked,
    AtOnce,
    Claimed,
    Dying,
    Extended,
    Killed,
    Loaded,
    LoadEntry,
    Next,
    Prime,
    Probed,
    Received,
    State,
    received_of,
)
from state.unit_caller import FIFO, UnitCaller

_ALL_STANDARD: Mapping[int, bytes] = MappingProxyType({})
# So often a receive asks again, for a unit that is of another kind than the last one that it saw.
_KIND_CHANGES = 4


class LeaseScripts:
    """The scripts of loads, leases and moves as methods. Safe for any number of tasks of one
    loop.
    """

    def __init__(self, units: UnitCaller) -> None:
        self.units: Final = units

    async def load(
        self,
        unit: Unit,
        generation: int,
        tags: Sequence[int],
        entries: Sequence[LoadEntry],
        *,
        epoch: int = 0,
        scan: tuple[int, int] | None = None,
        prime: Prime | None = None,
        now_ms: int = 0,
    ) -> Loaded:
        """Takes records into the window of `tags`, each offset at most once per tag.

        `scan` (from, next) says that the entries are all there is in that range, so that cursors
        may pass holes; without it each entry is taken for itself: at the cursor, or early. FIFO:
        always all tags of the queue; with `prime` the order is found again, from the scan on.
        Raises StateLost, Fenced (`epoch` is over).
        """
        channel = "" if self.units.alone else wake_channel(self.units.prefix, unit.incarnation)
        early: Argument = self.units.clock.early_ms
        now: Argument = now_ms
        payload: Argument = "" if self.units.alone else wake_up(unit.partition, self.units.name)
        names, head = load_call(
            self.units.of(unit), self.units.window, generation, tags, epoch=epoch, now=now, channel=channel,
            payload=payload, scan=scan or (-1, -1), prime=(-1, 0) if prime is None else (prime[0], prime[1]),
            early=early,
        )  # fmt: skip
        arguments: list[Argument] = [*head]
        for e in entries:
            arguments += (e.offset, e.packed, e.mask, e.move_key, e.reason, e.group, e.dedup, e.count)
        _, cursors, full, taken, seen, repeats, head_ms = await self.units.scripts.run("load", names, arguments)
        return Loaded(
            cursors, [bool(f) for f in full], taken, seen, dict(zip(repeats[::2], repeats[1::2], strict=True)), head_ms
        )

    async def receive(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        *,
        max: int,
        lease_ms: int | None,
        queue_lease_ms: int,
        max_receive_count: int,
        retention_ms: int,
        move_ms: int,
        until_ms: int = 0,
        at_once: AtOnce = ANY_NUMBER,
        now_ms: int = 0,
    ) -> Received:
        """Leases up to `max` due messages, of a unit without groups those visible at `until_ms`
        already (0 = now), within `at_once`: one call counts what is in flight in all partitions and
        leases; at that bound the answer is `full`. Raises StateLost, of what is counted too.
        """
        keys = self.units.of(unit)
        names, arguments = receive_call(
            keys, self.units.window, generation, tag, now=now_ms, most=max, lease=-1 if lease_ms is None else lease_ms,
            queue_lease=queue_lease_ms, max_receive_count=max_receive_count,
            retention=self.units.keep_ms(retention_ms), move_ms=move_ms, max_in_flight=at_once.max_in_flight,
        )  # fmt: skip
        counted = self.units.counted(unit, tag, at_once.partitions) if at_once.max_in_flight else ()
        for _ in range(_KIND_CHANGES):
            kind = self.units.kinds.get(unit, _ALL_STANDARD).get(tag)
            if kind is None:
                reply = await self.units.scripts.run("receive", (*names, *counted), (*arguments, until_ms))
            else:
                t = keys.tag(tag)
                grouped = (*names, t.order, t.groups, *counted)
                if kind == FIFO:
                    groups = (at_once.per_group, at_once.park_count)
                    reply = await self.units.scripts.run("receive_fifo", grouped, (*arguments, *groups))
                else:
                    reply = await self.units.scripts.run("receive_fair", grouped, arguments)
            if reply[0] == b"OK":
                return received_of(reply[:10], reply[10]) if kind == FIFO else received_of(reply)
            # Only Redis knows of which kind a unit is: one becomes fair with its first group.
            self.units.note_kind(unit, tag, reply[0])
        raise StateLost("receive: the unit changes its kind at each look")

    async def pick(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        offsets: Sequence[int],
        *,
        lease_ms: int | None,
        queue_lease_ms: int,
        max_receive_count: int,
        retention_ms: int,
        move_ms: int,
        at_once: AtOnce = ANY_NUMBER,
        now_ms: int = 0,
    ) -> Received:
        """Leases those of the messages that are due, within `max_in_flight`; see
        pick.lua. Raises StateLost, ValueError for a FIFO unit.
        """
        keys = self.units.of(unit)
        names, arguments = receive_call(
            keys, self.units.window, generation, tag, now=now_ms, most=len(offsets),
            lease=-1 if lease_ms is None else lease_ms, queue_lease=queue_lease_ms,
            max_receive_count=max_receive_count, retention=self.units.keep_ms(retention_ms), move_ms=move_ms,
            max_in_flight=at_once.max_in_flight,
        )  # fmt: skip
        counted = self.units.counted(unit, tag, at_once.partitions) if at_once.max_in_flight else ()
        t = keys.tag(tag)
        reply = await self.units.scripts.run("pick", (*names, t.order, t.groups, *counted), (*arguments, *offsets))
        if reply[0] == FIFO:
            raise ValueError(f"pick: {unit} is a FIFO unit, whose groups have an order")
        return received_of(reply)

    async def probe(self, unit: Unit, generation: int, tag: int, *, times: int = 0, now_ms: int = 0) -> Probed:
        """When a receive would find something, and the first `times` times of what is visible.
        Changes nothing. Raises StateLost.
        """
        call = probe_call(self.units.of(unit), generation, tag, now=now_ms, times=times)
        _, now, head_ms, *rest = await self.units.scripts.run("probe", *call)
        return Probed(None if head_ms < 0 else max(head_ms - now, 0), None if head_ms < 0 else head_ms, *rest)

    async def peek_next(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        *,
        max: int,
        max_receive_count: int,
        retention_ms: int,
        per_group: int = 0,
        now_ms: int = 0,
    ) -> list[Next]:
        """The first messages that a receive would lease now. Changes nothing. Raises StateLost."""
        keys = self.units.of(unit)
        t = keys.tag(tag)
        names = (keys.meta, t.visible, t.delivery, keys.body, t.order, t.groups)
        _, out = await self.units.scripts.run(
            "peek_next",
            names,
            (generation, now_ms, tag, max, max_receive_count, self.units.keep_ms(retention_ms), per_group),
        )
        rows = (out[i : i + 5] for i in range(0, len(out), 5))
        return [Next(off, count, first, since, bool(later)) for off, count, first, since, later in rows]

    async def ack(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        pairs: Sequence[tuple[int, ...]],
        *,
        late: bool = True,
        now_ms: int = 0,
    ) -> Acked:
        """Settles (offset, nonce) pairs, or with the deadline that a handle names, 0 = any. `late`:
        a lapsed lease counts until redelivery. Raises StateLost.
        """
        width = len(pairs[0]) if pairs else 2
        names, head = ack_call(
            self.units.of(unit), self.units.prefix, unit, generation, tag, now=now_ms, late=late, width=width
        )
        _, words, seq = await self.units.scripts.run("ack", names, [*head, *chain.from_iterable(pairs)])
        return Acked([word.decode().lower() for word in words] or ["ok"] * len(pairs), seq)

    async def extend(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        entries: Sequence[tuple[int, ...]],
        *,
        late: bool = True,
        now_ms: int = 0,
    ) -> list[Extended]:
        """Moves the deadlines of (offset, nonce, lease ms), or of all with the deadline that each
        handle names, 0 = any. Raises StateLost.
        """
        width = len(entries[0]) if entries else 3
        names, head = extend_call(
            self.units.of(unit), self.units.prefix, unit, generation, tag, now=now_ms, late=late, width=width
        )
        _, out = await self.units.scripts.run("extend", names, [*head, *chain.from_iterable(entries)])
        return [Extended(out[i].decode().lower(), out[i + 1]) for i in range(0, len(out), 2)]

    async def release(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        pairs: Sequence[tuple[int, ...]],
        *,
        delay_ms: int = 0,
        late: bool = True,
        now_ms: int = 0,
    ) -> list[Extended]:
        """Gives back (offset, nonce) pairs, or as of `ack`, receivable after `delay_ms`. Raises
        StateLost.
        """
        of = self.units.of(unit), self.units.prefix, unit, generation, tag
        names, head = release_call(*of, now=now_ms, late=late, delay_ms=delay_ms, width=len(pairs[0]) if pairs else 2)
        _, out = await self.units.scripts.run("release", names, [*head, *chain.from_iterable(pairs)])
        return [Extended(out[i].decode().lower(), out[i + 1]) for i in range(0, len(out), 2)]

    async def give_back(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        rows: Sequence[tuple[int, int, int]],
        *,
        rest_ms: int,
        now_ms: int = 0,
    ) -> list[str]:
        """Uncounts deliveries (offset, nonce, due ms or 0 = its body could not be read) that nobody
        was given. Raises StateLost.
        """
        names, head = give_back_call(
            self.units.of(unit), self.units.prefix, unit, generation, tag, now=now_ms, rest_ms=rest_ms
        )
        _, words = await self.units.scripts.run("give_back", names, [*head, *chain.from_iterable(rows)])
        return [word.decode().lower() for word in words]

    async def kill(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        pairs: Sequence[tuple[int, ...]],
        *,
        move_ms: int,
        late: bool = True,
        now_ms: int = 0,
    ) -> list[Killed]:
        """Marks (offset, nonce) pairs, or as of `ack`, as dying; the caller moves those with status
        ok. Raises StateLost.
        """
        keys = self.units.of(unit)
        t = keys.tag(tag)
        arguments: list[Argument] = [generation, now_ms, tag, int(late), move_ms, len(pairs[0]) if pairs else 2]
        for pair in pairs:
            arguments += pair
        _, out = await self.units.scripts.run(
            "kill", (keys.meta, t.visible, t.delivery, keys.body, keys.outbox, t.order, t.groups, t.ahead), arguments
        )
        rows = (out[i : i + 6] for i in range(0, len(out), 6))
        return [
            Killed(word.decode().lower(), Dying(off, count, first, nonce, 0, "killed", body))
            for word, off, count, first, nonce, body in rows
        ]

    async def settle(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        kind: str,
        pairs: Sequence[tuple[int, int]],
        *,
        reason: str = "",
        now_ms: int = 0,
    ) -> list[str]:
        """Ends a move at its source: kind dead or moved; `reason` goes into the journal. Raises
        StateLost.
        """
        keys = self.units.of(unit)
        t = keys.tag(tag)
        arguments: list[Argument] = [
            generation,
            now_ms,
            tag,
            kind,
            wake_channel(self.units.prefix, unit.incarnation),
            unit.partition,
            reason,
        ]
        for pair in pairs:
            arguments += pair
        names = (keys.meta, t.visible, t.delivery, keys.body, keys.refs, keys.outbox, t.order, t.groups)
        _, words = await self.units.scripts.run("settle", names, arguments)
        return [word.decode().lower() for word in words]

    async def claim(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        messages: Sequence[tuple[int, bytes, str]],
        *,
        claim_ms: int,
        beyond: bool = False,
        early_ms: int = 0,
        now_ms: int = 0,
    ) -> Claimed:
        """Holds messages for a redrive task: words ok, busy (leased or dying), held (by another
        claim), settled, stored. A claim before may be taken over `early_ms` before its end.

        Each is (offset, group or b"", move key or ""). What the window has not taken is `stored`,
        unless it has a move key, or with `beyond`; FIFO needs its group then. Raises StateLost.
        """
        keys = self.units.of(unit)
        t = keys.tag(tag)
        names = (keys.meta, t.visible, t.delivery, t.ahead, keys.outbox, t.order, t.groups, keys.origins, t.delayed)
        arguments: list[Argument] = [generation, now_ms, tag, claim_ms, int(beyond), early_ms]
        for message in messages:
            arguments += message
        _, nonce, words = await self.units.scripts.run("claim", names, arguments)
        return Claimed(nonce, [(words[i].decode().lower(), words[i + 1]) for i in range(0, len(words), 2)])

    async def states(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        offsets: Sequence[int],
        dues: Mapping[int, int] = MappingProxyType({}),
        *,
        now_ms: int = 0,
    ) -> list[State]:
        """Where messages stand under a tag; MessageState words. `dues`: when those are due that are
        far and wanted by the tag. Raises StateLost.
        """
        keys = self.units.of(unit)
        t = keys.tag(tag)
        names = (keys.meta, t.visible, t.delivery, t.ahead, keys.except_)
        arguments: list[Argument] = [generation, now_ms, tag]
        for offset in offsets:
            arguments += (offset, dues.get(offset, 0))
        _, out = await self.units.scripts.run("states", names, arguments)
        return [
            State(out[i].decode(), out[i + 1], out[i + 2] or None, out[i + 3] or None) for i in range(0, len(out), 4)
        ]
