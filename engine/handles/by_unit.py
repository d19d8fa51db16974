"""Calls scripts for handles: once for each unit and tag."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from engine.meters.meters import NO_TAG
from engine.meters.times import Histogram
from engine.rules.queue import Queue
from engine.window.window import Window
from schemas.identity import Handle
from schemas.vocabulary import UNCALLED, EntryStatus, StaleReason
from state.errors import StateError
from state.keys import Unit
from state.unit_caller import UnitCaller

T = TypeVar("T")
_Call = Callable[[Unit, int, int, Sequence[int]], Awaitable[list[T]]]
# What becomes of handles for which no script is called.
WORDS: Final[Mapping[StaleReason, str]] = {reason: reason.value for reason in UNCALLED}
TIMED: Final[Mapping[StaleReason, tuple[str, int]]] = {reason: (reason.value, 0) for reason in UNCALLED}


class ByUnit:
    """Any number of tasks may call."""

    def __init__(self, window: Window, units: UnitCaller) -> None:
        self._window = window
        self._units = units

    async def now_ms(self, queue: Queue, until: float) -> int:
        """Returns the time of the service. Raises Unavailable."""
        return await self._window.call(queue, self._now, until=until)

    async def _now(self, generation: int) -> int:
        return self._units.now_ms()

    def note_ended(self, times: Histogram, handles: Iterable[Handle], words: Iterable[str]) -> None:
        """Notes how long ago the deliveries began of those handles whose word says that it has
        ended; of none while nobody knows the time, for what was done stays done.
        """
        try:
            now_ms = self._units.now_ms()
        except StateError:
            return
        ended = []  # no comprehension: a call for each request counts here
        for handle, word in zip(handles, words, strict=True):
            if word == EntryStatus.OK and handle.leased_at_ms:
                ended.append(now_ms - handle.leased_at_ms)
        times.note(ended)

    def each(
        self, queue: Queue, handles: Sequence[Handle], call: _Call[T], missing: Mapping[StaleReason, T], until: float | None
    ) -> Awaitable[list[T]]:
        """Runs `call(unit, generation, tag, indexes)` once per unit and tag that the queue has;
        results in the order of `handles`, of others those of `missing`. Raises Unavailable at
        `until` (loop time, see `Window.call`).
        """
        places: set[tuple[int, int]] = set()
        for handle in handles:
            places.add((handle.partition, handle.tag))
        if len(places) == 1:
            ((partition, tag),) = places
            if tag in queue.tag_ids and partition < len(queue.units):
                return self._ask(queue, partition, tag, range(len(handles)), call, missing, until)
        return self._by_place(queue, handles, call, missing, until)

    async def _by_place(
        self, queue: Queue, handles: Sequence[Handle], call: _Call[T], missing: Mapping[StaleReason, T], until: float | None
    ) -> list[T]:
        groups: dict[tuple[int, int], list[int]] = {}
        for index, handle in enumerate(handles):
            groups.setdefault((handle.partition, handle.tag), []).append(index)
        results: dict[int, T] = {}
        asked: list[tuple[Sequence[int], Coroutine[Any, Any, list[T]]]] = []
        for at, indexes in groups.items():
            if (gone := _gone(queue, *at)) is not None:
                results.update(dict.fromkeys(indexes, missing[gone]))
            else:
                asked.append((indexes, self._ask(queue, *at, indexes, call, missing, until)))
        for (places, _), answers in zip(asked, await asyncio.gather(*(answer for _, answer in asked)), strict=True):
            results.update(zip(places, answers, strict=True))
        return [results[index] for index in range(len(handles))]

    def _ask(
        self, queue: Queue, partition: int, tag: int, indexes: Sequence[int], call: _Call[T], missing: Mapping[StaleReason, T],
        until: float | None,
    ) -> Coroutine[Any, Any, list[T]]:  # fmt: skip
        """The call for one unit and tag."""
        unit = queue.units[partition]
        self._window.used(queue, partition)
        # What was held in a life before is held no more.
        renewed = [missing[StaleReason.QUEUE_REMADE]] * len(indexes)
        return self._window.call(queue, lambda g: call(unit, g, tag, indexes), renewed, until=until)


def _gone(queue: Queue, partition: int, tag: int) -> StaleReason | None:
    """Why the queue has no such unit and tag; None = it has them."""
    if tag == NO_TAG:
        return StaleReason.QUEUE_REMADE
    if tag not in queue.tag_ids:
        return StaleReason.TAG_GONE
    return StaleReason.PARTITION_GONE if partition >= len(queue.units) else None
