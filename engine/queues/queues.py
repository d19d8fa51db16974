"""Queues and tags: create, set, delete, purge, copy; redrive policies. Each change is one control
record.

Order of a creation: control record (deleting), topic, control record, window; of a deletion:
control record (deleting), topic, keys, tombstone. Whatever ends in between leaves a deletion that
`alarms.py` has finished, so a creation that failed leaves no topic. Longer than 250 lines: all that
changes a queue's record, under one lock.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from engine.catalog.catalog import Catalog, Change
from engine.errors import EngineError, NotAllowedOnQueue, QueueExists, QueueNotFound
from engine.log import Log
from engine.queues.creations import Creations
from engine.queues.info import Info
from engine.queues.topics import QueueTopics
from engine.rules.fifo import KINDS, check_fifo_settings, with_exhausted
from engine.rules.limits import (
    DEFAULTS,
    check_name,
    check_new_queue_name,
    check_new_tags,
    check_own_delay,
    check_settings,
)
from engine.rules.new_queue import check_priority_settings, new_record
from engine.rules.queue import Queue
from engine.rules.rights import Rights, Targets, as_asked, with_policy
from engine.runtime.clock import now_ms
from engine.runtime.failpoints import reached
from engine.settings import EngineSettings
from engine.shapes import ANY, Edit, NewTag, Principal, QueueSettings
from engine.window.topic_retention import TopicRetention
from engine.window.window import AHEAD_S, Window
from schemas.records import QueueRecord, RedrivePolicy
from schemas.topics import QUEUE_KEY, group_name
from schemas.vocabulary import Verb
from state.errors import StateError
from state.store import Store

logger = logging.getLogger(__name__)

_KIND_FIELDS = (
    "fifo", "content_dedup", "dedup_scope", "priority", "one_per_group", "read_qps", "write_qps", "dead_letter", "default_tag_name",
    "keep_unacked", "on_exhausted", "max_receive_count", "daily_bytes", "waits",
    "retention_from",
)  # fmt: skip
# In place of the id of its topic: of a queue that is being made, and is deleted if that ends early.
BEGUN = "begun"
_COMPARED = ("partitions", "durable_acks", "user_attributes", "redrive_policy", "policy", "allowed_sources")


class Queues:
    """Changes of queues and tags. Changes of one queue are made one after the other, whoever makes
    them.
    """

    def __init__(
        self,
        settings: EngineSettings,
        creations: Creations,
        log: Log,
        store: Store,
        catalog: Catalog,
        rights: Rights,
        targets: Targets,
        window: Window,
        info: Info,
        topics: QueueTopics,
        topic_retention: TopicRetention,
        note_use: Callable[[Queue, int], None],
    ) -> None:
        self._settings = settings
        self._creations = creations
        self._log = log
        self._store = store
        self._catalog = catalog
        self._rights = rights
        self._targets = targets
        self._window = window
        self._info = info
        self._topics = topics
        self._topic_retention = topic_retention
        self._note_use = note_use

    async def create(
        self, by: Principal, name: str, owner: str, settings: QueueSettings, tags: Sequence[NewTag] = ()
    ) -> tuple[Queue, bool]:
        """Makes a queue with its tags; an equal one that exists is fine (False), whatever tags it
        has. Raises InvalidValue, QueueExists, NotAllowedOnQueue, NotAuthorised.
        """
        check_new_queue_name("name", name)
        check_new_tags(tags)
        check_settings(settings)
        check_fifo_settings(settings, bool(settings.fifo))
        check_priority_settings(settings)
        if settings.default_tag_name:
            check_name("default_tag_name", settings.default_tag_name)
        catalog = self._catalog
        if (existing := catalog.queues.get(name)) is not None:
            return self._same(existing, settings), False
        async with catalog.change(name) as change:
            if (existing := catalog.queues.get(name)) is not None:
                return self._same(existing, settings), False
            if (half := catalog.unfinished.get(name)) is not None:
                await self._finish_delete(half, change)
            policy = self.checked_policy(
                by, name, settings.redrive_policy, fifo=bool(settings.fifo), dead_letter=bool(settings.dead_letter)
            )
            settings = msgspec.structs.replace(settings, redrive_policy=policy)
            record = new_record(name, owner, settings, self._settings.default_partitions, tags, now_ms())
            check_own_delay(record)
            record = with_exhausted(record, settings)
            self._creations.check(record)
            return await self._create(record, change), True

    def _same(self, queue: Queue, settings: QueueSettings) -> Queue:
        """Raises QueueExists when what is named differs from what is."""
        record = queue.record
        for field in (*DEFAULTS, *_COMPARED, *_KIND_FIELDS):
            given = getattr(settings, field)
            known = as_asked(record.redrive_policy) if field == "redrive_policy" else getattr(record, field)
            if given is not None and given != known:
                raise QueueExists(
                    f"queue {queue.name!r} exists with {field} {_plain(known)}, given {_plain(given)}",
                    field=field, limit=_plain(known), given=_plain(given),
                )  # fmt: skip
        return queue

    async def _create(self, record: QueueRecord, change: Change) -> Queue:
        """What deletes the topic if this ends early; topic, control record, window."""
        if await self._topics.is_missing(record):
            change.check()
            await change.write(f"{QUEUE_KEY}{record.name}", msgspec.structs.replace(record, deleting=True, topic_id=BEGUN))
            reached("create.begun")
        return await self._make(record, change)

    async def _make(self, record: QueueRecord, change: Change) -> Queue:
        """Topic, control record, window."""
        record = await self._topics.make(record, change)
        reached("create.topic_made")
        await change.write(f"{QUEUE_KEY}{record.name}", record)
        reached("create.record_written")
        queue = self._catalog.queues[record.name]
        await asyncio.gather(*(self._open(queue, p) for p in range(record.partitions)), return_exceptions=True)
        return queue

    async def renew(self, record: QueueRecord, change: Change, *, made: bool) -> Queue:
        """A new life of a queue, over the topic as it is (`made`) or a new one."""
        if made:
            await self._topics.keep(record, change)
            queue = await self.write(record, change)
            await asyncio.gather(*(self._open(queue, p) for p in range(record.partitions)))
            return queue
        return await self._make(record, change)

    async def _open(self, queue: Queue, partition: int) -> None:
        starts = [(tag.id, tag.start_offsets[partition]) for tag in queue.tags]
        try:
            await self._store.open(queue.units[partition], self._catalog.generation, starts, fifo=queue.record.fifo)
        except StateError as error:
            # A unit that does not serve is rebuilt (from nothing) by its first use.
            logger.info("action=open queue=%s partition=%d error=%s", queue.name, partition, error)

    async def write(self, record: QueueRecord, change: Change) -> Queue:
        """Writes a changed record."""
        record = msgspec.structs.replace(self._targets.noted(record), modified_at_ms=now_ms())
        await change.write(f"{QUEUE_KEY}{record.name}", record)
        return self._catalog.queues[record.name]

    def known(self, name: str) -> Queue:
        """The queue of that name, as of the last sync. Raises QueueNotFound."""
        queue = self._catalog.queues.get(name)
        if queue is None:
            raise QueueNotFound(f"there is no queue {name!r}", field="queue", given=name)
        return queue

    async def set(self, by: Principal, name: str, settings: QueueSettings, edit: Edit | None = None) -> Queue:
        """Changes what is named, for messages received from now on (delay: sent from now on).
        Raises InvalidValue.

        `edit` says what else to change from what is, while nobody else can change it; not the
        redrive policy.
        """
        check_settings(settings)
        async with self._catalog.change(name) as change:
            queue = self.known(name)
            old = queue.record
            if edit is not None:
                settings = _merged(settings, edit(old))
                check_settings(settings)
            _check_fixed(old, settings)
            check_fifo_settings(settings, old.fifo)
            if settings.dedup_scope not in (None, old.dedup_scope):
                await self._check_empty(queue)
            if settings.redrive_policy is not None:
                policy = self.checked_policy(by, name, settings.redrive_policy, fifo=old.fifo, dead_letter=old.dead_letter)
                settings = msgspec.structs.replace(settings, redrive_policy=policy)
            changes = {f: v for f in settings.__struct_fields__ if (v := getattr(settings, f)) is not None}
            if "grants" in changes:
                changes["grants"] = with_policy(old.grants, changes["grants"])
            record = msgspec.structs.replace(old, **changes)
            check_own_delay(record)
            record = with_exhausted(record, settings)
            keep_ms = await self._topic_retention.raise_for(queue, record, change)
            written = await self.write(record, change)
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

    def checked_policy(
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
        if not why and (sources := [source for source in self.sources(name) if source != name]):
            why = f"is the dead-letter queue of {', '.join(sources)}"
        if why:
            raise NotAllowedOnQueue(
                f"{name!r} {why}, so it can't have a redrive policy", field="queue", limit="one that is no dead-letter queue", given=name
            )
        return RedrivePolicy(target.name, policy.max_receive_count, target.incarnation, by.id)

    def _checked_target(self, by: Principal, name: str, target: str, *, fifo: bool) -> Queue:
        """The queue `target`. Raises QueueNotFound, NotAuthorised, NotAllowedOnQueue unless it can
        have the dead letters of `name`.
        """
        queue = self._catalog.queues.get(target)
        if queue is None or not self._rights.knows(by, queue):
            raise QueueNotFound(f"the dead-letter queue {target!r} does not exist", field="dead_letter_queue", given=target)
        self._rights.authorise(by, Verb.SEND, queue)
        if queue.record.fifo != fifo:
            raise NotAllowedOnQueue(
                f"the dead-letter queue of a {_kind(fifo)} queue must be one too, {target!r} is a {_kind(queue.record.fifo)} queue",
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

    def sources(self, name: str) -> list[str]:
        """Queues whose policy means this one."""
        queue = self._catalog.queues.get(name)
        return [] if queue is None else self._targets.sources(queue)

    async def set_policy(self, by: Principal, name: str, policy: RedrivePolicy | None) -> RedrivePolicy | None:
        """Sets or removes the redrive policy."""
        if policy is not None:
            check_settings(QueueSettings(redrive_policy=policy))
        async with self._catalog.change(name) as change:
            record = self.known(name).record
            policy = self.checked_policy(by, name, policy, fifo=record.fifo, dead_letter=record.dead_letter)
            record = with_exhausted(msgspec.structs.replace(record, redrive_policy=policy), QueueSettings())
            queue = await self.write(record, change)
            return as_asked(queue.record.redrive_policy)

    async def delete(self, name: str) -> None:
        """Deletes queue, topic and state; nothing can be got back. Sources of a dead-letter queue
        lose their policy's effect.
        """
        async with self._catalog.change(name) as change:
            record = msgspec.structs.replace(self.known(name).record, deleting=True)
            await change.write(f"{QUEUE_KEY}{name}", record)
            reached("delete.record_written")
            await self._finish_delete(record, change)

    async def _finish_delete(self, record: QueueRecord, change: Change) -> None:
        queue = Queue(record, self._settings.topic_prefix)
        # After a creation that ended early the topic may be a native producer's own by now.
        if record.topic_id != BEGUN or await self._topics.is_empty(record):
            change.check()
            await self._log.delete_topics([queue.topic])
        reached("delete.topic_deleted")
        await self._store.forget(queue.units, queue.tag_ids)
        await self._log.delete_groups([group_name(self._settings.topic_prefix, record.name, tag.name) for tag in record.tags])
        await change.write(f"{QUEUE_KEY}{record.name}", None)

    async def finish_deletions(self) -> None:
        """Deletions that a crash, or a part that was away, has cut off. What can't be finished now
        is left for the next time.
        """
        for name in list(self._catalog.unfinished):
            try:
                async with self._catalog.change(name) as change:
                    record = self._catalog.unfinished.get(name)
                    if record is not None:
                        await self._finish_delete(record, change)
            except EngineError as error:
                logger.debug("action=finish_deletion queue=%s error=%s", name, error)

    async def purge(self, name: str) -> None:
        """Settles every message sent before the call under all tags, and deletes their records from
        Kafka.
        """
        queue = await self._catalog.queue(name)
        parts = [(queue.topic, p) for p in range(len(queue.units))]
        ends = await self._log.end_offsets(parts)
        for partition, part in enumerate(parts):
            if part in ends:
                self._note_use(queue, partition)
                await self._purge_unit(queue, partition, ends[part])
        async with self._catalog.change(name) as change:
            now = self._catalog.by_incarnation.get(queue.incarnation)
            if now is None:  # its topic may be that of a queue of the same name by now
                raise self._catalog.ended(queue)
            reached("purge.before_delete")
            change.check()
            await self._log.delete_records({part: end for part, end in ends.items() if end > 0})
            await self.write(msgspec.structs.replace(now.record, purged_at_ms=now_ms()), change)
        # What another worker had leased ahead, who has not heard of this, it hands out no later.
        await asyncio.sleep(AHEAD_S)

    async def _purge_unit(self, queue: Queue, partition: int, below: int) -> None:
        unit = queue.units[partition]
        await self._window.call(queue, lambda g: self._store.purge(unit, g, queue.tag_ids, below))

    async def copy(self, name: str, owner: str, target: str) -> Queue:
        """Makes a queue with the settings and tags of another; no messages are copied, and no
        rights: neither grants nor redrive policies, which the new owner has to ask for.
        """
        source = (await self._catalog.queue(name)).record
        check_new_queue_name("target", target)
        async with self._catalog.change(target) as change:
            if target in self._catalog.queues:
                raise QueueExists(f"queue {target!r} exists", field="target", given=target)
            if (half := self._catalog.unfinished.get(target)) is not None:
                await self._finish_delete(half, change)
            at = now_ms()
            starts = [0] * source.partitions
            tags = [msgspec.structs.replace(t, created_at_ms=at, start_offsets=starts, redrive_policy=None) for t in source.tags]
            record = msgspec.structs.replace(
                source, name=target, incarnation=secrets.token_hex(6), owner=owner, created_at_ms=at, modified_at_ms=at, tags=tags,
                former_incarnations=[], redrive_policy=None, grants=[], policy="",
            )  # fmt: skip
            self._creations.check(record)
            return await self._create(record, change)


def _check_fixed(record: QueueRecord, settings: QueueSettings) -> None:
    for field in ("partitions", "fifo", "priority", "dead_letter", "default_tag_name", "keep_unacked"):
        given, known = getattr(settings, field), getattr(record, field)
        if given is not None and given != known:
            raise NotAllowedOnQueue(f"{field} of a queue can't be changed, it is {known}", field=field, limit=known, given=given)


def _kind(fifo: bool) -> str:
    return KINDS[fifo]


def _merged(settings: QueueSettings, more: QueueSettings) -> QueueSettings:
    named = {f: v for f in more.__struct_fields__ if (v := getattr(more, f)) is not None}
    assert "redrive_policy" not in named  # whether the caller may send to its dead-letter queue was asked before
    return msgspec.structs.replace(settings, **named)


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value
