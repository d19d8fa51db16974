"""Changes of queues: settings, redrive policies, pauses, purges. Each change is one control record.

While a queue or a tag is paused nobody receives, and all else goes on. A purge settles what was
sent before, and has its records deleted from Kafka.
"""

from __future__ import annotations

import asyncio

import msgspec
from msgspec.structs import replace

from engine.catalog.catalog import Catalog
from engine.errors import NotAllowedOnQueue, QueueNotFound
from engine.log import Log
from engine.queues.info import Info
from engine.queues.records import QueueRecords
from engine.rules.fifo import KINDS, check_fifo_settings, with_exhausted
from engine.rules.grants import with_policy
from engine.rules.limits import check_own_delay, check_reason, check_settings
from engine.rules.queue import Queue
from engine.rules.rights import Rights, Targets, as_asked
from engine.shapes import Edit, Principal
from engine.window.topic_retention import TopicRetention
from engine.window.window import AHEAD_S, Window
from runtime.clock import now_ms
from runtime.failpoints import reached
from schemas.records import Pause, QueueRecord
from schemas.records.settings import ANY, TABLE, QueueSettings, RedrivePolicy, named
from schemas.vocabulary import Verb
from state.deferred import DeferredScripts


class Policies:
    """Any number of tasks may ask."""

    def __init__(self, catalog: Catalog, rights: Rights, targets: Targets) -> None:
        self._catalog = catalog
        self._rights = rights
        self._targets = targets

    def checked(
        self, by: Principal, name: str, policy: RedrivePolicy | None, *, fifo: bool, dead_letter: bool
    ) -> RedrivePolicy | None:
        """The policy with who sets it and the life that it means; to be called with the right to
        change the queue, so that it is the one that was asked about.

        The dead-letter queue exists, and there are no chains (reference/emq.md 3.5), but a queue
        may be its own. Who sets a policy sends by it, so they must be allowed to.
        """
        if policy is None:
            return None
        target = self._checked_target(by, name, policy.dead_letter_queue, fifo=fifo)
        why = "was made as a dead-letter queue" if dead_letter else ""
        if not why and (sources := [source for source in self._sources(name) if source != name]):
            why = f"is the dead-letter queue of {', '.join(sources)}"
        if why:
            raise NotAllowedOnQueue(
                f"{name!r} {why}, so it can't have a redrive policy",
                field="queue",
                limit="one that is no dead-letter queue",
                given=name,
            )
        return RedrivePolicy(target.name, policy.max_receive_count, target.incarnation, by.id)

    def _checked_target(self, by: Principal, name: str, target: str, *, fifo: bool) -> Queue:
        """The queue `target`. Raises QueueNotFound, NotAuthorised, NotAllowedOnQueue unless it can
        have the dead letters of `name`.
        """
        queue = self._catalog.queues.get(target)
        if queue is None or not self._rights.knows(by, queue):
            raise QueueNotFound(
                f"the dead-letter queue {target!r} does not exist", field="dead_letter_queue", given=target
            )
        self._rights.authorise(by, Verb.SEND, queue)
        if queue.record.fifo != fifo:
            raise NotAllowedOnQueue(
                f"the dead-letter queue of a {_kind(fifo)} queue must be one too, {target!r} is a "
                f"{_kind(queue.record.fifo)} queue",
                field="dead_letter_queue",
                limit=_kind(fifo),
                given=target,
            )
        if queue.dead_letter_queues and target != name:
            raise NotAllowedOnQueue(
                f"{target!r} has a redrive policy, so it can't be a dead-letter queue",
                field="dead_letter_queue",
                limit="one without a redrive policy",
                given=target,
            )
        if ANY not in queue.record.allowed_sources and name not in queue.record.allowed_sources:
            raise NotAllowedOnQueue(
                f"{target!r} does not allow {name!r} as a source",
                field="dead_letter_queue",
                limit="one that allows the queue as a source",
                given=target,
            )
        return queue

    def _sources(self, name: str) -> list[str]:
        """Queues whose policy means this one."""
        queue = self._catalog.queues.get(name)
        return [] if queue is None else self._targets.sources(queue)


