"""What a queue, a tag, a user and an account may use: requests a second, bytes a day, and receives
that wait.

A worker takes a part of a quota from Redis and uses it up, so a request mostly asks nobody. When
Redis is away nothing is counted: a quota is no reason to refuse a send that Kafka would take.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Literal, NoReturn, TypeAlias

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import Conflict, NotFound, Overloaded, QuotaExceeded, Refused
from engine.rules.limits import check_send
from engine.rules.queue import Queue
from engine.rules.rights import WaitBound
from engine.settings import EngineSettings
from engine.shapes import SendEntry
from schemas.accounts import is_account
from schemas.records import QueueRecord, TagRecord, UserRecord
from schemas.records.settings import DAY_MS
from state.errors import StateError
from state.shared.allotments import Allotments

Kind = Literal["read", "write"]
# A worker takes this part of a quota at once: less, and it would ask for each request; more, and
# other workers would find nothing left.
PART = 20
# But no more bytes than this at once: what a worker has taken and not sent yet is shown as used.
MOST_BYTES: Final = 64_000_000
SECOND_MS: Final = 1000
_NOUNS: Final = {"read": "receives a second", "write": "sends a second", "bytes": "bytes a day"}
# While Redis is away it is asked again this often.
ASK_AGAIN_S = 1.0
# Errors of a send after which Kafka has nothing of it.
NOTHING_STORED = (NotFound, Conflict, Refused, Overloaded)
FREE: Final = contextlib.nullcontext()  # of what no quota bounds


# An account has room for five users that use all of theirs.
OF_USER: Final = UserRecord("", 0, queues=1_000, partitions=4_000, daily_bytes=50_000_000_000, waits=1_000)
OF_ACCOUNT: Final = UserRecord("", 0, queues=5_000, partitions=20_000, daily_bytes=250_000_000_000, waits=5_000)
_BOUNDS: Final = ("queues", "partitions", "daily_bytes", "waits")


Unused: TypeAlias = Callable[[], Sequence[tuple[Queue, int]]]


class UserBounds:
    """What bounds users and accounts: what an administrator has set, and in required mode the
    defaults for the rest, so that one key can't take the disk, the topics or the waits of all.

    A rate has no default, for workers share their time (ADR 0030). LEASEWAY_QUOTAS=none lifts the
    defaults as a whole, and a higher number for one user.
    """

    def __init__(self, settings: EngineSettings, catalog: Catalog) -> None:
        self._catalog = catalog
        self._by_default = settings.auth == "required" and settings.quotas == "default"
        self._administrator = settings.admin_key_id

    def any_of(self, owner: str, account: str) -> bool:
        """Returns whether an owner or an account may have a bound: `of` says which."""
        users = self._catalog.users
        return self._by_default or owner in users or account in users

    def of(self, name: str) -> UserRecord | None:
        """Returns the record of a user or account with every bound that counts; None = nothing is
        noted of it and nothing bounds it. The first administrator has no defaults.
        """
        noted = self._catalog.users.get(name)
        if not self._by_default or not name or name == self._administrator:
            return noted
        defaults = OF_ACCOUNT if is_account(name) else OF_USER
        if noted is None:
            return defaults
        return msgspec.structs.replace(
            noted, **{bound: getattr(noted, bound) or getattr(defaults, bound) for bound in _BOUNDS}
        )


class Meter:
    """What a worker may still do, and until when (loop time). So many more were not there, and are
    not asked for until `refused_until`; nothing is counted until `away_until`. One task asks at a
    time: each would take a part of the quota.
    """

    __slots__ = ("asking", "away_until", "left", "refused", "refused_until", "until")

    def __init__(self) -> None:
        self.left = self.refused = 0
        self.until = self.refused_until = self.away_until = 0.0
        self.asking = asyncio.Lock()


class Charge:
    """The bytes of a send, and the meters that count them. As a context of the send, they go back
    when nothing was stored.
    """

    __slots__ = ("_counted", "size")

    def __init__(self) -> None:
        self.size = 0
        self._counted: list[tuple[Meter, float]] = []

    def add(self, meter: Meter) -> None:
        """It has counted them."""
        self._counted.append((meter, meter.until))

    def give_back(self) -> None:
        """What is not sent is not of the day; a day that is over has no use of it."""
        now = asyncio.get_running_loop().time()
        for meter, until in self._counted:
            if now < until:
                meter.left += self.size

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, NOTHING_STORED):
            self.give_back()


class Quotas:
    """The meters of this worker. Any number of tasks may ask. `refused` counts what was beyond a
    quota.
    """

    def __init__(self, allotments: Allotments, users: UserBounds, unused: Unused) -> None:
        """`unused` takes back what `spare` has given and nobody has sent, by queue."""
        self._allotments = allotments
        self._users = users
        self._unused = unused
        self._meters: dict[str, dict[str, Meter]] = {}
        self.refused = 0

    def bound(self, queue: Queue) -> bool:
        """Returns whether anything bounds the use of a queue: itself, its owner or its account."""
        return queue.is_limited or self._users.any_of(queue.record.owner, queue.account)

    def counts(self, queue: Queue, bound: Literal["read_qps", "write_qps", "daily_bytes"]) -> bool:
        """Returns whether such requests to a queue, or to a tag of it, are counted."""
        if bound == "read_qps" and any(tag.read_qps for tag in queue.tags):
            return True
        return any(getattr(record, bound) for _, _, record in self._bounded(queue))

    def spare(self, queue: Queue) -> tuple[int, float]:
        """Counts half of the bytes that this worker may still send today to a queue, for who sends
        without asking; 0 = it knows of none. Returns how many, and for how many seconds.
        """
        now, meters = asyncio.get_running_loop().time(), self._of_bytes(queue)
        if not meters or any(meter.until <= now or now < meter.refused_until for meter in meters):
            return 0, 0.0
        size = min(meter.left for meter in meters) // 2
        for meter in meters:
            meter.left -= size
        return size, min(meter.until for meter in meters) - now

    def _take_back(self) -> None:
        """Uncounts what `spare` has counted and nobody has sent: before anything is refused."""
        for queue, size in self._unused():
            for meter in self._of_bytes(queue):
                meter.left += size

    def _of_bytes(self, queue: Queue) -> list[Meter]:
        """Returns the meters of bytes of a day of a queue; a new one has nothing left."""
        whose = [name for name, _, record in self._bounded(queue) if record.daily_bytes]
        return [self._meters.setdefault(name, {}).setdefault("bytes", Meter()) for name in whose]

    async def take(self, queue: Queue, kind: Kind, tag: TagRecord | None = None) -> None:
        """Counts one request. Raises QuotaExceeded."""
        for whose, about, record in self._bounded(queue):
            if limit := record.read_qps if kind == "read" else record.write_qps:
                await self._take(whose, kind, limit, about)
        if tag is not None and tag.read_qps:
            about = f"tag {tag.name!r} of queue {queue.name!r}"
            await self._take(queue.incarnation, f"tag/{tag.id}", tag.read_qps, about)

    async def take_send(self, queue: Queue, entries: Sequence[SendEntry]) -> Charge:
        """Counts one request, and its bytes. Raises QuotaExceeded, and what is wrong with the
        messages.
        """
        await self.take(queue, "write")
        charge = Charge()
        try:
            for whose, about, record in self._bounded(queue):
                if record.daily_bytes:
                    charge.size = charge.size or check_send(entries, queue.record)
                    meter = await self._take(
                        whose, "bytes", record.daily_bytes, about, wanted=charge.size, span_ms=DAY_MS
                    )
                    if meter is not None:
                        charge.add(meter)
        except BaseException:
            charge.give_back()
            raise
        return charge

    async def bytes_today(self, user: str) -> int:
        """Bytes that workers have sent today to all queues of a user, or are about to: each takes a
        part of the quota. 0 while nothing bounds them, or Redis is away.
        """
        record = self._users.of(user)
        if record is None or not record.daily_bytes:
            return 0
        with contextlib.suppress(StateError):
            return (await self._allotments.allot(f"user/{user}/bytes", record.daily_bytes, 0, DAY_MS)).used
        return 0

    def waits(self, queue: Queue) -> Iterator[WaitBound]:
        """How many receives may wait at a worker for messages of this queue, and of all that share
        a bound with it.
        """
        for _, about, record in self._bounded(queue):
            if record.waits:
                yield WaitBound(about, record.waits)

    def _bounded(self, queue: Queue) -> Iterator[tuple[str, str, QueueRecord | UserRecord]]:
        yield queue.incarnation, f"queue {queue.name!r}", queue.record
        owner, account = queue.record.owner, queue.account
        for name, kind in ((owner, "user"), (account, "account")):
            user = self._users.of(name)
            if user is not None and (kind == "user" or name != owner):
                yield f"user/{name}", f"{kind} {name!r}", user

    async def _take(
        self, whose: str, kind: str, limit: int, about: str, *, wanted: int = 1, span_ms: int = SECOND_MS
    ) -> Meter | None:
        """The meter that counts it; None = Redis is away. Raises QuotaExceeded."""
        meter = self._meters.setdefault(whose, {}).setdefault(kind, Meter())
        if meter.until <= asyncio.get_running_loop().time() or meter.left < wanted:
            async with meter.asking:
                if not await self._fill(meter, whose, kind, limit, about, wanted, span_ms):
                    return None
        meter.left -= wanted  # nobody had a turn since it was there
        return meter

    async def _fill(
        self, meter: Meter, whose: str, kind: str, limit: int, about: str, wanted: int, span_ms: int
    ) -> bool:
        """Asks until so much is left; False = Redis is away. Raises QuotaExceeded."""
        now, allot = asyncio.get_running_loop().time(), self._allotments.allot
        if now < meter.away_until:
            return False
        if now >= meter.until:
            meter.left = 0
        while meter.left < wanted:
            least = wanted - meter.left
            if now < meter.refused_until and least >= meter.refused:
                self._take_back()
                if meter.left >= wanted:
                    break
                self._refuse(kind, limit, about, wanted, meter.until - now)
            try:
                most = max(least, min(limit // PART, MOST_BYTES))
                granted, left_ms, _ = await self._allotments.soon(
                    partial(allot, f"{whose}/{kind}", limit, most, span_ms, least=least)
                )
            except StateError:
                meter.away_until = now + ASK_AGAIN_S
                return False
            meter.left += granted
            meter.until = now + left_ms / 1000
            if not granted:
                # Who bounds a day may raise the bound before it is over.
                meter.refused, meter.refused_until = least, now + min(left_ms, SECOND_MS) / 1000
        return True

    def _refuse(self, kind: str, limit: int, about: str, wanted: int, left_s: float) -> NoReturn:
        self.refused += 1
        noun, given = _NOUNS.get(kind, _NOUNS["read"]), wanted if kind == "bytes" else None
        after_s = max(1, math.ceil(left_s))
        raise QuotaExceeded(
            f"{about} may have {limit} {noun}", field="quota", limit=limit, given=given, retry_after_s=after_s
        )

    def forget_queue(self, queue: Queue) -> None:
        """A queue is gone."""
        self._meters.pop(queue.incarnation, None)
