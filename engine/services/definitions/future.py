"""The records of queues as they will be when a document is applied: what it says is checked against
them, so that a policy may name a queue of the same document.
"""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from engine.catalog.catalog import Catalog
from engine.queues.policies import Policies
from engine.rules.fifo import with_exhausted
from engine.rules.queue import Queue
from engine.rules.rights import Rights, Targets
from engine.shapes import Principal
from schemas.records import QueueRecord
from schemas.records.settings import QueueSettings, RedrivePolicy


class Future:
    """A copy of what the catalog has; nothing of it is written."""

    def __init__(self, catalog: Catalog, rights: Rights) -> None:
        tables = self._tables = catalog.future()
        self._policies = Policies(cast(Catalog, tables), rights, Targets(tables, rights))

    def put(self, record: QueueRecord) -> None:
        """A queue will be so."""
        self._tables.put("queue", record.name, record, 0)

    def queue(self, name: str) -> Queue:
        """A queue as it will be."""
        return self._tables.queues[name]

    def set_policy(self, by: Principal, name: str, policy: RedrivePolicy | None, tag: str = "") -> None:
        """A queue, or a tag of it, will have this policy. Raises what setting it would."""
        record = self.queue(name).record
        policy = self._policies.checked(by, name, policy, fifo=record.fifo, dead_letter=record.dead_letter)
        if not tag:
            self.put(replace(record, redrive_policy=policy))
        else:
            self.put(replace(record, tags=[replace(one, redrive_policy=policy) if one.name == tag else one for one in record.tags]))

    def finish(self, name: str, settings: QueueSettings) -> None:
        """All that a queue needs is there by now. Raises InvalidValue."""
        self.put(with_exhausted(self.queue(name).record, settings))
