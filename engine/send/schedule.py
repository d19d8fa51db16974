"""cancel, reschedule: what the sender of a delayed message may still change, by its id.

A script decides under all tags at once, so a message is cancelled, or given to somebody, never
both. The answer comes when the journal has it: a loss of Redis takes nothing back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from engine.errors import LogUnavailable, MessageDue, MessageNotFound, NotAllowedOnQueue, Rebuilding
from engine.log import Log
from engine.rules.fifo import group_digest
from engine.rules.limits import check_deliver_at
from engine.rules.queue import Queue
from engine.window.delays import Delays
from engine.window.entry import delay_of, far_dues
from engine.window.window import Journaled, Window
from runtime.cancel import before
from runtime.deadline import journal_until
from schemas.records import Message
from schemas.wire import UndecodableRecord, decode_message
from state.deferred import DeferredScripts

Address: TypeAlias = Callable[[Queue, str], tuple[int, int]]


class Schedule:
    """Changes of delayed messages. `address(queue, text)` finds a message by its id,
    `wait_journaled(queue, partition, seq, until)` waits.
    """

    def __init__(
        self,
        log: Log,
        deferred: DeferredScripts,
        window: Window,
        delays: Delays,
        address: Address,
        wait_journaled: Journaled,
    ) -> None:
        self._log = log
        self._deferred = deferred
        self._window = window
        self._delays = delays
        self._address = address
        self._wait_journaled = wait_journaled

    async def cancel(self, queue: Queue, text: str) -> None:
        """Settles a delayed message under all tags. Raises MessageNotFound, also when it is settled
        already, MessageDue, Unavailable.
        """
        until = journal_until()
        partition, offset, sent_at_ms, message = await before(until, self._read(queue, text), _not_read)
        unit, dues = queue.units[partition], far_dues(queue, sent_at_ms, message)
        due_ms = sent_at_ms + delay_of(queue, message)
        word, seq = await self._window.call(
            queue, lambda g: self._deferred.cancel(unit, g, queue.tag_ids, offset, due_ms, dues)
        )
        await self._judge(queue, partition, text, word, seq, until)

    async def reschedule(self, queue: Queue, text: str, deliver_at_ms: int) -> None:
        """Gives a delayed message another due time, as far from now as the queue lets a message be
        delayed; one that is past means now.

        Raises as `cancel` does, and NotAllowedOnQueue for a FIFO queue, DelayTooLong,
        TooManyDelayed.
        """
        if queue.record.fifo:
            raise NotAllowedOnQueue(
                "a message in a FIFO queue has the delay of its queue", field="queue", given=queue.name
            )
        now, until = self._log.clock.earliest_ms(), journal_until()
        check_deliver_at(queue.record, deliver_at_ms, self._log.clock.latest_ms())
        partition, offset, sent_at_ms, message = await before(until, self._read(queue, text), _not_read)
        if deliver_at_ms > now:
            await before(until, self._delays.make_room_for(queue, deliver_at_ms - sent_at_ms), _not_read)
        unit, dues = queue.units[partition], far_dues(queue, sent_at_ms, message)
        due_ms, group = sent_at_ms + delay_of(queue, message), group_digest(message.group) if message.group else b""
        word, seq = await self._window.call(
            queue,
            lambda g: self._deferred.reschedule(
                unit, g, queue.tag_ids, offset, due_ms, dues, time_ms=deliver_at_ms, group=group
            ),
        )
        await self._judge(queue, partition, text, word, seq, until)

    async def _read(self, queue: Queue, text: str) -> tuple[int, int, int, Message]:
        """(partition, offset, sent at ms, message). Raises MessageNotFound."""
        partition, offset = self._address(queue, text)
        self._window.used(queue, partition)
        record = (await self._log.read_at(queue.topic, partition, [offset])).get(offset)
        if record is not None:
            try:
                return partition, offset, record.timestamp_ms, decode_message(record.value, record.headers)
            except UndecodableRecord:
                pass
        raise MessageNotFound(
            f"queue {queue.name!r} has no message {text[:100]!r}, or no longer", field="id", given=text[:100]
        )

    async def _judge(self, queue: Queue, partition: int, text: str, word: str, seq: int, until: float) -> None:
        if word == "due":
            raise MessageDue(
                f"message {text[:100]!r} is due, or was delivered; it can't be changed any more",
                field="id",
                given=text[:100],
            )
        if word == "settled":
            raise MessageNotFound(f"message {text[:100]!r} is settled under all tags", field="id", given=text[:100])
        if word == "stored":
            raise Rebuilding(f"queue {queue.name!r} has not come to message {text[:100]!r} yet; try again")
        await self._wait_journaled(queue, partition, seq, until)


def _not_read() -> LogUnavailable:
    return LogUnavailable("Kafka did not answer in time: nothing was changed")
