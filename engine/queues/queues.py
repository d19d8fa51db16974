"""Changes of queues: settings and redrive policies. Each change is one control record."""

from __future__ import annotations

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import NotAllowedOnQueue
from engine.queues.info import Info
from engine.queues.policies import Policies
from engine.queues.records import QueueRecords
from engine.rules.fifo import check_fifo_settings, with_exhausted
from engine.rules.grants import with_policy
from engine.rules.limits import check_own_delay, check_settings
from engine.rules.queue import Queue
from engine.rules.rights import as_asked
from engine.shapes import Edit, Principal
from engine.window.topic_retention import TopicRetention
from schemas.records import QueueRecord
from schemas.records.settings import TABLE, QueueSettings, RedrivePolicy, named


class Queues:
    """Changes of one queue are made one after the other, whoever makes them."""

    def __init__(self, catalog: Catalog, records: QueueRecords, policies: Policies, info: Info, topic_retention: TopicRetention) -> None:
        self._catalog = catalog
        self._records = records
        self._policies = policies
        self._info = info
        self._topic_retention = topic_retention

    async def set(self, by: Principal, name: str, settings: QueueSettings, edit: Edit | None = None) -> Queue:
        """Changes what is named, for messages received from now on (delay: sent from now on).
        Raises InvalidValue.

        `edit` says what else to change from what is, while nobody else can change it; not the
        redrive policy.
        """
        check_settings(settings)
        async with self._catalog.change(name) as change:
            queue = self._records.known(name)
            old = queue.record
            if edit is not None:
                settings = _merged(settings, edit(old))
            record = changed_record(old, settings)
            if settings.dedup_scope not in (None, old.dedup_scope):
                await self._check_empty(queue)
            if settings.redrive_policy is not None:
                policy = self._policies.checked(by, name, settings.redrive_policy, fifo=old.fifo, dead_letter=old.dead_letter)
                record = msgspec.structs.replace(record, redrive_policy=policy)
            record = with_exhausted(record, settings)
            keep_ms = await self._topic_retention.raise_for(queue, record, change)
            written = await self._records.write(record, change)
            await self._topic_retention.lower(written, keep_ms, change)
            return written

    async def _check_empty(self, queue: Queue) -> None:
        """The partition of a group depends on the scope: with messages left, those sent next would
        pass them.
        """
        left = sum(tag.backlog for tag in await self._info.tags(queue, queue.tags))
        if left:
            raise NotAllowedOnQueue(
                f"dedup_scope can be changed only while queue {queue.name!r} is empty: {left} messages are left",
                field="dedup_scope",
                limit=queue.record.dedup_scope,
            )

    async def set_policy(self, by: Principal, name: str, policy: RedrivePolicy | None) -> RedrivePolicy | None:
        """Sets or removes the redrive policy."""
        if policy is not None:
            check_settings(QueueSettings(redrive_policy=policy))
        async with self._catalog.change(name) as change:
            record = self._records.known(name).record
            policy = self._policies.checked(by, name, policy, fifo=record.fifo, dead_letter=record.dead_letter)
            record = with_exhausted(msgspec.structs.replace(record, redrive_policy=policy), QueueSettings())
            queue = await self._records.write(record, change)
            return as_asked(queue.record.redrive_policy)


def changed_record(old: QueueRecord, settings: QueueSettings) -> QueueRecord:
    """The record with what is named changed, and with its redrive policy as it is asked for. Raises
    InvalidValue, NotAllowedOnQueue.
    """
    check_settings(settings)
    _check_fixed(old, settings)
    check_fifo_settings(settings, old.fifo)
    changes = named(settings)
    if "grants" in changes:
        changes["grants"] = with_policy(old.grants, changes["grants"])
    record = msgspec.structs.replace(old, **changes)
    check_own_delay(record)
    return record


def _check_fixed(record: QueueRecord, settings: QueueSettings) -> None:
    for field, given in named(settings).items():
        known = getattr(record, field)
        if not TABLE[field].may_change and given != known:
            raise NotAllowedOnQueue(f"{field} of a queue can't be changed, it is {known}", field=field, limit=known, given=given)


def _merged(settings: QueueSettings, more: QueueSettings) -> QueueSettings:
    changes = named(more)
    assert "redrive_policy" not in changes  # whether the caller may send to its dead-letter queue was asked before
    return msgspec.structs.replace(settings, **changes)
