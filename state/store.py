"""The state in Redis: one method per script, replies as frozen structs. Other packages see no keys
and no lists.

Every method raises StateUnavailable (no Redis; the outcome is unknown) and, where it says so,
StateLost or Fenced; the verbs of consumers also OutboxFull. Each call is one atomic script on one
unit; any number of tasks and workers may call at once. `now_ms` 0 = Redis' clock (others: tests).
Neighbours: `engine` calls it; `connection.py` carries, `keys.py` spells. Must not know queues'
names, HTTP or Kafka. Longer than 250 lines: a method per script, so that the contract test finds
each by its name.
"""

from __future__ import annotations

import asyncio
import secrets
import struct
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import hiredis
import msgspec

from schemas.records import OpenDelivery
from state.connection import Argument, Connection
from state.errors import Fenced, OutboxFull, StateLost, StateUnavailable
from state.keys import Unit, UnitKeys, wake_channel, wake_up
from state.replies import (
    Acked,
    Claimed,
    Dump,
    Dying,
    Entry,
    Extended,
    Killed,
    Leased,
    Loaded,
    LoadEntry,
    Owned,
    Probed,
    Received,
    State,
    TagCounts,
    TagDump,
    Window,
)
from state.scripts import read_scripts

_HEADER = struct.Struct(">QQq")
# As lua/include/delivery.lua packs it: nonce, receive count, first receive, flag, time.
_DELIVERY = struct.Struct(">QIQBQ")
_WORDS = msgspec.msgpack.Decoder(list[str])
HEADER_BYTES = _HEADER.size
# Of the meta hash: a tag's cursor, and the mark of one that is being closed.
_TAG_FIELDS = ("c", "x")

# The first word of a reply of ours that says no.
_REFUSED: dict[bytes, type[StateLost | OutboxFull | Fenced]] = {b"LOST": StateLost, b"FULL": OutboxFull, b"FENCED": Fenced}
# A Redis that says one of these will take the command later.
REFUSALS = ("OOM", "READONLY", "LOADING", "MISCONF", "BUSY", "MASTERDOWN", "CLUSTERDOWN")


def pack_body(sent_at_ms: int, due_ms: int, lease_ms: int | None, record: bytes) -> bytes:
    """What the window keeps of a record: sent, due, own lease (None = the queue's), then the record
    as it is in Kafka.

    With `record` b"" it keeps no body, so nothing of an own lease either.
    """
    return _HEADER.pack(sent_at_ms, due_ms, -1 if lease_ms is None else lease_ms) + record


def first_due(entries: Sequence[LoadEntry]) -> int:
    """When the first of these is due (ms), 0 = none is."""
    first = b""
    for entry in entries:
        due = entry.packed[8:16]
        if due and (due < first or not first):
            first = due
    return int.from_bytes(first)


def delay_of_body(packed: bytes) -> int:
    """How long after it was sent a message that was packed so is due, in ms."""
    sent_at_ms, due_ms, _ = _HEADER.unpack_from(packed)
    return int(due_ms - sent_at_ms)


