"""What keeps messages of a queue from being loaded here, for alarms."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from engine.loading.loader import Loader
from engine.rules.queue import Queue
from engine.window.batches.skips import Skips
from state.keys import Unit

# A batch holds a partition up for 40 s at most. What does so for longer needs somebody's attention.
STOPPED_S = 60.0


class Troubles:
    """Of the units that this worker owns."""

    def __init__(self, owned: Mapping[Unit, Loader], skips: Skips) -> None:
        self._owned = owned
        self._skips = skips

    def _loaders(self, queue: Queue) -> list[Loader]:
        return [loader for unit in queue.units if (loader := self._owned.get(unit))]

    def stalled_partitions(self, queue: Queue) -> int:
        """Returns in how many partitions nothing was loaded for STOPPED_S though Kafka has more and
        the window has room.
        """
        before = asyncio.get_running_loop().time() - STOPPED_S
        return sum(loader.stuck_at is not None and loader.stuck_at[1] < before for loader in self._loaders(queue))

    def behind_transactions(self, queue: Queue) -> int:
        """Returns how many records lie behind transactions of Kafka that are open for long."""
        return sum(loader.behind_transaction() for loader in self._loaders(queue))

    def skipped(self, queue: Queue) -> int:
        """Returns how many records of a queue were settled unseen here in the last hour."""
        return self._skips.recent(queue)
