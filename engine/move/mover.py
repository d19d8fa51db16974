"""Moves: a message goes to another queue, then its source forgets it. Dead letters and redrive are
moves.

Steps, each may be the last before a crash: held at the source (dying or claimed, with a time limit)
-> appended to the target -> in the target's window -> settled at the source. Whoever takes over
after a crash looks first whether the target has the message; of two copies in the target's log the
first counts, and the window drops the other by its move key. So there is one delivery at rest,
whatever is killed in between.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

import msgspec

from engine.errors import EngineError, LogUnavailable, Unavailable
from engine.log import Log
from engine.move.copies import Copies, Held, target_partition
from engine.move.shapes import Move
from engine.rules.limits import RESERVED_ATTRIBUTE
from engine.rules.queue import Ids, Queue
from engine.window.entry import WriteThrough, load_entry
from engine.window.window import Window
from runtime.clock import now_ms
from runtime.counters import Counters
from runtime.failpoints import reached
from runtime.signals import Signal
from schemas.identity import MessageId, address_of
from schemas.records import Attribute, Message, Origin, TagRecord
from schemas.records.moves import move_reason
from schemas.vocabulary import NATIVE_SENDER, EventKind, Reason
from schemas.wire import encode
from state.leases import LeaseScripts

logger = logging.getLogger(__name__)


class Outcome(enum.Enum):
    """Of a task's move: done; it can't be done; not now: the message is held until its time, or
    somebody else has settled or taken it.
    """

    MOVED = enum.auto()
    FAILED = enum.auto()
    LATER = enum.auto()


class Moved(msgspec.Struct, frozen=True):
    """What came of a move: `copy` is the address of the copy, if it was MOVED."""

    outcome: Outcome
    copy: str = ""


class Mover:
    """Moves of this worker. Two movers may work on one message: the target keeps one."""

    def __init__(
        self,
        log: Log,
        leases: LeaseScripts,
        window: Window,
        ids: Ids,
        write_through: WriteThrough,
        counters: Counters,
        copies: Copies,
    ) -> None:
        self._log = log
        self._leases = leases
        self._window = window
        self._ids = ids
        self._write_through = write_through
        self._counters = counters
        self._copies = copies
        # Of each move that is done, or that has failed, while anybody listens.
        self.moved: Final = Signal[[Move]]()

    async def move(
        self, queue: Queue, tag: TagRecord, partition: int, held: Sequence[tuple[Held, Queue]], task: str
    ) -> dict[int, Moved]:
        """Moves messages that a task holds, each to its target, and settles them at their source:
        by offset what came of each. Those of a FIFO queue go one after the other.
        """
        plans: list[tuple[Held, Queue, Mapping[str, str], EngineError | None]] = []
        for target in {target.incarnation: target for _, target in held}.values():
            items, fault = [item for item, to in held if to.incarnation == target.incarnation], None
            try:
                items, there = await self._copies.looked(queue, tag, partition, target, items)
            except EngineError as error:
                there, fault = {}, error
            plans += [(item, target, there, fault) for item in items]
        plans.sort(key=lambda plan: plan[0].offset)
        moves = {plan[0].offset: self._attempt(queue, tag, partition, task, *plan) for plan in plans}
        return await _outcomes_of(moves, in_turn=queue.record.fifo)

    async def _attempt(
        self,
        queue: Queue,
        tag: TagRecord,
        partition: int,
        task: str,
        held: Held,
        target: Queue,
        there: Mapping[str, str],
        fault: EngineError | None,
    ) -> Moved:
        """`fault`: why its target could not be looked at."""
        try:
            if fault is not None:
                raise fault
            copy = await self.move_one(queue, tag, partition, held, target, "moved", there, task)
            return Moved(Outcome.MOVED, copy) if copy else Moved(Outcome.LATER)
        except EngineError as error:
            logger.warning(
                "action=move queue=%s partition=%d offset=%d target=%s error=%s",
                queue.name,
                partition,
                held.offset,
                target.name,
                error,
            )
            return Moved(Outcome.LATER if isinstance(error, Unavailable) else Outcome.FAILED)

    async def move_one(
        self,
        queue: Queue,
        tag: TagRecord,
        partition: int,
        held: Held,
        target: Queue,
        kind: str,
        there: Mapping[str, str],
        task: str = "",
    ) -> str:
        """Appends it unless its address is among those that are `there`, and settles it as `kind`
        (dead, moved). Returns the address of the copy, which the journal has from then on. Raises
        EngineError.

        Empty: somebody else has settled or taken it meanwhile.
        """
        move = self._move_one(queue, tag, partition, held, target, kind, there, task)
        if not self.moved.is_heard:
            return await move
        began_ns, error, copy = time.time_ns(), "", ""
        try:
            copy = await move
        except BaseException as fault:
            error = type(fault).__name__
            raise
        finally:
            if copy or error:
                at = self._ids.message_id(queue, partition, held.offset)
                self.moved(
                    Move(kind, queue.name, tag.name, target.name, at, held.message, held.reason, task, began_ns, error)
                )
        return copy

    async def _move_one(
        self,
        queue: Queue,
        tag: TagRecord,
        partition: int,
        held: Held,
        target: Queue,
        kind: str,
        there: Mapping[str, str],
        task: str,
    ) -> str:
        """See `move_one`."""
        from_id = self._ids.message_id(queue, partition, held.offset)
        reached("move.held")
        copy = there.get(address_of(from_id), "")
        if not copy:
            if self._leases.units.now_ms() > held.until_ms:
                # Another mover may have made a copy meanwhile, and so long ago that the window has
                # forgotten its key: the next try looks again.
                raise LogUnavailable(
                    f"the claim on {queue.topic}/{partition}/{held.offset} expired before it could be moved; "
                    "it will be retried"
                )
            to = target_partition(target, held, from_id, tag)
            copy = await self._append(target, to, _moved(queue, tag, held, from_id, kind))
        reached("move.before_settle")
        unit = queue.units[partition]
        pairs = [(held.offset, held.nonce)]
        reason = move_reason(task, copy)
        (word,) = await self._window.call(
            queue, lambda g: self._leases.settle(unit, g, tag.id, kind, pairs, reason=reason)
        )
        reached("move.after_settle")
        if word != "ok":
            return ""
        if kind == EventKind.MOVED:
            self._counters.count("messages_moved_total")
        return copy

    async def _append(self, target: Queue, partition: int, message: Message) -> str:
        """Appends a copy and loads it; returns its address. Raises LogUnavailable."""
        value = encode(message)
        appended = await self._log.append(target.topic, partition, value)
        reached("move.appended")
        entry = load_entry(target, appended.offset, appended.timestamp_ms, message, value)
        await self._write_through.write(target, partition, [entry])
        reached("move.loaded")
        return MessageId(target.incarnation, partition, appended.offset).address


async def _outcomes_of(moves: dict[int, Coroutine[Any, Any, Moved]], *, in_turn: bool) -> dict[int, Moved]:
    """Side by side: one after the other, the answers of Kafka would bound the rate. In turn, what
    follows one that waits waits too.
    """
    if not in_turn:
        done = await asyncio.gather(*moves.values(), return_exceptions=True)
        if (raised := next((outcome for outcome in done if isinstance(outcome, BaseException)), None)) is not None:
            raise raised
        return dict(zip(moves, (outcome for outcome in done if isinstance(outcome, Moved)), strict=True))
    outcomes: dict[int, Moved] = {}
    for offset, move in moves.items():
        if any(before.outcome is Outcome.LATER for before in outcomes.values()):
            move.close()
            outcomes[offset] = Moved(Outcome.LATER)
        else:
            outcomes[offset] = await move
    return outcomes


def _moved(queue: Queue, tag: TagRecord, held: Held, from_id: str, kind: str) -> Message:
    """The copy for the target: body and attributes as they were, and where it came from."""
    before = None if (came := held.message.origin) is not None and came.reason == Reason.COMMITTED else came
    # A dead letter dies again in a queue that is its own dead-letter queue only.
    again = kind == "dead" and RESERVED_ATTRIBUTE in held.message.attributes
    origin = Origin(
        from_id=from_id,
        from_tag=tag.name,
        original_id=before.original_id if before else from_id,
        original_queue=before.original_queue if before else queue.name,
        original_tag=before.original_tag if before else tag.name,
        reason=held.reason,
        receive_count=held.count + (before.receive_count if before and again else 0),
        first_received_at_ms=held.first_received_at_ms,
        original_sent_at_ms=before.original_sent_at_ms if before else held.sent_at_ms,
        moved_at_ms=now_ms(),
        note=held.note,
    )
    attributes = {name: a for name, a in held.message.attributes.items() if name != RESERVED_ATTRIBUTE}
    if kind == "dead":
        attributes[RESERVED_ATTRIBUTE] = Attribute("string", queue.name.encode())
    return msgspec.structs.replace(
        held.message,
        attributes=attributes,
        delay_ms=0,
        origin=origin,
        batch=None,
        sender=held.message.sender or NATIVE_SENDER,
    )
