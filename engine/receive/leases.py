"""ack, extend, release, kill: what the holder of a receipt handle may do, one or up to 100 at a
time.

A malformed handle, or one of another queue, fails the whole request before anything is changed; a
stale one is an answer of its own (EntryStatus). Neighbours: scripts of the same names; `mover.py`
moves what is killed. Must not know HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from itertools import starmap
from typing import Any, TypeVar

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import InvalidHandle, InvalidValue, NotAllowedOnQueue
from engine.receive.acks import Acks
from engine.rules.ids import Ids
from engine.rules.limits import check_asked
from engine.rules.queue import Queue
from engine.runtime.clock import now_ms
from engine.runtime.signals import Signal
from engine.shapes import EntryResult, ExtendEntry
from engine.window.body_cache import BodyCache
from engine.window.window import MOVER_LEASE_MS, Window
from schemas.identity import BadIdentity, Handle
from schemas.records import TagRecord
from schemas.vocabulary import EntryStatus, MessageState
from state.keys import Unit
from state.replies import Dying
from state.store import Store

T = TypeVar("T")
_Call = Callable[[Unit, int, int, Sequence[int]], Awaitable[list[T]]]
# Of a handle that holds nothing any more: no queue has it.
_NO_TAG = -1
MoveDead = Callable[[Queue, TagRecord, int, Sequence[Dying]], Coroutine[Any, Any, None]]


class Leases:
    """Verbs on handles. Any number of tasks and workers may use the same handle: one of them
    settles the message.
    """

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        window: Window,
        ids: Ids,
        bodies: BodyCache,
        note_use: Callable[[Queue, int], None],
        wait_journaled: Callable[[Queue, int, int], Awaitable[None]],
        move_dead: MoveDead,
        receivable: Signal[[str, int, int]],
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._window = window
        self._ids = ids
        self._bodies = bodies
        self._note_use = note_use
        self._wait_journaled = wait_journaled
        self._move_dead = move_dead
        self._receivable = receivable
        self._acks = Acks(store)

    async def _parse(self, queue: Queue, texts: Sequence[str]) -> tuple[Queue, list[Handle]]:
        """The handles, and the queue as it is now if one is of a life of it that this worker had
        not heard of.

        One of a queue that is no more, or of a life that is over, is stale: it holds nothing.
        Raises InvalidHandle, InvalidValue.
        """
        check_asked("handles", len(texts))
        if len(set(texts)) != len(texts):
            raise InvalidValue("handles must be distinct", field="handles", given=len(texts))
        handles: list[Handle] = []
        parse, secret, incarnation, text, others = Handle.parse, self._ids.secret, queue.incarnation, "", False
        try:
            for text in texts:
                handle = parse(text, secret)
                others = others or handle.incarnation != incarnation
                handles.append(handle)
        except BadIdentity as error:
            raise InvalidHandle(f"not a receipt handle: {error}", field="handles", given=text) from None
        return (queue, handles) if not others else await self._of_others(queue, texts, handles)

    async def _of_others(self, queue: Queue, texts: Sequence[str], handles: Sequence[Handle]) -> tuple[Queue, list[Handle]]:
        catalog = self._catalog
        if any(handle.incarnation not in catalog.by_incarnation for handle in handles):
            await catalog.sync()
            queue = catalog.queues.get(queue.name, queue)
        for handle, text in zip(handles, texts, strict=True):
            if handle.incarnation != queue.incarnation and handle.incarnation in catalog.by_incarnation:
                raise InvalidHandle(f"this handle is not of queue {queue.name!r}", field="handles", given=text)
        return queue, [h if h.incarnation == queue.incarnation else msgspec.structs.replace(h, tag=_NO_TAG) for h in handles]

    def _each(self, queue: Queue, handles: Sequence[Handle], call: _Call[T], missing: T) -> Awaitable[list[T]]:
        """Runs `call(unit, generation, tag, indexes)` once per unit and tag; results in the order
        of `handles`.
        """
        places = dict.fromkeys([(handle.partition, handle.tag) for handle in handles])
        if len(places) == 1:
            alone = self._ask(queue, *next(iter(places)), range(len(handles)), call)
            if alone is not None:
                return alone
        return self._by_place(queue, handles, call, missing)

    async def _by_place(self, queue: Queue, handles: Sequence[Handle], call: _Call[T], missing: T) -> list[T]:
        groups: dict[tuple[int, int], list[int]] = {}
        for index, handle in enumerate(handles):
            groups.setdefault((handle.partition, handle.tag), []).append(index)
        asked = [(indexes, self._ask(queue, *at, indexes, call)) for at, indexes in groups.items()]
        results: list[T] = [missing] * len(handles)
        some = [(indexes, answer) for indexes, answer in asked if answer is not None]
        for (indexes, _), answers in zip(some, await asyncio.gather(*(answer for _, answer in some)), strict=True):
            for index, answer in zip(indexes, answers, strict=True):
                results[index] = answer
        return results

    def _ask(self, queue: Queue, partition: int, tag: int, indexes: Sequence[int], call: _Call[T]) -> Coroutine[Any, Any, list[T]] | None:
        """The call for one unit and tag; None = the queue no longer has them."""
        if tag not in queue.tag_ids or partition >= len(queue.units):
            return None
        unit = queue.units[partition]
        self._note_use(queue, partition)
        return self._window.call(queue, lambda g: call(unit, g, tag, indexes))

    async def ack(self, queue: Queue, texts: Sequence[str], *, late: bool = True) -> list[EntryResult]:
        """Settles messages. `late`: a handle whose lease has lapsed counts until the message is
        delivered again.

        With `durable_acks` the answer waits until the journal in Kafka has it. Raises
        LogUnavailable when that takes over 5 s: the messages are settled, but a loss of Redis might
        forget it.
        """
        queue, handles = await self._parse(queue, texts)
        pairs = [(handle.offset, handle.nonce) for handle in handles]
        written: list[tuple[int, int]] = []

        async def call(unit: Unit, g: int, tag: int, indexes: Sequence[int]) -> list[str]:
            mine = pairs if len(indexes) == len(pairs) else [pairs[i] for i in indexes]
            acked = await self._acks.ack(unit, g, tag, mine, late=late)
            if acked.seq:
                written.append((unit.partition, acked.seq))
                self._bodies.settle(unit, mine)
            return acked.words

        words = await self._each(queue, handles, call, EntryStatus.STALE.value)
        if queue.record.durable_acks:
            # Not within the call: a loss of state while waiting must not make the ack again, which
            # is done.
            await asyncio.gather(*(self._wait_journaled(queue, partition, seq) for partition, seq in written))
        if queue.record.fifo:
            self._woken(queue, handles)
        return list(starmap(EntryResult, zip(texts, words, strict=True)))

    async def settled(self, queue: Queue, texts: Sequence[str]) -> list[bool]:
        """Whether the message of each handle is settled under the handle's tag; also when the tag
        is gone.
        """
        queue, handles = await self._parse(queue, texts)
        store = self._store

        async def call(unit: Unit, g: int, tag: int, indexes: Sequence[int]) -> list[bool]:
            states = await store.states(unit, g, tag, [handles[i].offset for i in indexes])
            return [state.state == MessageState.SETTLED for state in states]

        return await self._each(queue, handles, call, True)

    def _woken(self, queue: Queue, handles: Sequence[Handle]) -> None:
        for partition in {handle.partition for handle in handles}:
            self._receivable(queue.incarnation, partition, 0)

    async def extend(self, queue: Queue, entries: Sequence[ExtendEntry], *, late: bool = True) -> list[EntryResult]:
        """Counts each lease anew from now; 0 = receivable at once. Raises InvalidValue, which
        changes nothing.
        """
        texts = [entry.handle for entry in entries]
        queue, handles = await self._parse(queue, texts)
        for entry in entries:
            check_asked("lease_ms", entry.lease_ms)
        for entry, handle in zip(entries, handles, strict=True):
            _check_in_all(entry, handle)
        store = self._store

        async def call(unit: Unit, g: int, tag: int, indexes: Sequence[int]) -> list[tuple[str, int]]:
            rows = [(handles[i].offset, handles[i].nonce, entries[i].lease_ms) for i in indexes]
            return [(e.status, e.time_ms) for e in await store.extend(unit, g, tag, rows, late=late)]

        results = await self._each(queue, handles, call, (EntryStatus.STALE.value, 0))
        return [EntryResult(text, word, time or None) for text, (word, time) in zip(texts, results, strict=True)]

    async def release(self, queue: Queue, texts: Sequence[str], delay_ms: int, *, late: bool = True) -> list[EntryResult]:
        """Gives messages back, receivable after `delay_ms`; their counts stay."""
        queue, handles = await self._parse(queue, texts)
        check_asked("delay_ms", delay_ms)
        store = self._store

        async def call(unit: Unit, g: int, tag: int, indexes: Sequence[int]) -> list[tuple[str, int]]:
            pairs = [(handles[i].offset, handles[i].nonce) for i in indexes]
            return [(e.status, e.time_ms) for e in await store.release(unit, g, tag, pairs, delay_ms=delay_ms, late=late)]

        results = await self._each(queue, handles, call, (EntryStatus.STALE.value, 0))
        self._woken(queue, handles)
        return [EntryResult(text, word, time or None) for text, (word, time) in zip(texts, results, strict=True)]

    async def kill(self, queue: Queue, texts: Sequence[str], *, late: bool = True) -> list[EntryResult]:
        """Sends messages to the dead-letter queue now. Raises NotAllowedOnQueue without a redrive
        policy that works.
        """
        queue, handles = await self._parse(queue, texts)
        policy = queue.record.redrive_policy
        if policy is None:
            raise NotAllowedOnQueue(
                f"queue {queue.name!r} has no redrive policy, so nothing can be killed", field="queue", given=queue.name
            )
        if policy.dead_letter_queue not in self._catalog.queues:
            raise NotAllowedOnQueue(
                f"the dead-letter queue {policy.dead_letter_queue!r} of {queue.name!r} does not exist",
                field="queue",
                given=queue.name,
            )
        store = self._store

        async def call(unit: Unit, g: int, tag: int, indexes: Sequence[int]) -> list[str]:
            pairs = [(handles[i].offset, handles[i].nonce) for i in indexes]
            killed = await store.kill(unit, g, tag, pairs, move_ms=MOVER_LEASE_MS, late=late)
            dying = [k.dying for k in killed if k.status == EntryStatus.OK]
            if dying:
                record = next(t for t in queue.tags if t.id == tag)
                await self._move_dead(queue, record, unit.partition, dying)
            return [k.status for k in killed]

        words = await self._each(queue, handles, call, EntryStatus.STALE.value)
        return [EntryResult(text, word) for text, word in zip(texts, words, strict=True)]


def _check_in_all(entry: ExtendEntry, handle: Handle) -> None:
    """Clocks of ours and of Redis are close enough for a bound of hours; a handle without a time is
    not bound.
    """
    if entry.in_all_s is None or not handle.lent_at_ms:
        return
    so_far_s = max(0, now_ms() - handle.lent_at_ms) // 1000
    if so_far_s + entry.lease_ms / 1000 > entry.in_all_s:
        raise InvalidValue(
            f"the lease may end {entry.in_all_s} s after the delivery began, {so_far_s} s ago",
            field="lease_ms",
            limit=entry.in_all_s,
            given=entry.lease_ms,
        )