class Store:
    """The scripts as methods. Safe for any number of tasks of one loop."""

    def __init__(self, connection: Connection, prefix: str, window: Window) -> None:
        self._connection = connection
        self._prefix = prefix
        self._window = window
        self._scripts = read_scripts()
        self._keys: dict[Unit, UnitKeys] = {}
        self.calls = 0
        # Stands in the wake-ups of loads: who loads wakes those who wait in the same worker by
        # itself.
        self.name = secrets.token_hex(4)
        # Whether this worker is known to be the only one that listens for wake-ups: then loads send
        # none.
        self.alone = False
        # The life of the Redis server whose state is the true one; scripts on another one answer
        # StateLost. None = not asked.
        self.trusted_run_id: str | None = None

    def _unit(self, unit: Unit) -> UnitKeys:
        keys = self._keys.get(unit)
        if keys is None:
            keys = self._keys[unit] = UnitKeys(self._prefix, unit)
        return keys

    async def _run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> list[Any]:
        script = self._scripts[name]
        self.calls += 1
        if self._connection.run_id != self.trusted_run_id and self.trusted_run_id is not None:
            raise StateLost(f"{name}: Redis was started again")
        reply = await self._connection.call("EVALSHA", script.sha, len(keys), *keys, *arguments)
        if type(reply) is hiredis.ReplyError:
            reply = await self._again(name, reply, keys, arguments)
        lost = _REFUSED.get(reply[0])
        if lost is not None:
            raise lost(name)
        return reply  # type: ignore[no-any-return]

    async def _again(self, name: str, error: hiredis.ReplyError, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        """The reply after the script was loaded, if that was all that was wrong."""
        reply: Any = error
        if str(error).startswith("NOSCRIPT"):
            script = self._scripts[name]
            await self._connection.call("SCRIPT", "LOAD", script.source)
            reply = await self._connection.call("EVALSHA", script.sha, len(keys), *keys, *arguments)
        if not isinstance(reply, hiredis.ReplyError):
            return reply
        text = str(reply)
        # Redis 6.2 puts the refusal of a write inside a script behind "ERR Error running script ...
        # -".
        if text.split(" ", 1)[0] in REFUSALS or any(f" -{word} " in text for word in REFUSALS):
            raise StateUnavailable(f"Redis refused {name}: {text}")
        raise RuntimeError(f"{name}.lua failed: {text}")

    async def workers(self) -> int:
        """How many workers listen for wake-ups, this one included. Raises StateUnavailable."""
        _, listeners = await self._ask("PUBSUB", "NUMSUB", wake_channel(self._prefix, ""))
        return int(listeners)

    async def wake(self, incarnations: Iterable[str]) -> None:
        """Tells all who wait for these queues to look at every partition. Raises
        StateUnavailable.
        """
        for incarnation in incarnations:
            await self._ask("PUBLISH", wake_channel(self._prefix, incarnation), wake_up(-1, self.name))

    async def load(
        self,
        unit: Unit,
        generation: int,
        tags: Sequence[int],
        entries: Sequence[LoadEntry],
        *,
        epoch: int = 0,
        scan: tuple[int, int] | None = None,
        prime: bool = False,
        now_ms: int = 0,
    ) -> Loaded:
        """Takes records into the window of `tags`, each offset at most once per tag.

        `scan` (from, next) says that the entries are all there is in that range, so that cursors
        may pass holes; without it each entry is taken for itself: at the cursor, or early. FIFO:
        always all tags of the queue; `prime` says that the scan begins at least five minutes of log
        before every cursor. Raises StateLost, Fenced (`epoch` is over).
        """
        keys, w = self._unit(unit), self._window
        names = [keys.meta, keys.body, keys.refs, keys.outbox, keys.origins, keys.dedup, keys.ids, keys.pending]
        for tag in tags:
            names += keys.tag(tag).all()
        scan_from, scan_next = scan or (-1, -1)
        channel = "" if self.alone else wake_channel(self._prefix, unit.incarnation)
        payload = "" if self.alone else wake_up(unit.partition, self.name, first_due(entries))
        arguments: list[Argument] = [
            generation, epoch, now_ms, channel, payload,
            w.messages, w.bytes, w.max_open, w.near_ms, scan_from, scan_next, int(prime), len(tags), *tags,
        ]  # fmt: skip
        for e in entries:
            arguments += (e.offset, e.packed, e.mask, e.move_key, e.reason, e.group, e.dedup, e.count)
        _, cursors, full, taken, seen, repeats = await self._run("load", names, arguments)
        return Loaded(cursors, [bool(f) for f in full], taken, seen, dict(zip(repeats[::2], repeats[1::2], strict=True)))

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
        now_ms: int = 0,
    ) -> Received:
        """Lends up to `max` due messages, of a standard queue those visible at `until_ms` already
        (0 = now); see receive.lua.

        Raises StateLost.
        """
        keys = self._unit(unit)
        t = keys.tag(tag)
        reply = await self._run(
            "receive",
            (keys.meta, t.visible, t.delivery, keys.body, keys.refs, keys.outbox, t.order, t.groups, t.delayed),
            (generation, now_ms, tag, max, -1 if lease_ms is None else lease_ms, queue_lease_ms, max_receive_count,
             retention_ms, move_ms, self._window.bytes, self._window.messages, until_ms),
        )  # fmt: skip
        _, now, nonce, head_ms, cursor, open_count, lent_count, hungry, lent, dying, deadline_ms, fresh = reply
        leased = [Leased(*lent[i : i + 5]) for i in range(0, len(lent), 5)] if lent else []
        if fresh:
            leased += [Leased(offset, 1, now, deadline_ms, b"") for offset in fresh]
            if lent:
                leased.sort(key=lambda one: one.offset)
        return Received(
            now_ms=now,
            nonce=nonce,
            wait_ms=None if head_ms < 0 else head_ms - now if head_ms > now else 0,
            head_ms=None if head_ms < 0 else head_ms,
            cursor=cursor,
            open=open_count,
            lent=lent_count,
            hungry=bool(hungry),
            leased=leased,
            dying=[
                Dying(o, count, first, own, again, reason.decode(), body)
                for o, count, first, own, again, reason, body in (dying[i : i + 7] for i in range(0, len(dying), 7))
            ]
            if dying
            else [],
        )

    async def probe(self, unit: Unit, generation: int, tag: int, *, times: int = 0, now_ms: int = 0) -> Probed:
        """When a receive would find something, and the first `times` times of what is visible.
        Changes nothing. Raises StateLost.
        """
        keys = self._unit(unit)
        t = keys.tag(tag)
        names = (keys.meta, t.visible, t.delivery, keys.body, t.groups, t.delayed)
        _, now, head_ms, *rest = await self._run("probe", names, (generation, now_ms, tag, times))
        return Probed(None if head_ms < 0 else max(head_ms - now, 0), None if head_ms < 0 else head_ms, *rest)

    async def ack(
        self, unit: Unit, generation: int, tag: int, pairs: Sequence[tuple[int, int]], *, late: bool = True, now_ms: int = 0
    ) -> Acked:
        """Settles (offset, nonce) pairs. `late`: a lapsed lease counts until redelivery. Raises
        StateLost.
        """
        keys = self._unit(unit)
        t = keys.tag(tag)
        names = (keys.meta, t.visible, t.delivery, keys.body, keys.refs, keys.outbox, t.order, t.groups)
        channel = wake_channel(self._prefix, unit.incarnation)
        arguments: list[Argument] = [generation, now_ms, tag, int(late), channel, unit.partition]
        for pair in pairs:
            arguments += pair
        _, words, seq = await self._run("ack", names, arguments)
        return Acked([word.decode().lower() for word in words] or ["ok"] * len(pairs), seq)

    async def extend(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        entries: Sequence[tuple[int, int, int]],
        *,
        late: bool = True,
        now_ms: int = 0,
    ) -> list[Extended]:
        """Moves the deadlines of (offset, nonce, lease ms). Raises StateLost."""
        keys = self._unit(unit)
        t = keys.tag(tag)
        channel = wake_channel(self._prefix, unit.incarnation)
        arguments: list[Argument] = [generation, now_ms, tag, int(late), channel, unit.partition]
        for entry in entries:
            arguments += entry
        _, out = await self._run("extend", (keys.meta, t.visible, t.delivery, keys.outbox, t.order, t.groups), arguments)
        return [Extended(out[i].decode().lower(), out[i + 1]) for i in range(0, len(out), 2)]

    async def release(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        pairs: Sequence[tuple[int, int]],
        *,
        delay_ms: int = 0,
        late: bool = True,
        now_ms: int = 0,
    ) -> list[Extended]:
        """Gives back (offset, nonce) pairs, receivable after `delay_ms`. Raises StateLost."""
        keys = self._unit(unit)
        t = keys.tag(tag)
        channel = wake_channel(self._prefix, unit.incarnation)
        arguments: list[Argument] = [generation, now_ms, tag, int(late), channel, unit.partition, delay_ms]
        for pair in pairs:
            arguments += pair
        names = (keys.meta, t.visible, t.delivery, keys.outbox, t.delayed, t.order, t.groups)
        _, out = await self._run("release", names, arguments)
        return [Extended(out[i].decode().lower(), out[i + 1]) for i in range(0, len(out), 2)]

    async def give_back(
        self, unit: Unit, generation: int, tag: int, rows: Sequence[tuple[int, int, int]], *, rest_ms: int, now_ms: int = 0
    ) -> list[str]:
        """Uncounts deliveries (offset, nonce, due ms or 0 = its body could not be read) that nobody
        was given. Raises StateLost.
        """
        keys = self._unit(unit)
        t = keys.tag(tag)
        arguments: list[Argument] = [generation, now_ms, tag, rest_ms, wake_channel(self._prefix, unit.incarnation), unit.partition]
        for row in rows:
            arguments += row
        names = (keys.meta, t.visible, t.delivery, keys.outbox, t.delayed, t.order, t.groups)
        _, words = await self._run("give_back", names, arguments)
        return [word.decode().lower() for word in words]

    async def kill(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        pairs: Sequence[tuple[int, int]],
        *,
        move_ms: int,
        late: bool = True,
        now_ms: int = 0,
    ) -> list[Killed]:
        """Marks (offset, nonce) pairs as dying; the caller moves those with status ok. Raises
        StateLost.
        """
        keys = self._unit(unit)
        t = keys.tag(tag)
        arguments: list[Argument] = [generation, now_ms, tag, int(late), move_ms]
        for pair in pairs:
            arguments += pair
        _, out = await self._run("kill", (keys.meta, t.visible, t.delivery, keys.body, keys.outbox, t.order, t.groups), arguments)
        rows = (out[i : i + 6] for i in range(0, len(out), 6))
        return [
            Killed(word.decode().lower(), Dying(off, count, first, nonce, 0, "killed", body))
            for word, off, count, first, nonce, body in rows
        ]

    async def settle(
        self, unit: Unit, generation: int, tag: int, kind: str, pairs: Sequence[tuple[int, int]], *, reason: str = "", now_ms: int = 0
    ) -> list[str]:
        """Ends a move at its source: kind dead or moved; `reason` goes into the journal. Raises
        StateLost.
        """
        keys = self._unit(unit)
        t = keys.tag(tag)
        arguments: list[Argument] = [generation, now_ms, tag, kind, wake_channel(self._prefix, unit.incarnation), unit.partition, reason]
        for pair in pairs:
            arguments += pair
        names = (keys.meta, t.visible, t.delivery, keys.body, keys.refs, keys.outbox, t.order, t.groups)
        _, words = await self._run("settle", names, arguments)
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
        now_ms: int = 0,
    ) -> Claimed:
        """Holds messages for a redrive task: words ok, busy (leased or dying), held (by another
        claim), settled, stored.

        Each is (offset, group or b"", move key or ""). What the window has not taken is `stored`,
        unless it has a move key, or with `beyond`; FIFO needs its group then. Raises StateLost.
        """
        keys = self._unit(unit)
        t = keys.tag(tag)
        names = (keys.meta, t.visible, t.delivery, t.ahead, keys.outbox, t.order, t.groups, keys.origins)
        arguments: list[Argument] = [generation, now_ms, tag, claim_ms, int(beyond)]
        for message in messages:
            arguments += message
        _, nonce, words = await self._run("claim", names, arguments)
        return Claimed(nonce, [(words[i].decode().lower(), words[i + 1]) for i in range(0, len(words), 2)])

    def _all_tags(self, keys: UnitKeys, tags: Sequence[int]) -> list[str]:
        names = [keys.meta, keys.body, keys.refs, keys.outbox]
        for tag in tags:
            names += keys.tag(tag).all()
        return names

    async def delete(self, unit: Unit, generation: int, tags: Sequence[int], offset: int, *, now_ms: int = 0) -> str:
        """Settles one message under all tags: ok, busy (leased under one; nothing changed) or
        settled. Raises StateLost.
        """
        keys, channel = self._unit(unit), wake_channel(self._prefix, unit.incarnation)
        reply = await self._run("delete", self._all_tags(keys, tags), (generation, now_ms, channel, unit.partition, offset, *tags))
        return reply[0].decode().lower()  # type: ignore[no-any-return]

    async def purge(self, unit: Unit, generation: int, tags: Sequence[int], below: int, *, now_ms: int = 0) -> int:
        """Settles all below offset `below` under `tags`; returns how many were open in the window.
        Raises StateLost.
        """
        keys = self._unit(unit)
        names = self._all_tags(keys, tags)
        names[4:4] = (keys.dedup, keys.pending)
        reply = await self._run("purge", names, (generation, now_ms, below, *tags))
        return int(reply[1])

    async def states(self, unit: Unit, generation: int, tag: int, offsets: Sequence[int], *, now_ms: int = 0) -> list[State]:
        """Where messages stand under a tag; MessageState words. Raises StateLost."""
        keys = self._unit(unit)
        t = keys.tag(tag)
        names = (keys.meta, t.visible, t.delivery, t.ahead)
        _, out = await self._run("states", names, (generation, now_ms, tag, *offsets))
        return [State(out[i].decode(), out[i + 1], out[i + 2] or None, out[i + 3] or None) for i in range(0, len(out), 4)]

    async def info(self, unit: Unit, generation: int, tags: Sequence[int], *, now_ms: int = 0) -> list[TagCounts]:
        """Exact counts of the window, cursor, floor and what was taken ahead of the cursor, per
        tag. Raises StateLost.
        """
        keys = self._unit(unit)
        names = [keys.meta, keys.outbox]
        for tag in tags:
            names += (keys.tag(tag).visible, keys.tag(tag).delayed, keys.tag(tag).delivery)
        _, out = await self._run("info", names, (generation, now_ms, *tags))
        return [TagCounts(*out[i : i + 6]) for i in range(0, len(out), 6)]

    async def dump(self, unit: Unit, generation: int, tags: Sequence[int]) -> Dump:
        """One moment of a unit under `tags`. Holds Redis up for about 2 us per open message. Raises
        StateLost.
        """
        keys = self._unit(unit)
        names = [keys.meta, keys.outbox]
        for tag in tags:
            t = keys.tag(tag)
            names += (t.visible, t.delivery, t.ahead)
        _, seq, waiting, rows = await self._run("dump", names, (generation, *tags))
        return Dump(seq, waiting, [_tag_dump(*row) for row in rows])

    async def own(self, unit: Unit, worker: str, *, lease_ms: int, now_ms: int = 0) -> Owned:
        """Takes or renews the loader's lease of a unit."""
        status, number, generation = await self._run("own", (self._unit(unit).meta,), (now_ms, worker, lease_ms))
        return Owned(status == b"OWNED", number, int(generation) if generation else None)

    async def seize(self, unit: Unit, worker: str, *, lease_ms: int, now_ms: int = 0) -> int:
        """Takes a unit out of service and its lease from whoever has it; the new epoch. What waits
        in the outbox stays there.
        """
        return int((await self._run("seize", (self._unit(unit).meta,), (now_ms, worker, lease_ms)))[1])

    async def disown(self, unit: Unit, epoch: int) -> bool:
        """Gives the lease up; False when entries wait in the outbox. Raises Fenced."""
        keys = self._unit(unit)
        reply = await self._run("disown", (keys.meta, keys.outbox), (epoch,))
        return bool(reply[0] == b"OK")

    async def drain(self, unit: Unit, epoch: int, *, done_seq: int, max: int) -> list[Entry]:
        """Drops entries up to `done_seq` (the journal has them) and returns the next ones. Raises
        Fenced.
        """
        keys = self._unit(unit)
        _, packed = await self._run("drain", (keys.meta, keys.outbox), (epoch, done_seq, max))
        return [_entry(data) for data in packed]

    async def open(
        self,
        unit: Unit,
        generation: int,
        starts: Sequence[tuple[int, int]],
        *,
        fifo: bool = False,
        serving: bool = False,
        epoch: int = 0,
        seq: int = 0,
    ) -> None:
        """Makes a unit serve; `starts` = (tag, first offset). `serving`: only adds tags to one that
        serves.

        Raises StateLost (other generation, or it does not serve), Fenced.
        """
        keys = self._unit(unit)
        arguments: list[Argument] = [generation, epoch, seq, int(fifo), int(serving)]
        for start in starts:
            arguments += start
        await self._run("open", (keys.meta, keys.dedup, keys.ids), arguments)

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
        now_ms: int = 0,
    ) -> None:
        """Writes a slice (1,000 deliveries at most) of a rebuild of one tag; `groups` by offset in
        FIFO units. Raises Fenced.
        """
        keys = self._unit(unit)
        t = keys.tag(tag)
        arguments: list[Argument] = [epoch, now_ms, tag, cursor, len(settled), *settled]
        for d in deliveries:
            arguments += (d.offset, d.nonce, d.count, d.first_received_at_ms, d.flag, d.time_ms, groups.get(d.offset, b""))
        await self._run("restore", (keys.meta, t.ahead, t.delivery, t.visible, t.delayed, t.order, t.groups), arguments)

    async def recall(self, unit: Unit, epoch: int, moves: Sequence[tuple[str, int]]) -> None:
        """Writes moves (key, offset of the first copy) that a rebuild knows of, 1,000 at most.
        Raises Fenced.
        """
        keys = self._unit(unit)
        arguments: list[Argument] = [epoch]
        for move in moves:
            arguments += move
        await self._run("recall", (keys.meta, keys.origins), arguments)

    async def clear(self, unit: Unit, epoch: int, tags: Sequence[int]) -> None:
        """Empties a unit before a rebuild, of other tags that it knows too; its loader's lease
        stays. Raises Fenced.
        """
        keys = self._unit(unit)
        names = keys.all() + [name for tag in {*tags, *await self.known_tags(unit)} for name in keys.tag(tag).all()]
        await self._run("clear", names, (epoch,))

    async def known_tags(self, unit: Unit) -> set[int]:
        """The tags of which a unit has something, also those that are not closed to their end."""
        fields = (name.decode().partition(":") for name in await self._ask("HKEYS", self._unit(unit).meta))
        return {int(tag) for kind, _, tag in fields if kind in _TAG_FIELDS}

    async def close(self, unit: Unit, tag: int) -> None:
        """Forgets a tag of a unit; what is cut off is known as one of `known_tags`, to be closed
        again.
        """
        keys = self._unit(unit)
        t = keys.tag(tag)
        names = (keys.meta, t.visible, t.delivery, keys.body, keys.refs, t.ahead, t.delayed, t.order, t.groups)
        while (await self._run("close", names, (tag, 1000)))[1]:
            pass

    async def _ask(self, *command: Argument) -> Any:
        """A plain command. Raises StateUnavailable, also for what Redis refuses (it is loading its
        file, or read-only).
        """
        reply = await self._connection.call(*command)
        if isinstance(reply, hiredis.ReplyError):
            raise StateUnavailable(f"Redis refused {command[0]!r}: {reply}")
        return reply

    async def last_seq(self, unit: Unit) -> int:
        """The seq of the unit's last journal entry, 0 = none."""
        return int(await self._ask("HGET", self._unit(unit).meta, "seq") or 0)

    async def drained_seq(self, unit: Unit) -> tuple[int, int]:
        """(base, drained): the journal has the entries of this life of the state, which begins
        above `base`, up to `drained`; 0 = none.
        """
        base, drained = await self._ask("HMGET", self._unit(unit).meta, "base", "drained")
        return int(base or 0), int(drained or 0)

    async def undrained(self, unit: Unit) -> int:
        """How many journal entries wait in the outbox."""
        return int(await self._ask("LLEN", self._unit(unit).outbox))

    async def delayed(self, unit: Unit, tags: Sequence[int], now_ms: int) -> int:
        """How many messages of the tag with the most are delayed beyond a time. Raises
        StateUnavailable.
        """
        names = [self._unit(unit).tag(tag).delayed for tag in tags]
        return max(map(int, await asyncio.gather(*(self._ask("ZCOUNT", name, f"({now_ms}", "+inf") for name in names))))

    async def open_most(self, unit: Unit, tags: Sequence[int]) -> int:
        """How many messages of the tag with the most are open. Raises StateUnavailable."""
        names = [self._unit(unit).tag(tag).visible for tag in tags]
        return max(map(int, await asyncio.gather(*(self._ask("ZCARD", name) for name in names))))

    async def dedup_firsts(self, unit: Unit, ids: Sequence[bytes]) -> tuple[int, list[int | None]]:
        """FIFO: (next offset in order or -1, offset of the message that has each id now). Raises
        StateUnavailable.
        """
        keys = self._unit(unit)
        seen, packed = await asyncio.gather(self._ask("HGET", keys.meta, "seen"), self._ask("HMGET", keys.dedup, *ids))
        return int(seen or -1), [struct.unpack(">QQ", p)[1] if p else None for p in packed]

    async def leftovers(self, unit: Unit) -> tuple[int, int, int]:
        """(bodies, shared bodies, bytes) that a unit holds: all 0 when nothing is open."""
        keys = self._unit(unit)
        bodies, refs, size = await asyncio.gather(
            self._ask("HLEN", keys.body),
            self._ask("HLEN", keys.refs),
            self._ask("HGET", keys.meta, "bytes"),
        )
        return bodies, refs, int(size or 0)

    async def forget(self, units: Sequence[Unit], tags: Sequence[int]) -> None:
        """Drops every key of units whose queue is gone."""
        for unit in units:
            keys = self._unit(unit)
            known = await self.known_tags(unit)
            self._keys.pop(unit, None)
            await self._ask("UNLINK", *keys.all(), *(name for tag in {*tags, *known} for name in keys.tag(tag).all()))


def _entry(data: bytes) -> Entry:
    seq, at_ms, kind, tag, offsets, times, reason = msgspec.msgpack.decode(data)
    return Entry(seq, at_ms, kind, tag, offsets, times or [], reason)


def _tag_dump(cursor: int, floor: int, visible: bytes, deliveries: list[bytes], ahead: bytes) -> TagDump:
    scores = _WORDS.decode(visible)
    # A negative time: the message is set back (lua/include/fair.lua).
    open_at = {int(scores[i]): abs(int(float(scores[i + 1]))) for i in range(0, len(scores), 2)}
    lent = {}
    for i in range(0, len(deliveries), 2):
        # Behind it is the message's group. What has a group has an entry before it is lent, too:
        # that is none of a delivery.
        delivery = OpenDelivery(int(deliveries[i]), *_DELIVERY.unpack_from(deliveries[i + 1]))
        if delivery.nonce or delivery.count or delivery.flag:
            lent[delivery.offset] = delivery
    return TagDump(cursor, floor, open_at, lent, set(map(int, _WORDS.decode(ahead))))
