"""Attempts: a receive of a FIFO queue that was named by its caller, repeated when the answer got
lost.

A lost answer shuts its groups until the leases end. The same attempt within five minutes gets the
same messages with the same handles, leased anew, unless one of them was settled, delivered again,
or given another deadline meanwhile; then it is a receive like any other. Kept in this worker's
memory, without bodies: another worker, or this one started again, does not know it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.handles.leases import Leases
from engine.log import Log
from engine.rules.queue import Queue
from engine.shapes import Delivery, ExtendEntry, Late
from engine.window.window import Window
from runtime.clock import elapsed_s
from runtime.deadline import state_until
from schemas.records import Message, TagRecord
from schemas.vocabulary import EntryStatus, MessageState
from schemas.wire import decode_message
from state.leases import LeaseScripts

KEPT_S = 300
# Of one worker: the oldest is forgotten first.
MOST = 5_000

_Key = tuple[str, int, str, str]
_NO_BODY = Message(b"")


class Attempts:
    """The attempts of the last five minutes, oldest first."""

    def __init__(self, log: Log, scripts: LeaseScripts, window: Window, leases: Leases) -> None:
        self._log = log
        self._scripts = scripts
        self._window = window
        self._leases = leases
        self._kept: dict[_Key, tuple[float, list[Delivery]]] = {}

    def keep(self, queue: Queue, tag: TagRecord, by: str, attempt: str, deliveries: Sequence[Delivery]) -> None:
        """Remembers what an attempt was answered with."""
        key = (queue.incarnation, tag.id, by, attempt)
        self._kept.pop(key, None)
        self._kept[key] = (elapsed_s() + KEPT_S, [msgspec.structs.replace(one, message=_NO_BODY) for one in deliveries])
        self._forget()

    def forget(self, deliveries: Sequence[Delivery]) -> None:
        """No answer carried these, of one receive, and they are about to be given back: whoever
        repeats that attempt must not have them leased anew under the same handles.
        """
        handles = {one.handle for one in deliveries}
        self._kept = {
            key: kept for key, kept in self._kept.items() if handles.isdisjoint(one.handle for one in kept[1])
        }

    def _forget(self) -> None:
        now = elapsed_s()
        for key, (end, _) in list(self._kept.items()):
            if end > now and len(self._kept) <= MOST:
                return
            del self._kept[key]

    async def again(self, queue: Queue, tag: TagRecord, by: str, attempt: str, lease_ms: int | None) -> list[Delivery]:
        """What the attempt was answered with, leased anew for `lease_ms` (None = as a receive
        does); empty = it does not count.
        """
        self._forget()
        key = (queue.incarnation, tag.id, by, attempt)
        end, deliveries = self._kept.get(key, (0.0, []))
        whole = (
            await self._with_messages(queue, deliveries)
            if deliveries and await self._untouched(queue, tag, deliveries)
            else []
        )
        if not whole:
            self._kept.pop(key, None)
            return []
        entries = [ExtendEntry(one.handle, _lease_ms(queue, one, lease_ms)) for one in whole]
        results = await self._leases.extend(queue, entries, state_until(), late=Late.NEVER)
        if any(result.status != EntryStatus.OK for result in results):
            self._kept.pop(key, None)
            return []
        answer = [
            msgspec.structs.replace(
                one, next_visible_at_ms=result.next_visible_at_ms or one.next_visible_at_ms, repeated=True
            )
            for one, result in zip(whole, results, strict=True)
        ]
        self._kept[key] = (end, [msgspec.structs.replace(one, message=_NO_BODY) for one in answer])
        return answer

    async def _untouched(self, queue: Queue, tag: TagRecord, deliveries: Sequence[Delivery]) -> bool:
        """Whether each message is still leased by the very delivery, until the very time."""
        for partition, mine in _by_partition(deliveries).items():
            unit, offsets = queue.units[partition], [one.offset for one in mine]
            states = await self._window.call(
                queue,
                lambda g, u=unit, o=offsets: self._scripts.states(u, g, tag.id, o),  # type: ignore[misc]
            )
            for one, now in zip(mine, states, strict=True):
                if (now.state, now.count, now.next_visible_at_ms) != (
                    MessageState.LEASED,
                    one.receive_count,
                    one.next_visible_at_ms,
                ):
                    return False
        return True

    async def _with_messages(self, queue: Queue, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """The deliveries with their messages, from Kafka; none when one is gone."""
        messages: dict[tuple[int, int], Message] = {}
        for partition, mine in _by_partition(deliveries).items():
            records = await self._log.read_at(queue.topic, partition, [one.offset for one in mine])
            messages.update(
                {
                    (partition, offset): decode_message(record.value, record.headers)
                    for offset, record in records.items()
                }
            )
        if any((one.partition, one.offset) not in messages for one in deliveries):
            return []
        return [msgspec.structs.replace(one, message=messages[one.partition, one.offset]) for one in deliveries]


def _by_partition(deliveries: Sequence[Delivery]) -> dict[int, list[Delivery]]:
    parts: dict[int, list[Delivery]] = {}
    for one in deliveries:
        parts.setdefault(one.partition, []).append(one)
    return parts


def _lease_ms(queue: Queue, one: Delivery, lease_ms: int | None) -> int:
    own = queue.record.lease_ms if one.message.lease_ms is None else one.message.lease_ms
    return own if lease_ms is None else lease_ms
