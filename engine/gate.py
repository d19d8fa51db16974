"""What every verb passes first: it finds its queue, authorises the caller, charges quotas, and is
measured. The authoriser notes for the audit what is asked. `bounded` says how long a verb may take.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Literal, ParamSpec, TypeVar

from engine.catalog.catalog import Catalog
from engine.errors import LogUnavailable
from engine.meters.meters import Meters
from engine.queues.callers.access import Access
from engine.queues.callers.quotas import Charge, Quotas
from engine.rules.masks.sight import Sight
from engine.rules.queue import Queue
from engine.rules.rights import Asker, WaitBound, no_queue
from engine.settings import EngineSettings
from engine.shapes import Principal, SendEntry
from runtime.asked import note, note_hidden
from runtime.background import Background
from runtime.cancel import before, cancel_all
from runtime.deadline import MESSAGES_S, WAITED_S
from schemas.accounts import full
from schemas.records import TagRecord
from schemas.vocabulary import Verb

P = ParamSpec("P")
T = TypeVar("T")

_background = Background()


def bounded(seconds: float) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Has a verb answer within so many seconds of its call, else by LogUnavailable: its outcome is
    unknown, for what it does goes on. Nothing is left half done because somebody waits no more.
    """

    def decorate(verb: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @functools.wraps(verb)
        async def answered(*args: P.args, **kwargs: P.kwargs) -> T:
            task = _background.start(verb(*args, **kwargs), verb.__name__, awaited=True)
            try:
                await asyncio.wait([task], timeout=seconds)
            except asyncio.CancelledError:  # the client has gone, or the worker stops
                await cancel_all(task)
                raise
            if not task.done():
                raise LogUnavailable(
                    f"{verb.__name__} took longer than {seconds:g} s: it goes on, and its outcome is unknown"
                )
            return task.result()

        return answered

    return decorate


class Gate:
    """One per worker. Any number of tasks may pass at once."""

    def __init__(
        self, settings: EngineSettings, catalog: Catalog, access: Access, quotas: Quotas, meters: Meters
    ) -> None:
        self._catalog = catalog
        self._access = access
        self._quotas = quotas
        self._meters = meters
        self._send_s = settings.send_timeout_ms / 1000
        self._max_waits = settings.max_waits
        self.note: Final = meters.note  # of a request that was answered
        self.is_bound: Final = quotas.bound  # whether anything bounds the use of a queue

    async def queue(
        self, by: Principal, verb: Verb, name: str, tag: str | None = None, *, until: float | None = None
    ) -> Queue:
        """Returns the queue, with which `by` may do `verb`. Raises QueueNotFound also for one with
        which they may do nothing, after the same wait; NotAuthorised.

        `tag`: one that is asked for, and may have been made a moment ago by another worker.
        `until` (loop time): when whoever asks has waited long enough; None = MESSAGES_S from now.
        """
        queue = self.known(by, verb, name, tag)
        if queue is None or (tag and tag not in queue.by_name):
            await self.sync(until)
            queue = self.known(by, verb, name, tag)
        if queue is None:
            name = full(by.account, name)
            note(by.id, by.key_id, verb, name)
            if name in self._catalog.queues:
                note_hidden()
            raise no_queue(name)
        return queue

    async def sync(self, until: float | None = None) -> None:
        """Returns when all that was written before is known here. Raises LogUnavailable."""
        until = asyncio.get_running_loop().time() + MESSAGES_S if until is None else until
        await before(
            until, self._catalog.sync(), lambda: LogUnavailable("Kafka does not say whether the queue is there")
        )

    def known(self, by: Principal, verb: Verb, name: str, tag: str | None = None) -> Queue | None:
        """As `queue`, without waiting; None = this worker may not have heard of it."""
        queue = self._catalog.queues.get(full(by.account, name) if by.account else name)
        if queue is None or not (
            by.admin or self._access.may(by, verb, queue, tag or "") or self._access.knows(by, queue)
        ):
            return None
        self._access.authorise(by, verb, queue, tag or "")
        return queue

    def permitted(self, by: Principal, verb: Verb, name: str, tag: str | None = None) -> Queue | None:
        """As `known`; None also for who may not: then the verb itself is to be asked, which waits
        or refuses.
        """
        queue = self._catalog.queues.get(full(by.account, name) if by.account else name)
        if queue is None or not self._access.may(by, verb, queue, tag or ""):
            return None
        return queue

    def may(self, by: Principal, verb: Verb, queue: Queue) -> bool:
        """Returns whether `by` may do `verb` with a whole queue."""
        return self._access.may(by, verb, queue)

    def sight(self, by: Principal, queue: Queue, tag: TagRecord) -> Sight | None:
        """Returns what `by`, who looks at messages of a tag, sees of them; None = all."""
        if self._access.may(by, Verb.UNMASK, queue):
            return None
        return Sight(self._catalog, queue, tag if self._access.may(by, Verb.UNMASK, queue, tag.name) else None)

    def send_until(self) -> float:
        """Returns when a send that comes now is answered at the latest (loop time)."""
        return asyncio.get_running_loop().time() + self._send_s - WAITED_S.get()

    async def charge_send(self, queue: Queue, entries: list[SendEntry]) -> Charge:
        """Counts a send and its bytes. Raises QuotaExceeded."""
        return await self._quotas.take_send(queue, entries)

    async def charge_receive(self, queue: Queue, tag: TagRecord) -> None:
        """Counts a receive. Raises QuotaExceeded."""
        await self._quotas.take(queue, "read", tag)

    def counts(self, queue: Queue, bound: Literal["read_qps", "write_qps", "daily_bytes"]) -> bool:
        """Returns whether such requests to a queue, or to a tag of it, are counted."""
        return self._quotas.counts(queue, bound)

    def asker(self, by: Principal, queue: Queue, tag: str) -> Asker:
        """Returns who waits for messages of a tag: what bounds their waits, and how their right to
        receive is asked again.
        """
        bounds: list[WaitBound] = [WaitBound(f"principal {by.id!r}", self._max_waits)] if by.key_id else []
        if self._quotas.bound(queue):
            bounds += self._quotas.waits(queue)
        return Asker(tuple(bounds), partial(self._access.check_still, by, Verb.RECEIVE, queue.incarnation, tag))
