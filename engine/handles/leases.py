"""extend, release, kill: who holds a message gives its lease another end, or sends the message to
the dead-letter queue; one or up to 100 at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from engine.errors import InvalidValue, NotAllowedOnQueue
from engine.handles.handles import TIMED, WORDS, ByUnit, Handles, Refusals, answers, rows_of
from engine.meters.meters import NO_TAG, Meters
from engine.rules.limits import check_asked, check_delay, check_reason
from engine.rules.queue import Queue
from engine.rules.rights import Targets
from engine.shapes import EntryResult, ExtendEntry, Late
from engine.window.delays import Delays
from engine.window.window import MOVER_LEASE_MS
from runtime.deadline import began_ns, state_until
from runtime.signals import Signal
from schemas.identity import Handle
from schemas.records import TagRecord
from schemas.vocabulary import EntryStatus, Operation, PolicyFault
from state.keys import Unit
from state.leases import LeaseScripts
from state.replies import Dying


class Leases:
    """Any number of tasks and workers may use the same handle."""

    def __init__(
        self,
        scripts: LeaseScripts,
        handles: Handles,
        by_unit: ByUnit,
        delays: Delays,
        refusals: Refusals,
        receivable: Signal[[str, int, int]],
        meters: Meters,
    ) -> None:
        self._leases = scripts
        self._handles = handles
        self._by_unit = by_unit
        self._delays = delays
        self._refusals = refusals
        self._receivable = receivable
        self._meters = meters

    async def extend(
        self,
        queue: Queue,
        entries: Sequence[ExtendEntry],
        until: float,
        *,
        late: Late = Late.ALWAYS,
        all_or_none: bool = False,
    ) -> list[EntryResult]:
        """Counts each lease anew from now; 0 = receivable at once; of two entries with one handle
        the last counts. Raises InvalidValue, which changes nothing, and Unavailable at `until`.
        """
        began = began_ns()
        texts = [entry.handle for entry in entries]
        queue, good, handles, refused = await self._handles.parse(queue, texts, until, all_or_none=all_or_none)
        for entry in entries:
            check_asked("lease_ms", entry.lease_ms)
        counts = late is Late.ALWAYS or (late is Late.BY_QUEUE and not queue.record.fifo)
        counts = counts and not queue.record.max_in_flight  # another message may have its place
        wanted = dict(zip(texts, entries, strict=True))
        if any(entry.in_all_s is not None for entry in entries):
            now_ms = await self._by_unit.now_ms(queue, until)
            good, handles, too_long = _bounded(wanted, good, handles, now_ms, all_or_none=all_or_none)
            refused = {**refused, **too_long}
        leases, exact = self._leases, any(handle.until_ms for handle in handles)

        async def call(unit: Unit, g: int, tag: int, indexes: Sequence[int]) -> list[tuple[str, int]]:
            rows = [_extended(handles[i], wanted[good[i]].lease_ms, exact=exact) for i in indexes]
            return [(e.status, e.time_ms) for e in await leases.extend(unit, g, tag, rows, late=counts)]

        results = await self._by_unit.each(queue, handles, call, TIMED, until)
        self._note_change(queue, handles, results, began, ends=[wanted[text].lease_ms == 0 for text in good])
        over = EntryStatus.SUPERSEDED if late is Late.BY_QUEUE and counts else EntryStatus.STALE
        done = self._refusals.judge_timed(queue, good, handles, results, over)
        if late is Late.ALWAYS and not counts:  # who asks so does not tell this apart
            done = [replace(one, status=over.value) if one.status == EntryStatus.LAPSED else one for one in done]
        if any(entry.one_use for entry in entries):
            done = [
                self._handles.renewed(one, handle) if wanted[one.handle].one_use else one
                for one, handle in zip(done, handles, strict=True)
            ]
        return answers(texts, done, refused)

    async def release(
        self, queue: Queue, texts: Sequence[str], delay_ms: int, until: float, *, all_or_none: bool = False
    ) -> list[EntryResult]:
        """Gives messages back, receivable after `delay_ms`; their counts stay. Raises DelayTooLong
        and TooManyDelayed, which change nothing, and Unavailable at `until`.
        """
        began = began_ns()
        queue, good, handles, refused = await self._handles.parse(queue, texts, until, all_or_none=all_or_none)
        check_delay(queue.record, delay_ms)
        if delay_ms and handles:
            await self._delays.check_release(queue, len(handles))
        leases = self._leases

        async def call(unit: Unit, g: int, tag: int, indexes: Sequence[int]) -> list[tuple[str, int]]:
            pairs = rows_of([handles[i] for i in indexes])
            return [(e.status, e.time_ms) for e in await leases.release(unit, g, tag, pairs, delay_ms=delay_ms)]

        results = await self._by_unit.each(queue, handles, call, TIMED, until)
        for partition in {handle.partition for handle in handles}:
            self._receivable(queue.incarnation, partition, 0)
        self._note_change(queue, handles, results, began, ends=[True] * len(handles))
        return answers(texts, self._refusals.judge_timed(queue, good, handles, results), refused)

    def _note_change(
        self,
        queue: Queue,
        handles: Sequence[Handle],
        results: Sequence[tuple[str, int]],
        began: int,
        *,
        ends: Sequence[bool],
    ) -> None:
        """`ends`: whether what was asked of each handle ends its delivery."""
        words = [word if is_end else "" for (word, _), is_end in zip(results, ends, strict=True)]
        self._by_unit.note_ended(self._meters.times.released, handles, words)
        done = sum(word == EntryStatus.OK for word, _ in results)
        self._meters.note(queue.incarnation, handles[0].tag if handles else NO_TAG, Operation.CHANGE, done, began)


def _extended(handle: Handle, lease_ms: int, *, exact: bool) -> tuple[int, ...]:
    """What `extend` gets of a handle."""
    row = (handle.offset, handle.nonce, lease_ms)
    return (*row, handle.until_ms) if exact else row


def _bounded(
    wanted: Mapping[str, ExtendEntry],
    texts: Sequence[str],
    handles: Sequence[Handle],
    now_ms: int,
    *,
    all_or_none: bool,
) -> tuple[list[str], list[Handle], dict[str, InvalidValue]]:
    """The handles whose leases may end so late, and why others may not; with `all_or_none` that is
    raised.
    """
    pairs = list(zip(texts, handles, strict=True))
    refused = {text: error for text, handle in pairs if (error := _too_long(wanted[text], handle, now_ms))}
    if refused and all_or_none:
        raise next(iter(refused.values()))
    kept = [(text, handle) for text, handle in pairs if text not in refused]
    return [text for text, _ in kept], [handle for _, handle in kept], refused


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


MoveDead = Callable[[Queue, TagRecord, int, Sequence[Dying]], Coroutine[Any, Any, None]]

# Why nothing can be killed in a queue that has a policy.
_FAULTS = {
    PolicyFault.MISSING: "the dead-letter queue {target} of {name} does not exist",
    PolicyFault.ANOTHER: (
        "the dead-letter queue {target} of {name} was deleted, and the one of that name is another: "
        "set the policy again"
    ),
    PolicyFault.FORBIDDEN: (
        "neither who set the policy of {name} nor its owner may send to the dead-letter queue {target}"
    ),
}


class Kills:
    """Any number of tasks and workers may use the same handle. `move_dead` moves what is killed."""

    def __init__(
        self,
        scripts: LeaseScripts,
        handles: Handles,
        by_unit: ByUnit,
        targets: Targets,
        move_dead: MoveDead,
        refusals: Refusals,
    ) -> None:
        self._leases = scripts
        self._handles = handles
        self._by_unit = by_unit
        self._targets = targets
        self._move_dead = move_dead
        self._refusals = refusals

    async def kill(
        self, queue: Queue, texts: Sequence[str], reasons: Sequence[str] = (), *, all_or_none: bool = False
    ) -> list[EntryResult]:
        """Sends messages to the dead-letter queue now. Raises NotAllowedOnQueue without a redrive
        policy that works.

        `reasons`: one for each handle, or none: what its dead letter says. Redis does not know
        them: whoever takes over from a worker that dies meanwhile moves the message without.
        """
        notes = _notes(texts, reasons)
        queue, good, handles, refused = await self._handles.parse(queue, texts, state_until(), all_or_none=all_or_none)
        asked = {handle.tag for handle in handles}
        for tag in [tag for tag in queue.tags if tag.id in asked] or queue.tags[:1]:
            self.check_policy(queue, tag)
        leases = self._leases

        async def call(unit: Unit, g: int, tag: int, indexes: Sequence[int]) -> list[str]:
            pairs = rows_of([handles[i] for i in indexes])
            killed = await leases.kill(unit, g, tag, pairs, move_ms=MOVER_LEASE_MS)
            rows = zip(indexes, killed, strict=True)
            dying = [replace(k.dying, note=notes.get(good[i], "")) for i, k in rows if k.status == EntryStatus.OK]
            if dying:
                record = next(t for t in queue.tags if t.id == tag)
                await self._move_dead(queue, record, unit.partition, dying)
            return [k.status for k in killed]

        words = await self._by_unit.each(queue, handles, call, WORDS, None)  # a move is not cut off
        return answers(texts, self._refusals.judge(queue, good, handles, words), refused)

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


def _notes(texts: Sequence[str], reasons: Sequence[str]) -> dict[str, str]:
    """The reason of each handle. Raises InvalidValue."""
    if len(reasons) not in (0, len(texts)):
        about = f"there must be one reason for each of the {len(texts)} handles, or none, given {len(reasons)}"
        raise InvalidValue(about, field="reasons", limit=len(texts), given=len(reasons))
    for reason in reasons:
        check_reason(reason)
    return dict(zip(texts, reasons, strict=False))
