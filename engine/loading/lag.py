"""Floors of the units owned here as offsets of consumer groups, so that Kafka's own tools show the
lag of each tag.

Neighbours: `owner.py` says which units and when. Must not know who owns what.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from engine.core import Core
from engine.loading.loader import Loader
from engine.rules.queue import group_name
from state.errors import StateError


class Floors:
    """What was committed last, by incarnation, partition and tag. One task at a time may `show`."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._shown: dict[tuple[str, int, int], int] = {}

    async def show(self, loaders: Sequence[Loader]) -> None:
        """Commits the floors that have changed; a unit whose state is lost is left out. Raises
        LogUnavailable.
        """
        groups: dict[str, dict[tuple[str, int], int]] = {}
        for loader in loaders:
            queue, prefix = loader.queue, self._core.settings.topic_prefix
            with contextlib.suppress(StateError):
                counts = await self._core.store.info(loader.unit, self._core.control.generation, queue.tag_ids)
                for tag, count in zip(queue.tags, counts, strict=True):
                    key = (queue.incarnation, loader.partition, tag.id)
                    if self._shown.get(key) != count.floor:
                        self._shown[key] = count.floor
                        groups.setdefault(group_name(prefix, queue.name, tag.name), {})[(queue.topic, loader.partition)] = count.floor
        for group, offsets in groups.items():
            await self._core.log.commit_group_offsets(group, offsets)

    def forget(self, incarnation: str) -> None:
        """A queue is gone."""
        self._shown = {key: floor for key, floor in self._shown.items() if key[0] != incarnation}
