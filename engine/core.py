"""What the parts of the engine share: settings, log, store, control, and the way to call the store.

Neighbours: `engine.py` makes one; every part has it. Must not know verbs.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from engine.catalog.catalog import Control
from engine.errors import LogUnavailable, Overloaded, Rebuilding, StoreUnavailable
from engine.log import Log, Record
from engine.rules.contention import Crowd
from engine.rules.fifo import dedup_digest, group_digest
from engine.rules.queue import Queue
from engine.settings import Settings
from engine.window.body_cache import Bodies
from schemas.filters import matches
from schemas.identity import ids_of
from schemas.records import Message
from state.connection import Connection
from state.errors import OutboxFull, StateError, StateLost
from state.keys import Unit
from state.replies import LoadEntry, Probed, Received
from state.store import Store, first_due, pack_body

T = TypeVar("T")

# A dying or claimed message waits so long for its mover; then another takes over.
MOVE_MS = 30_000
# An atomic batch whose last record came so much later than its first is torn: never shown
# (docs/decisions/0002).
BATCH_SPAN_MS = 30_000
# The broker's clock may differ from ours and Redis' by this much when we look for a time in the
# log.
CLOCK_MARGIN_MS = 60_000


class Core:
    """Shared parts. The engine sets `recover`, which rebuilds a queue, and `recover_soon`;
    `touched` tells the loaders of traffic.
    """

    def __init__(self, settings: Settings, log: Log, connection: Connection, store: Store, control: Control) -> None:
        self.settings = settings
        self.log = log
        self.connection = connection
        self.store = store
        self.control = control
        self.secret = settings.secret.encode()
        self.recover: Callable[[Queue], Awaitable[None]] = _no_recovery
        self.recover_soon: Callable[[Queue], None] = lambda queue: None
        self.touched: Callable[[Queue, int], None] = lambda queue, partition: None
        self.nudge: Callable[[Queue, int, Received | Probed], None] = lambda queue, partition, seen: None
        self.journaled: Callable[[Queue, int, int], Awaitable[None]] = _not_journaled
        # (incarnation, partition, since when what is receivable there is visible: ms, 0 = not
        # known).
        self.woken: Callable[[str, int, int], None] = lambda incarnation, partition, head_ms: None
        self.stopped: Callable[[Queue], int] = lambda queue: 0
        self.suspect: Callable[[Queue], None] = lambda queue: None
        self.keep: Callable[[Queue, int], Awaitable[None]] = _kept
        # Units that this worker is rebuilding: its loaders must not shorten their leases meanwhile,
        # nor give them up as idle.
        self.rebuilding: set[Unit] = set()
        self.rebuilt: Callable[[Unit], None] = lambda unit: None
        self.crowd = Crowd()
        self.bodies = Bodies(settings.kept_bytes)
        control.gone.append(self.bodies.gone)
        # Incarnation -> when messages were lent here last (loop time).
        self.lent_at: dict[str, float] = {}
        self.counts: dict[str, float] = {}
        # (kind, queue) -> how many; there while it lasts. See engine/queues/alarms.py.
        self.alarms: dict[tuple[str, str], float] = {}

    def count(self, name: str, by: float = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + by

    async def on_state(self, queue: Queue, call: Callable[[int], Awaitable[T]]) -> T:
        """Runs `call(generation)`; state found lost is rebuilt first, then the call is made again.

        Raises StoreUnavailable (outcome unknown), Rebuilding (it takes longer than the caller
        should wait), Overloaded (the journal is far behind; nothing was changed).
        """
        for _ in range(3):
            try:
                return await call(self.control.generation)
            except StateLost:
                await self.recover(queue)
            except OutboxFull:
                raise Overloaded(f"the journal of queue {queue.name!r} is behind: is Kafka taking writes?") from None
            except StateError as error:
                raise StoreUnavailable(str(error)) from error
        raise Rebuilding(f"the state of queue {queue.name!r} was lost again while it was rebuilt")

    def message_id(self, queue: Queue, partition: int, offset: int) -> str:
        return ids_of(self.secret, queue.incarnation, partition)(offset)

    def load_entry(self, queue: Queue, offset: int, sent_at_ms: int, message: Message, value: bytes) -> LoadEntry:
        """A record as the window takes it: due time, and which tags want it (in the order of
        `queue.tags`).

        `value` may be b"": the window is to have it without its body.
        """
        record = queue.record
        mask = queue.mask
        if mask is None:
            mask = "".join("1" if matches(tag.filter, message.attributes) else "0" for tag in queue.tags)
        packed = pack_body(sent_at_ms, sent_at_ms + delay_of(queue, message), message.lease_ms, value)
        origin, group = message.origin, message.group
        move_key = "" if origin is None else move_key_of(origin.from_id, origin.from_tag)
        if record.fifo:
            return LoadEntry(offset, packed, mask, move_key, "", group_digest(group), dedup_digest(record, message))
        return LoadEntry(offset, packed, mask, move_key, "", group_digest(group) if group else b"")

    async def write_through(self, queue: Queue, partition: int, entries: Sequence[LoadEntry]) -> dict[int, int]:
        """Puts records that Kafka has into the window at once. Where that fails the loader brings
        them later.

        FIFO: gives the offset of the earlier message for each offset of one that repeats it, as far
        as known. Raises LogUnavailable when the window belongs to another life of the topic, so
        that it takes none of them.
        """
        unit = queue.units[partition]
        self.touched(queue, partition)
        try:
            loaded = await self.store.load(unit, self.control.generation, queue.tag_ids, entries)
        except StateError:
            self.count("write_through_failed_total")
            self._forget(unit, entries)
            return {}
        self.woken(queue.incarnation, partition, first_due(entries))
        last = entries[-1].offset + entries[-1].count
        if not loaded.taken:
            self._forget(unit, entries)
            if max(loaded.cursors, default=0) > last:
                await self._check_length(queue, partition, max(loaded.cursors))
        if queue.record.fifo and loaded.taken < len(queue.tag_ids) * (len(entries) - len(loaded.repeats)):
            return {**loaded.repeats, **await self._repeats(unit, entries)}
        return loaded.repeats

    def _forget(self, unit: Unit, entries: Sequence[LoadEntry]) -> None:
        """The window has not taken these: the loader will bring them, with their bodies."""
        for entry in entries:
            self.bodies.forget(unit, range(entry.offset, entry.offset + entry.count))

    async def _repeats(self, unit: Unit, entries: Sequence[LoadEntry]) -> dict[int, int]:
        """FIFO: what repeats what among records that were early, or came by the loader before;
        waits a second for those before them.
        """
        known = [entry for entry in entries if entry.dedup]
        for _ in range(50 if known else 0):
            with contextlib.suppress(StateError):
                seen, firsts = await self.store.dedup_firsts(unit, [entry.dedup for entry in known])
                if seen > entries[-1].offset:
                    rows = zip(known, firsts, strict=True)
                    return {entry.offset: first for entry, first in rows if first is not None and first < entry.offset}
            await asyncio.sleep(0.02)
        return {}

    async def _check_length(self, queue: Queue, partition: int, cursor: int) -> None:
        """A window that is beyond what was just appended: the loader was faster, or it is the
        window of a topic that was deleted.
        """
        part = (queue.topic, partition)
        if (await self.log.end_offsets([part])).get(part, cursor) < cursor:
            self.suspect(queue)
            raise LogUnavailable(f"topic {queue.topic} was made anew behind queue {queue.name!r}; try again")

    async def read_offsets(self, queue: Queue, partition: int, offsets: Sequence[int]) -> dict[int, Record]:
        """The records at these offsets; one that Kafka no longer has is absent. Raises
        LogUnavailable.
        """
        found: dict[int, Record] = {}
        wanted = sorted(offsets)
        at = 0
        while at < len(wanted):
            last = at
            while last + 1 < len(wanted) and wanted[last + 1] - wanted[at] < 200:
                last += 1
            chunk = await self.log.fetch(queue.topic, partition, wanted[at], wanted[last] - wanted[at] + 1, 64_000_000)
            keep = set(wanted[at : last + 1])
            found.update({record.offset: record for record in chunk.records if record.offset in keep})
            done = bisect.bisect_left(wanted, chunk.next_offset)
            at = max(at + 1, min(done, last + 1))
        return found


def delay_of(queue: Queue, message: Message) -> int:
    """How long after it was sent a message is due, in ms. Without a sender it is Kafka-native: the
    queue's own delay holds.
    """
    return message.delay_ms if message.sender else queue.record.delay_ms


def move_key_of(from_id: str, from_tag: str) -> str:
    """24 hex digits that stand for one move: of this message, from under this tag."""
    return hashlib.blake2b(f"{from_id}/{from_tag}".encode(), digest_size=12).hexdigest()


async def _not_journaled(queue: Queue, partition: int, seq: int) -> None:
    raise Rebuilding(f"nobody drains queue {queue.name!r}")


async def _kept(queue: Queue, delay_ms: int) -> None:
    """A part of an engine (`maintenance.py`) stores nothing."""


async def _no_recovery(queue: Queue) -> None:
    raise Rebuilding(f"the state of queue {queue.name!r} is not there")


def now_ms() -> int:
    """This machine's clock: for records and estimates; deadlines use Redis' clock only."""
    return time.time_ns() // 1_000_000
