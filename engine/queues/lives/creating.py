"""Creates queues, new ones and copies of others: whether there is room for one more and for its
name, and what the record of a new queue says.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import InvalidValue, QueueExists, QuotaExceeded
from engine.queues.callers.quotas import UserBounds
from engine.queues.lives.making import Deletions, Making
from engine.queues.queues import Policies
from engine.rules.fifo import check_fifo_settings, with_exhausted
from engine.rules.limits import check_name, check_new_queue_name, check_new_tags, check_own_delay, check_settings
from engine.rules.queue import Queue
from engine.rules.rights import as_asked
from engine.settings import EngineSettings
from engine.shapes import NewTag, Principal
from runtime.clock import now_ms
from schemas.accounts import account_of
from schemas.records import QueueRecord, TagRecord, UserRecord
from schemas.records.settings import QueueSettings, named
from schemas.vocabulary import DEFAULT_TAG, PRIORITIES


def check_priority_settings(settings: QueueSettings) -> None:
    """Raises InvalidValue for a queue with priority that is FIFO too, or names another number of
    partitions.
    """
    if not settings.priority:
        return
    if settings.fifo:
        raise InvalidValue(
            "a queue is FIFO or has priority, not both", field="priority", limit="a standard queue", given=True
        )
    if settings.partitions not in (None, PRIORITIES):
        raise InvalidValue(
            f"a queue with priority has {PRIORITIES} partitions, one for each, given {settings.partitions}",
            field="partitions",
            limit=PRIORITIES,
            given=settings.partitions,
        )


def least_partitions(settings: QueueSettings) -> int | None:
    """Partitions of a queue whose kind decides that; None = the default of the service."""
    if settings.priority:
        return PRIORITIES
    return 1 if settings.fifo and settings.dedup_scope != "group" else None


def new_record(
    name: str, owner: str, settings: QueueSettings, default_partitions: int, tags: Sequence[NewTag], at_ms: int
) -> QueueRecord:
    """The record of a queue made at `at_ms`. What `settings` does not name has its default."""
    partitions = settings.partitions or least_partitions(settings) or default_partitions
    more = [
        TagRecord(number, tag.name, at_ms, 0, [0] * partitions, tag.filter, tag.user_attributes, tag.read_qps)
        for number, tag in enumerate(tags, 1)
    ]
    return QueueRecord(
        name=name,
        incarnation=secrets.token_hex(6),
        owner=owner,
        created_at_ms=at_ms,
        modified_at_ms=at_ms,
        tags=[TagRecord(0, DEFAULT_TAG, at_ms, 0, [0] * partitions), *more],
        next_tag_id=len(more) + 1,
        **{**named(settings), "partitions": partitions},
    )


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
            raise QuotaExceeded(
                f"the service may have {self._most_queues} queues", field="queues", limit=self._most_queues
            )
        there, most = sum(queue.record.partitions for queue in queues.values()), self._most_partitions
        if there + record.partitions > most:
            about = (
                f"the service may have {most} partitions of queues: {there} are there, "
                f"{record.partitions} more are too many"
            )
            raise QuotaExceeded(about, field="partitions", limit=most, given=there + record.partitions)


def _check_alike(catalog: Catalog, name: str) -> None:
    """Kafka refuses a topic whose name differs from another's in '.' and '_' only."""
    flat = name.replace(".", "_")
    alike = next((other for other in catalog.names if other.replace(".", "_") == flat), None)
    if alike is not None:
        raise QueueExists(
            f"Kafka can't tell {name!r} from the existing queue {alike!r}", field="name", limit=alike, given=name
        )


def _check_owner(catalog: Catalog, user: UserRecord | None, owner: str, kind: str, more: int) -> None:
    if user is None or not (user.queues or user.partitions):
        return
    there = [
        queue.record.partitions for queue in catalog.queues.values() if owner in (queue.record.owner, queue.account)
    ]
    number, partitions = len(there), sum(there)
    if user.partitions and partitions + more > user.partitions:
        about = (
            f"{kind} {owner!r} may have {user.partitions} partitions of queues: {partitions} are there, "
            f"{more} more are too many"
        )
        raise QuotaExceeded(about, field="partitions", limit=user.partitions, given=partitions + more)
    if user.queues and number >= user.queues:
        raise QuotaExceeded(
            f"{kind} {owner!r} may have {user.queues} queues", field="queues", limit=user.queues, given=number
        )


