"""ack: who holds a message settles it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import starmap

from engine.handles.acks import Acks
from engine.handles.by_unit import WORDS, ByUnit
from engine.handles.handles import Handles, answers, rows_of
from engine.handles.refusals import Refusals
from engine.meters.meters import NO_TAG, Meters
from engine.rules.queue import Queue
from engine.shapes import EntryResult, Late
from engine.window.window import Journaled
from runtime.deadline import began_ns, journal_until
from runtime.signals import Signal
from schemas.vocabulary import EntryStatus, Operation
from state.keys import Unit


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
            # Not within the call: a loss of state while waiting must not make the ack again, which
            # is done.
            await asyncio.gather(*(self._wait_journaled(queue, partition, seq, durable_until) for partition, seq in written))
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
