"""The clock that nobody sets: what leases, fences and waits of several processes are counted by."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

# Seconds since some moment, with those for which this machine slept, where the system tells them:
# CLOCK_MONOTONIC stands still meanwhile. One call of C, for scripts ask with every call.
boot_s: Callable[[], float] = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
