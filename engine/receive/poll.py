"""Asks the partitions of a queue what is due, the one with the oldest message first, as far as the
line knows.

Longer than 250 lines: the orders in which partitions are asked (shared, exact, by priority) are
over the same few calls.
"""

from __future__ import annotations

import asyncio
import collections
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from engine.errors import LogUnavailable, TooManyInFlight
from engine.receive.waits.wait_list import FOREVER, MAX_PER_CALL, WaitList
from engine.rules.queue import Queue
from engine.rules.rights import Targets
from engine.window.window import MOVER_LEASE_MS, Window
from runtime.counters import Counters
from schemas.records import TagRecord
from schemas.records.settings import MAX_IN_FLIGHT
from state.leases import LeaseScripts
from state.replies import AtOnce, Dying, Probed, Received

logger = logging.getLogger(__name__)

# What a partition is asked for at least, when several are asked at once: a call that leases five
# costs little more than one that leases one. Much more, and a quiet partition would wait for its
# turn behind busy ones while consumers come in waves.
SHARE = 5
# A caller that is alone gets the oldest messages of all partitions. Sends stay in a partition for a
# while (`batch.py`), so one call mostly gives them: it asks for what is older than all that the
# others have. Else this many partitions are merged; then it takes what each has.
MERGED = 8
# Who waits where as much is in flight as may be asks again after so long, unless this worker hears
# of an ack.
FULL_S = 0.05
# How often a poll of a queue with priority asks again while it has not got enough.
ROUNDS = 4

# What partitions have leased, each as its call answered.
Leases: TypeAlias = list[tuple[int, Received]]
Move: TypeAlias = Callable[[Queue, TagRecord, int, Sequence[Dying]], object]


class Poll(msgspec.Struct, eq=False):
    """One poll of a tag's partitions: what it has leased so far, and which partitions it asked."""

    queue: Queue
    tag: TagRecord
    line: WaitList
    lease_ms: int | None
    leases: Leases = msgspec.field(default_factory=list)
    asked: set[int] = msgspec.field(default_factory=set)
    full: bool = False  # as much is in flight as may be: nobody else is asked


