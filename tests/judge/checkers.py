"""All promises, in the order they are reported: a history in, a verdict for each out."""

from __future__ import annotations

from collections.abc import Callable

from tests.judge import check_leases, check_letters, check_lives, check_messages, check_order, check_rest
from tests.judge.story import Story
from tests.judge.verdict import Verdict

Checker = Callable[[Story], Verdict]
CHECKERS: tuple[Checker, ...] = (
    check_messages.lost,
    check_messages.phantoms,
    check_leases.exclusive,
    check_leases.acked_stays,
    check_leases.stale,
    check_leases.counts,
    check_leases.uncarried,
    check_order.fifo,
    check_letters.letters,
    check_letters.undelivered,
    check_letters.overdelivered,
    check_messages.dedup,
    check_messages.batches,
    check_leases.never_early,
    check_messages.purges,
    check_messages.log,
    check_lives.lives,
    check_rest.counters,
    check_rest.answers,
    check_rest.redrives,
)
# Those of times, which are given the bound within which service is back after a fault.
TIMED: tuple[Callable[[Story, float], Verdict], ...] = (check_letters.late, check_rest.works, check_rest.live)


def check(story: Story, back_s: float) -> list[Verdict]:
    """The verdict of every checker; service must be back `back_s` after each fault."""
    return [checker(story) for checker in CHECKERS] + [checker(story, back_s) for checker in TIMED]
