"""The engine without its services: what `leaseway verify`, `rebuild` and `seal` need, beside
running workers. It loads nothing, answers nobody, and keeps no unit.

`seal` shows the control records that the secret has not sealed, seals those that the old secret
has sealed or an operator names, and drops others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from engine.catalog.candidates import HAS_SEALED, Candidate, Candidates
from engine.catalog.catalog import Catalog
from engine.catalog.seal import Reason
from engine.errors import LogUnavailable, QueueNotFound, QueueRenewed, Rebuilding
from engine.log import Log
from engine.recovery.lives import Holding
from engine.recovery.rebuild import Rebuilder
from engine.recovery.redis_lives import RedisLives
from engine.recovery.verify import Report, Verifier
from engine.rules.queue import Queue
from runtime.background import Background
from runtime.counters import Counters
from runtime.deadline import state_until
from state.clock.keeper import ClockKeeper
from state.redis.connection import Connection
from state.upkeep import GROUP, UpkeepScripts

REBUILD_S = 600.0
# Until a unit serves again, nobody else may take its lease, which is renewed meanwhile.
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


class Attached:
    """What a command needs of a service that others serve: Kafka, Redis, the time of the service,
    the control topic. One per command; `start` first, `stop` last. It makes no topics.
    """

    def __init__(self, bootstrap: str, log: Log, connection: Connection, clock: ClockKeeper, catalog: Catalog) -> None:
        self._bootstrap = bootstrap
        self.log = log
        self._connection = connection
        self._clock = clock
        self.catalog = catalog

    async def start(self) -> None:
        """Connects and reads the control topic. Raises LogUnavailable, also for a Kafka that has no
        Leaseway; NotOurs.
        """
        patience = self.log.patience(0)  # for what is about to be ready
        await self.log.start()
        await patience.repeat(self.log.reach)
        if await self.log.partition_count(self.catalog.topic) is None:
            raise LogUnavailable(f"Kafka at {self._bootstrap} has no topic {self.catalog.topic}: it is not Leaseway's")
        await self._connection.start()
        await self._clock.start()
        await patience.repeat(self.catalog.start)

    async def stop(self) -> None:
        await self.catalog.stop()
        await self._clock.stop()
        await self._connection.stop()
        await self.log.stop()


class Maintenance:
    """One per command. `start` first, `stop` last."""

    def __init__(
        self,
        attached: Attached,
        worker: str,
        scripts: UpkeepScripts,
        counters: Counters,
        lives: RedisLives,
        rebuilder: Rebuilder,
        verifier: Verifier,
    ) -> None:
        self._attached = attached
        self._worker = worker
        self._log = attached.log
        self._scripts = scripts
        self._catalog = attached.catalog
        self._counters = counters
        self._lives = lives
        self._rebuilder = rebuilder
        self._verifier = verifier
        self._background = Background()

    async def start(self) -> None:
        """Connects. Raises LogUnavailable, also for a Kafka that has no Leaseway: this command
        makes no topics. Raises NotOurs.
        """
        await self._attached.start()
        await self._lives.start()

    async def stop(self) -> None:
        await self._rebuilder.stop()
        await self._lives.stop()
        await self._attached.stop()

    def queues(self, names: Sequence[str]) -> list[Queue]:
        """The queues of these names, all when there are none. Raises QueueNotFound."""
        known = self._catalog.queues
        for name in names:
            if name not in known:
                raise QueueNotFound(f"there is no queue {name!r}", field="queue", given=name)
        return [known[name] for name in names or self._catalog.names]

    async def verify(self, names: Sequence[str] = ()) -> Report:
        """Compares Redis with Kafka. Raises QueueNotFound, LogUnavailable, StateUnavailable."""
        return await self._verifier.run(self.queues(names))

    async def rebuild(self, names: Sequence[str] = ()) -> Rebuilt:
        """Takes queues out of service, rebuilds their state from Kafka alone, puts them back;
        callers wait or get 503 meanwhile.

        No entry of an outbox is lost. Raises QueueNotFound, LogUnavailable, StateUnavailable,
        Rebuilding (not done in 600 s).
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        queues = self.queues(names)
        await self._lives.trust(state_until())
        units = [unit for queue in queues for unit in queue.units]
        async with Holding(self._scripts, self._worker, self._background, set(), SEIZE_MS) as holding:
            for at in range(0, len(units), GROUP):
                some = units[at : at + GROUP]
                await asyncio.gather(*(self._scripts.seize(unit, self._worker, lease_ms=SEIZE_MS) for unit in some))
                for unit in some:
                    holding.add(unit)
            await asyncio.gather(*(self._recover(queue, began + REBUILD_S) for queue in queues))
        # Ends our leases at once, so that a worker with traffic takes the units up.
        async for _ in self._scripts.own_each(units, self._worker, lease_ms=1):
            pass
        seconds = loop.time() - began
        counts = self._counters.values
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
                return await self._rebuilder.recover(queue, until)
            except (QueueNotFound, QueueRenewed):
                return None  # deleted meanwhile, or as new
            except Rebuilding:
                if asyncio.get_running_loop().time() > until:
                    raise

    async def _messages(self, queues: Sequence[Queue]) -> int:
        parts = [(queue.topic, partition) for queue in queues for partition in range(len(queue.units))]
        starts, ends = await self._log.start_offsets(parts), await self._log.end_offsets(parts)
        return sum(ends.get(part, 0) - starts.get(part, 0) for part in parts)