# Labels are for who looks, and grants are what the policy means.
_NOT_COMPARED = ("labels", "grants")


class Creating:
    """Creations of queues, one after the other for each name, whoever makes them."""

    def __init__(
        self,
        partitions: int,
        creations: Creations,
        catalog: Catalog,
        policies: Policies,
        making: Making,
        deletions: Deletions,
    ) -> None:
        """`partitions`: of a queue that names no number."""
        self._partitions = partitions
        self._creations = creations
        self._catalog = catalog
        self._policies = policies
        self._making = making
        self._deletions = deletions

    async def create(
        self, by: Principal, name: str, owner: str, settings: QueueSettings, tags: Sequence[NewTag] = ()
    ) -> tuple[Queue, bool]:
        """Makes a queue with its tags; an equal one that exists is fine (False), whatever tags it
        has. Raises InvalidValue, QueueExists, NotAllowedOnQueue, NotAuthorised.
        """
        record = self.checked_record(name, owner, settings, tags)
        catalog = self._catalog
        if (existing := catalog.queues.get(name)) is not None:
            return self._same(existing, settings), False
        async with catalog.change(name) as change:
            if (existing := catalog.queues.get(name)) is not None:
                return self._same(existing, settings), False
            if (half := catalog.unfinished.get(name)) is not None:
                await self._deletions.finish(half, change)
            policy = self._policies.checked(
                by, name, settings.redrive_policy, fifo=bool(settings.fifo), dead_letter=bool(settings.dead_letter)
            )
            record = with_exhausted(msgspec.structs.replace(record, redrive_policy=policy), settings)
            self._creations.check(record)
            return await self._making.make(record, change), True

    def checked_record(
        self, name: str, owner: str, settings: QueueSettings, tags: Sequence[NewTag] = ()
    ) -> QueueRecord:
        """The record of a queue to be made, with its redrive policy as it is asked for. Raises
        InvalidValue.
        """
        check_new_queue_name("name", name)
        check_new_tags(tags)
        check_settings(settings)
        check_fifo_settings(settings, bool(settings.fifo))
        check_priority_settings(settings)
        if settings.default_tag_name:
            check_name("default_tag_name", settings.default_tag_name)
        record = new_record(name, owner, settings, self._partitions, tags, now_ms())
        check_own_delay(record)
        return record

    def check_room(self, record: QueueRecord) -> None:
        """Raises QueueExists, QuotaExceeded: see `Creations`."""
        self._creations.check(record)

    def _same(self, queue: Queue, settings: QueueSettings) -> Queue:
        """Raises QueueExists when what is named differs from what is."""
        record = queue.record
        for field, given in named(settings).items():
            known = as_asked(record.redrive_policy) if field == "redrive_policy" else getattr(record, field)
            if given != known and field not in _NOT_COMPARED:
                raise QueueExists(
                    f"queue {queue.name!r} exists with {field} {_plain(known)}, given {_plain(given)}",
                    field=field, limit=_plain(known), given=_plain(given),
                )  # fmt: skip
        return queue

    async def copy(self, name: str, owner: str, target: str) -> Queue:
        """Makes a queue with the settings and tags of another; no messages are copied, and no
        rights: neither grants nor redrive policies, which the new owner has to ask for. A copy is
        not paused.
        """
        source = (await self._catalog.queue(name)).record
        check_new_queue_name("target", target)
        async with self._catalog.change(target) as change:
            if target in self._catalog.queues:
                raise QueueExists(f"queue {target!r} exists", field="target", given=target)
            if (half := self._catalog.unfinished.get(target)) is not None:
                await self._deletions.finish(half, change)
            at = now_ms()
            starts = [0] * source.partitions
            fresh = {"created_at_ms": at, "start_offsets": starts, "redrive_policy": None, "paused": None}
            tags = [msgspec.structs.replace(tag, **fresh) for tag in source.tags]
            record = msgspec.structs.replace(
                source, name=target, incarnation=secrets.token_hex(6), owner=owner, created_at_ms=at,
                modified_at_ms=at, tags=tags, former_incarnations=[], redrive_policy=None, grants=[], policy="",
                paused=None,
            )  # fmt: skip
            self._creations.check(record)
            return await self._making.make(record, change)


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value
