"""Tells the clock of the service how far Kafka's is away, and people when clocks differ: the wall
clock of this worker, that of Redis and that of Kafka from the time of the service.
"""

from __future__ import annotations

import logging

from engine.log import Log
from runtime.clock import now_ms
from runtime.counters import Alarms
from runtime.service import Periodic
from state.clock.keeper import ClockKeeper
from state.errors import StateError

logger = logging.getLogger(__name__)

KIND = "clock_skew"
# What the number of the alarm counts.
ABOUT = "seconds by which a clock differs from the time of the service: that of `worker`, `redis` or `kafka`"
LOOK_S = 1.0
# From so much on it is an alarm, until it is less than half of that.
BOUND_MS = 1000.0


class ClockWatch:
    """The skews that this worker knows of, looked at once a second."""

    def __init__(self, log: Log, keeper: ClockKeeper, alarms: Alarms) -> None:
        self._log = log
        self._keeper = keeper
        self._alarms = alarms
        self._on: set[str] = set()
        self._service = Periodic("watch clocks", self.look, LOOK_S, first_s=0.1, quiet=(StateError,))

    async def start(self) -> None:
        await self._service.start()

    async def stop(self) -> None:
        await self._service.stop()

    def compare_log(self) -> None:
        """Tells the clock of the service how far Kafka's is ahead of it, as far as both are
        known.
        """
        kafka_ms = self._log.clock.now_ms()
        if kafka_ms is not None and self._keeper.clock.is_set:
            self._keeper.note_log(kafka_ms - self._keeper.clock.now_ms(), self._log.clock.error_ms)

    async def look(self) -> None:
        """Compares the clocks once. Raises StateUnavailable while the time of the service is not
        known.
        """
        self.compare_log()
        self._judge("worker", now_ms() - self._keeper.clock.now_ms())
        self._judge("redis", self._keeper.skews.redis)
        self._judge("kafka", self._keeper.skews.log)

    def _judge(self, clock: str, ahead_ms: float | None) -> None:
        if ahead_ms is None:
            return
        bound_ms = BOUND_MS / 2 if clock in self._on else BOUND_MS
        on = abs(ahead_ms) > bound_ms
        if self._alarms.set(KIND, clock, round(abs(ahead_ms) / 1000, 1) if on else 0):
            logger.error("action=alarm kind=%s clock=%s ahead_by_ms=%.0f: %s", KIND, clock, ahead_ms, ABOUT)
        elif not on and clock in self._on:
            logger.warning("action=alarm_over kind=%s clock=%s ahead_by_ms=%.0f", KIND, clock, ahead_ms)
        (self._on.add if on else self._on.discard)(clock)
