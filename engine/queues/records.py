"""The control records of queues: what is known, and how a changed one is written."""

from __future__ import annotations

import msgspec

from engine.catalog.catalog import Catalog, Change
from engine.errors import QueueNotFound
from engine.rules.queue import Queue
from engine.rules.rights import Targets
from runtime.clock import now_ms
from schemas.records import QueueRecord
from schemas.topics import QUEUE_KEY


class QueueRecords:
    """For whoever has the right to change a queue."""

    def __init__(self, catalog: Catalog, targets: Targets) -> None:
        self._catalog = catalog
        self._targets = targets

    def known(self, name: str) -> Queue:
        """The queue of that name, as of the last sync. Raises QueueNotFound."""
        queue = self._catalog.queues.get(name)
        if queue is None:
            raise QueueNotFound(f"there is no queue {name!r}", field="queue", given=name)
        return queue

    async def write(self, record: QueueRecord, change: Change) -> Queue:
        """Writes a changed record."""
        record = msgspec.structs.replace(self._targets.noted(record), modified_at_ms=now_ms())
        await change.write(f"{QUEUE_KEY}{record.name}", record)
        return self._catalog.queues[record.name]
