"""The wall clock of this machine: for records and estimates. Deadlines of leases use Redis'
clock.
"""

from __future__ import annotations

import time


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
