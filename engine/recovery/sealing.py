"""What `leaseway seal` does, beside running workers: it shows the control records that the secret
has not sealed, seals those that the old secret has sealed or an operator names, and drops others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from engine.catalog.candidates import HAS_SEALED, Candidate, Candidates
from engine.catalog.catalog import Catalog
from engine.catalog.seal import Reason
from engine.recovery.maintenance import Attached


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
        replayed = [Candidate(key, -1, why, barred=HAS_SEALED) for key, why in catalog.refused.items() if key not in judged]
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
