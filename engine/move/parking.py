"""Parked groups of FIFO queues: which there are, and how they go on.

A receive parks a group (state/lua/receive_fifo.lua): its first message was received as often as the
queue allows. That message has a mark in Redis and an entry in the journal, and those behind it are
held back by the order alone, so nothing more has to be kept, rebuilt or forgotten
(docs/decisions/0028).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from engine.errors import InvalidValue, NotAllowedOnQueue
from engine.log import Log, Record
from engine.move.dead_letters import DeadLetters
from engine.rules.fifo import check_group, group_digest, partition_of_group
from engine.rules.limits import check_asked
from engine.rules.queue import Ids, Queue
from engine.shapes import ParkedGroup, ParkedPage
from engine.window.window import MOVER_LEASE_MS, Journaled, Window
from runtime.counters import Counters
from runtime.deadline import journal_until
from schemas.records import TagRecord
from schemas.vocabulary import LAST_MS
from schemas.wire import UndecodableRecord, decode_message
from state.deferred import DeferredScripts
from state.replies import Dying, Parked

logger = logging.getLogger(__name__)


CheckPolicy: TypeAlias = Callable[[Queue, TagRecord], None]


class ParkedGroups:
    """Looks at parked groups. Any number of tasks may ask at once."""

    def __init__(self, log: Log, deferred: DeferredScripts, window: Window, ids: Ids) -> None:
        self._log = log
        self._deferred = deferred
        self._window = window
        self._ids = ids

    async def groups(self, queue: Queue, tag: TagRecord, limit: int, next: str | None) -> ParkedPage:
        """Parked groups, partition by partition, by when the retention of their first messages
        ends; a page at a time. One that is unparked meanwhile may be missing, or others come twice.

        Raises InvalidValue for a bad limit or `next`, NotAllowedOnQueue, Unavailable.
        """
        _check_fifo(queue)
        check_asked("limit", limit)
        partition, after = _resume(next, len(queue.units)) if next else (0, None)
        found: list[ParkedGroup] = []
        while partition < len(queue.units):
            some = await self._parked(queue, tag, partition, limit - len(found) + 1, after)
            page = some[: limit - len(found)]
            found += await self._shown(queue, partition, page)
            if len(page) < len(some):
                return ParkedPage(found, _token(partition, page[-1] if page else None))
            partition, after = partition + 1, None
        return ParkedPage(found, None)

    async def _parked(
        self, queue: Queue, tag: TagRecord, partition: int, max: int, after: tuple[int, int] | None
    ) -> list[Parked]:
        self._window.used(queue, partition)
        unit = queue.units[partition]
        return await self._window.call(queue, lambda g: self._deferred.parked(unit, g, tag.id, max=max, after=after))

    async def _shown(self, queue: Queue, partition: int, parked: Sequence[Parked]) -> list[ParkedGroup]:
        """With the names of the groups, which only the records have."""
        if not parked:
            return []
        groups: dict[int, str | None] = {}

        def note(record: Record) -> None:
            groups[record.offset] = _group(record)

        await self._log.read_each(queue.topic, partition, [one.offset for one in parked], note)
        return [
            ParkedGroup(
                group=groups.get(one.offset),
                message_id=self._ids.message_id(queue, partition, one.offset),
                partition=partition,
                offset=one.offset,
                receive_count=one.count,
                first_received_at_ms=one.first_received_at_ms,
                expires_at_ms=None if one.until_ms >= LAST_MS else one.until_ms,
                held=one.held,
            )
            for one in parked
        ]


class Parking:
    """Resumes parked groups. Any number of tasks and workers may ask at once.

    `check_policy(queue, tag)` raises NotAllowedOnQueue where nothing can be killed,
    `wait_journaled(queue, partition, seq, until)` waits.
    """

    def __init__(
        self,
        deferred: DeferredScripts,
        window: Window,
        dead_letters: DeadLetters,
        counters: Counters,
        check_policy: CheckPolicy,
        wait_journaled: Journaled,
    ) -> None:
        self._deferred = deferred
        self._window = window
        self._dead_letters = dead_letters
        self._counters = counters
        self._check_policy = check_policy
        self._wait_journaled = wait_journaled

    async def unpark(self, queue: Queue, tag: TagRecord, group: str, *, kill: bool) -> bool:
        """Resumes a group: its first message may be received again as if it never had been, or with
        `kill` goes to the dead-letter queue. "" = what has no group, of every partition.

        False = the group is not parked. Returns when the journal has it. Raises InvalidValue,
        NotAllowedOnQueue, LogUnavailable (the outcome is unknown; it may be repeated), Unavailable.
        """
        _check_fifo(queue)
        check_group(group)
        if kill:
            self._check_policy(queue, tag)
        until = journal_until()
        partitions = [partition_of_group(queue.record, group)] if group else range(len(queue.units))
        return any(
            await asyncio.gather(
                *(self._unpark(queue, tag, partition, group, until, kill=kill) for partition in partitions)
            )
        )

    async def _unpark(
        self, queue: Queue, tag: TagRecord, partition: int, group: str, until: float, *, kill: bool
    ) -> bool:
        self._window.used(queue, partition)
        unit, digest, move_ms = queue.units[partition], group_digest(group), MOVER_LEASE_MS if kill else 0
        found: tuple[int, Dying] | None = await self._window.call(
            queue, lambda g: self._deferred.unpark(unit, g, tag.id, digest, move_ms=move_ms)
        )
        if found is None:
            return False
        seq, message = found
        self._counters.count("groups_unparked_total")
        logger.info(
            "action=unpark queue=%s tag=%s partition=%d offset=%d group=%s kill=%s",
            queue.name, tag.name, partition, message.offset, group, kill,
        )  # fmt: skip
        if kill:
            await self._dead_letters.move_dead(queue, tag, partition, [message])
        # Not within the call: a loss of state while waiting must not do it again, which is done.
        await self._wait_journaled(queue, partition, seq, until)
        return True


def _check_fifo(queue: Queue) -> None:
    if not queue.record.fifo:
        raise NotAllowedOnQueue(
            f"queue {queue.name!r} is a standard queue: no group of it waits", field="queue", given=queue.name
        )


def _group(record: Record) -> str | None:
    try:
        return decode_message(record.value, record.headers).group
    except UndecodableRecord:
        return None


def _token(partition: int, last: Parked | None) -> str:
    """The `next` of a page that ends with a message, None = before the first of the partition."""
    place = (partition, last.until_ms, last.offset) if last else (partition, -1, -1)
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(place)).decode().rstrip("=")


def _resume(token: str, partitions: int) -> tuple[int, tuple[int, int] | None]:
    try:
        partition, until_ms, offset = msgspec.msgpack.decode(
            base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True), type=tuple[int, int, int]
        )
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        raise InvalidValue(
            "next is not a token that a list of parked groups has given out", field="next", given=token[:100]
        ) from None
    if not 0 <= partition < partitions or not -1 <= until_ms <= LAST_MS or not -1 <= offset < 2**40:
        raise InvalidValue("next is not a token of this queue", field="next", given=token[:100])
    return partition, None if until_ms < 0 else (until_ms, offset)
