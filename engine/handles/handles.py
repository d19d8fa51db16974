"""Texts that clients send as receipt handles: which of them are handles of a queue, and why others
are not.

Each handle has an answer of its own (EntryStatus): a malformed one, or one of another queue, is
INVALID and says why; one that is given twice has the same answer twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, InvalidHandle, LogUnavailable
from engine.meters.meters import NO_TAG
from engine.rules.ids import Ids
from engine.rules.limits import check_asked
from engine.rules.queue import Queue
from engine.shapes import Delivery, EntryResult
from runtime.cancel import before
from schemas.identity import BadIdentity, Handle, MessageId
from schemas.vocabulary import EntryStatus

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
                refused[text] = InvalidHandle(f"this handle is not of queue {queue.name!r}", field="handles", given=text)
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