@dataclass(frozen=True)
class Sealed:
    """How many records were sealed that the old secret had sealed, that were named, and that were
    deleted; `left`: what is not sealed now.
    """

    resealed: int
    adopted: int
    dropped: int
    left: list[Candidate]


class Sealing:
    """One per command. `start` first, `stop` last. `candidates` is what `catalog` tells of its
    records; `copied`: the topic is a copy from another cluster, so that the seals of this secret
    are older than their records.
    """

    def __init__(self, attached: Attached, catalog: Catalog, candidates: Candidates, *, copied: bool) -> None:
        self._attached = attached
        self._catalog = catalog
        self._candidates = candidates
        self._copied = copied

    async def start(self) -> None:
        """Connects and reads the control topic. Raises LogUnavailable, also for a Kafka that has no
        Leaseway.
        """
        await self._attached.start()

    async def stop(self) -> None:
        await self._attached.stop()

    def found(self) -> list[Candidate]:
        """The records that the secret has not sealed, by key."""
        catalog = self._catalog
        old = [Candidate(key, -1, Reason.OLD, counts=True) for key in catalog.old_sealed]
        # What was written over meanwhile is of the past.
        refused = [one for one in self._candidates.found(copied=self._copied) if one.key in catalog.refused]
        judged = {one.key for one in refused}
        replayed = [
            Candidate(key, -1, why, barred=HAS_SEALED) for key, why in catalog.refused.items() if key not in judged
        ]
        return sorted([*old, *refused, *replayed], key=lambda one: one.key)

    async def seal(self, names: Collection[str], *, drop: bool) -> Sealed:
        """Seals what the old secret has sealed and the candidates of these names; then, with
        `drop`, deletes what does not count and nothing else of its key does. A candidate that has
        changed meanwhile has another name, and stays. Raises NotOurs when nothing of the topic
        would count, QueueInUse, LogUnavailable, StoreUnavailable.
        """
        catalog, old = self._catalog, list(self._catalog.old_sealed)
        for key in old:
            await catalog.write_again(key)
        chosen = [one for one in self.found() if one.name in names and not one.barred and not one.counts]
        adopted = sum([await catalog.adopt(one.key, one.value) for one in chosen])
        if drop:
            catalog.check_ours()
        refused = list(catalog.refused) if drop else []
        dropped = sum([await catalog.adopt(key, None) for key in refused])
        await catalog.sync()
        return Sealed(len(old), adopted, dropped, self.found())