def _kind(fifo: bool) -> str:
    return KINDS[fifo]


class Queues:
    """Changes of one queue are made one after the other, whoever makes them."""

    def __init__(
        self, catalog: Catalog, records: QueueRecords, policies: Policies, info: Info, topic_retention: TopicRetention
    ) -> None:
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
                policy = self._policies.checked(
                    by, name, settings.redrive_policy, fifo=old.fifo, dead_letter=old.dead_letter
                )
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
            raise NotAllowedOnQueue(
                f"{field} of a queue can't be changed, it is {known}", field=field, limit=known, given=given
            )


def _merged(settings: QueueSettings, more: QueueSettings) -> QueueSettings:
    changes = named(more)
    assert "redrive_policy" not in changes  # whether the caller may send to its dead-letter queue was asked before
    return msgspec.structs.replace(settings, **changes)


class Pauses:
    """Any number of tasks may ask. `tag` None = the queue, with all its tags; a tag may be paused
    by itself beside that. Raises QueueNotFound, TagNotFound.
    """

    def __init__(self, catalog: Catalog, records: QueueRecords) -> None:
        self._catalog = catalog
        self._records = records

    async def pause(self, by: str, name: str, tag: str | None, reason: str) -> Pause:
        """Returns the pause that is in force: one that was there stays as it was. When this
        returns, workers that follow Kafka hand out nothing any more. Raises InvalidValue.
        """
        check_reason(reason)
        paused = await self._set(name, tag, Pause(by, now_ms(), reason))
        assert paused is not None
        # What another worker had leased, who has not heard of this, it hands out no later.
        await asyncio.sleep(AHEAD_S)
        return paused

    async def resume(self, name: str, tag: str | None) -> None:
        """Ends a pause; where there is none nothing is changed."""
        await self._set(name, tag, None)

    async def _set(self, name: str, tag: str | None, wanted: Pause | None) -> Pause | None:
        """Returns what is so now: a pause that is there is not replaced by another."""
        async with self._catalog.change(name) as change:
            queue = self._records.known(name)
            at = None if tag is None else queue.tag(tag)
            known = queue.record.paused if at is None else at.paused
            if (known is None) == (wanted is None):
                return known
            record = queue.record
            if at is None:
                record = replace(record, paused=wanted)
            else:
                record = replace(
                    record, tags=[replace(one, paused=wanted) if one.id == at.id else one for one in record.tags]
                )
            await self._records.write(record, change)
            return wanted


class Purges:
    """Any number of tasks may ask."""

    def __init__(
        self, log: Log, deferred: DeferredScripts, catalog: Catalog, window: Window, records: QueueRecords
    ) -> None:
        self._log = log
        self._deferred = deferred
        self._catalog = catalog
        self._window = window
        self._records = records

    async def purge(self, name: str) -> None:
        """Settles every message sent before the call under all tags, and deletes their records from
        Kafka.
        """
        queue = await self._catalog.queue(name)
        parts = [(queue.topic, p) for p in range(len(queue.units))]
        ends = await self._log.end_offsets(parts)
        for partition, part in enumerate(parts):
            if part in ends:
                self._window.used(queue, partition)
                await self._purge_unit(queue, partition, ends[part])
        async with self._catalog.change(name) as change:
            now = self._catalog.by_incarnation.get(queue.incarnation)
            if now is None:  # its topic may be that of a queue of the same name by now
                raise self._catalog.ended(queue)
            reached("purge.before_delete")
            change.check()
            await self._log.delete_records({part: end for part, end in ends.items() if end > 0})
            await self._records.write(msgspec.structs.replace(now.record, purged_at_ms=now_ms()), change)
        # What another worker had leased ahead, who has not heard of this, it hands out no later.
        await asyncio.sleep(AHEAD_S)

    async def _purge_unit(self, queue: Queue, partition: int, below: int) -> None:
        unit = queue.units[partition]
        await self._window.call(queue, lambda g: self._deferred.purge(unit, g, queue.tag_ids, below))
