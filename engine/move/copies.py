"""Copies that a mover before has made: whoever takes over a move looks whether its target has the
message.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.errors import LogUnavailable
from engine.log import Log
from engine.rules.placement import moved_partition
from engine.rules.queue import Ids, Queue
from engine.window.window import MOVER_LEASE_MS
from schemas.identity import MessageId, address_of
from schemas.records import Message, TagRecord
from schemas.vocabulary import LOG_TIME_MARGIN_MS
from schemas.wire import UndecodableRecord, decode_message
from state.unit_caller import UnitCaller


class Held(msgspec.Struct, frozen=True):
    """A message that we hold at its source. `again_ms`: a mover before had it until then, 0 =
    none. `until_ms`: a copy may be made until then. Others hold the message from that time on, and
    what they do is seen only by a look at the target; who looks may go on for as long again.
    """

    offset: int
    nonce: int
    message: Message
    sent_at_ms: int
    count: int
    first_received_at_ms: int
    reason: str
    again_ms: int
    until_ms: int
    note: str = ""


class Copies:
    """Looks at targets. Any number of tasks may ask."""

    def __init__(self, log: Log, units: UnitCaller, ids: Ids) -> None:
        self._log = log
        self._units = units
        self._ids = ids

    async def looked(
        self, queue: Queue, tag: TagRecord, partition: int, target: Queue, held: Sequence[Held]
    ) -> tuple[list[Held], dict[str, str]]:
        """Returns all of them, held for as long from this look on, and those of which the target
        has a copy, made by a mover before: by their addresses that of the copy. Raises
        LogUnavailable.
        """
        since: dict[int, int] = {}
        for item in held:
            if item.again_ms:
                at = target_partition(target, item, self._ids.message_id(queue, partition, item.offset), tag)
                since[at] = min(item.again_ms, since.get(at, item.again_ms))
        there: dict[str, str] = {}
        for at, again_ms in since.items():
            # The longest hold is a task's claim, which lasts twice as long (`redrive_step.py`).
            there |= await self._copies(target, at, again_ms - 2 * MOVER_LEASE_MS - LOG_TIME_MARGIN_MS, tag)
        until_ms = self._units.now_ms() + MOVER_LEASE_MS
        return [msgspec.structs.replace(item, until_ms=until_ms) if item.again_ms else item for item in held], there

    async def _copies(self, target: Queue, partition: int, since_ms: int, tag: TagRecord) -> dict[str, str]:
        """Addresses of the messages that were moved to a partition from under a tag of that name
        since then, and of the first copy of each.
        """
        part, found = (target.topic, partition), dict[str, str]()
        offset = (await self._log.offsets_at([part], since_ms)).get(part)
        if offset is None:
            raise LogUnavailable(f"the end of {target.topic} can't be read")
        while True:
            chunk = await self._log.fetch(target.topic, partition, offset, 5000, 8_000_000)
            for record in chunk.records:
                try:
                    origin = decode_message(record.value, record.headers).origin
                except UndecodableRecord:
                    continue
                if origin is not None and origin.from_tag == tag.name:
                    found.setdefault(
                        address_of(origin.from_id), MessageId(target.incarnation, partition, record.offset).address
                    )
            if chunk.at_end:
                return found
            offset = chunk.next_offset


def target_partition(target: Queue, held: Held, from_id: str, tag: TagRecord) -> int:
    """The same for each copy of a move, so that its copies meet in one window."""
    return moved_partition(target.record, held.message, from_id, tag.name)
