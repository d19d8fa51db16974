"""Moves: a message goes to another queue, then its source forgets it. Dead letters and redrive are moves.

Steps, each may be the last before a crash: held at the source (dying or claimed, with a time limit) -> appended to the target ->
in the target's window -> settled at the source. Whoever takes over after a crash looks first whether the target has the message; of
two copies in the target's log the first counts, and the window drops the other by its move key. So there is one delivery at rest,
whatever is killed in between.
Neighbours: `receiver.py`, `leases.py` bring dying messages, `tasks.py` claimed ones. Must not know HTTP.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Sequence

import msgspec

from engine.core import CLOCK_MARGIN_MS, MOVE_MS, Core, now_ms
from engine.errors import EngineError, LogUnavailable
from engine.failpoints import reached
from engine.fifo import partition_of
from engine.limits import RESERVED_ATTRIBUTE
from engine.queue import Queue
from engine.retention import expire, gone
from schemas.records import Attribute, Message, Origin, TagRecord
from schemas.wire import UndecodableRecord, decode_message, encode
from state.replies import Dying
from state.store import HEADER_BYTES

logger = logging.getLogger(__name__)


class Held(msgspec.Struct, frozen=True):
    """A message that we hold at its source. `again_ms`: a mover before had it until then, 0 = none."""

    offset: int
    nonce: int
    message: Message
    sent_at_ms: int
    count: int
    first_received_at_ms: int
    reason: str
    again_ms: int


class Mover:
    """Moves of this worker. Two movers may work on one message: the target keeps one."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def move_dead(self, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying]) -> list[bool]:
        """Moves dying messages to the dead-letter queue; one bool each. What fails is taken up again after 30 s."""
        policy = queue.record.redrive_policy
        target = self._core.control.queues.get(policy.dead_letter_queue) if policy is not None else None
        if target is None:
            return [False] * len(dying)
        held = await self._hold(queue, tag, partition, dying)
        done = []
        for item, letter in zip(held, dying, strict=True):
            done.append(item is not None and await self.move(queue, tag, partition, item, target, "dead"))
            if not done[-1]:
                logger.warning("action=move queue=%s partition=%d offset=%d outcome=failed", queue.name, partition, letter.offset)
        return done

    async def _hold(self, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying]) -> list[Held | None]:
        kept = self._core.bodies.of.get(queue.units[partition], {})
        missing = [d.offset for d in dying if not d.packed and d.offset not in kept]
        records = await self._core.read_offsets(queue, partition, missing) if missing else {}
        if len(records) < len(missing):
            over = await gone(self._core, queue, partition, [offset for offset in missing if offset not in records])
            await expire(self._core, queue, tag, partition, [(d.offset, d.nonce) for d in dying if d.offset in over])
        held: list[Held | None] = []
        for d in dying:
            try:
                if d.packed:
                    message, sent_at_ms = decode_message(d.packed[HEADER_BYTES:], None), int.from_bytes(d.packed[:8])
                elif (own := kept.get(d.offset)) is not None:
                    message, sent_at_ms = own.message, own.sent_at_ms
                else:
                    record = records[d.offset]
                    message, sent_at_ms = decode_message(record.value, record.headers), record.timestamp_ms
            except (KeyError, UndecodableRecord):
                held.append(None)
                continue
            held.append(Held(d.offset, d.nonce, message, sent_at_ms, d.count, d.first_received_at_ms, d.reason, d.again_ms))
        return held

    async def move(self, queue: Queue, tag: TagRecord, partition: int, held: Held, target: Queue, kind: str) -> bool:
        """Moves one held message and settles it at its source as `kind` (dead, moved). False: it stays held until its time."""
        from_id = self._core.message_id(queue, partition, held.offset)
        reached("move.held")
        if target.record.fifo:
            target_partition = partition_of(target.record, held.message.group or "")
        else:
            target_partition = zlib.crc32(f"{from_id}/{tag.name}".encode()) % len(target.units)
        try:
            if not (held.again_ms and await self._is_there(target, target_partition, from_id, tag.name, held.again_ms)):
                message = _moved(queue, tag, held, from_id, kind)
                value = encode(message)
                appended = await self._core.log.append(target.topic, target_partition, value)
                reached("move.appended")
                entry = self._core.load_entry(target, appended.offset, appended.timestamp_ms, message, value)
                await self._core.write_through(target, target_partition, [entry])
                reached("move.loaded")
            reached("move.before_settle")
            unit = queue.units[partition]
            await self._core.on_state(queue, lambda g: self._core.store.settle(unit, g, tag.id, kind, [(held.offset, held.nonce)]))
            reached("move.after_settle")
        except EngineError as error:
            logger.warning("action=move queue=%s target=%s id=%s error=%s", queue.name, target.name, from_id, error)
            return False
        self._core.count(f"messages_{kind}_total")
        return True

    async def _is_there(self, target: Queue, partition: int, from_id: str, from_tag: str, again_ms: int) -> bool:
        """Whether the target has a copy made by the mover before. Raises LogUnavailable."""
        parts = [(target.topic, partition)]
        since = again_ms - MOVE_MS - CLOCK_MARGIN_MS
        offset = (await self._core.log.offsets_at(parts, since)).get(parts[0])
        if offset is None:
            raise LogUnavailable(f"the end of {target.topic} can't be read")
        while True:
            chunk = await self._core.log.fetch(target.topic, partition, offset, 5000, 8_000_000)
            for record in chunk.records:
                try:
                    origin = decode_message(record.value, record.headers).origin
                except UndecodableRecord:
                    continue
                if origin is not None and origin.from_id == from_id and origin.from_tag == from_tag:
                    return True
            if chunk.at_end:
                return False
            offset = chunk.next_offset


def _moved(queue: Queue, tag: TagRecord, held: Held, from_id: str, kind: str) -> Message:
    """The copy for the target: body and attributes as they were, and where it came from."""
    before = held.message.origin
    origin = Origin(
        from_id=from_id,
        from_tag=tag.name,
        original_id=before.original_id if before else from_id,
        original_queue=before.original_queue if before else queue.name,
        original_tag=before.original_tag if before else tag.name,
        reason=held.reason,
        receive_count=held.count,
        first_received_at_ms=held.first_received_at_ms,
        original_sent_at_ms=before.original_sent_at_ms if before else held.sent_at_ms,
        moved_at_ms=now_ms(),
    )
    attributes = {name: a for name, a in held.message.attributes.items() if name != RESERVED_ATTRIBUTE}
    if kind == "dead":
        attributes[RESERVED_ATTRIBUTE] = Attribute("STRING", queue.name.encode())
    return msgspec.structs.replace(
        held.message, attributes=attributes, delay_ms=0, origin=origin, batch=None, sender=held.message.sender or "native"
    )
