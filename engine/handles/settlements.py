"""ack: who holds a message settles it.

Acks of concurrent callers on one unit and tag are settled by one call: while one is under way,
what comes is asked for together; while there are many, a call lingers for more (`linger.py`).
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Sequence
from itertools import starmap
from typing import TypeAlias

from engine.handles.handles import WORDS, ByUnit, Handles, Refusals, answers, rows_of
from engine.meters.meters import NO_TAG, Meters
from engine.rules.linger import LINGER_S, batch_size_if_shared, should_linger
from engine.rules.queue import Queue
from engine.shapes import EntryResult, Late
from engine.window.body_source import BodyCache
from engine.window.window import Journaled
from runtime.background import Background
from runtime.deadline import began_ns, journal_until
from runtime.signals import Signal
from schemas.vocabulary import EntryStatus, Operation
from state.keys import Unit
from state.leases import LeaseScripts
from state.replies import Acked

# Of one call to the window; a caller has 100 at most.
MOST = 500

# (offset, nonce) of each handle, or of all of a caller with the deadline that it names, 0 = none.
Pairs: TypeAlias = Sequence[tuple[int, ...]]
_Asked: TypeAlias = tuple[Pairs, asyncio.Future[Acked]]
_Key: TypeAlias = tuple[Unit, int, int, bool, int]


class Acks:
    """Any number of tasks may ack at once; each handle is judged as if its caller had asked
    alone.
    """

    def __init__(self, leases: LeaseScripts, bodies: BodyCache) -> None:
        self._leases = leases
        self._bodies = bodies
        self._waiting: dict[_Key, collections.deque[_Asked]] = {}
        self._background = Background()

    def ack(self, unit: Unit, generation: int, tag: int, pairs: Pairs, *, late: bool) -> asyncio.Future[Acked]:
        """To be awaited as `LeaseScripts.ack`, and raises what that does; `seq` is that of the
        journal entry of the whole call.

        A caller that is cancelled has acked nevertheless, or has not: as when its answer is lost.
        """
        done: asyncio.Future[Acked] = asyncio.get_running_loop().create_future()
        key = (unit, generation, tag, late, len(pairs[0]))
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = collections.deque()
            self._background.start(self._settle(key, waiting), "ack")
        waiting.append((pairs, done))
        return done

    async def _settle(self, key: _Key, waiting: collections.deque[_Asked]) -> None:
        last = 0
        while waiting or last:
            if last and should_linger(last, sum(len(pairs) for pairs, _ in waiting)):
                await asyncio.sleep(LINGER_S)
            if not waiting:
                break
            some, size = [], 0
            while waiting and size + len(waiting[0][0]) <= MOST:
                some.append(waiting.popleft())
                size += len(some[-1][0])
            last = batch_size_if_shared(size, len(some))
            try:
                await self._call(key, some)
            except Exception as error:  # the callers must hear of it, whatever it is
                for _, done in some:
                    if not done.done():
                        done.set_exception(error)
        del self._waiting[key]

    async def _call(self, key: _Key, some: Sequence[_Asked]) -> None:
        unit, generation, tag, late, _ = key
        pairs = some[0][0] if len(some) == 1 else [pair for mine, _ in some for pair in mine]
        acked = await self._leases.ack(unit, generation, tag, pairs, late=late)
        if acked.seq:
            words, settled = acked.words, pairs
            if words.count(EntryStatus.OK) < len(words):
                settled = [pair for pair, word in zip(pairs, words, strict=True) if word == EntryStatus.OK]
            self._bodies.settle(unit, settled)
        at = 0
        for mine, done in some:
            if not done.done():
                done.set_result(Acked(acked.words[at : at + len(mine)], acked.seq))
            at += len(mine)


class Settlements:
    """Any number of tasks and workers may use the same handle: one of them settles the message.
    `wait_journaled(queue, partition, seq, until)` waits.
    """

    def __init__(
        self,
        acks: Acks,
        handles: Handles,
        by_unit: ByUnit,
        wait_journaled: Journaled,
        refusals: Refusals,
        receivable: Signal[[str, int, int]],
        meters: Meters,
    ) -> None:
        self._acks = acks
        self._handles = handles
        self._by_unit = by_unit
        self._wait_journaled = wait_journaled
        self._refusals = refusals
        self._receivable = receivable
        self._meters = meters

    async def ack(
        self, queue: Queue, texts: Sequence[str], until: float, *, late: Late = Late.ALWAYS, all_or_none: bool = False
    ) -> list[EntryResult]:
        """Settles messages. With `durable_acks` the answer waits until the journal in Kafka has it.

        Raises Unavailable at `until` (loop time), and LogUnavailable when the journal takes over
        5 s: the messages are settled, but a loss of Redis might forget it.
        """
        began, durable_until = began_ns(), journal_until()
        queue, good, handles, refused = await self._handles.parse(queue, texts, until, all_or_none=all_or_none)
        counts = late is Late.ALWAYS or (late is Late.BY_QUEUE and not queue.record.fifo)
        rows: list[tuple[int, ...]] = []
        for handle in handles:
            if handle.until_ms:
                rows = rows_of(handles)
                break
            rows.append((handle.offset, handle.nonce))
        written: list[tuple[int, int]] = []

        async def call(unit: Unit, g: int, tag: int, indexes: Sequence[int]) -> list[str]:
            mine = rows if len(indexes) == len(rows) else [rows[i] for i in indexes]
            acked = await self._acks.ack(unit, g, tag, mine, late=counts)
            if acked.seq:
                written.append((unit.partition, acked.seq))
            return acked.words

        words = await self._by_unit.each(queue, handles, call, WORDS, until)
        self._by_unit.note_ended(self._meters.times.acked, handles, words)
        if queue.record.durable_acks:
            # Not in the call: a loss of state while waiting must not repeat an ack that is done.
            waits = [self._wait_journaled(queue, partition, seq, durable_until) for partition, seq in written]
            await asyncio.gather(*waits)
        if queue.record.max_in_flight:
            self._receivable(queue.incarnation, -1, 0)
        elif queue.record.fifo:
            for partition in {handle.partition for handle in handles}:
                self._receivable(queue.incarnation, partition, 0)
        done = words.count(EntryStatus.OK)
        self._meters.note(queue.incarnation, handles[0].tag if handles else NO_TAG, Operation.DELETE, done, began)
        if done == len(words):
            return answers(texts, list(starmap(EntryResult, zip(good, words, strict=True))), refused)
        over = EntryStatus.STALE if counts else EntryStatus.LAPSED
        return answers(texts, self._refusals.judge(queue, good, handles, words, over), refused)
