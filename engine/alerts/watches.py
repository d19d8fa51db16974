"""What is watched of a queue: its alert policies, whether its statistics are mailed, and what came
of both. One control record for each queue, changed under its lock by whoever asks.

A record is of one life of its queue: that of a queue which is gone counts for nothing, and `judge`
drops it. A copy of a queue has none.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from engine.catalog.catalog import Catalog
from engine.errors import AlertNotFound, InvalidValue, QueueNotFound
from engine.meters.statistics import day_of
from engine.rules.alerts import MAX_POLICIES, check_policy, policy_id
from engine.rules.queue import Queue
from runtime.clock import now_ms
from schemas.records import TagRecord
from schemas.records.watching import AlertPolicy, WatchRecord
from schemas.topics import WATCH_KEY

# Events of a queue that are remembered; the oldest go.
MAX_EVENTS = 50


class Watches:
    """Changes of what is watched, one after the other for each queue, whichever worker makes
    them.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def of(self, queue: Queue) -> WatchRecord:
        """What is watched of this life of a queue. Policies of tags that are gone are none."""
        record = self._catalog.watches.get(queue.name)
        if record is None or record.incarnation != queue.incarnation:
            return WatchRecord(queue.name, queue.incarnation, 0)
        return replace(record, policies=[policy for policy in record.policies if _lives(policy, queue)])

    async def edit(self, queue: Queue, edit: Callable[[WatchRecord], WatchRecord]) -> WatchRecord:
        """Changes the record to what `edit` makes of it. Raises QueueNotFound when that life of the
        queue is over, QueueInUse, LogUnavailable, StoreUnavailable.
        """
        key = WATCH_KEY + queue.name
        async with self._catalog.change(key) as change:
            now = self._catalog.queues.get(queue.name)
            if now is None or now.incarnation != queue.incarnation:
                raise QueueNotFound(f"there is no queue {queue.name!r}", field="queue", given=queue.name)
            before = self.of(now)
            after = edit(before)
            if after != before:
                after = replace(after, modified_at_ms=now_ms(), events=after.events[-MAX_EVENTS:])
                await change.write(key, after if after.policies or after.events or after.daily_statistics else None)
            return after

    async def add(
        self, queue: Queue, tag: TagRecord | None, subject: str, measurement: str, threshold: float
    ) -> AlertPolicy:
        """Adds a policy for a tag, None = the queue as a whole; an equal one that is there is fine.
        Raises InvalidValue.
        """
        name = "" if tag is None else tag.name
        threshold = float(threshold)  # a whole number is the same policy as its float
        check_policy(name or None, subject, measurement, threshold)
        policy = AlertPolicy(
            policy_id(name, subject, measurement, threshold), name, subject, measurement, threshold, now_ms()
        )

        def added(record: WatchRecord) -> WatchRecord:
            if any(other.id == policy.id for other in record.policies):
                return record
            if len(record.policies) >= MAX_POLICIES:
                raise InvalidValue(
                    f"a queue may have {MAX_POLICIES} alert policies, its tags included",
                    field="policies",
                    limit=MAX_POLICIES,
                    given=queue.name,
                )
            return replace(record, policies=[*record.policies, policy])

        found = await self.edit(queue, added)
        return next(other for other in found.policies if other.id == policy.id)

    async def delete(self, queue: Queue, id: str) -> None:
        """Takes a policy away, and what is known of it but its events. Raises AlertNotFound."""

        def without(record: WatchRecord) -> WatchRecord:
            if all(policy.id != id for policy in record.policies):
                raise AlertNotFound(
                    f"queue {queue.name!r} has no alert policy {id[:100]!r}", field="alert", given=id[:100]
                )
            return replace(
                record,
                policies=[policy for policy in record.policies if policy.id != id],
                states=[state for state in record.states if state.id != id],
            )

        await self.edit(queue, without)

    async def set_daily(self, queue: Queue, enabled: bool) -> None:
        """Has each day's statistics mailed from today's on, or no longer."""

        def switched(record: WatchRecord) -> WatchRecord:
            if record.daily_statistics == enabled:
                return record
            return replace(
                record, daily_statistics=enabled, mailed_day=day_of(now_ms() - 86_400_000) if enabled else ""
            )

        await self.edit(queue, switched)

    async def drop(self, name: str) -> None:
        """Drops the record of a queue that is gone; one of a later life stays."""
        async with self._catalog.change(WATCH_KEY + name) as change:
            record, queue = self._catalog.watches.get(name), self._catalog.queues.get(name)
            if record is not None and (queue is None or queue.incarnation != record.incarnation):
                await change.write(WATCH_KEY + name, None)


def _lives(policy: AlertPolicy, queue: Queue) -> bool:
    """Whether the tag of a policy is the one that it was made for."""
    tag = queue.by_name.get(policy.tag) if policy.tag else None
    return not policy.tag or (tag is not None and tag.created_at_ms <= policy.added_at_ms)
