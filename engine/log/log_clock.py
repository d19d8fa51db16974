"""Kafka's clock as this worker knows it, from the times that brokers wrote into its own appends.

A broker writes its time into a record at some moment between the produce and the acknowledgement.
So each append bounds how far Kafka's clock is from a clock of this machine that nobody sets. The
wall clock of the worker takes no part. Before the first append of this worker, the time of the
service has to do, with what other workers have said about Kafka's.
"""

from __future__ import annotations

from math import ceil, floor

from msgspec import Struct

from runtime.clock import now_ms
from runtime.signals import Signal
from state.clock.boot import boot_s
from state.clock.service_clock import ServiceClock

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
    counts, so an estimate is only as good as the agreement of the brokers. `service` is the clock
    of the service, where one is kept.
    """

    def __init__(self, service: ServiceClock | None = None) -> None:
        self._service = service
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

    def earliest_ms(self) -> int:
        """Returns the least that Kafka's clock may show now, as far as anybody knows."""
        at_ms, error_ms = self._estimate()
        return floor(at_ms - error_ms)

    def latest_ms(self) -> int:
        """Returns the most that Kafka's clock may show now, as far as anybody knows."""
        at_ms, error_ms = self._estimate()
        return ceil(at_ms + error_ms)

    def _estimate(self) -> tuple[float, float]:
        """Returns Kafka's time (epoch ms), and how wrong that may be. Until some worker has
        appended it is the time of the service, and where Redis has never answered that of this
        machine: nobody knows how wrong these are.
        """
        if (best := self._best) is not None:
            now_s = boot_s()
            return now_s * 1000 + best.offset_ms, best.error_at(now_s)
        service = self._service
        if service is None or not service.is_set:
            return now_ms(), 0.0
        ahead_ms, error_ms = service.log_ahead or (0.0, 0.0)
        return service.now_ms() + ahead_ms, error_ms

    @property
    def error_ms(self) -> float:
        """How wrong `now_ms` may be: half of the best recent round trip, and what clocks drift
        since. Infinite before the first append.
        """
        return float("inf") if self._best is None else self._best.error_at(boot_s())
