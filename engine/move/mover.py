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
from collections.abc import Coroutine, Sequence, Set
from typing import Any

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, LogUnavailable, Unavailable
from engine.log import Log
from engine.rules.ids import Ids
from engine.rules.limits import MAX_RECEIVE_BYTES, RESERVED_ATTRIBUTE
from engine.rules.placement import moved_partition
from engine.rules.queue import Queue
from engine.rules.rights import Targets
from engine.runtime.clock import now_ms
from engine.runtime.counters import Counters
from engine.runtime.failpoints import reached
from engine.window.body_source import BodySource
from engine.window.entry import load_entry
from engine.window.window import MOVER_LEASE_MS, Window
from engine.window.write_through import WriteThrough
from schemas.identity import address_of
from schemas.records import Attribute, Message, Origin, TagRecord
from schemas.vocabulary import LOG_TIME_MARGIN_MS, NATIVE_SENDER, MessageState, Reason
from schemas.wire import UndecodableRecord, decode_message, encode
from state.background import Background
from state.replies import Dying
from state.store import Store

logger = logging.getLogger(__name__)

# How long after a failed try the next one begins: Kafka may be back at any moment.
AGAIN_S = 0.5
LONGEST_AGAIN_S = 5.0


class Outcome(enum.Enum):
    """Of a task's move: done; it can't be done; not now: the message is held until its time, or
    somebody else has settled or taken it.
    """

    MOVED = enum.auto()
    FAILED = enum.auto()
    LATER = enum.auto()


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


