"""Requests a second: of a queue, of a tag, and of all queues of a user or an account together.

A worker takes a part of a second's quota from Redis and uses it up, so a request mostly asks
nobody. When Redis is away nothing is counted: a quota is no reason to refuse a send that Kafka
would take. Neighbours: `engine.engine` asks before the verb.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from engine.catalog.catalog import Catalog
from engine.errors import QuotaExceeded
from engine.rules.queue import Queue
from schemas.records import TagRecord
from state.allotments import Allotments
from state.errors import StateError

Kind = Literal["read", "write"]
# A worker takes this part of a quota at once: less, and it would ask for each request; more, and
# other workers would find nothing left.
PART = 20


class Meter:
    """What a worker may still do, and until when (loop time)."""

    __slots__ = ("left", "refused_until", "until")

    def __init__(self) -> None:
        self.left = 0
        self.until = self.refused_until = 0.0


class Quotas:
    """The meters of this worker. Any number of tasks may ask."""

    def __init__(self, allotments: Allotments, catalog: Catalog) -> None:
        self._allotments = allotments
        self._catalog = catalog
        self._meters: dict[str, dict[str, Meter]] = {}

    async def take(self, queue: Queue, kind: Kind, tag: TagRecord | None = None) -> None:
        """Counts one request. Raises QuotaExceeded."""
        record = queue.record
        limit = record.read_qps if kind == "read" else record.write_qps
        if limit:
            await self._take(queue.incarnation, kind, limit, f"queue {queue.name!r}")
        if tag is not None and tag.read_qps:
            await self._take(queue.incarnation, f"tag/{tag.id}", tag.read_qps, f"tag {tag.name!r} of queue {queue.name!r}")
        for name in (record.owner, queue.account):
            user = self._catalog.users.get(name)
            if user is not None and (limit := user.read_qps if kind == "read" else user.write_qps):
                await self._take(f"user/{name}", kind, limit, f"{'user' if name == record.owner else 'account'} {name!r}")

    async def _take(self, whose: str, kind: str, limit: int, about: str) -> None:
        meter = self._meters.setdefault(whose, {}).setdefault(kind, Meter())
        now = asyncio.get_running_loop().time()
        if now < meter.until and meter.left > 0:
            meter.left -= 1
            return
        if now >= meter.refused_until:
            try:
                granted, left_ms = await self._allotments.allot(f"{whose}/{kind}", limit, max(1, limit // PART))
            except StateError:
                return
            if granted:
                meter.left = granted - 1
                meter.until = now + left_ms / 1000
                return
            meter.refused_until = now + left_ms / 1000
        what = "receives" if kind != "write" else "sends"
        raise QuotaExceeded(f"{about} may have {limit} {what} a second", field="quota", limit=limit)

    def forget_queue(self, queue: Queue) -> None:
        """A queue is gone."""
        self._meters.pop(queue.incarnation, None)
