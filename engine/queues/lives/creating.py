"""Creates queues: new ones, and copies of others."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import QueueExists
from engine.queues.lives.creations import Creations
from engine.queues.lives.deletions import Deletions
from engine.queues.lives.making import Making
from engine.queues.lives.new_queue import check_priority_settings, new_record
from engine.queues.policies import Policies
from engine.rules.fifo import check_fifo_settings, with_exhausted
from engine.rules.limits import check_name, check_new_queue_name, check_new_tags, check_own_delay, check_settings
from engine.rules.queue import Queue
from engine.rules.rights import as_asked
from engine.shapes import NewTag, Principal
from runtime.clock import now_ms
from schemas.records import QueueRecord
from schemas.records.settings import QueueSettings, named

# Labels are for who looks, and grants are what the policy means.
_NOT_COMPARED = ("labels", "grants")


class Creating:
    """Creations of queues, one after the other for each name, whoever makes them."""

    def __init__(
        self, partitions: int, creations: Creations, catalog: Catalog, policies: Policies, making: Making, deletions: Deletions
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

    def checked_record(self, name: str, owner: str, settings: QueueSettings, tags: Sequence[NewTag] = ()) -> QueueRecord:
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
                source, name=target, incarnation=secrets.token_hex(6), owner=owner, created_at_ms=at, modified_at_ms=at, tags=tags,
                former_incarnations=[], redrive_policy=None, grants=[], policy="", paused=None,
            )  # fmt: skip
            self._creations.check(record)
            return await self._making.make(record, change)


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value
