"""All promises, in the order they are reported: a history in, a verdict for each out."""

from __future__ import annotations

from collections.abc import Callable

from tests.judge import check_leases, check_letters, check_messages, check_order, check_rest
from tests.judge.story import Story
from tests.judge.verdict import Verdict

CHECKERS: tuple[Callable[[Story], Verdict], ...] = (
    check_messages.lost,
    check_messages.phantoms,
    check_leases.exclusive,
    check_leases.acked_stays,
    check_leases.stale,
    check_leases.counts,
    check_order.fifo,
    check_letters.letters,
    check_messages.dedup,
    check_messages.batches,
    check_leases.never_early,
    check_messages.purges,
    check_rest.counters,
    check_rest.answers,
    check_rest.redrives,
)


def check(story: Story, live_within_s: float) -> list[Verdict]:
    """The verdict of every checker; service must be back `live_within_s` after each heal."""
    return [checker(story) for checker in CHECKERS] + [check_rest.live(story, live_within_s)]
