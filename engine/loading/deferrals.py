"""Deferred messages of owned units: their pointers go to the wheel, and what is due soon comes back
into the window.

Both are done in turns, by the owner of the unit alone. Whether a message is deferred, and that it
is brought once, the scripts decide (include/far.lua): this finds the messages, and reads them where
they are. A pointer in Redis is forgotten when the wheel has it; until then no floor passes its
message, so a rebuild finds it again.
"""

from __future__ import annotations

import asyncio
import bisect
import heapq
import itertools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from engine.catalog.catalog import Catalog
from engine.errors import LogUnavailable
from engine.loading.loader import Loader
from engine.loading.slot import Pointer, Slot
from engine.loading.wheel import Wheel
from engine.log import Chunk, Log, Record
from engine.rules.queue import Queue
from engine.window.batches.atomic_batches import CHUNK_BYTES, CHUNK_RECORDS, assemble
from engine.window.batches.message_log import MessageLog
from engine.window.entry import load_entry
from runtime.background import Background
from runtime.counters import Counters
from runtime.failpoints import reached
from runtime.signals import Signal
from schemas.records import Message, TagRecord
from schemas.vocabulary import FAR_DELAY_MS, SLOT_MS
from schemas.wire import UndecodableRecord, decode_message
from state.deferred import Brought, Deferred, DeferredScripts, Mark, Pointed, TagDeferred
from state.keys import Unit
from state.packed import HEADER_BYTES, delay_of_body, pack_body

logger = logging.getLogger(__name__)

# Messages that are due within so long are brought: their bodies are in the window by then.
AHEAD_MS = 60_000
# How often a unit is looked at that has deferred something, and one that has not.
TURN_S, QUIET_TURN_S = 1.0, 5.0
# Pointers go to the wheel when there are so many of a unit, or the first has waited for so long:
# many small records would be read more slowly.
FILE_COUNT, FILE_S = 2_000, 20.0
# So many go to a script at a time.
SLICE = 500
# So many records are read at a time, a few at first: the first messages are not to wait for
# others', and what lies near to each other in the log is read at once. Bodies of so many bytes are
# kept until the window has them; what it then lacks, it reads as any other.
READ_FIRST, READ_MOST, READ_BYTES = 250, 16_000, 8_000_000
# Hours that are over are read together while they have so few pointers, as the queue was idle.
HOURS_POINTERS = 100_000
LAST_OFFSET = 2**53


