"""Directed stories, for what random weather finds seldom: each is a defect that was once found by
hand.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable

from tests.outside.weather import STALE, Gust, Hands, strike


def _stale_snapshots(hands: Hands) -> list[str]:
    """One worker stands still until the other writes all snapshots; that one is stopped in the
    middle, and Redis emptied later.
    """
    time.sleep(5)
    with hands.struck("pause worker"), hands.paused("worker", 0):
        time.sleep(36)
    for _ in range(2):
        time.sleep(12)
        strike(hands, Gust(STALE, 36, part=1, then=14))
    time.sleep(12)
    return ["stale snapshots"]


def _woken_deleter(hands: Hands) -> list[str]:
    """A worker stands still for 50 s in the middle of a deletion, three times; the queue is made
    anew by the other meanwhile.
    """
    for _ in range(3):
        time.sleep(5)
        strike(hands, Gust("pause worker that deletes", 50, part=0))
        time.sleep(8)
    return ["woken deleter"]


def _undelivered(hands: Hands) -> list[str]:
    """Calm, then Kafka stands still for 20 s, then workers are killed and the bodies that they kept
    are gone.
    """
    time.sleep(20)
    with hands.struck("pause kafka"), hands.paused("kafka"):
        time.sleep(20)
    time.sleep(10)
    with hands.struck("kill kafka, kill worker"):
        since = hands.book.now()
        with hands.paused("kafka"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(hands.pid("worker"), signal.SIGKILL)
            time.sleep(15)
        hands.wait_back(since)
    time.sleep(20)
    return ["undelivered"]


def _calm(hands: Hands) -> list[str]:
    """Nothing happens for half a minute: whatever is found is the harness's own, or found without
    faults.
    """
    time.sleep(30)
    return ["calm"]


SCRIPTS: dict[str, Callable[[Hands], list[str]]] = {
    "calm": _calm,
    "stale-snapshots": _stale_snapshots,
    "woken-deleter": _woken_deleter,
    "undelivered": _undelivered,
}
