"""Floors of the units owned here as offsets of consumer groups, so that Kafka's own tools show the
lag of each tag.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from engine.catalog.catalog import Catalog
from engine.loading.loader import Loader
from engine.log import Log
from schemas.topics import group_name
from state.errors import StateError
from state.upkeep import UpkeepScripts


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
