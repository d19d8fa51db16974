"""The engine without its services: what `leaseway verify` and `leaseway rebuild` need, beside
running workers.

Neighbours: `verify.py` and `rebuild.py` do the work; the CLI makes a doctor. It loads nothing,
answers nobody, and keeps no unit.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from engine.catalog.catalog import Control
from engine.core import Core
from engine.errors import LogUnavailable, QueueNotFound, Rebuilding
from engine.journal.snapshots import Snapshots
from engine.log import Log
from engine.recovery.rebuild import Rebuilder
from engine.recovery.verify import Report, Verifier
from engine.rules.queue import Queue
from engine.settings import Settings
from state.connection import Connection
from state.replies import Window
from state.store import Store

REBUILD_S = 600.0
# Long enough to read a long journal: until the unit serves again, nobody else may take its lease.
SEIZE_MS = 60_000


@dataclass(frozen=True)
class Rebuilt:
    """What a forced rebuild did. `messages` are those Kafka has; `entries` were read from the
    journal, after its snapshots.
    """

    queues: int
    units: int
    messages: int
    entries: int
    settled: int
    deliveries: int
    seconds: float


class Doctor:
    """One per command. `start` first, `stop` last."""

    def __init__(self, settings: Settings) -> None:
        log = Log(settings.kafka_bootstrap, settings.send_timeout_ms)
        connection = Connection(settings.redis_url)
        store = Store(connection, settings.topic_prefix, Window(settings.window_messages, settings.window_bytes))
        self.core = Core(settings, log, connection, store, Control(settings, log, connection))
        self.worker = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._snapshots = Snapshots(self.core)
        self._rebuilder = Rebuilder(self.core, self.worker, self._snapshots)

    async def start(self) -> None:
        """Connects. Raises LogUnavailable, also for a Kafka that has no Leaseway: this command
        makes no topics.
        """
        core = self.core
        await core.log.start()
        if await core.log.partition_count(core.control.topic) is None:
            raise LogUnavailable(f"Kafka at {core.settings.kafka_bootstrap} has no topic {core.control.topic}: it is not Leaseway's")
        await core.connection.start()
        await core.control.start()
        core.store.trusted_run_id = core.control.redis_run_id

    async def stop(self) -> None:
        await self._rebuilder.stop()
        await self.core.control.stop()
        await self.core.connection.stop()
        await self.core.log.stop()

    def queues(self, names: Sequence[str]) -> list[Queue]:
        """The queues of these names, all when there are none. Raises QueueNotFound."""
        known = self.core.control.queues
        for name in names:
            if name not in known:
                raise QueueNotFound(f"there is no queue {name!r}", field="queue", given=name)
        return [known[name] for name in names or self.core.control.names]

    async def verify(self, names: Sequence[str] = ()) -> Report:
        """Compares Redis with Kafka. Raises QueueNotFound, LogUnavailable, StateUnavailable."""
        return await Verifier(self.core, self._snapshots, self.worker).run(self.queues(names))

    async def rebuild(self, names: Sequence[str] = ()) -> Rebuilt:
        """Takes queues out of service, rebuilds their state from Kafka alone, puts them back;
        callers wait or get 503 meanwhile.

        No entry of an outbox is lost. Raises QueueNotFound, LogUnavailable, StateUnavailable,
        Rebuilding (not done in 600 s).
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        queues = self.queues(names)
        await self._rebuilder.trust()
        units = [unit for queue in queues for unit in queue.units]
        for unit in units:
            await self.core.store.seize(unit, self.worker, lease_ms=SEIZE_MS)
        await asyncio.gather(*(self._recover(queue, began + REBUILD_S) for queue in queues))
        for unit in units:
            # Ends our lease at once, so that a worker with traffic takes the unit up.
            await self.core.store.own(unit, self.worker, lease_ms=1)
        seconds = loop.time() - began
        counts = self.core.counts
        return Rebuilt(
            queues=len(queues),
            units=len(units),
            messages=await self._messages(queues),
            entries=int(counts.get("journal_entries_read_total", 0)),
            settled=int(counts.get("rebuilt_settled_total", 0)),
            deliveries=int(counts.get("rebuilt_deliveries_total", 0)),
            seconds=seconds,
        )

    async def _recover(self, queue: Queue, until: float) -> None:
        while True:
            try:
                return await self._rebuilder.recover(queue)
            except QueueNotFound:
                return None  # deleted meanwhile
            except Rebuilding:
                if asyncio.get_running_loop().time() > until:
                    raise

    async def _messages(self, queues: Sequence[Queue]) -> int:
        parts = [(queue.topic, partition) for queue in queues for partition in range(len(queue.units))]
        starts, ends = await self.core.log.start_offsets(parts), await self.core.log.end_offsets(parts)
        return sum(ends.get(part, 0) - starts.get(part, 0) for part in parts)
