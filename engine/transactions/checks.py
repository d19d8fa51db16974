"""Open checks: each is given to one producer that asks for them, or to a webhook.

The keeper of a shard writes when producers may be asked about a transaction; every worker reads
that, and one that has a producer waiting takes the check by a lock in Redis, so that two producers
are not asked the same at once. When Redis has lost the lock they may be: an answer counts once in
any case. A producer that dies with a check is not missed: the next check is another one.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable, Sequence
from contextlib import suppress

from engine.errors import Overloaded
from engine.settings import EngineSettings
from engine.transactions.book import Transaction
from schemas.records.settings import MAX_LONG_POLLS
from state.errors import StateError
from state.redis.connection import Connection
from state.redis.lock import Hold

# Who waits looks again this often: what Redis did not give is offered to nobody else.
LOOK_AGAIN_S = 5.0
# Checks given away that may still come back because no answer carried them.
MOST_GIVEN = 10_000
PRESENT_MS = 30_000  # after it asked last
RENEWED_S = 8.0
ABSENT_S = 1.0  # for so long nobody is looked for again
MOST_GROUPS = 10_000


class TakenCheck:
    """A check that this worker gives to one producer."""

    __slots__ = ("hold", "number", "transaction")

    def __init__(self, transaction: Transaction, hold: Hold) -> None:
        self.transaction = transaction
        self.number = transaction.checks
        self.hold = hold

    @property
    def id(self) -> str:
        return f"{self.transaction.id}-{self.number}"


class Presence:
    """Whether a producer group has a member that asks for checks, at any worker.

    A worker at which one asks holds a lock in Redis for the group; one at which nobody has asked
    for half a minute lets it run out. While nobody is there no check is written, so none is used
    up.
    """

    def __init__(self, settings: EngineSettings, connection: Connection) -> None:
        self._prefix = settings.topic_prefix
        self._connection = connection
        self._held: dict[str, tuple[Hold, float]] = {}  # with the time of the loop at which it was renewed
        self._absent: dict[str, float] = {}

    async def note(self, group: str) -> None:
        """Notes that a member of the group asks here."""
        now = asyncio.get_running_loop().time()
        hold, renewed_at = self._held.get(group, (None, 0.0))
        if hold is not None and hold.is_valid and now - renewed_at < RENEWED_S:
            return
        with suppress(StateError):  # it is noted when Redis is back
            if hold is None or not await hold.renew():
                hold = self._hold(group)
                if not await hold.take():
                    return  # another worker has noted one
            self._held[group] = (hold, now)
        while len(self._held) > MOST_GROUPS:
            del self._held[next(iter(self._held))]

    async def is_there(self, group: str) -> bool:
        """Whether some worker has noted a member lately. Raises StateUnavailable."""
        held = self._held.get(group)
        if held is not None and held[0].is_valid:
            return True
        now = asyncio.get_running_loop().time()
        if now < self._absent.get(group, 0.0):
            return False
        probe = self._hold(group)
        if not await probe.take():
            return True
        await probe.give_up()
        if len(self._absent) >= MOST_GROUPS:
            self._absent.clear()
        self._absent[group] = now + ABSENT_S
        return False

    def _hold(self, group: str) -> Hold:
        return Hold(self._connection, self._prefix, f"producers:{group}", PRESENT_MS)


class Checks:
    """Checks that may be given away, by producer group. Any number of tasks may ask."""

    def __init__(self, settings: EngineSettings, connection: Connection) -> None:
        self._prefix = settings.topic_prefix
        self._interval_ms = settings.transaction_interval_ms
        self._connection = connection
        self._presence = Presence(settings, connection)
        self._offered: dict[str, dict[str, Transaction]] = {}
        self._waiters: dict[str, set[asyncio.Event]] = {}
        self._given: collections.OrderedDict[str, TakenCheck] = collections.OrderedDict()
        self.waiting = 0

    def offer(self, one: Transaction) -> None:
        """The producers of a transaction may be asked, once more."""
        self._offered.setdefault(one.producer_group, {})[one.id] = one
        for waiter in self._waiters.get(one.producer_group, ()):
            waiter.set()

    async def has_producer(self, producer_group: str) -> bool:
        """Whether a member of the group asks for checks, here or at another worker. Raises
        StateUnavailable.
        """
        return producer_group in self._waiters or await self._presence.is_there(producer_group)

    async def take(
        self, producer_group: str, may: Callable[[Transaction], bool], most: int, wait_ms: int
    ) -> list[TakenCheck]:
        """Up to `most` checks of a group that `may` be seen; waits up to `wait_ms` for the first.
        Raises Overloaded.
        """
        loop = asyncio.get_running_loop()
        end_at = loop.time() + wait_ms / 1000
        if wait_ms and self.waiting >= MAX_LONG_POLLS:
            raise Overloaded("too many producers are waiting for checks here")
        waiter = asyncio.Event()
        waiters = self._waiters.setdefault(producer_group, set())
        waiters.add(waiter)
        self.waiting += 1
        try:
            while True:
                waiter.clear()
                await self._presence.note(producer_group)
                taken = await self._take_offered(producer_group, may, most)
                left_s = end_at - loop.time()
                if taken or left_s <= 0:
                    return taken
                try:
                    await asyncio.wait_for(waiter.wait(), min(left_s, LOOK_AGAIN_S))
                except TimeoutError:
                    continue  # Redis may be back
        finally:
            self.waiting -= 1
            waiters.discard(waiter)
            if not waiters and self._waiters.get(producer_group) is waiters:
                del self._waiters[producer_group]

    async def _take_offered(
        self, producer_group: str, may: Callable[[Transaction], bool], most: int
    ) -> list[TakenCheck]:
        taken: list[TakenCheck] = []
        for one in list(self._offered.get(producer_group, {}).values()):
            if len(taken) == most:
                break
            if not one.is_open:
                self._withdraw(one)
            elif may(one) and (mine := await self.take_one(one)) is not None:
                taken.append(mine)
        return taken

    async def take_one(self, one: Transaction) -> TakenCheck | None:
        """The open check of a transaction, if nobody has it. None also while Redis is away: it
        stays open.
        """
        if not self._withdraw(one):
            return None
        mine = TakenCheck(one, Hold(self._connection, self._prefix, f"check:{one.id}-{one.checks}", self._interval_ms))
        try:
            if not await mine.hold.take():
                return None
            self._given[mine.id] = mine
            while len(self._given) > MOST_GIVEN:
                self._given.popitem(last=False)
            return mine
        except StateError:
            if one.is_open and one.checks == mine.number:
                self._offered.setdefault(one.producer_group, {})[one.id] = one
            return None
        except BaseException:
            self.offer(one)  # the caller has gone: another may ask
            raise

    def _withdraw(self, one: Transaction) -> bool:
        """Whether the check of a transaction was open here; it is not any more."""
        offered = self._offered.get(one.producer_group, {})
        there = offered.pop(one.id, None) is not None
        if there and not offered:
            del self._offered[one.producer_group]
        return there

    async def put_back_ids(self, ids: Sequence[str]) -> None:
        """The same by the ids of checks that were taken here a moment ago."""
        await self.put_back([check for name in ids if (check := self._given.get(name)) is not None])

    async def put_back(self, checks: Sequence[TakenCheck]) -> None:
        """No producer has got these: others may."""
        for check in checks:
            await check.hold.give_up()
            if check.transaction.is_open and check.transaction.checks == check.number:
                self.offer(check.transaction)

    def forget_decided(self) -> None:
        """Drops what was decided without a producer asking."""
        for offered in list(self._offered.values()):
            for one in [one for one in offered.values() if not one.is_open]:
                self._withdraw(one)
