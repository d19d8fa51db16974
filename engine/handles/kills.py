"""kill: who holds a message sends it to the dead-letter queue."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from msgspec.structs import replace

from engine.errors import InvalidValue, NotAllowedOnQueue
from engine.handles.by_unit import WORDS, ByUnit
from engine.handles.handles import Handles, answers, rows_of
from engine.handles.refusals import Refusals
from engine.rules.limits import check_reason
from engine.rules.queue import Queue
from engine.rules.rights import Targets
from engine.shapes import EntryResult
from engine.window.window import MOVER_LEASE_MS
from runtime.deadline import state_until
from schemas.records import TagRecord
from schemas.vocabulary import EntryStatus, PolicyFault
from state.keys import Unit
from state.leases import LeaseScripts
from state.replies import Dying

MoveDead = Callable[[Queue, TagRecord, int, Sequence[Dying]], Coroutine[Any, Any, None]]

# Why nothing can be killed in a queue that has a policy.
_FAULTS = {
    PolicyFault.MISSING: "the dead-letter queue {target} of {name} does not exist",
    PolicyFault.ANOTHER: "the dead-letter queue {target} of {name} was deleted, and the one of that name is another: set the policy again",
    PolicyFault.FORBIDDEN: "neither who set the policy of {name} nor its owner may send to the dead-letter queue {target}",
}


class Kills:
    """Any number of tasks and workers may use the same handle. `move_dead` moves what is killed."""

    def __init__(
        self, scripts: LeaseScripts, handles: Handles, by_unit: ByUnit, targets: Targets, move_dead: MoveDead, refusals: Refusals
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
