"""Acks of concurrent callers on one unit and tag, settled by one call: while one is under way, what
comes is asked for together; while there are many, a call lingers for more (`linger.py`).
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Sequence
from typing import TypeAlias

from engine.rules.linger import LINGER_S, batch_size_if_shared, should_linger
from engine.window.body_cache import BodyCache
from runtime.background import Background
from schemas.vocabulary import EntryStatus
from state.keys import Unit
from state.leases import LeaseScripts
from state.replies import Acked

# Of one call to the window; a caller has 100 at most.
MOST = 500

# (offset, nonce) of each handle, or of all of a caller with the deadline that it names, 0 = none.
Pairs: TypeAlias = Sequence[tuple[int, ...]]
_Asked: TypeAlias = tuple[Pairs, asyncio.Future[Acked]]
_Key: TypeAlias = tuple[Unit, int, int, bool, int]


class Acks:
    """Any number of tasks may ack at once; each handle is judged as if its caller had asked
    alone.
    """

    def __init__(self, leases: LeaseScripts, bodies: BodyCache) -> None:
        self._leases = leases
        self._bodies = bodies
        self._waiting: dict[_Key, collections.deque[_Asked]] = {}
        self._background = Background()

    def ack(self, unit: Unit, generation: int, tag: int, pairs: Pairs, *, late: bool) -> asyncio.Future[Acked]:
        """To be awaited as `LeaseScripts.ack`, and raises what that does; `seq` is that of the
        journal entry of the whole call.

        A caller that is cancelled has acked nevertheless, or has not: as when its answer is lost.
        """
        done: asyncio.Future[Acked] = asyncio.get_running_loop().create_future()
        key = (unit, generation, tag, late, len(pairs[0]))
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = collections.deque()
            self._background.start(self._settle(key, waiting), "ack")
        waiting.append((pairs, done))
        return done

    async def _settle(self, key: _Key, waiting: collections.deque[_Asked]) -> None:
        last = 0
        while waiting or last:
            if last and should_linger(last, sum(len(pairs) for pairs, _ in waiting)):
                await asyncio.sleep(LINGER_S)
            if not waiting:
                break
            some, size = [], 0
            while waiting and size + len(waiting[0][0]) <= MOST:
                some.append(waiting.popleft())
                size += len(some[-1][0])
            last = batch_size_if_shared(size, len(some))
            try:
                await self._call(key, some)
            except Exception as error:  # the callers must hear of it, whatever it is
                for _, done in some:
                    if not done.done():
                        done.set_exception(error)
        del self._waiting[key]

    async def _call(self, key: _Key, some: Sequence[_Asked]) -> None:
        unit, generation, tag, late, _ = key
        pairs = some[0][0] if len(some) == 1 else [pair for mine, _ in some for pair in mine]
        acked = await self._leases.ack(unit, generation, tag, pairs, late=late)
        if acked.seq:
            words, settled = acked.words, pairs
            if words.count(EntryStatus.OK) < len(words):
                settled = [pair for pair, word in zip(pairs, words, strict=True) if word == EntryStatus.OK]
            self._bodies.settle(unit, settled)
        at = 0
        for mine, done in some:
            if not done.done():
                done.set_result(Acked(acked.words[at : at + len(mine)], acked.seq))
            at += len(mine)
