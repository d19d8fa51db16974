"""What receives without an answer may have delivered: each explains as many deliveries as it asked
for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.judge.history import NEVER, Fault, Op
from tests.judge.losses import SECOND
from tests.judge.story import Delivery, Story

# How soon a worker may be expected to notice that a client has gone.
UNNOTICED_NS = SECOND
# So long after Redis stood still an answer of 503 may hide that messages were leased.
STOOD_NS = 5 * SECOND
# docs/explanation/architecture.md: so many messages of a tag a worker that is alone leases ahead of
# receives, for so long at most.
AHEAD, AHEAD_NS = 100, SECOND


class Claim(NamedTuple):
    """So many deliveries of one message between two times (monotonic ns) that no client knows
    of.
    """

    missing: int
    began: int
    ended: int


class Carried:
    """Deliveries that may have been in answers nobody has: each such receive, of a time and a most,
    explains one delivery of as many messages as it asked for, no more.
    """

    def __init__(self, rows: Iterable[tuple[int, int, int]]) -> None:
        self._rows = [(began, ended + UNNOTICED_NS, most) for began, ended, most in rows]

    def explained(self, claims: Sequence[Claim]) -> list[bool]:
        """Which claims the receives explain, as many at once as can be: a receive that one claim
        took is left to another, if the first has a second choice.
        """
        holders: list[list[int]] = [[] for _ in self._rows]
        found = []
        for number, claim in enumerate(claims):
            if not claim.missing:
                found.append(True)
                continue
            before = [list(some) for some in holders]
            found.append(all(self._place(number, claims, holders, set()) for _ in range(claim.missing)))
            if not found[-1]:
                holders = before
        return found

    def _place(self, number: int, claims: Sequence[Claim], holders: list[list[int]], tried: set[int]) -> bool:
        claim = claims[number]
        for at, (began, ended, most) in enumerate(self._rows):
            if at in tried or number in holders[at] or began >= claim.ended or ended <= claim.began:
                continue
            tried.add(at)
            moved = (
                None
                if len(holders[at]) < most
                else next((n for n in holders[at] if self._place(n, claims, holders, tried)), -1)
            )
            if moved == -1:
                continue
            if moved is not None:
                holders[at].remove(moved)
            holders[at].append(number)
            return True
        return False


def carried(story: Story, queue: str, tag: str) -> Carried:
    """What the receives of a tag without an answer may have carried, and those of the queue of
    which it has the dead letters, for they are counted on.

    Of several workers, one may have given back what another rebuilt: a loss of Redis may forget
    that. And who is killed gives nothing back: not what it had leased ahead of receives either, if
    it was alone. And a worker may have lost Redis between a lease and its answer, whatever the
    client was told then.
    """
    source = story.sources().get(queue)
    ops = [op for op in story.ops("receive", queue) if op.line.tag == tag]
    ops += story.ops("receive", source.name) if source else []
    several = max((int(line.args.get("workers", 1)) for line in story.notes("run")), default=1) > 1
    kills = [fault.began for fault in story.history.faults if _kills_worker(fault)]
    cuts = [fault for fault in story.history.faults if fault.cuts]
    rows = [(op.began, op.left, int(op.line.args["max"])) for op in ops if _unheard(story, op, several, kills, cuts)]
    plan = story.plans[queue]
    if not (several or plan.fifo or plan.dead_letters or source):
        rows += ((kill - AHEAD_NS, kill, AHEAD) for kill in kills)
    return Carried(rows)


def _kills_worker(fault: Fault) -> bool:
    return fault.name.startswith("kill") and any(word in fault.name for word in ("worker", "facade", "change"))


def _unheard(story: Story, op: Op, several: bool, kills: list[int], cuts: list[Fault]) -> bool:
    """Whether nobody knows if a receive carried something: no answer, or Redis stood still
    meanwhile. `gone`: its client read on until the end, without an answer; then the worker has
    given back what it had, unless it was killed before it could notice.
    """
    if any(fault.began <= op.left and op.began <= fault.over for fault in cuts):
        return True
    if op.line.args.get("gone"):
        unnoticed = any(op.began <= kill <= op.left + UNNOTICED_NS for kill in kills)
        return unnoticed or (several and story.excused(op.began, op.left, NEVER))
    stood = (fault for fault in story.history.faults if "redis" in fault.name)
    return op.outcome == "info" and (
        not op.status or any(fault.began < op.left and op.began < fault.over + STOOD_NS for fault in stood)
    )


def unexplained(carried: Carried, claims: Sequence[tuple[Claim, Delivery]]) -> tuple[int, list[Delivery]]:
    """How many claims were explained, and the deliveries of those that were not."""
    explained = carried.explained([claim for claim, _ in claims])
    open_ones = [d for (_, d), good in zip(claims, explained, strict=True) if not good]
    return sum(claim.missing > 0 for claim, _ in claims) - len(open_ones), open_ones
