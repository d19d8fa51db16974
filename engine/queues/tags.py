"""Tags of a queue: create, seek and delete. A tag is immutable: it is deleted and made again
(reference/emq.md 1.7); a seek does both in one step.
"""

from __future__ import annotations

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import NotAllowedOnQueue, TagExists, TagNotFound
from engine.log import Log
from engine.queues.queues import Policies
from engine.queues.records import QueueRecords
from engine.rules.grants import without_tag
from engine.rules.limits import (
    MAX_TAGS,
    check_asked,
    check_filter,
    check_name,
    check_range,
    check_settings,
    check_user_attributes,
)
from engine.rules.queue import Queue
from engine.rules.rights import as_asked
from engine.shapes import Principal
from engine.window.window import Window
from runtime.clock import now_ms
from schemas.filters import Filter
from schemas.records import TagRecord
from schemas.records.settings import QueueSettings, RedrivePolicy
from schemas.topics import group_name
from state.upkeep import UpkeepScripts

DEFAULT = 0  # the id of the default tag, whatever it is called
MAX_NUMBER = 2**16 - 1  # a handle has no room for more


class Tags:
    """Changes of tags; in order with all other changes of their queue."""

    def __init__(
        self,
        prefix: str,
        log: Log,
        upkeep: UpkeepScripts,
        catalog: Catalog,
        window: Window,
        records: QueueRecords,
        policies: Policies,
    ) -> None:
        self._prefix = prefix
        self._log = log
        self._upkeep = upkeep
        self._catalog = catalog
        self._window = window
        self._records = records
        self._policies = policies

    async def create(
        self,
        by: Principal,
        name: str,
        tag: str,
        start_at_ms: int,
        filter: Filter | None,
        user_attributes: dict[str, str],
        read_qps: int = 0,
        redrive_policy: RedrivePolicy | None = None,
    ) -> tuple[Queue, TagRecord, bool]:
        """Makes a tag that sees messages from `start_at_ms` on (0 oldest, negative now); an equal
        one is fine (False).
        """
        check_name("tag", tag)
        check_asked("start_at_ms", start_at_ms)
        check_filter(filter)
        check_user_attributes(user_attributes)
        check_asked("read_qps", read_qps)
        check_settings(QueueSettings(redrive_policy=redrive_policy))
        asked = (filter, user_attributes, read_qps)
        async with self._catalog.change(name) as change:
            queue = self._records.known(name)
            old = queue.by_name.get(tag)
            if old is not None:
                has = (old.filter, old.user_attributes, old.read_qps, as_asked(old.redrive_policy))
                if old.id == DEFAULT or has != (*asked, redrive_policy):
                    raise TagExists(f"queue {name!r} has a tag {tag!r} with other settings", field="tag", given=tag)
                return queue, old, False
            check_range("tags", len(queue.tags), 0, MAX_TAGS)
            fifo, dead_letter = queue.record.fifo, queue.record.dead_letter
            policy = self._policies.checked(by, name, redrive_policy, fifo=fifo, dead_letter=dead_letter)
            starts = await self._starts(queue, start_at_ms)
            record = TagRecord(await self._number(queue), tag, now_ms(), max(start_at_ms, 0), starts, *asked, policy)
            if start_at_ms < 0:
                record = msgspec.structs.replace(record, start_at_ms=record.created_at_ms)
            changed = msgspec.structs.replace(queue.record, tags=[*queue.tags, record], next_tag_id=record.id + 1)
            await self._open_all(queue, record)
            return await self._records.write(changed, change), record, True

    async def _open(self, queue: Queue, partition: int, start: tuple[int, int]) -> None:
        await self._window.call(
            queue, lambda g: self._upkeep.open(queue.units[partition], g, [start], fifo=queue.record.fifo, serving=True)
        )

    async def _number(self, queue: Queue) -> int:
        """The number of one more tag. One that the window knows was to be that of a tag whose
        making ended early, and begins where that was to begin. Raises NotAllowedOnQueue.
        """
        number = queue.record.next_tag_id
        for unit in queue.units:
            number = max(number, *(known + 1 for known in await self._upkeep.known_tags(unit)), 0)
        if number > MAX_NUMBER:
            about = f"queue {queue.name!r} has had {MAX_NUMBER} tags and seeks, and can have no more"
            raise NotAllowedOnQueue(about, field="tag", limit=MAX_NUMBER)
        return number

    async def _starts(self, queue: Queue, start_at_ms: int) -> list[int]:
        parts = [(queue.topic, p) for p in range(len(queue.units))]
        log = self._log
        if start_at_ms == 0:
            found = await log.start_offsets(parts)
        elif start_at_ms < 0:
            found = await log.end_offsets(parts)
        else:
            found = await log.offsets_at(parts, start_at_ms)
        return [found.get(part, 0) for part in parts]

    async def seek(self, name: str, tag: str, to_ms: int) -> tuple[Queue, TagRecord]:
        """Has a tag begin at messages that were sent at `to_ms` or later (0 oldest, negative now),
        as if it was new: it becomes another tag of the same name, with all that is said of it. Its
        leases and counts end, and messages that it has settled come again.

        One record says so: it is done or not, whatever ends in between. Raises TagNotFound,
        InvalidValue, NotAllowedOnQueue.
        """
        check_range("to_ms", to_ms, -1, self._log.clock.latest_ms())
        async with self._catalog.change(name) as change:
            queue = self._records.known(name)
            old = queue.tag(tag)
            if old.id == DEFAULT:
                raise NotAllowedOnQueue(
                    "the default tag can't be sought: receive under a tag that you make", field="tag", given=tag
                )
            starts = await self._starts(queue, to_ms)
            start_at_ms = to_ms if to_ms >= 0 else now_ms()
            record = msgspec.structs.replace(
                old, id=await self._number(queue), start_at_ms=start_at_ms, start_offsets=starts
            )
            left = [one for one in queue.tags if one.id != old.id]
            changed = msgspec.structs.replace(queue.record, tags=[*left, record], next_tag_id=record.id + 1)
            await self._open_all(queue, record)
            queue = await self._records.write(changed, change)
            await self._close_all(queue, old)
            return queue, record

    async def _open_all(self, queue: Queue, record: TagRecord) -> None:
        """The window knows the tag before any worker can load for it."""
        for partition, start in enumerate(record.start_offsets):
            await self._open(queue, partition, (record.id, start))

    async def _close_all(self, queue: Queue, record: TagRecord) -> None:
        """What a failure leaves is closed by `alarms.py`."""
        for unit in queue.units:
            await self._window.call(queue, lambda g, u=unit: self._upkeep.close(u, record.id))  # type: ignore[misc]

    async def delete(self, name: str, tag: str) -> None:
        """Deletes a tag with its leases and counts. The default tag can't be deleted. Raises
        TagNotFound, NotAllowedOnQueue.
        """
        async with self._catalog.change(name) as change:
            queue = self._records.known(name)
            record = queue.by_name.get(tag)
            if record is None:
                raise TagNotFound(f"queue {name!r} has no tag {tag!r}", field="tag", given=tag)
            if record.id == DEFAULT:
                raise NotAllowedOnQueue("the default tag can't be deleted", field="tag", given=tag)
            left = [t for t in queue.tags if t.id != record.id]
            await self._records.write(
                msgspec.structs.replace(queue.record, tags=left, grants=without_tag(queue.record.grants, tag)), change
            )
            await self._close_all(queue, record)
            await self._log.delete_groups([group_name(self._prefix, name, tag)])
