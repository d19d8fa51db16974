"""Messages that Kafka no longer has: told as expired, counted, logged; and a warning before it
comes to that.

Kafka's retention, or an administrator, may delete records that are still open or were never loaded.
Then nobody can deliver them: each becomes an `expired` entry of the journal. An open message whose
body is still in the window is delivered as always.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from engine.log import Log
from engine.rules.fifo import group_digest
from engine.rules.queue import Queue
from engine.window.window import Window
from runtime.counters import Counters
from runtime.signals import Signal
from schemas.records import TagRecord
from schemas.vocabulary import EventKind
from state.leases import LeaseScripts
from state.replies import LoadEntry

logger = logging.getLogger(__name__)

SLICE = 500
# A worker that dies between claim and expiry leaves messages that are delivered next, and found
# gone then.
CLAIM_MS = 1_000


class Retention:
    """Ends messages that Kafka no longer has. Any number of tasks and workers may find the same.
    `suspect` hears of a topic that is shorter than what is open.
    """

    def __init__(
        self, log: Log, leases: LeaseScripts, window: Window, counters: Counters, suspect: Signal[[Queue]]
    ) -> None:
        self._log = log
        self._leases = leases
        self._window = window
        self._counters = counters
        self._suspect = suspect

    async def gone(self, queue: Queue, partition: int, offsets: Sequence[int]) -> set[int]:
        """Those of `offsets` that Kafka has deleted. Raises LogUnavailable.

        One beyond the end of the log is not gone: a broker that has just started may answer with an
        older end. If it is the topic that is another one, `suspect` finds out.
        """
        part = (queue.topic, partition)
        low = (await self._log.start_offsets([part])).get(part)
        high = (await self._log.end_offsets([part])).get(part)
        if low is None or high is None:
            return set()  # the topic itself is away: not a matter of single messages
        if max(offsets) >= high:
            self._suspect(queue)
        return {offset for offset in offsets if offset < low}

    async def expire(self, queue: Queue, tag: TagRecord, partition: int, held: Sequence[tuple[int, int]]) -> int:
        """Ends messages (offset, nonce) that we hold and that Kafka no longer has; returns how
        many. Raises Unavailable.
        """
        unit = queue.units[partition]
        words = await self._window.call(
            queue, lambda g: self._leases.settle(unit, g, tag.id, EventKind.EXPIRED.value, held)
        )
        done = [offset for (offset, _), word in zip(held, words, strict=True) if word == "ok"]
        if done:
            self._counters.count("lost_to_retention_total", len(done))
            logger.error(
                "action=expire queue=%s tag=%s partition=%d first=%d last=%d messages=%d reason=Kafka no longer has "
                "them",
                queue.name, tag.name, partition, done[0], done[-1], len(done),
            )  # fmt: skip
        return len(done)

    async def expire_unloaded(self, queue: Queue, partition: int, low: int) -> int:
        """Ends what the window never took below the log's start `low`, under every tag; returns how
        many.

        Any worker may call it, at any time, also several at once: each message is counted once.
        Raises Unavailable, StateError.
        """
        total, unit = 0, queue.units[partition]
        for tag in queue.tags:
            probed = await self._window.call(
                queue,
                lambda g, t=tag.id: self._leases.probe(unit, g, t),  # type: ignore[misc]
            )
            at = probed.cursor
            while at < low:
                offsets = range(at, min(at + SLICE, low))
                total += await self._expire_slice(queue, tag, partition, offsets)
                at = offsets.stop
        return total

    async def _expire_slice(self, queue: Queue, tag: TagRecord, partition: int, offsets: range) -> int:
        unit, leases = queue.units[partition], self._leases
        states = await self._window.call(queue, lambda g: leases.states(unit, g, tag.id, offsets))
        lost = [offset for offset, state in zip(offsets, states, strict=True) if state.state == "stored"]
        count = 0
        if lost:
            group = group_digest(None) if queue.record.fifo else b""
            messages = [(offset, group, "") for offset in lost]
            claimed = await self._window.call(
                queue, lambda g: leases.claim(unit, g, tag.id, messages, claim_ms=CLAIM_MS, beyond=True)
            )
            held = [
                (offset, claimed.nonce) for offset, (word, _) in zip(lost, claimed.words, strict=True) if word == "ok"
            ]
            count = await self.expire(queue, tag, partition, held) if held else 0
        if queue.record.fifo:
            return count  # in order: the loader passes over them
        # A record that is none, at the cursor: it passes over all that was taken just now.
        step = LoadEntry(offsets.start, b"", "0", "", "")
        await self._window.call(queue, lambda g: leases.load(unit, g, [tag.id], [step]))
        return count
