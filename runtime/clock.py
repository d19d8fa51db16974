"""The clocks of this machine: for records, estimates and how long something is remembered.
Deadlines of leases use the time of the service, timers and pauses the event loop's.

Tests move both with the fixture `clock`: whoever asks here sees the same time.
"""

from __future__ import annotations

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
