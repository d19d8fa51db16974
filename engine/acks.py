"""Acks of concurrent callers on one unit and tag, settled by one call: while one is under way, what comes is asked for together.

Neighbours: `leases.py` parses handles and answers. Must not know callers.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Sequence
from typing import TypeAlias

from engine.core import Core
from engine.queue import Queue
from state.keys import Unit
from state.replies import Acked

# Of one call to the window; a caller has 100 at most.
MOST = 500

Pairs: TypeAlias = Sequence[tuple[int, int]]
_Key: TypeAlias = tuple[Unit, int, bool]


class _Group:
    """Callers that wait for the next call; `queue` as the last one knew it."""

    __slots__ = ("queue", "waiting")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.waiting: collections.deque[tuple[Pairs, asyncio.Future[Acked]]] = collections.deque()


class Acks:
    """Any number of tasks may ack at once; each handle is judged as if its caller had asked alone."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._groups: dict[_Key, _Group] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ack(self, queue: Queue, unit: Unit, tag: int, pairs: Pairs, *, late: bool) -> Acked:
        """As `Store.ack`, of (offset, nonce) pairs; `seq` is that of the call's journal entry. Raises Unavailable.

        A caller that is cancelled has acked nevertheless, or has not: as when its answer is lost.
        """
        loop = asyncio.get_running_loop()
        key = (unit, tag, late)
        done: asyncio.Future[Acked] = loop.create_future()
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(queue)
            task = loop.create_task(self._settle(key, group))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        group.queue = queue
        group.waiting.append((pairs, done))
        return await done

    async def _settle(self, key: _Key, group: _Group) -> None:
        while group.waiting:
            some, size = [], 0
            while group.waiting and size + len(group.waiting[0][0]) <= MOST:
                some.append(group.waiting.popleft())
                size += len(some[-1][0])
            try:
                await self._call(key, group.queue, some)
            except Exception as error:  # the callers must hear of it, whatever it is
                for _, done in some:
                    if not done.done():
                        done.set_exception(error)
        del self._groups[key]

    async def _call(self, key: _Key, queue: Queue, some: Sequence[tuple[Pairs, asyncio.Future[Acked]]]) -> None:
        unit, tag, late = key
        pairs = [pair for pairs, _ in some for pair in pairs]
        acked = await self._core.on_state(queue, lambda g: self._core.store.ack(unit, g, tag, pairs, late=late))
        at = 0
        for mine, done in some:
            if not done.done():
                done.set_result(Acked(acked.words[at : at + len(mine)], acked.seq))
            at += len(mine)