class Poller:
    """Leases what is due. `move` is told of what is dying instead; any number of tasks may poll at
    once.
    """

    def __init__(
        self,
        scripts: LeaseScripts,
        targets: Targets,
        window: Window,
        counters: Counters,
        note_receive: Callable[[Queue, int, Received], None],
        load_soon: Callable[[Queue, int, Received | Probed], None],
        move: Move,
    ) -> None:
        self._scripts = scripts
        self._targets = targets
        self._window = window
        self._counters = counters
        self._note_receive = note_receive
        self._load_soon = load_soon
        self._move = move

    async def poll(self, poll: Poll, max: int, *, everywhere: bool, callers: int = 1) -> Leases:
        """Asks partitions that may have something; with `everywhere`, then also the others.

        The oldest messages first, so a quiet partition is not behind a busy one: for several
        callers as few partitions as may do, then all others at once; for one caller exactly. Raises
        TooManyInFlight. What fails after something was leased is not told: that is for a receive.
        """
        try:
            await self._poll(poll, max, everywhere=everywhere, callers=callers)
        except Exception:
            if not poll.leases:
                raise
        return poll.leases

    async def _poll(self, poll: Poll, max: int, *, everywhere: bool, callers: int) -> None:
        queue, line = poll.queue, poll.line
        loop = asyncio.get_running_loop()
        began = loop.time()
        left = line.fit or line.fits(queue.record.max_message_bytes)  # here: a call less for each receive
        left = left if left < max else max
        if sum(line.in_flight) + left > MAX_IN_FLIGHT:
            left = min(left, await self.room(poll))
        line.over = 0
        if line.full_until > began and not everywhere:
            return
        partitions = len(line.due)
        order = [(line.turn + 1 + i) % partitions for i in range(partitions)]
        if line.rests:
            order = line.awake(order, began)
        few = -(-left // SHARE)
        line.turn = (line.turn + few) % partitions
        bounded = queue.record.max_in_flight > 0  # then partitions are asked one by one, the oldest message first
        if callers > 1 and not queue.record.priority and not bounded:
            left -= await self._shared(poll, order, left, few)
        due = line.oldest(order, loop.time()) if left > 0 else []
        if len(due) == 1:
            poll.asked.update(due)
            left -= await self._receive_one(poll, due[0], left)
        elif due:
            left -= await self._in_order(poll, order, left, exact=callers == 1 or bounded)
        if not poll.leases and line.rests:
            raise LogUnavailable(f"Kafka does not give the bodies of messages in queue {queue.name!r}")
        if poll.leases or poll.full or not everywhere:
            return
        rest = [p for p in order if p not in poll.asked]
        await self._ask_when(poll, rest)
        await self._in_order(poll, rest, left, exact=True)
        line.looked_at = began

    async def _shared(self, poll: Poll, order: Sequence[int], max: int, few: int) -> int:
        """For several callers: asks the `few` partitions with the oldest messages, then all others
        at once, each for its share; says how many were leased.
        """
        now, left = asyncio.get_running_loop().time(), max
        for most in (few, len(poll.line.due)):
            some = poll.line.oldest([p for p in order if p not in poll.asked], now)[:most]
            poll.asked.update(some)
            if left > 0 and some:
                share, more = divmod(left, len(some))
                left -= await self._receive_some(
                    poll, {p: share + (n < more) for n, p in enumerate(some) if share or n < more}
                )
        return max - left

    async def room(self, poll: Poll) -> int:
        """How many more may be leased. Raises TooManyInFlight."""
        line = poll.line
        await self._ask_when(poll, range(len(line.due)))
        leased = sum(line.in_flight)
        if leased >= MAX_IN_FLIGHT:
            line.over = leased
            self._counters.count("receives_over_limit_total")
            raise too_many(poll.queue, leased, waited=False)
        return MAX_IN_FLIGHT - leased

    async def _in_order(self, poll: Poll, order: Sequence[int], max: int, *, exact: bool) -> int:
        """Asks partitions that may have something, as long as messages are wanted; says how many
        were leased.

        `exact`: the oldest messages of all, except of a FIFO queue, for groups of different
        partitions have no order. With priority, always the partitions of the first priorities.
        """
        if poll.queue.record.priority:
            return await self._by_priority(poll, order, max)
        loop = asyncio.get_running_loop()
        left = max
        if exact and not poll.queue.record.fifo:
            left -= await self._exactly(poll, order, left)
        for p in poll.line.oldest(order, loop.time()):
            if left > 0:
                poll.asked.add(p)
                left -= await self._receive_some(poll, {p: left})
        return max - left

    async def _by_priority(self, poll: Poll, order: Sequence[int], max: int) -> int:
        """Asks partitions what they have, then those of the first priorities for it; says how many
        were leased. Again when that was not enough: what is visible may be dying, or expired.
        """
        line, left = poll.line, max
        for _ in range(ROUNDS):
            due = sorted(line.oldest(order, asyncio.get_running_loop().time()))
            poll.asked.update(due)
            if not due:
                break
            shares = {due[0]: 1} if left == 1 and line.heads[due[0]] else await self._shares(poll, due, left)
            left -= await self._receive_some(poll, shares) if shares else 0
            if not shares or left <= 0 or poll.full:
                break
        return max - left

    async def _shares(self, poll: Poll, partitions: Sequence[int], wanted: int) -> dict[int, int]:
        """How many of `wanted` visible messages each of the partitions has; the first partitions
        first.
        """
        shares: dict[int, int] = {}
        for p, probed in zip(partitions, await self._ask_when(poll, partitions, wanted), strict=True):
            if share := min(wanted, len(probed.times)):
                shares[p] = share
                wanted -= share
        return shares

    async def _exactly(self, poll: Poll, order: Sequence[int], max: int) -> int:
        """Asks the partition with the oldest message for what is older than all of the others';
        when more is wanted, merges the first.
        """
        loop, line = asyncio.get_running_loop(), poll.line
        due = line.oldest(order, loop.time())
        unknown = [p for p in due if not line.heads[p]]
        if len(unknown) > 1:
            await self._ask_when(poll, unknown)
            due = line.oldest(order, loop.time())
        if len(due) < 2:
            return 0
        poll.asked.update(due[:MERGED])
        got = await self._receive_some(poll, {due[0]: max}, line.heads[due[1]])
        due = line.oldest(order, loop.time())
        if got < max and len(due) > 1 and not poll.full:
            got += await self._merge(poll, due, max - got)
        return got

    async def _merge(self, poll: Poll, due: Sequence[int], max: int) -> int:
        """Asks partitions when what they have is visible, then each for its part of the first
        `max`; says how many were leased.
        """
        some = due[:MERGED]
        until_ms = poll.line.heads[due[MERGED]] if len(due) > MERGED else FOREVER
        looks = await self._ask_when(poll, some, max)
        first = sorted((at, p) for p, probed in zip(some, looks, strict=True) for at in probed.times if at <= until_ms)[
            :max
        ]
        if not first:
            return 0
        return await self._receive_some(poll, collections.Counter(p for _, p in first), first[-1][0])

    async def _ask_when(self, poll: Poll, partitions: Sequence[int], times: int = 0) -> list[Probed]:
        """Asks at once when partitions have something, with the first `times` times of what is
        visible.
        """
        line = poll.line
        wakes = [line.wakes[p] for p in partitions]
        looks = await asyncio.gather(*(self._probe(poll, p, times) for p in partitions))
        now = asyncio.get_running_loop().time()
        for p, before, probed in zip(partitions, wakes, looks, strict=True):
            line.learn(p, before, probed, now)
        return looks

    async def _receive_some(self, poll: Poll, shares: Mapping[int, int], until_ms: int = 0) -> int:
        """Asks partitions at once, each for its share; fails only when none has leased anything,
        these or others before.
        """
        if len(shares) == 1:
            return await self._receive_one(poll, *next(iter(shares.items())), until_ms)
        asks = (self._receive_one(poll, p, share, until_ms) for p, share in shares.items())
        outcomes = await asyncio.gather(*asks, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not poll.leases:
                raise outcome
        return sum(outcome for outcome in outcomes if isinstance(outcome, int))

    async def _probe(self, poll: Poll, partition: int, times: int) -> Probed:
        queue, tag = poll.queue, poll.tag.id
        probed = await self._window.call(
            queue, lambda g: self._scripts.probe(queue.units[partition], g, tag, times=times)
        )
        self._load_soon(queue, partition, probed)
        return probed

    def _receive_one(self, poll: Poll, partition: int, max: int, until_ms: int = 0) -> Coroutine[Any, Any, int]:
        """Asks a partition for what is visible since `until_ms` (0 = now), adds what it leases to
        the poll, and says how many that is.
        """
        receive = functools.partial(self._scripts.receive, max=min(max, MAX_PER_CALL), until_ms=until_ms)
        return self._lease(poll, partition, receive)

    def pick_one(self, poll: Poll, partition: int, offsets: Sequence[int]) -> Coroutine[Any, Any, int]:
        """Asks a partition for those of the messages that are due, adds what it leases to the poll,
        and says how many that is.
        """
        return self._lease(poll, partition, functools.partial(self._scripts.pick, offsets=offsets))

    async def _lease(self, poll: Poll, partition: int, script: Callable[..., Awaitable[Received]]) -> int:
        """Calls a script that leases, with all that the queue says of its leases."""
        if poll.full:
            return 0
        queue, tag, line, record = poll.queue, poll.tag, poll.line, poll.queue.record
        targets, bounds, most = self._targets, queue.bounds[tag.id], 0
        if bounds.dead_letter:
            known = targets.known.get((queue.incarnation, tag.id, targets.catalog.changes))
            most = bounds.dead_letter if (targets.most_receives(queue, tag.id) if known is None else known) else 0
        wakes = line.wakes[partition]
        try:
            received: Received = await self._window.call(
                queue,
                lambda g: script(
                    queue.units[partition],
                    g,
                    tag.id,
                    lease_ms=poll.lease_ms,
                    queue_lease_ms=record.lease_ms,
                    max_receive_count=most,
                    retention_ms=queue.expires_ms,
                    move_ms=MOVER_LEASE_MS,
                    at_once=AtOnce(int(record.one_per_group), bounds.park, record.max_in_flight, record.partitions),
                ),
            )
        except BaseException:
            line.forget(partition)  # others may have leased some, and then nobody hears of this
            raise
        return self._took(poll, partition, wakes, received)

    def _took(self, poll: Poll, partition: int, wakes: int, received: Received) -> int:
        """Learns from what a partition has answered, adds what it has leased to the poll, and says
        how many that is.
        """
        line = poll.line
        self._note_receive(poll.queue, partition, received)
        line.learn(partition, wakes, received, asyncio.get_running_loop().time())
        if received.full:
            poll.full = True
            if line.wakes[partition] == wakes:  # else there may be room meanwhile
                line.full_until = asyncio.get_running_loop().time() + FULL_S
        if received.dying:
            self._move(poll.queue, poll.tag, partition, received.dying)
        if received.parked:
            self._counters.count("groups_parked_total", len(received.parked))
            logger.warning(
                "action=park queue=%s tag=%s partition=%d groups=%d first=%d",
                poll.queue.name, poll.tag.name, partition, len(received.parked), received.parked[0],
            )  # fmt: skip
        if received.leased:
            line.served = partition
            poll.leases.append((partition, received))
        return len(received.leased)


def too_many(queue: Queue, leased: int, *, waited: bool) -> TooManyInFlight:
    """`leased` messages are in flight under a tag, and no more may be."""
    about = f"{MAX_IN_FLIGHT} messages of queue {queue.name!r} may be in flight under a tag, {leased} are"
    return TooManyInFlight(
        about, field="in_flight", limit=MAX_IN_FLIGHT, given=leased, waited=waited, fifo=queue.record.fifo
    )