class Mover:
    """Moves of this worker. Two movers may work on one message: the target keeps one."""

    def __init__(
        self,
        log: Log,
        store: Store,
        catalog: Catalog,
        targets: Targets,
        window: Window,
        ids: Ids,
        bodies: BodySource,
        write_through: WriteThrough,
        counters: Counters,
    ) -> None:
        self._log = log
        self._store = store
        self._catalog = catalog
        self._targets = targets
        self._window = window
        self._ids = ids
        self._bodies = bodies
        self._write_through = write_through
        self._counters = counters
        self._background = Background()

    async def stop(self) -> None:
        """Ends the tries that go on; what they held is taken up by whoever meets it next."""
        await self._background.stop()

    async def move_dead(self, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying]) -> None:
        """Moves dying messages to the dead-letter queue. What fails is tried again here, however
        long Kafka is away.
        """
        await self._begin(queue, tag, partition, dying)

    async def kill(self, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying]) -> None:
        """As `move_dead`, for somebody who waits: returns when the dead-letter queue has them."""
        if going_on := await self._begin(queue, tag, partition, dying):
            await asyncio.wait([going_on])  # who waits no more does not end it

    async def _begin(self, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying]) -> asyncio.Task[None] | None:
        left = await self._try(queue, tag, partition, dying)
        return self._background.start(self._go_on(queue, tag, partition, left), "move_dead") if left else None

    async def _go_on(self, queue: Queue, tag: TagRecord, partition: int, left: Sequence[Dying]) -> None:
        """Once they are no longer held, another mover may take them up too: the target keeps one
        of two copies.
        """
        loop = asyncio.get_running_loop()
        pause_s, held_until = AGAIN_S, loop.time() + MOVER_LEASE_MS / 1000
        while left:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_AGAIN_S)
            if loop.time() > held_until:
                left = await self._unsettled(queue, tag, partition, left)
            left = await self._try(queue, tag, partition, left)

    async def _unsettled(self, queue: Queue, tag: TagRecord, partition: int, left: Sequence[Dying]) -> Sequence[Dying]:
        """Those of the messages that nobody has settled, as far as Redis can be asked."""
        unit, offsets = queue.units[partition], [d.offset for d in left]
        try:
            states = await self._window.call(queue, lambda g: self._store.states(unit, g, tag.id, offsets))
        except EngineError as error:
            logger.warning("action=move queue=%s partition=%d left=%d error=%s", queue.name, partition, len(left), error)
            return left
        return [d for d, one in zip(left, states, strict=True) if one.state != MessageState.SETTLED]

    async def _try(self, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying]) -> list[Dying]:
        """Moves what can be moved now; returns what is to be tried again. In a FIFO target what
        follows a failure waits for it.
        """
        until_ms, left = self._store.now_ms() + MOVER_LEASE_MS, list[Dying]()
        while dying and not left:
            left, dying = await self._try_some(queue, tag, partition, dying, until_ms)
        return [*left, *dying]

    async def _try_some(
        self, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying], until_ms: int
    ) -> tuple[list[Dying], list[Dying]]:
        """Tries to move as many as may be in memory at once; returns what is to be tried again, and
        what it did not come to.
        """
        try:
            target = await self._target(queue, tag)
            if target is None:
                return [], []
            taken, left, unread = await self._hold(queue, tag, partition, dying, until_ms)
            items, there = await self._looked(queue, tag, partition, target, [item for _, item in taken])
            held = list(zip([d for d, _ in taken], items, strict=True))
        except EngineError as error:
            logger.warning("action=move queue=%s partition=%d messages=%d error=%s", queue.name, partition, len(dying), error)
            return list(dying), []
        moves = [self._move(queue, tag, partition, item, target, "dead", there) for _, item in held]
        outcomes = await (_in_turn(moves) if target.record.fifo else asyncio.gather(*moves, return_exceptions=True))
        for (dead_letter, item), outcome in zip(held, outcomes, strict=True):
            if isinstance(outcome, EngineError):
                logger.warning(
                    "action=move queue=%s partition=%d offset=%d target=%s error=%s",
                    queue.name, partition, dead_letter.offset, target.name, outcome,
                )  # fmt: skip
                # The target may have it by now: the next try looks.
                left.append(msgspec.structs.replace(dead_letter, again_ms=item.again_ms or until_ms))
            elif isinstance(outcome, BaseException):
                raise outcome
        return left, unread

    async def _target(self, queue: Queue, tag: TagRecord) -> Queue | None:
        """Where dead letters of a tag may go, by all records that were written before the call;
        None = nowhere. Raises LogUnavailable.

        This worker may not have heard yet that the dead-letter queue was deleted, and created anew
        by somebody else, or that the right to send there was withdrawn.
        """
        await self._catalog.sync()
        now = self._catalog.by_incarnation.get(queue.incarnation)
        return self._targets.of(now, tag.id) if now is not None and tag.id in now.policies else None

    async def _hold(
        self, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying], until_ms: int
    ) -> tuple[list[tuple[Dying, Held]], list[Dying], list[Dying]]:
        """Dying messages with what they say, those that Kafka does not show though it should, and
        those that were not read, for the others have bytes enough. Raises Unavailable.
        """
        missing = set(self._bodies.missing(queue, partition, dying))
        pairs = [(d.offset, d.nonce) for d in dying if d.offset in missing]
        records, over, unread = await self._bodies.read(queue, tag, partition, pairs, MAX_RECEIVE_BYTES)
        held, left = [], []
        for d in dying:
            try:
                (found,) = self._bodies.bodies_of(queue, partition, [d], records)
            except UndecodableRecord as error:
                logger.error("action=move queue=%s partition=%d offset=%d error=%s", queue.name, partition, d.offset, error)
                continue
            if found is None:
                left += [d] if d.offset not in over and d.offset not in unread else []
                continue
            first_ms, sent_ms = d.first_received_at_ms, found.sent_at_ms
            held.append((d, Held(d.offset, d.nonce, found.message, sent_ms, d.count, first_ms, d.reason, d.again_ms, until_ms)))
        return held, left, [d for d in dying if d.offset in unread]

    async def move(self, queue: Queue, tag: TagRecord, partition: int, held: Sequence[tuple[Held, Queue]], task: str) -> dict[int, Outcome]:
        """Moves messages that a task holds, each to its target, and settles them at their source:
        by offset what came of each. Those of a FIFO queue go one after the other.
        """
        plans: list[tuple[Held, Queue, Set[str], EngineError | None]] = []
        for target in {target.incarnation: target for _, target in held}.values():
            items, fault = [item for item, to in held if to.incarnation == target.incarnation], None
            try:
                items, there = await self._looked(queue, tag, partition, target, items)
            except EngineError as error:
                there, fault = set(), error
            plans += [(item, target, there, fault) for item in items]
        plans.sort(key=lambda plan: plan[0].offset)
        moves = {plan[0].offset: self._attempt(queue, tag, partition, task, *plan) for plan in plans}
        return await _outcomes_of(moves, in_turn=queue.record.fifo)

    async def _attempt(
        self, queue: Queue, tag: TagRecord, partition: int, task: str, held: Held, target: Queue, there: Set[str], fault: EngineError | None
    ) -> Outcome:
        """`fault`: why its target could not be looked at."""
        try:
            if fault is not None:
                raise fault
            return Outcome.MOVED if await self._move(queue, tag, partition, held, target, "moved", there, task) else Outcome.LATER
        except EngineError as error:
            logger.warning(
                "action=move queue=%s partition=%d offset=%d target=%s error=%s", queue.name, partition, held.offset, target.name, error
            )
            return Outcome.LATER if isinstance(error, Unavailable) else Outcome.FAILED

    async def _move(
        self, queue: Queue, tag: TagRecord, partition: int, held: Held, target: Queue, kind: str, there: Set[str], task: str = ""
    ) -> bool:
        """Appends it unless its address is among those that are `there`, and settles it as `kind`
        (dead, moved). Raises EngineError.

        False: somebody else has settled or taken it meanwhile.
        """
        from_id = self._ids.message_id(queue, partition, held.offset)
        reached("move.held")
        if address_of(from_id) not in there:
            if self._store.now_ms() > held.until_ms:
                # Another mover may have made a copy meanwhile, and so long ago that the window has
                # forgotten its key: the next try looks again.
                raise LogUnavailable(
                    f"the claim on {queue.topic}/{partition}/{held.offset} expired before it could be moved; it will be retried"
                )
            message = _moved(queue, tag, held, from_id, kind)
            value = encode(message)
            target_partition = _target_partition(target, held, from_id, tag)
            appended = await self._log.append(target.topic, target_partition, value)
            reached("move.appended")
            entry = load_entry(target, appended.offset, appended.timestamp_ms, message, value)
            await self._write_through.write(target, target_partition, [entry])
            reached("move.loaded")
        reached("move.before_settle")
        unit = queue.units[partition]
        pairs = [(held.offset, held.nonce)]
        (word,) = await self._window.call(queue, lambda g: self._store.settle(unit, g, tag.id, kind, pairs, reason=task))
        reached("move.after_settle")
        if word == "ok":
            self._counters.count(f"messages_{kind}_total")
        return word == "ok"

    async def _looked(
        self, queue: Queue, tag: TagRecord, partition: int, target: Queue, held: Sequence[Held]
    ) -> tuple[list[Held], set[str]]:
        """Addresses of those of which the target may have a copy, made by a mover before, and has
        one; with all of them, held for as long from this look on. Raises LogUnavailable.
        """
        since: dict[int, int] = {}
        for item in held:
            if item.again_ms:
                at = _target_partition(target, item, self._ids.message_id(queue, partition, item.offset), tag)
                since[at] = min(item.again_ms, since.get(at, item.again_ms))
        there: set[str] = set()
        for at, again_ms in since.items():
            # The longest hold is a task's claim, which lasts twice as long (`task_runner.py`).
            there |= await self._copies(target, at, again_ms - 2 * MOVER_LEASE_MS - LOG_TIME_MARGIN_MS, tag)
        until_ms = self._store.now_ms() + MOVER_LEASE_MS
        return [msgspec.structs.replace(item, until_ms=until_ms) if item.again_ms else item for item in held], there

    async def _copies(self, target: Queue, partition: int, since_ms: int, tag: TagRecord) -> set[str]:
        """Addresses of the messages that were moved to a partition from under a tag of that name
        since then.
        """
        part, found = (target.topic, partition), set()
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
                    found.add(address_of(origin.from_id))
            if chunk.at_end:
                return found
            offset = chunk.next_offset


