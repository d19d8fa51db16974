"""ack, extend, release, kill: what the holder of a receipt handle may do, one or up to 100 at a
time.

Each handle has an answer of its own (EntryStatus): a malformed one, or one of another queue, is
INVALID and says why; one that is given twice has the same answer twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from itertools import starmap
from time import monotonic_ns
from typing import Any, TypeAlias, TypeVar

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, InvalidHandle, InvalidValue, LogUnavailable, NotAllowedOnQueue
from engine.receive.handles.acks import Acks
from engine.rules.ids import Ids
from engine.rules.limits import check_asked, check_delay
from engine.rules.queue import Queue
from engine.rules.rights import Targets
from engine.runtime.deadline import journal_until, state_until
from engine.runtime.meters import NO_TAG, Meters
from engine.runtime.signals import Signal
from engine.shapes import Delivery, EntryResult, ExtendEntry, Late
from engine.window.body_cache import BodyCache
from engine.window.delays import Delays
from engine.window.window import MOVER_LEASE_MS, Window
from schemas.identity import BadIdentity, Handle
from schemas.records import TagRecord
from schemas.vocabulary import EntryStatus, MessageState, Operation, PolicyFault
from state.cancel import before
from state.keys import Unit
from state.replies import Dying
from state.store import Store

T = TypeVar("T")
_Call = Callable[[Unit, int, int, Sequence[int]], Awaitable[list[T]]]
# Of a handle that holds nothing any more: no queue has it.
_NO_TAG = NO_TAG
_NONE_REFUSED: Mapping[str, EngineError] = {}
# The queue, texts and handles that count, and by text why another does not.
_Parsed: TypeAlias = tuple[Queue, Sequence[str], list[Handle], Mapping[str, EngineError]]
MoveDead = Callable[[Queue, TagRecord, int, Sequence[Dying]], Coroutine[Any, Any, None]]

# Why nothing can be killed in a queue that has a policy.
_FAULTS = {
    PolicyFault.MISSING: "the dead-letter queue {target} of {name} does not exist",
    PolicyFault.ANOTHER: "the dead-letter queue {target} of {name} was deleted, and the one of that name is another: set the policy again",
    PolicyFault.FORBIDDEN: "neither who set the policy of {name} nor its owner may send to the dead-letter queue {target}",
}


class Leases:
    """Verbs on handles. Any number of tasks and workers may use the same handle: one of them
    settles the message.
    """

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        targets: Targets,
        window: Window,
        ids: Ids,
        bodies: BodyCache,
        delays: Delays,
        note_use: Callable[[Queue, int], None],
        wait_journaled: Callable[[Queue, int, int, float], Awaitable[None]],
        move_dead: MoveDead,
        receivable: Signal[[str, int, int]],
        meters: Meters,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._targets = targets
        self._window = window
        self._ids = ids
        self._bodies = bodies
        self._delays = delays
        self._note_use = note_use
        self._wait_journaled = wait_journaled
        self._move_dead = move_dead
        self._receivable = receivable
        self._meters = meters
        self._acks = Acks(store)

    async def _parse(self, queue: Queue, texts: Sequence[str], until: float, *, all_or_none: bool) -> _Parsed:
        """The handles and their texts, each once; why others are none; and the queue as it is now
        if a handle is of a life of it that this worker had not heard of.

        A handle of a queue that is no more, or of a life that is over, is stale: it holds nothing.
        `all_or_none`: raises InvalidHandle for the first that is none.
        """
        check_asked("handles", len(texts))
        handles: list[Handle] = []
        parse, secret, incarnation, others = Handle.parse, self._ids.secret, queue.incarnation, False
        if len(set(texts)) == len(texts):
            try:
                for text in texts:
                    handle = parse(text, secret)
                    others = others or handle.incarnation != incarnation
                    handles.append(handle)
            except BadIdentity:
                others = True
            if not others:
                return queue, texts, handles, _NONE_REFUSED
        return await self._parse_each(queue, list(dict.fromkeys(texts)), until, all_or_none=all_or_none)

    async def _parse_each(self, queue: Queue, texts: Sequence[str], until: float, *, all_or_none: bool) -> _Parsed:
        """As `_parse`, for texts of which some may be wrong."""
        catalog, good, refused = self._catalog, dict[str, Handle](), dict[str, EngineError]()
        for text in texts:
            try:
                good[text] = self._ids.read_handle(text)
            except BadIdentity as error:
                refused[text] = InvalidHandle(f"not a receipt handle: {error}", field="handles", given=text)
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
                good[text] = msgspec.structs.replace(handle, tag=_NO_TAG)
        if all_or_none and refused:
            raise next(refused[text] for text in texts if text in refused)
        return queue, list(good), list(good.values()), refused

    def _each(self, queue: Queue, handles: Sequence[Handle], call: _Call[T], missing: T, until: float | None) -> Awaitable[list[T]]:
        """Runs `call(unit, generation, tag, indexes)` once per unit and tag; results in the order
        of `handles`. Raises Unavailable at `until` (loop time, see `Window.call`).
        """
        places = dict.fromkeys([(handle.partition, handle.tag) for handle in handles])
        if len(places) == 1:
            alone = self._ask(queue, *next(iter(places)), range(len(handles)), call, missing, until)
            if alone is not None:
                return alone
        return self._by_place(queue, handles, call, missing, until)

    async def _by_place(self, queue: Queue, handles: Sequence[Handle], call: _Call[T], missing: T, until: float | None) -> list[T]:
        groups: dict[tuple[int, int], list[int]] = {}
        for index, handle in enumerate(handles):
            groups.setdefault((handle.partition, handle.tag), []).append(index)
        asked = [(indexes, self._ask(queue, *at, indexes, call, missing, until)) for at, indexes in groups.items()]
        results: list[T] = [missing] * len(handles)
        some = [(indexes, answer) for indexes, answer in asked if answer is not None]
        for (indexes, _), answers in zip(some, await asyncio.gather(*(answer for _, answer in some)), strict=True):
            for index, answer in zip(indexes, answers, strict=True):
                results[index] = answer
        return results

    def _ask(
        self, queue: Queue, partition: int, tag: int, indexes: Sequence[int], call: _Call[T], missing: T, until: float | None
    ) -> Coroutine[Any, Any, list[T]] | None:
        """The call for one unit and tag; None = the queue no longer has them."""
        if tag not in queue.tag_ids or partition >= len(queue.units):
            return None
        unit = queue.units[partition]
        self._note_use(queue, partition)
        # What was held in a life before is held no more.
        return self._window.call(queue, lambda g: call(unit, g, tag, indexes), [missing] * len(indexes), until=until)

    async def ack(
        self, queue: Queue, texts: Sequence[str], until: float, *, late: Late = Late.ALWAYS, all_or_none: bool = False
    ) -> list[EntryResult]:
        """Settles messages. With `durable_acks` the answer waits until the journal in Kafka has it.

        Raises Unavailable at `until` (loop time), and LogUnavailable when the journal takes over
        5 s: the messages are settled, but a loss of Redis might forget it.
        """
        began_ns, durable_until = monotonic_ns(), journal_until()
        queue, good, handles, refused = await self._parse(queue, texts, until, all_or_none=all_or_none)
        counts = late is Late.ALWAYS or (late is Late.BY_QUEUE and not queue.record.fifo)
        rows: list[tuple[int, ...]] = [(handle.offset, handle.nonce) for handle in handles]
        for handle in handles:
            if handle.until_ms:
                rows = _rows(handles)
                break
        written: list[tuple[int, int]] = []

        async def call(unit: Unit, g: int, tag: int, indexes: Sequence[int]) -> list[str]:
            mine = rows if len(indexes) == len(rows) else [rows[i] for i in indexes]
            acked = await self._acks.ack(unit, g, tag, mine, late=counts)
            if acked.seq:
                written.append((unit.partition, acked.seq))
                self._bodies.settle(unit, mine)
            return acked.words

        words = await self._each(queue, handles, call, EntryStatus.STALE.value, until)
        if not counts:
            words = await self._told_apart(queue, handles, words, EntryStatus.LAPSED, until)
        if queue.record.durable_acks:
            # Not within the call: a loss of state while waiting must not make the ack again, which
            # is done.
            await asyncio.gather(*(self._wait_journaled(queue, partition, seq, durable_until) for partition, seq in written))
        if queue.record.fifo:
            self._woken(queue, handles)
        tag = handles[0].tag if handles else NO_TAG
        self._meters.note(queue.incarnation, tag, Operation.DELETE, words.count(EntryStatus.OK), began_ns)
        return _answers(texts, list(starmap(EntryResult, zip(good, words, strict=True))), refused)

    async def _told_apart(
        self, queue: Queue, handles: Sequence[Handle], words: Sequence[str], superseded: EntryStatus, until: float
    ) -> list[str]:
        """The words, with `superseded` for a stale handle whose message is not settled: it was
        delivered again.
        """
        stale = [index for index, word in enumerate(words) if word == EntryStatus.STALE]
        settled = dict(zip(stale, await self._settled(queue, [handles[index] for index in stale], until), strict=True)) if stale else {}
        return [word if settled.get(index, True) else superseded.value for index, word in enumerate(words)]

    async def _settled(self, queue: Queue, handles: Sequence[Handle], until: float) -> list[bool]:
        """Whether the message of each handle is settled under the handle's tag; also when the tag
        is gone.
        """
        store = self._store

        async def call(unit: Unit, g: int, tag: int, indexes: Sequence[int]) -> list[bool]:
            states = await store.states(unit, g, tag, [handles[i].offset for i in indexes])
            return [state.state == MessageState.SETTLED for state in states]

        return await self._each(queue, handles, call, True, until)

    async def _now(self, generation: int) -> int:
        return self._store.now_ms()

    def _woken(self, queue: Queue, handles: Sequence[Handle]) -> None:
        for partition in {handle.partition for handle in handles}:
            self._receivable(queue.incarnation, partition, 0)

    async def extend(
        self, queue: Queue, entries: Sequence[ExtendEntry], until: float, *, late: Late = Late.ALWAYS, all_or_none: bool = False
    ) -> list[EntryResult]:
        """Counts each lease anew from now; 0 = receivable at once; of two entries with one handle
        the last counts. Raises InvalidValue, which changes nothing, and Unavailable at `until`.
        """
        began_ns = monotonic_ns()
        texts = [entry.handle for entry in entries]
        queue, good, handles, refused = await self._parse(queue, texts, until, all_or_none=all_or_none)
        for entry in entries:
            check_asked("lease_ms", entry.lease_ms)
        counts = late is Late.ALWAYS or (late is Late.BY_QUEUE and not queue.record.fifo)
        wanted = dict(zip(texts, entries, strict=True))
        now_ms = await self._window.call(queue, self._now, until=until) if any(entry.in_all_s is not None for entry in entries) else 0
        too_long = {text: error for text, handle in zip(good, handles, strict=True) if (error := _too_long(wanted[text], handle, now_ms))}
        if too_long:
            if all_or_none:
                raise next(iter(too_long.values()))
            refused = {**refused, **too_long}
            handles = [handle for text, handle in zip(good, handles, strict=True) if text not in too_long]
            good = [text for text in good if text not in too_long]
        store, exact = self._store, any(handle.until_ms for handle in handles)

        async def call(unit: Unit, g: int, tag: int, indexes: Sequence[int]) -> list[tuple[str, int]]:
            rows = [_extended(handles[i], wanted[good[i]].lease_ms, exact=exact) for i in indexes]
            return [(e.status, e.time_ms) for e in await store.extend(unit, g, tag, rows, late=counts)]

        results = await self._each(queue, handles, call, (EntryStatus.STALE.value, 0), until)
        self._note_change(queue, handles, results, began_ns)
        if late is Late.BY_QUEUE and counts:
            words = await self._told_apart(queue, handles, [word for word, _ in results], EntryStatus.SUPERSEDED, until)
            results = [(word, time) for word, (_, time) in zip(words, results, strict=True)]
        done = [EntryResult(text, word, time or None) for text, (word, time) in zip(good, results, strict=True)]
        if any(entry.one_use for entry in entries):
            done = [self._renewed(one, handle) if wanted[one.handle].one_use else one for one, handle in zip(done, handles, strict=True)]
        return _answers(texts, done, refused)

    def _renewed(self, result: EntryResult, handle: Handle) -> EntryResult:
        if result.next_visible_at_ms is None:
            return result
        renewed = msgspec.structs.replace(handle, until_ms=result.next_visible_at_ms).text(self._ids.secret)
        return msgspec.structs.replace(result, next_handle=renewed)

    def one_use(self, delivery: Delivery) -> str:
        """A handle of the delivery that is stale once its lease ends at another time."""
        handle = Handle.parse(delivery.handle, self._ids.secret)
        return msgspec.structs.replace(handle, until_ms=delivery.next_visible_at_ms).text(self._ids.secret)

    async def release(
        self, queue: Queue, texts: Sequence[str], delay_ms: int, until: float, *, all_or_none: bool = False
    ) -> list[EntryResult]:
        """Gives messages back, receivable after `delay_ms`; their counts stay. Raises DelayTooLong
        and TooManyDelayed, which change nothing, and Unavailable at `until`.
        """
        began_ns = monotonic_ns()
        queue, good, handles, refused = await self._parse(queue, texts, until, all_or_none=all_or_none)
        check_delay(queue.record, delay_ms)
        if delay_ms and handles:
            await self._delays.check_release(queue, len(handles))
        store = self._store

        async def call(unit: Unit, g: int, tag: int, indexes: Sequence[int]) -> list[tuple[str, int]]:
            pairs = _rows([handles[i] for i in indexes])
            return [(e.status, e.time_ms) for e in await store.release(unit, g, tag, pairs, delay_ms=delay_ms)]

        results = await self._each(queue, handles, call, (EntryStatus.STALE.value, 0), until)
        self._woken(queue, handles)
        self._note_change(queue, handles, results, began_ns)
        return _answers(texts, [EntryResult(text, word, time or None) for text, (word, time) in zip(good, results, strict=True)], refused)

    def _note_change(self, queue: Queue, handles: Sequence[Handle], results: Sequence[tuple[str, int]], began_ns: int) -> None:
        done = sum(word == EntryStatus.OK for word, _ in results)
        self._meters.note(queue.incarnation, handles[0].tag if handles else NO_TAG, Operation.CHANGE, done, began_ns)

    async def kill(self, queue: Queue, texts: Sequence[str], *, all_or_none: bool = False) -> list[EntryResult]:
        """Sends messages to the dead-letter queue now. Raises NotAllowedOnQueue without a redrive
        policy that works.
        """
        queue, good, handles, refused = await self._parse(queue, texts, state_until(), all_or_none=all_or_none)
        asked = {handle.tag for handle in handles}
        for tag in [tag for tag in queue.tags if tag.id in asked] or queue.tags[:1]:
            self.check_policy(queue, tag)
        store = self._store

        async def call(unit: Unit, g: int, tag: int, indexes: Sequence[int]) -> list[str]:
            pairs = _rows([handles[i] for i in indexes])
            killed = await store.kill(unit, g, tag, pairs, move_ms=MOVER_LEASE_MS)
            dying = [k.dying for k in killed if k.status == EntryStatus.OK]
            if dying:
                record = next(t for t in queue.tags if t.id == tag)
                await self._move_dead(queue, record, unit.partition, dying)
            return [k.status for k in killed]

        words = await self._each(queue, handles, call, EntryStatus.STALE.value, None)  # a move is not cut off
        return _answers(texts, [EntryResult(text, word) for text, word in zip(good, words, strict=True)], refused)

    def check_policy(self, queue: Queue, tag: TagRecord) -> None:
        """Raises NotAllowedOnQueue when there is nowhere to send what is killed under a tag."""
        policy = queue.policies[tag.id]
        if policy is None:
            raise NotAllowedOnQueue(
                f"queue {queue.name!r} has no redrive policy, so nothing can be killed", field="queue", given=queue.name
            )
        if fault := self._targets.fault(queue.record, policy):
            target = policy.dead_letter_queue
            about = _FAULTS[PolicyFault(fault)].format(name=repr(queue.name), target=repr(target))
            raise NotAllowedOnQueue(about, field="queue", given=queue.name)


def _answers(texts: Sequence[str], results: list[EntryResult], refused: Mapping[str, EngineError]) -> list[EntryResult]:
    """An answer for each of `texts`, in order."""
    if len(results) == len(texts):
        return results
    by_text = {result.handle: result for result in results}
    by_text.update({text: EntryResult(text, EntryStatus.INVALID.value, error=error) for text, error in refused.items()})
    return [by_text[text] for text in texts]


def _rows(handles: Sequence[Handle]) -> list[tuple[int, ...]]:
    """What the scripts get of handles: with deadlines when one of them names one."""
    if any(handle.until_ms for handle in handles):
        return [(handle.offset, handle.nonce, handle.until_ms) for handle in handles]
    return [(handle.offset, handle.nonce) for handle in handles]


def _extended(handle: Handle, lease_ms: int, *, exact: bool) -> tuple[int, ...]:
    """What `extend` gets of a handle."""
    row = (handle.offset, handle.nonce, lease_ms)
    return (*row, handle.until_ms) if exact else row


def _too_long(entry: ExtendEntry, handle: Handle, now_ms: int) -> InvalidValue | None:
    """Why the lease may not end so late, by the time of the service; a handle without a time is not
    bound.
    """
    if entry.in_all_s is None or not handle.leased_at_ms:
        return None
    so_far_s = max(0, now_ms - handle.leased_at_ms) // 1000
    if so_far_s + entry.lease_ms / 1000 <= entry.in_all_s:
        return None
    return InvalidValue(
        f"the lease may end {entry.in_all_s} s after the delivery began, {so_far_s} s ago",
        field="lease_ms",
        limit=entry.in_all_s,
        given=entry.lease_ms,
    )
