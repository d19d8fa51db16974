"""Who waits for messages of a tag, in order of arrival, and what is known of its partitions.

`receiver.py` lets them wait, `pump.py` serves them. It knows neither Redis nor Kafka.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from engine.errors import LogUnavailable, NotAuthorised, Overloaded, QuotaExceeded
from engine.rules.limits import MAX_IN_FLIGHT, MAX_LONG_POLLS, MAX_RECEIVE_BYTES, message_bytes
from engine.rules.queue import Queue
from engine.rules.rights import NOBODY, Asker
from engine.runtime import deadline
from engine.runtime.signals import Signal
from engine.shapes import Delivery
from schemas.records import TagRecord
from state.replies import Probed, Received

FOREVER = float("inf")
# Wake-ups may be lost (they are not stored): a line with waiters looks at everything again this
# often.
LOOK_AGAIN_S = 5.0
# What one call to the window may lease.
MAX_PER_CALL = 100
# Waiters who want so much that a call serves one of them are served by calls to several partitions
# at once: one after the other they would wait for each other. Not more of them: who is answered
# together comes back together.
MAX_PARALLEL = 4


def late_receive() -> LogUnavailable:
    """What a receive is answered for which something took too long."""
    return LogUnavailable(f"the receive took {deadline.MESSAGES_S:g} s longer than it was to wait: nothing is leased for it")


class Waiter:
    """A receive that waits for up to `max` messages. `new`: nobody has looked for it yet, so it may
    still be told that nobody can.

    `busy`: something is being leased for it, or read: it waits for that, also when its time is over
    (`late`), but not for longer than MESSAGES_S. Else who waits for less time than that takes would
    never get anything.
    """

    __slots__ = ("asker", "busy", "end", "late", "lease_ms", "max", "new", "served")

    def __init__(self, max: int, lease_ms: int | None, served: asyncio.Future[list[Delivery]], asker: Asker = NOBODY) -> None:
        self.asker = asker
        self.max = max
        self.lease_ms = lease_ms
        self.served = served
        self.new = True
        self.busy = self.late = False
        self.end: asyncio.TimerHandle | None = None

    def give_up(self) -> None:
        """Its time is over: it is told that there is nothing, unless it has been served, or is
        about to be.
        """
        self.late = True
        if self.served.done():
            return
        if not self.busy:
            self.served.set_result([])
        elif self.end is None:
            self.end = asyncio.get_running_loop().call_later(deadline.MESSAGES_S, self.refuse)

    def refuse(self) -> None:
        """It has waited for what is under way for as long as it may. What that brings goes to those
        behind it, or back.
        """
        if not self.served.done():
            self.served.set_exception(late_receive())

    def ask_again(self) -> None:
        """Rights have changed: it ends if it has lost its own."""
        if not self.served.done():
            try:
                self.asker.check()
            except NotAuthorised as error:
                self.served.set_exception(error)

    def rest(self) -> None:
        """Nothing is under way for it any more."""
        self.busy = False
        if self.end is not None:
            self.end.cancel()
            self.end = None
        if self.late:
            self.give_up()


class WaitList:
    """Waiters of one tag of a queue, when each partition may have something, and when all were
    looked at last (loop times).

    `heads`: since when the first message of each partition is visible (epoch ms as Redis has it), 0
    = not known. `wakes`: how often each was woken, so that what was learnt before is not taken for
    true after it. `in_flight`: how many of each are leased. `over`: how many were leased in all
    when the last call was refused for that, 0 = it was not.
    `fit`: how many messages an answer has room for if they are like those that came last, 0 = not
    known.
    """

    __slots__ = (
        "again",
        "due",
        "fit",
        "heads",
        "in_flight",
        "last",
        "looked_at",
        "most",
        "over",
        "pumping",
        "rests",
        "tag",
        "timer",
        "turn",
        "waiters",
        "wakes",
    )

    def __init__(self, tag: int, partitions: int) -> None:
        self.tag = tag
        self.due = [0.0] * partitions
        self.heads = [0] * partitions
        self.wakes = [0] * partitions
        self.in_flight = [MAX_IN_FLIGHT] * partitions  # not known: to be looked at first
        self.over = self.fit = 0
        self.looked_at = -FOREVER
        self.waiters: collections.deque[Waiter] = collections.deque()
        self.pumping = False
        self.again = False
        self.timer: asyncio.TimerHandle | None = None
        self.turn = 0
        self.most = MAX_PER_CALL * min(partitions, MAX_PARALLEL)
        self.last = 0  # messages of the last calls, if several shared them
        self.rests: dict[int, float] = {}  # partitions whose bodies could not be read just now: until when they are not asked

    def wake(self, partition: int, head_ms: int, now: float) -> None:
        """Something may be due in a partition, visible since `head_ms` (0 = not known): behind what
        is known to be due there.
        """
        self.wakes[partition] += 1
        if self.due[partition] > now or 0 < head_ms < self.heads[partition]:
            self.heads[partition] = head_ms
        self.due[partition] = 0.0

    def learn(self, partition: int, wakes: int, seen: Received | Probed, now: float) -> None:
        """An answer of a partition that had been woken `wakes` times when it was asked."""
        head_ms = seen.head_ms
        self.in_flight[partition] = seen.in_flight
        if self.wakes[partition] == wakes:
            self.due[partition] = FOREVER if seen.wait_ms is None else now + seen.wait_ms / 1000
            self.heads[partition] = head_ms or 0
        elif head_ms is not None and head_ms < self.heads[partition]:
            self.heads[partition] = head_ms

    def forget(self, partition: int) -> None:
        """A partition did not answer: nothing is known of it."""
        self.due[partition] = 0.0
        self.heads[partition] = 0

    def forget_all(self) -> None:
        """Nobody answered: every partition may have something."""
        self.due = [0.0] * len(self.due)

    def oldest(self, order: Iterable[int], now: float) -> list[int]:
        """Those of the partitions in `order` that may have something, that with the oldest message
        first; not known ones before them.
        """
        due = [partition for partition in order if self.due[partition] <= now]
        if len(due) > 1:
            due.sort(key=self.heads.__getitem__)
        return due

    def wanted(self) -> int:
        """Messages that the waiters of the next calls would take, about."""
        return sum(waiter.max for waiter in itertools.islice(self.waiters, MAX_PER_CALL))

    def have_room(self, deliveries: Sequence[Delivery]) -> bool:
        """Returns whether one answer has room for deliveries; sets `fit` by their bytes."""
        size = 0
        for one in deliveries:
            size += message_bytes(one.message) if one.message.attributes else len(one.message.body)
        if deliveries:
            self.fit = MAX_RECEIVE_BYTES * len(deliveries) // (size or 1) or 1
        return size <= MAX_RECEIVE_BYTES or len(deliveries) == 1

    def fits(self, max_message_bytes: int) -> int:
        """Returns `fit`; before any message came, what fits if each has as many bytes as its queue
        allows: 1 or more.
        """
        return self.fit or MAX_RECEIVE_BYTES // max_message_bytes or 1

    def stale(self, now: float) -> bool:
        """Whether it is time to ask every partition."""
        return self.looked_at + LOOK_AGAIN_S <= now

    def next_look(self) -> float:
        """When there is something to ask."""
        if self.rests:
            due = (max(due, self.rests.get(partition, 0.0)) for partition, due in enumerate(self.due))
            return min(*due, max(self.looked_at + LOOK_AGAIN_S, min(self.rests.values())))
        return min(*self.due, self.looked_at + LOOK_AGAIN_S)

    def awake(self, order: list[int], now: float) -> list[int]:
        """Those of the partitions in `order` that do not rest."""
        for partition in [p for p, until in self.rests.items() if until <= now]:
            del self.rests[partition]
        return [partition for partition in order if partition not in self.rests]

    def pause(self, until: float) -> None:
        """Nothing is asked before that time, unless something wakes the line or somebody comes."""
        self.due = [until] * len(self.due)
        self.looked_at = max(self.looked_at, until - LOOK_AGAIN_S)

    def pop_batch(self, *, alone: bool) -> list[Waiter]:
        """The first waiters: all of one lease, and MAX_PER_CALL messages, or MAX_PARALLEL waiters
        and `most` messages; `alone`: the first one.
        """
        taken: list[Waiter] = []
        wanted = 0
        while self.waiters:
            waiter = self.waiters[0]
            if not waiter.served.done():
                most = self.most if len(taken) < MAX_PARALLEL else MAX_PER_CALL
                if taken and (alone or waiter.lease_ms != taken[0].lease_ms or wanted + waiter.max > most):
                    break
                taken.append(waiter)
                wanted += waiter.max
            self.waiters.popleft()
        return taken

    def requeue(self, waiters: Iterable[Waiter]) -> None:
        """To the front, in their order; who has gone is left out."""
        self.waiters.extendleft(reversed([waiter for waiter in waiters if not waiter.served.done()]))

    def deliver(self, waiters: list[Waiter], deliveries: list[Delivery], *, fifo: bool) -> list[Delivery]:
        """Serves `waiters`; what is left, for one of them has gone, to those behind. Returns what
        nobody takes.

        Not to those behind in a FIFO queue: two receivers must not share a group.
        """
        lease_ms = waiters[0].lease_ms
        self.requeue(waiters)
        while deliveries and (behind := self.pop_batch(alone=True)):
            (waiter,) = behind
            if waiter.lease_ms != lease_ms or (fifo and waiter not in waiters):
                self.requeue(behind)
                break
            waiter.served.set_result(deliveries[: waiter.max])
            deliveries = deliveries[waiter.max :]
            if fifo:
                break
        for waiter in waiters:
            waiter.rest()
        return deliveries

    def cancel_all(self) -> None:
        """Everybody is told that there is nothing."""
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.served.done():
                waiter.served.set_result([])

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class WaitLists:
    """All wait lists of this worker. `waiting` counts the receives that wait, `rights_changes` how
    often they were asked for their rights again, `refused` those beyond a bound. `watched` tells
    of how many more (or fewer) wait in the lists of a queue.
    """

    def __init__(self, waits_elsewhere: Callable[[Queue], bool] = lambda queue: False) -> None:
        """`waits_elsewhere`: whether somebody waits at this worker in no list: in the plane."""
        self._waits_elsewhere = waits_elsewhere
        self.watched: Signal[[str, int]] = Signal()
        self.waiting = self.rights_changes = self.refused = 0
        self._waiting_of: dict[str, int] = {}
        self._lists: dict[str, dict[int, WaitList]] = {}

    def __iter__(self) -> Iterator[WaitList]:
        for lists in self._lists.values():
            yield from lists.values()

    @property
    def most_waiting(self) -> int:
        """How many wait of those of whom the most do."""
        return max(self._waiting_of.values(), default=0)

    def enter(self, asker: Asker = NOBODY, incarnation: str = "") -> None:
        """A receive begins to wait, in a list of this queue if it names one; `leave` with the same
        when it does no more. Raises Overloaded when MAX_LONG_POLLS do already, QuotaExceeded when
        as many as a bound allows do.
        """
        if self.waiting >= MAX_LONG_POLLS:
            raise Overloaded("too many receives are waiting here")
        for whose, most in asker.bounds:
            if self._waiting_of.get(whose, 0) >= most:
                self.refused += 1
                raise QuotaExceeded(f"{most} receives of {whose} may wait at a worker", field="waits", limit=most)
        for whose, _ in asker.bounds:
            self._waiting_of[whose] = self._waiting_of.get(whose, 0) + 1
        self.waiting += 1
        if incarnation:
            self.watched(incarnation, 1)

    def leave(self, asker: Asker = NOBODY, incarnation: str = "") -> None:
        self.waiting -= 1
        if incarnation:
            self.watched(incarnation, -1)
        for whose, _ in asker.bounds:
            left = self._waiting_of[whose] - 1
            if left:
                self._waiting_of[whose] = left
            else:
                del self._waiting_of[whose]

    def for_tag(self, queue: Queue, tag: TagRecord) -> WaitList:
        """The list of a tag, made when it is not there yet."""
        lists = self._lists.setdefault(queue.incarnation, {})
        found = lists.get(tag.id)
        if found is None:
            found = lists[tag.id] = WaitList(tag.id, queue.record.partitions)
        return found

    def of_queue(self, incarnation: str) -> Iterable[WaitList]:
        """The lists of a queue's tags."""
        return self._lists.get(incarnation, {}).values()

    def waits(self, queue: Queue) -> bool:
        """Whether somebody waits for messages of this queue here."""
        return any(found.waiters for found in self.of_queue(queue.incarnation)) or self._waits_elsewhere(queue)

    def ask_again(self, incarnation: str) -> None:
        """Rights with a queue ("" = any) have changed: who waits and has lost theirs is told."""
        self.rights_changes += 1
        for found in list(self.of_queue(incarnation) if incarnation else self):
            for waiter in list(found.waiters):
                waiter.ask_again()

    def drop_queue(self, incarnation: str) -> None:
        """A queue is gone: who waits is told that there is nothing."""
        for found in self._lists.pop(incarnation, {}).values():
            found.stop_timer()
            found.cancel_all()
