"""Plain receives: those that need no task of their own while they wait.

Many are begun by one call, and stand in the wait list with all others. A receive that does not wait
has a task: it asks every partition. Neighbours: `receiver` has the rules, `pump` serves who waits.
Must not know who asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic, monotonic_ns

from engine.errors import NotAuthorised, Overloaded, QuotaExceeded, TagNotFound
from engine.receive.poll import too_many
from engine.receive.receiver import Receiver
from engine.receive.waiters import Waiter, WaitList, WaitLists
from engine.rules.queue import Queue
from engine.rules.rights import NOBODY, Asker
from engine.runtime.meters import Meters
from engine.shapes import Delivery, PlainAsked, TellReceived
from schemas.records import TagRecord
from schemas.vocabulary import Operation
from state.background import Background
from state.redis.wake import Wake


class PlainReceive:
    """One receive that waits, as the future of an ordinary one."""

    __slots__ = ("_is_over", "_line", "_receives", "_tag", "_tell", "_token", "asker", "began_ns", "queue", "rights", "timer", "waiter")

    timer: asyncio.TimerHandle
    waiter: Waiter

    def __init__(
        self,
        receives: PlainReceives,
        queue: Queue,
        tag: TagRecord,
        line: WaitList,
        token: int,
        began_ns: int,
        tell: TellReceived,
        asker: Asker,
        rights: int,
    ) -> None:
        self._receives = receives
        self.queue = queue
        self._tag = tag
        self._line = line
        self._token = token
        self.began_ns = began_ns
        self._tell = tell
        self._is_over = False
        self.asker = asker
        self.rights = rights

    def done(self) -> bool:
        return self._is_over

    def set_result(self, deliveries: list[Delivery]) -> None:
        self.end()
        if not deliveries and self._line.over:
            self._tell(self._token, too_many(self.queue, self._line.over, waited=True))
            return
        try:
            self._receives.check(self.queue, self._tag, self, deliveries)
        except NotAuthorised as error:
            self._tell(self._token, error)
            return
        self._receives.note(self.queue, self._tag, Operation.LONG_RECEIVE, deliveries, self.began_ns)
        self._tell(self._token, deliveries)

    def set_exception(self, error: Exception) -> None:
        self.end()
        self._tell(self._token, error)

    def end(self) -> None:
        """It waits no more."""
        self._is_over = True
        self.timer.cancel()
        self._receives.ended(self._token)
        if self.waiter in self._line.waiters:
            self._line.waiters.remove(self.waiter)


class PlainReceives:
    """For the tasks of one loop."""

    def __init__(self, receiver: Receiver, wait_lists: WaitLists, wake: Wake, meters: Meters, background: Background) -> None:
        self._receiver = receiver
        self._wait_lists = wait_lists
        self._wake = wake
        self._meters = meters
        self._background = background
        self._waiting: dict[int, PlainReceive] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def begin(
        self, queue: Queue | None, tag: str | None, asked: Sequence[PlainAsked], tell: TellReceived, asker: Asker = NOBODY
    ) -> list[int]:
        """Begins receives of a principal, and returns the tokens of those that are not plain, of
        which nothing was done: the queue is None or a FIFO queue, has no such tag, or too many
        wait. `tell` is called once for each of the others, unless it leaves. Who loses the right to
        receive meanwhile is told so.
        """
        try:
            at = None if queue is None or queue.record.fifo else queue.tag(tag)
        except TagNotFound:
            at = None
        if queue is None or at is None:
            return [one[0] for one in asked]
        record, line, left = queue.record, self._wait_lists.for_tag(queue, at), list[int]()
        began_ns, waits, is_heard = monotonic_ns(), False, self._wake.hears(queue.incarnation)
        now = monotonic()
        for token, most, wait_ms, lease_ms in asked:
            most = min(most, record.max_receive_messages)
            wait_s = (record.receive_wait_ms if wait_ms is None else wait_ms) / 1000
            if told := line.stock.take(most, queue, lease_ms, now):
                self.note(queue, at, Operation.LONG_RECEIVE if wait_s > 0 else Operation.SHORT_RECEIVE, told, began_ns)
                tell(token, told)
                continue
            if wait_s <= 0 or not is_heard:
                work = self._alone(queue, at, token, most, wait_ms, lease_ms, tell, asker)
                self._tasks[token] = self._background.start(work, "receive")
                continue
            try:
                self._wait_lists.enter(asker, queue.incarnation)
            except (Overloaded, QuotaExceeded):
                left.append(token)
                continue
            one = self._waiting[token] = PlainReceive(self, queue, at, line, token, began_ns, tell, asker, self._wait_lists.rights_changes)
            one.waiter = Waiter(most, lease_ms, one, asker)
            one.timer = asyncio.get_running_loop().call_later(wait_s, one.waiter.give_up)
            line.waiters.append(one.waiter)
            waits = True
        if waits:
            self._receiver.look(queue, line)
        return left

    async def _alone(
        self,
        queue: Queue,
        tag: TagRecord,
        token: int,
        most: int,
        wait_ms: int | None,
        lease_ms: int | None,
        tell: TellReceived,
        asker: Asker,
    ) -> None:
        """One receive with a task."""
        began_ns = monotonic_ns()
        waits = queue.record.receive_wait_ms if wait_ms is None else wait_ms
        told: list[Delivery] | Exception
        try:
            told = await self._receiver.receive(queue, tag, most, wait_ms, lease_ms, asker=asker)
            self.note(queue, tag, Operation.LONG_RECEIVE if waits else Operation.SHORT_RECEIVE, told, began_ns)
        except Exception as error:  # whoever asked must hear of it, whatever it is
            told = error
        finally:
            self._tasks.pop(token, None)
        tell(token, told)

    def leave(self, token: int) -> None:
        """Nobody is there to be told, if it was not yet: what is leased for it goes to those behind
        it, or back.
        """
        one = self._waiting.get(token)
        if one is not None:
            one.end()
        elif (task := self._tasks.pop(token, None)) is not None:
            task.cancel()

    def ended(self, token: int) -> None:
        """A receive waits no more."""
        one = self._waiting.pop(token)
        self._wait_lists.leave(one.asker, one.queue.incarnation)

    def check(self, queue: Queue, tag: TagRecord, one: PlainReceive, deliveries: list[Delivery]) -> None:
        """Raises NotAuthorised, and gives back what was leased, when who asked may not receive any
        more.
        """
        if one.asker is not NOBODY:
            self._receiver.check_waited(queue, tag, one.asker, deliveries, one.rights, (monotonic_ns() - one.began_ns) / 1e9)

    def note(self, queue: Queue, tag: TagRecord, operation: Operation, deliveries: Sequence[Delivery], began_ns: int) -> None:
        """Counts a receive that is answered."""
        self._meters.note(queue.incarnation, tag.id, operation, len(deliveries), began_ns)
