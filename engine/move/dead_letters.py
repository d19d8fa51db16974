"""Dead letters: dying messages go to the dead-letter queue of their tag, however long Kafka is
away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import EngineError
from engine.move.copies import Copies, Held
from engine.move.mover import Mover
from engine.rules.limits import MAX_RECEIVE_BYTES
from engine.rules.queue import Queue
from engine.rules.rights import Targets
from engine.window.body_source import BodySource
from engine.window.window import MOVER_LEASE_MS, Window
from runtime.background import Background
from schemas.records import TagRecord
from schemas.vocabulary import MessageState
from schemas.wire import UndecodableRecord
from state.leases import LeaseScripts
from state.replies import Dying

logger = logging.getLogger(__name__)

# How long after a failed try the next one begins: Kafka may be back at any moment.
AGAIN_S = 0.5
LONGEST_AGAIN_S = 5.0


class DeadLetters:
    """Any number of tasks may ask."""

    def __init__(
        self,
        mover: Mover,
        copies: Copies,
        leases: LeaseScripts,
        catalog: Catalog,
        targets: Targets,
        window: Window,
        bodies: BodySource,
    ) -> None:
        self._mover = mover
        self._copies = copies
        self._leases = leases
        self._catalog = catalog
        self._targets = targets
        self._window = window
        self._bodies = bodies
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

    async def _begin(
        self, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying]
    ) -> asyncio.Task[None] | None:
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
            states = await self._window.call(queue, lambda g: self._leases.states(unit, g, tag.id, offsets))
        except EngineError as error:
            logger.warning(
                "action=move queue=%s partition=%d left=%d error=%s", queue.name, partition, len(left), error
            )
            return left
        return [d for d, one in zip(left, states, strict=True) if one.state != MessageState.SETTLED]

    async def _try(self, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying]) -> list[Dying]:
        """Moves what can be moved now; returns what is to be tried again. In a FIFO target what
        follows a failure waits for it.
        """
        until_ms, left = self._leases.units.now_ms() + MOVER_LEASE_MS, list[Dying]()
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
            items, there = await self._copies.looked(queue, tag, partition, target, [item for _, item in taken])
            held = list(zip([d for d, _ in taken], items, strict=True))
        except EngineError as error:
            logger.warning(
                "action=move queue=%s partition=%d messages=%d error=%s", queue.name, partition, len(dying), error
            )
            return list(dying), []
        moves = [self._mover.move_one(queue, tag, partition, item, target, "dead", there) for _, item in held]
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
                logger.error(
                    "action=move queue=%s partition=%d offset=%d error=%s", queue.name, partition, d.offset, error
                )
                continue
            if found is None:
                left += [d] if d.offset not in over and d.offset not in unread else []
                continue
            first_ms, sent_ms = d.first_received_at_ms, found.sent_at_ms
            held.append(
                (
                    d,
                    Held(
                        d.offset,
                        d.nonce,
                        found.message,
                        sent_ms,
                        d.count,
                        first_ms,
                        d.reason,
                        d.again_ms,
                        until_ms,
                        d.note,
                    ),
                )
            )
        return held, left, [d for d in dying if d.offset in unread]


async def _in_turn(moves: Sequence[Coroutine[Any, Any, str]]) -> list[BaseException | None]:
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