def _target_partition(target: Queue, held: Held, from_id: str, tag: TagRecord) -> int:
    """The same for each copy of a move, so that its copies meet in one window."""
    return moved_partition(target.record, held.message, from_id, tag.name)


async def _outcomes_of(moves: dict[int, Coroutine[Any, Any, Outcome]], *, in_turn: bool) -> dict[int, Outcome]:
    """Side by side: one after the other, the answers of Kafka would bound the rate. In turn, what
    follows one that waits waits too.
    """
    if not in_turn:
        done = await asyncio.gather(*moves.values(), return_exceptions=True)
        if (raised := next((outcome for outcome in done if isinstance(outcome, BaseException)), None)) is not None:
            raise raised
        return dict(zip(moves, (outcome for outcome in done if isinstance(outcome, Outcome)), strict=True))
    outcomes: dict[int, Outcome] = {}
    for offset, move in moves.items():
        if Outcome.LATER in outcomes.values():
            move.close()
            outcomes[offset] = Outcome.LATER
        else:
            outcomes[offset] = await move
    return outcomes


async def _in_turn(moves: Sequence[Coroutine[Any, Any, bool]]) -> list[BaseException | None]:
    """The outcome of each; those behind one that has failed are not begun, and have failed too."""
    outcomes: list[BaseException | None] = []
    failed: BaseException | None = None
    for move in moves:
        if failed is None:
            try:
                await move
            except Exception as error:
                failed = error
        else:
            move.close()
        outcomes.append(failed)
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
    )
    attributes = {name: a for name, a in held.message.attributes.items() if name != RESERVED_ATTRIBUTE}
    if kind == "dead":
        attributes[RESERVED_ATTRIBUTE] = Attribute("string", queue.name.encode())
    return msgspec.structs.replace(
        held.message, attributes=attributes, delay_ms=0, origin=origin, batch=None, sender=held.message.sender or NATIVE_SENDER
    )
