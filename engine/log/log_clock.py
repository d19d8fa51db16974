"""Kafka's clock as this worker knows it, from the times that brokers wrote into its own appends.

A broker writes its time into a record at some moment between the produce and the acknowledgement.
So each append bounds how far Kafka's clock is from a clock of this machine that nobody sets. The
wall clock of the worker takes no part.
"""

from __future__ import annotations

from msgspec import Struct

from engine.runtime.signals import Signal
from state.clock.boot import boot_s

# How fast two clocks that are disciplined by NTP may move apart: 500 ppm each.
DRIFT_MS_PER_S = 1.0


class _Sample(Struct, frozen=True, gc=False):
    """`offset_ms` is Kafka's clock minus this machine's at `at_s`, right to `error_ms`."""

    offset_ms: float
    error_ms: float
    at_s: float

    def error_at(self, now_s: float) -> float:
        return self.error_ms + abs(now_s - self.at_s) * DRIFT_MS_PER_S


class LogClock:
    """Kafka's time. Any thread may call: the state is one reference.

    Brokers are taken for one clock. Where theirs differ, or Kafka's is set, the newest append
    counts, so an estimate is only as good as the agreement of the brokers.
    """

    def __init__(self) -> None:
        self._best: _Sample | None = None
        # Once, when Kafka's time is known: in the thread that notes the first append, before what
        # was appended is used.
        self.known: Signal[[]] = Signal()

    def note(self, sent_s: float, acked_s: float, timestamp_ms: int) -> None:
        """Takes in an append: `boot_s()` when it was handed to the client and when its
        acknowledgement was read, and the time that the broker wrote.
        """
        # The broker's time is cut to whole ms, so it is half a ms later on average.
        half_ms = (acked_s - sent_s) * 500 + 0.5
        offset_ms = timestamp_ms + 0.5 - (sent_s + acked_s) * 500
        best = self._best
        if best is not None:
            known_ms = best.error_at(acked_s)
            stepped = abs(offset_ms - best.offset_ms) > half_ms + known_ms
            if half_ms > known_ms and not stepped:
                return
        self._best = _Sample(offset_ms, half_ms, acked_s)
        if best is None:
            self.known()

    def now_ms(self) -> int | None:
        """Returns Kafka's time (epoch ms), right to `error_ms`; None before the first append of
        this worker.
        """
        return None if self._best is None else int(boot_s() * 1000 + self._best.offset_ms)

    @property
    def error_ms(self) -> float:
        """How wrong `now_ms` may be: half of the best recent round trip, and what clocks drift
        since. Infinite before the first append.
        """
        return float("inf") if self._best is None else self._best.error_at(boot_s())
