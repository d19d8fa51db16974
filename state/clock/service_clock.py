"""The time of the service in one process: it goes on by a clock that nobody sets, and is moved by
at most one hundredth of what passes. It is what scripts get as `now`, so no wall clock decides who
may have a message.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from state.clock.boot import boot_s
from state.errors import StateUnavailable

# What the clock may be moved by, of the time that passes.
SLEW = 0.01
# A delay may be late by so much before it is ended in the time of a log that is ahead.
LATE_MS = 1000.0
# Longer than any retention.
FOR_EVER_MS = 2**52


class ServiceClock:
    """A clock that is not set until `take`; `ClockKeeper` alone moves it."""

    def __init__(self) -> None:
        self._required = False
        self._is_set = False
        self._since_s = 0.0
        self._since_ms = 0.0
        self._error_ms = 0.0
        # How far the clock of the log is ahead of this one (ms), and how wrong that may be; None =
        # nobody has said that yet.
        self.log_ahead: tuple[float, float] | None = None
        # How much later a due time of the log has come, in the time of the service; less than 0:
        # earlier.
        self.early_ms = 0
        # How much longer than its retention a message stays: nothing expires in time that the log
        # does not have yet. FOR_EVER while its clock is not known.
        self.keep_ms = 0
        # Hears of each change, at once: the plane reads the clock too.
        self.changed: Callable[[], None] = _nobody

    def tell(self, changed: Callable[[], None]) -> None:
        """From now on `changed` hears of each change, at once."""
        self.changed = changed

    @property
    def is_set(self) -> bool:
        """Whether it shows a time."""
        return self._is_set

    def require(self) -> None:
        """From now on nothing is to be decided before the clock is set."""
        self._required = True
        self.keep_ms = FOR_EVER_MS

    def now_ms(self) -> int:
        """Returns the time of the service; 0 = Redis' clock, where nobody keeps this one. Raises
        StateUnavailable while it is not known.
        """
        if self._is_set:
            if self._error_ms:
                return int(self.at_ms(boot_s()))
            return int(self._since_ms + (boot_s() - self._since_s) * 1000)  # as `at_ms`: each script asks
        if self._required:
            raise StateUnavailable(
                "the time of the service is not known yet: Redis has not answered since this worker was started"
            )
        return 0

    def at_ms(self, at_s: float) -> float:
        """Returns the time of the service at a moment of `boot_s`."""
        passed_ms = (at_s - self._since_s) * 1000
        most_ms = passed_ms * SLEW
        error_ms = self._error_ms
        if error_ms:
            passed_ms += most_ms if error_ms > most_ms else max(error_ms, -most_ms)
        return self._since_ms + passed_ms

    def take(self, at_s: float, service_ms: float) -> None:
        """Sets the clock, whatever it showed."""
        self._is_set, self._since_s, self._since_ms, self._error_ms = True, at_s, service_ms, 0.0
        self.changed()

    def note_log(self, ahead_ms: float, error_ms: float) -> None:
        """Takes in how far the clock of the log is ahead of this one (less than 0: behind it),
        right to `error_ms`.
        """
        self.log_ahead = ahead_ms, error_ms
        shifts = ahead_ms < -error_ms or ahead_ms > error_ms + LATE_MS
        self.early_ms = ceil(error_ms - ahead_ms) if shifts else 0
        self.keep_ms = max(0, ceil(error_ms - ahead_ms))
        self.changed()

    def slew(self, error_ms: float) -> None:
        """Moves the clock from now on, slowly, until it has gone by `error_ms` more (or less)."""
        now_s = boot_s()
        self._since_ms, self._since_s, self._error_ms = self.at_ms(now_s), now_s, error_ms
        self.changed()

    @property
    def facts(self) -> tuple[float, float, float, float]:
        """What `at_ms` counts with: since when (s), what it showed then (ms), by how much it is to
        be moved (ms), and by which part of the time that passes.
        """
        return self._since_s, self._since_ms, self._error_ms, SLEW


def _nobody() -> None:
    """Hears of nothing."""
