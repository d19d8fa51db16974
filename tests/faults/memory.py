"""Resident memory of the parts over time, and whether it grows."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

PAGE_KIB = 4


def rss_mb(pid: int) -> float:
    """Resident memory of a process in MiB; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_KIB / 1024
    except (OSError, IndexError):
        return 0.0


def slope(points: list[tuple[float, float]]) -> float:
    """Least squares: growth of y in a unit of x; 0 for fewer than two points."""
    if len(points) < 2:
        return 0.0
    mean_x, mean_y = (sum(p[axis] for p in points) / len(points) for axis in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


class Watch:
    """Samples every part's memory until it is stopped. A part that was started again is another
    life of it.
    """

    def __init__(self, pids: Callable[[], dict[str, int]], every_s: float = 2.0) -> None:
        self._pids = pids
        self._every_s = every_s
        self._end = threading.Event()
        self._lives: dict[str, dict[int, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        while not self._end.wait(self._every_s):
            for part, pid in self._pids().items():
                if size := rss_mb(pid):
                    self._lives[part][pid].append((time.monotonic() / 3600, size))

    def stop(self, warm_up_s: float) -> dict[str, dict[str, float]]:
        """Per part: lives, first and last MiB and MiB/h of its longest life, without its first
        `warm_up_s` seconds.
        """
        self._end.set()
        self._thread.join()
        found = {}
        for part, lives in self._lives.items():
            longest = max(lives.values(), key=len)
            points = [p for p in longest if (p[0] - longest[0][0]) * 3600 >= warm_up_s] or longest
            found[part] = {
                "lives": len(lives),
                "first_mb": round(points[0][1], 1),
                "last_mb": round(points[-1][1], 1),
                "most_mb": round(max(size for _, size in points), 1),
                "seconds": round((points[-1][0] - points[0][0]) * 3600),
                "mb_per_hour": round(slope(points), 1),
            }
        return found
