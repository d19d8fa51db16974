"""How far the units owned here are behind: floors as offsets of consumer groups, so that tools of
Kafka show the lag of each tag; and what keeps messages from being loaded, for alarms.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

from engine.catalog.catalog import Catalog
from engine.loading.loader import Loader
from engine.log import Log
from engine.rules.queue import Queue
from engine.window.batches.skips import Skips
from schemas.topics import group_name
from state.errors import StateError
from state.keys import Unit
from state.upkeep import UpkeepScripts

# A batch holds a partition up for 40 s at most. What does so for longer needs somebody's attention.
STOPPED_S = 60.0


class LagReporter:
    """What was committed last, by incarnation, partition and tag. One task at a time may
    `commit`.
    """

    def __init__(self, prefix: str, log: Log, upkeep: UpkeepScripts, catalog: Catalog) -> None:
        self._prefix = prefix
        self._log = log
        self._upkeep = upkeep
        self._catalog = catalog
        self._committed: dict[tuple[str, int, int], int] = {}

    async def commit(self, loaders: Sequence[Loader]) -> None:
        """Commits the floors that have changed; a unit whose state is lost is left out. Raises
        LogUnavailable.
        """
        groups: dict[str, dict[tuple[str, int], int]] = {}
        floors: dict[str, dict[tuple[str, int, int], int]] = {}
        for loader in loaders:
            queue = loader.queue
            with contextlib.suppress(StateError):
                counts = await self._upkeep.info(loader.unit, self._catalog.generation, queue.tag_ids)
                for tag, count in zip(queue.tags, counts, strict=True):
                    key = (queue.incarnation, loader.partition, tag.id)
                    if self._committed.get(key) != count.floor:
                        group = group_name(self._prefix, queue.name, tag.name)
                        groups.setdefault(group, {})[(queue.topic, loader.partition)] = count.floor
                        floors.setdefault(group, {})[key] = count.floor
        for group, offsets in groups.items():
            await self._log.commit_group_offsets(group, offsets)
            self._committed.update(floors[group])

    def forget(self, incarnation: str) -> None:
        """A queue is gone."""
        self._committed = {key: floor for key, floor in self._committed.items() if key[0] != incarnation}


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