class Deferrals:
    """Files pointers, and brings messages, of units that this worker owns."""

    def __init__(
        self,
        log: Log,
        scripts: DeferredScripts,
        catalog: Catalog,
        wheel: Wheel,
        counters: Counters,
        receivable: Signal[[str, int, int]],
    ) -> None:
        self._log = log
        self._message_log = MessageLog(log)
        self._scripts = scripts
        self._catalog = catalog
        self._wheel = wheel
        self._counters = counters
        self._receivable = receivable

    async def turn(self, loader: Loader) -> None:
        """One turn of a unit. Raises StateLost, Fenced, OutboxFull, LogUnavailable."""
        loader.turn_at = asyncio.get_running_loop().time() + QUIET_TURN_S
        if loader.queue.record.fifo:
            return
        async with loader.turning:
            while await self._turn(loader):
                pass

    async def _turn(self, loader: Loader) -> bool:
        """Whether another turn is due at once: to bring more if there is room, or to file."""
        loop, queue, more = asyncio.get_running_loop(), loader.queue, False
        seen = await self._scripts.deferred(loader.unit, self._catalog.generation, queue.tag_ids, ahead_ms=AHEAD_MS)
        if seen.pointers or any(tag.total for tag in seen.tags):
            loader.turn_at = loop.time() + TURN_S
        if not seen.pointers:
            loader.unfiled_since = None
        elif loader.unfiled_since is None:
            loader.unfiled_since = loop.time()
        for tag, state in zip(queue.tags, seen.tags, strict=True):
            if state.slots:
                more |= await self._bring(loader, queue, tag, state, seen)
        since, many = loader.unfiled_since, len(seen.pointers) >= FILE_COUNT
        if since is not None and (many or loop.time() - since >= FILE_S):
            await self.file(loader, seen.pointers)
        # Where there were many, there will be: a unit may have 20,000, and the window stands still.
        return more or many

    async def file(self, loader: Loader, pointers: Sequence[Pointer]) -> None:
        """Pointers go to the wheel. Raises Fenced, LogUnavailable."""
        reached("file.before_append")
        await self._wheel.append(loader.unit, pointers)
        reached("file.appended")
        await self._scripts.file(loader.unit, loader.epoch, [offset for _, offset in pointers])
        loader.unfiled_since = None

    async def _bring(self, loader: Loader, queue: Queue, tag: TagRecord, state: TagDeferred, seen: Deferred) -> bool:
        """Brings what a tag has deferred and is due soon, of the first hours, until the window
        takes no more. Whether there is more.
        """
        numbers, until = _first_hours(state.slots, seen.now_ms + AHEAD_MS)
        # The pointers that were in Redis are known by now: one that went to the wheel meanwhile is
        # in both.
        slots = await self._wheel.read(numbers)
        pointers = sorted(seen.pointers)
        await self._check_slots(loader, queue, state, pointers, dict(zip(numbers, slots, strict=True)))
        found, most = state.mark, READ_FIRST
        due = _merged(loader, slots, pointers, found, until)
        while True:
            some = list(itertools.islice(due, most))
            is_last, most = len(some) < most, min(2 * most, READ_MOST)
            if not some and found.ms // SLOT_MS == until[0] // SLOT_MS:
                return False
            messages = await self._messages(queue, tag, loader.partition, some)
            reached("bring.read")
            for at in range(0, max(len(some), 1), SLICE):
                part = messages[at : at + SLICE]
                to = Mark(*(until if is_last and at + SLICE >= len(some) else (part[-1].due_ms, part[-1].offset)))
                brought = await self._bring_some(loader, tag, found, to, part)
                if brought.stale or brought.full or brought.mark != to:
                    return False
                found = to
            if is_last or len(some) == READ_MOST:  # pointers are to be filed in between
                return not is_last or len(numbers) < len(state.slots)

    async def _bring_some(
        self, loader: Loader, tag: TagRecord, found: Mark, to: Mark, messages: Sequence[Pointed]
    ) -> Brought:
        brought = await self._scripts.bring(
            loader.unit, self._catalog.generation, loader.epoch, tag.id, found, to, messages
        )
        reached("bring.done")
        if brought.count:
            self._counters.count("brought_total", brought.count)
            self._receivable(loader.unit.incarnation, loader.partition, brought.head_ms)
        return brought

    async def _messages(
        self, queue: Queue, tag: TagRecord, partition: int, pointers: Sequence[Pointer]
    ) -> list[Pointed]:
        """The messages as the window takes them. What Kafka no longer has is brought without its
        record, if the tag wants every message: who is to deliver it tells of the loss.
        """
        due = {offset: due_ms for due_ms, offset in pointers}
        place, read, room = queue.tag_ids.index(tag.id), dict[int, Pointed](), READ_BYTES

        def keep(record: Record) -> None:
            nonlocal room
            one = _pointed(queue, place, due[record.offset], record)
            room -= len(one.packed)
            if room < 0:
                one = Pointed(one.offset, one.due_ms, one.packed[:HEADER_BYTES], one.group)
            read[record.offset] = one

        if due:
            await self._log.read_each(queue.topic, partition, due.keys(), keep)
        return [read.get(offset) or _lost(tag, due_ms, offset) for due_ms, offset in pointers]

    async def _check_slots(
        self, loader: Loader, queue: Queue, state: TagDeferred, pointers: Sequence[Pointer], slots: dict[int, Slot]
    ) -> None:
        """The wheel must have as many pointers of a slot as messages are deferred in it; has it
        lost some (an administrator deleted the topic), they are found again in the queue's.
        """
        after = (state.mark.ms, state.mark.offset)
        lacking = []
        for number, slot in slots.items():
            end = ((number + 1) * SLOT_MS - 1, LAST_OFFSET)
            begin = max(after, (number * SLOT_MS, -1))
            if slot.count(loader.unit, begin, end, _between(pointers, begin, end)) < state.slots[number]:
                lacking.append(number)
        if lacking and loader.repaired_at != (key := (state.mark, tuple(lacking))):
            loader.repaired_at = key
            await self._repair(loader, queue, state, lacking)
            await self._wheel.read(lacking)

    async def _repair(self, loader: Loader, queue: Queue, state: TagDeferred, lacking: Sequence[int]) -> None:
        """Reads the queue's topic for messages that are due in these slots, and points to them."""
        logger.error(
            "action=repair part=wheel queue=%s partition=%d slots=%s reason=the wheel has fewer pointers than are "
            "deferred",
            queue.name, loader.partition, lacking,
        )  # fmt: skip
        self._counters.count("wheel_repairs_total")
        part = (queue.topic, loader.partition)
        end = (await self._log.end_offsets([part])).get(part)
        if end is None:
            raise LogUnavailable(f"the end of {queue.topic} can't be read")
        at = max(state.bound, (await self._log.start_offsets([part])).get(part, 0))

        def fetch(start: int) -> Awaitable[Chunk]:
            return self._message_log.fetch(*part, start, CHUNK_RECORDS, CHUNK_BYTES)

        while at < end:
            chunk = await fetch(at)
            # As the loader judges them: a torn batch was never deferred.
            found = await assemble(loader.unfinished, queue, chunk, fetch)
            far = (
                entry
                for entry in (*found.ordered, *found.early)
                if entry.packed and delay_of_body(entry.packed) >= FAR_DELAY_MS
            )
            dues = [(int.from_bytes(entry.packed[8:16]), entry.offset) for entry in far]
            pointers = [pointer for pointer in dues if pointer[0] // SLOT_MS in lacking]
            if pointers:
                await self._wheel.append(loader.unit, pointers)
            # What follows a batch that is not whole yet is among the early ones.
            after = found.next_offset if found.next_offset > at else chunk.next_offset
            if after <= at:
                break  # the log ends before
            at = after


def _first_hours(slots: Mapping[int, int], until_ms: int) -> tuple[list[int], Pointer]:
    """The slots to bring from now, and up to when: as many as have few pointers, one at least."""
    numbers, total = list[int](), 0
    for number in sorted(slots):
        total += slots[number]
        if numbers and total > HOURS_POINTERS:
            return numbers, (number * SLOT_MS, -1)  # all before this hour, so that the ones before are over
        numbers.append(number)
    return numbers, (until_ms, LAST_OFFSET)


def _between(pointers: Sequence[Pointer], after: Pointer, until: Pointer) -> Sequence[Pointer]:
    """Those of `pointers`, in order, that are after one and up to another."""
    return pointers[bisect.bisect_right(pointers, after) : bisect.bisect_right(pointers, until)]


def _merged(
    loader: Loader, slots: Sequence[Slot], pointers: Sequence[Pointer], found: Mark, until: Pointer
) -> Iterator[Pointer]:
    """Pointers after the mark and up to a time, in order, each once."""
    after = (found.ms, found.offset)
    # One hour after the other.
    here = itertools.chain.from_iterable(slot.between(loader.unit, after, until) for slot in slots)
    return (pointer for pointer, _ in itertools.groupby(heapq.merge(_between(pointers, after, until), here)))


def _decoded(record: Record) -> Message | None:
    try:
        return decode_message(record.value, record.headers)
    except UndecodableRecord:
        return None


def _pointed(queue: Queue, place: int, due_ms: int, record: Record) -> Pointed:
    message = _decoded(record)
    if message is None:
        return Pointed(record.offset, due_ms, b"")
    entry = load_entry(queue, record.offset, record.timestamp_ms, message, record.value or b"")
    return Pointed(record.offset, due_ms, entry.packed if entry.mask[place] == "1" else b"", entry.group)


def _lost(tag: TagRecord, due_ms: int, offset: int) -> Pointed:
    return Pointed(offset, due_ms, pack_body(due_ms, due_ms, None, b"") if tag.filter is None else b"")


Guard: TypeAlias = Callable[[Loader, Callable[[], Awaitable[object]]], Coroutine[Any, Any, None]]


class Turns:
    """One task for a unit at a time. `guard` runs its work, and sees to what it raises."""

    def __init__(self, deferrals: Deferrals, background: Background, guard: Guard) -> None:
        self.deferrals = deferrals
        self._background = background
        self._guard = guard
        self.tasks: dict[Unit, asyncio.Task[None]] = {}

    async def start_due(self, loaders: Iterable[Loader]) -> None:
        """Begins the turns that are due; waits for none."""
        self.begin_due(loaders)

    def begin_due(self, loaders: Iterable[Loader]) -> list[asyncio.Task[None]]:
        """The turns of these units that are due, begun or under way."""
        now = asyncio.get_running_loop().time()
        return [self._begin(loader) for loader in loaders if loader.turn_at <= now]

    def _begin(self, loader: Loader) -> asyncio.Task[None]:
        unit = loader.unit
        if unit not in self.tasks:
            task = self.tasks[unit] = self._background.start(
                self._guard(loader, lambda: self.deferrals.turn(loader)), "turn"
            )
            task.add_done_callback(lambda _: self.tasks.pop(unit, None))
        return self.tasks[unit]
