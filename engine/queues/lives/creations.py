"""Whether there is room for one more queue, and for its name."""

from __future__ import annotations

from engine.catalog.catalog import Catalog
from engine.errors import QueueExists, QuotaExceeded
from engine.queues.callers.quotas import UserBounds
from engine.settings import EngineSettings
from schemas.accounts import account_of
from schemas.records import QueueRecord, UserRecord


class Creations:
    """What bounds creations of queues."""

    def __init__(self, settings: EngineSettings, users: UserBounds, catalog: Catalog) -> None:
        self._most_queues = settings.max_queues
        self._most_partitions = settings.max_partitions
        self._users = users
        self._catalog = catalog

    def check(self, record: QueueRecord) -> None:
        """Raises QueueExists when Kafka refuses the name beside another's, QuotaExceeded when the
        owner or the service has as much as they may: about, since creations of other names may come
        between.
        """
        catalog = self._catalog
        _check_alike(catalog, record.name)
        for owner, kind in ((record.owner, "user"), (account_of(record.name), "account")):
            _check_owner(catalog, self._users.of(owner), owner, kind, record.partitions)
        queues = catalog.queues
        if len(queues) >= self._most_queues:
            raise QuotaExceeded(f"the service may have {self._most_queues} queues", field="queues", limit=self._most_queues)
        there, most = sum(queue.record.partitions for queue in queues.values()), self._most_partitions
        if there + record.partitions > most:
            about = f"the service may have {most} partitions of queues: {there} are there, {record.partitions} more are too many"
            raise QuotaExceeded(about, field="partitions", limit=most, given=there + record.partitions)


def _check_alike(catalog: Catalog, name: str) -> None:
    """Kafka refuses a topic whose name differs from another's in '.' and '_' only."""
    flat = name.replace(".", "_")
    alike = next((other for other in catalog.names if other.replace(".", "_") == flat), None)
    if alike is not None:
        raise QueueExists(f"Kafka can't tell {name!r} from the existing queue {alike!r}", field="name", limit=alike, given=name)


def _check_owner(catalog: Catalog, user: UserRecord | None, owner: str, kind: str, more: int) -> None:
    if user is None or not (user.queues or user.partitions):
        return
    there = [queue.record.partitions for queue in catalog.queues.values() if owner in (queue.record.owner, queue.account)]
    number, partitions = len(there), sum(there)
    if user.partitions and partitions + more > user.partitions:
        about = f"{kind} {owner!r} may have {user.partitions} partitions of queues: {partitions} are there, {more} more are too many"
        raise QuotaExceeded(about, field="partitions", limit=user.partitions, given=partitions + more)
    if user.queues and number >= user.queues:
        raise QuotaExceeded(f"{kind} {owner!r} may have {user.queues} queues", field="queues", limit=user.queues, given=number)
