"""What the verbs on handles share: which texts that clients send are handles of a queue, calls of
scripts once for each unit and tag, and what is answered for a delivery that is over.

Each handle has an answer of its own (EntryStatus): a malformed one, or one of another queue, is
INVALID and says why; one that is given twice has the same answer twice. A refusal is counted by
its reason, and written down at level debug.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, InvalidHandle, LogUnavailable
from engine.meters.meters import NO_TAG
from engine.meters.times import Histogram
from engine.rules.limits import check_asked
from engine.rules.queue import Ids, Queue
from engine.shapes import Delivery, EntryResult
from engine.window.window import Window
from runtime.cancel import before
from schemas.identity import BadIdentity, Handle, MessageId
from schemas.vocabulary import GONE, STATUS_OF, UNCALLED, EntryStatus, StaleReason
from state.errors import StateError
from state.keys import Unit
from state.unit_caller import UnitCaller

_NONE_REFUSED: Mapping[str, EngineError] = {}
# The queue, texts and handles that count, and by text why another does not.
Parsed: TypeAlias = tuple[Queue, Sequence[str], list[Handle], Mapping[str, EngineError]]


class Handles:
    """Reads and writes handles. Any number of tasks may ask."""

    def __init__(self, catalog: Catalog, ids: Ids) -> None:
        self._catalog = catalog
        self._ids = ids

    async def parse(self, queue: Queue, texts: Sequence[str], until: float, *, all_or_none: bool) -> Parsed:
        """Returns the handles and their texts, each once; why others are none; and the queue as it
        is now if a handle is of a life of it that this worker had not heard of.

        A handle of a queue that is no more, or of a life that is over, is stale: it holds nothing.
        `all_or_none`: raises InvalidHandle for the first that is none.
        """
        check_asked("handles", len(texts))
        handles: list[Handle] = []
        read, secret, incarnation, others = Handle.parse, self._ids.secret, queue.incarnation, False
        if len(set(texts)) == len(texts):
            try:
                for text in texts:
                    handle = read(text, secret)
                    others = others or handle.incarnation != incarnation
                    handles.append(handle)
            except BadIdentity:
                others = True
            if not others:
                return queue, texts, handles, _NONE_REFUSED
        return await self._parse_each(queue, list(dict.fromkeys(texts)), until, all_or_none=all_or_none)

    async def _parse_each(self, queue: Queue, texts: Sequence[str], until: float, *, all_or_none: bool) -> Parsed:
        """As `parse`, for texts of which some may be wrong."""
        catalog, good, refused = self._catalog, dict[str, Handle](), dict[str, EngineError]()
        for text in texts:
            try:
                good[text] = self._ids.read_handle(text)
            except BadIdentity as error:
                refused[text] = InvalidHandle(str(error), field="handles", given=text)
        if any(handle.incarnation not in catalog.by_incarnation for handle in good.values()):
            await before(until, catalog.sync(), lambda: LogUnavailable("Kafka does not say of which queue a handle is"))
            queue = catalog.queues.get(queue.name, queue)
        for text, handle in list(good.items()):
            if handle.incarnation == queue.incarnation:
                continue
            if handle.incarnation in catalog.by_incarnation:
                refused[text] = InvalidHandle(
                    f"this handle is not of queue {queue.name!r}", field="handles", given=text
                )
                del good[text]
            else:
                good[text] = msgspec.structs.replace(handle, tag=NO_TAG)
        if all_or_none and refused:
            raise next(refused[text] for text in texts if text in refused)
        return queue, list(good), list(good.values()), refused

    def message_id(self, text: str) -> str:
        """Returns the id of the message that a handle holds; "" of a text that is no handle."""
        try:
            handle = self._ids.read_handle(text)
        except BadIdentity:
            return ""
        return self._ids.id_of(MessageId(handle.incarnation, handle.partition, handle.offset))

    def renewed(self, result: EntryResult, handle: Handle) -> EntryResult:
        """Returns a result with the handle that is good for one use from now on."""
        if result.next_visible_at_ms is None:
            return result
        renewed = msgspec.structs.replace(handle, until_ms=result.next_visible_at_ms).text(self._ids.secret)
        return msgspec.structs.replace(result, next_handle=renewed)

    def one_use(self, delivery: Delivery) -> str:
        """A handle of the delivery that is stale once its lease ends at another time."""
        handle = Handle.parse(delivery.handle, self._ids.secret)
        return msgspec.structs.replace(handle, until_ms=delivery.next_visible_at_ms).text(self._ids.secret)


def answers(texts: Sequence[str], results: list[EntryResult], refused: Mapping[str, EngineError]) -> list[EntryResult]:
    """Returns an answer for each of `texts`, in order."""
    if len(results) == len(texts):
        return results
    by_text = {result.handle: result for result in results}
    by_text.update({text: EntryResult(text, EntryStatus.INVALID.value, error=error) for text, error in refused.items()})
    return [by_text[text] for text in texts]


def rows_of(handles: Sequence[Handle]) -> list[tuple[int, ...]]:
    """Returns what the scripts get of handles: with deadlines when one of them names one."""
    if any(handle.until_ms for handle in handles):
        return [(handle.offset, handle.nonce, handle.until_ms) for handle in handles]
    return [(handle.offset, handle.nonce) for handle in handles]


logger = logging.getLogger(__name__)

METRIC: Final = "stale_handles_total"


class Refusals:
    """Takes note of each handle that was good for nothing. Any task may call.

    `count(incarnation, reason)` counts it for the meters.
    """

    def __init__(self, count: Callable[[str, str], None]) -> None:
        self._count = count
        # By the name of the metric with its label.
        self.counts: Counter[str] = Counter()

    def note(self, queue: Queue, partition: int, refused: Iterable[tuple[int, str]]) -> None:
        """Takes note of handles of one partition: the offset of each, and a StaleReason word."""
        for offset, reason in refused:
            self.counts[f'{METRIC}{{reason="{reason}"}}'] += 1
            self._count(queue.incarnation, reason)
            logger.debug(
                "action=stale queue=%s partition=%d offset=%d reason=%s", queue.name, partition, offset, reason
            )

    def judge(
        self,
        queue: Queue,
        texts: Sequence[str],
        handles: Sequence[Handle],
        words: Sequence[str],
        over: EntryStatus = EntryStatus.STALE,
    ) -> list[EntryResult]:
        """Returns what became of handles, by the words of the scripts, and takes note of those
        whose deliveries are over. `over`: the status where the message is not gone, as the caller
        tells it apart.
        """
        results = []
        for text, handle, word in zip(texts, handles, words, strict=True):
            if word == EntryStatus.OK:
                results.append(EntryResult(text, word))
                continue
            self.note(queue, handle.partition, ((handle.offset, word),))
            reason = StaleReason(word)
            status = STATUS_OF[reason]
            if status is EntryStatus.STALE and reason not in GONE:
                status = over
            results.append(EntryResult(text, status.value, reason=word))
        return results

    def judge_timed(
        self,
        queue: Queue,
        texts: Sequence[str],
        handles: Sequence[Handle],
        results: Sequence[tuple[str, int]],
        over: EntryStatus = EntryStatus.STALE,
    ) -> list[EntryResult]:
        """As `judge`, of words with the times when the messages are receivable next."""
        judged = self.judge(queue, texts, handles, [word for word, _ in results], over)
        return [
            replace(one, next_visible_at_ms=time) if time else one
            for one, (_, time) in zip(judged, results, strict=True)
        ]


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
        self,
        queue: Queue,
        handles: Sequence[Handle],
        call: _Call[T],
        missing: Mapping[StaleReason, T],
        until: float | None,
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
        self,
        queue: Queue,
        handles: Sequence[Handle],
        call: _Call[T],
        missing: Mapping[StaleReason, T],
        until: float | None,
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
        self, queue: Queue, partition: int, tag: int, indexes: Sequence[int], call: _Call[T],
        missing: Mapping[StaleReason, T], until: float | None,
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
