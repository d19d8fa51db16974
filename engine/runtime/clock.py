"""The clocks of this machine: for records, estimates and how long something is remembered.
Deadlines of leases use the time of the service, timers and pauses the event loop's.

Tests move both with the fixture `clock`: whoever asks here sees the same time.
"""

from __future__ import annotations

import time as system
from time import monotonic, time, time_ns


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time_ns() // 1_000_000


def kafka_ms() -> int:
    """The same, for what is compared with Kafka's clock: tests move neither."""
    return int(time() * 1000)


def elapsed_s() -> float:
    """Seconds since some moment: only differences mean something. It never goes back."""
    return monotonic()


# CLOCK_MONOTONIC stands still while a machine sleeps, CLOCK_BOOTTIME does not.
_BOOT_CLOCK = getattr(system, "CLOCK_BOOTTIME", None)


def boot_s() -> float:
    """The same, with the time for which this machine slept, where the system tells it. Tests do not
    move it: it is for durations that Kafka or another worker sees too.
    """
    return system.monotonic() if _BOOT_CLOCK is None else system.clock_gettime(_BOOT_CLOCK)
