"""What the processes of a `leaseway up` have used so far: CPU time from /proc, what Redis says of
itself.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from tests.services import Up

QUIET = 0.3
SETTLE_S = 30.0


@dataclass(frozen=True)
class Look:
    """So far: `cpu` in seconds by process, `commands` that Redis has run, those within scripts too;
    `at` in seconds of a steady clock.
    """

    at: float
    cpu: dict[str, float]
    commands: int


def ticks(stat: str) -> int:
    """Clock ticks in the text of /proc/PID/stat: user and system, with those of children that ended
    (a rewrite of Redis' file).
    """
    # The name in brackets may hold anything; after it these are the 12th to the 15th field.
    return sum(map(int, stat.rpartition(")")[2].split()[11:15]))


class Meter:
    """Reads a running service. `close` it."""

    def __init__(self, up: Up) -> None:
        self._up = up
        self._redis = redis.Redis.from_url(up.run["redis"]["url"])
        self._tick = os.sysconf("SC_CLK_TCK")

    def look(self) -> Look:
        """Raises OSError when a process has gone."""
        run = self._up.run
        pids = {
            "worker": [one["pid"] for one in run["facades"]],
            "kafka": [run["kafka"]["pid"]],
            "redis": [run["redis"]["pid"]],
        }
        cpu = {
            name: sum(ticks(Path(f"/proc/{pid}/stat").read_text()) for pid in own) / self._tick
            for name, own in pids.items()
        }
        stats = self._info("commandstats")
        return Look(
            time.perf_counter(), cpu, sum(row["calls"] for name, row in stats.items() if name != "cmdstat_info")
        )

    def redis_bytes(self) -> int:
        """What Redis has allocated for data and buffers."""
        return int(self._info("memory")["used_memory"])

    def settle(self) -> None:
        """Waits until what the filling began is done: less than QUIET CPU seconds a second, for
        SETTLE_S at most.
        """
        end = time.perf_counter() + SETTLE_S
        before = self.look()
        while time.perf_counter() < end:
            time.sleep(1)
            now = self.look()
            if sum(now.cpu.values()) - sum(before.cpu.values()) < QUIET * (now.at - before.at):
                return
            before = now

    def close(self) -> None:
        self._redis.close()

    def _info(self, section: str) -> dict[str, Any]:
        found = self._redis.info(section)
        assert isinstance(found, dict)
        return found
