"""What is known of a user: how to reach them, how much they may use, and what the owners of queues
let them do.

A user is a principal, or an account as a whole, and needs no record until something is noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import InvalidValue
from engine.outgoing.post import target_of, webhook_secret
from engine.queues.callers.quotas import UserBounds
from engine.queues.records import QueueRecords
from engine.rules.grants import TAG_LEVELS, with_level
from engine.rules.limits import MAX_LEVELS, check_name, check_user
from engine.shapes import UserInfo, UserUse
from runtime.clock import now_ms
from schemas.records import QueueRecord, UserRecord
from schemas.vocabulary import Level


class Users:
    """Changes of users' records, one after the other for each user."""

    def __init__(self, catalog: Catalog, secret: str, bounds: UserBounds) -> None:
        self._catalog = catalog
        self._secret = secret
        self._bounds = bounds

    def get(self, name: str) -> UserInfo:
        """What is known, with the bounds that count; nothing more of a user without a record."""
        record = self._bounds.of(name) or UserRecord(name, 0)
        return UserInfo(
            name,
            record.display_name,
            record.email,
            record.phone,
            record.read_qps,
            record.write_qps,
            record.queues,
            record.webhook,
            webhook_secret(self._secret, name) if record.webhook else "",
            record.partitions,
            record.daily_bytes,
            record.waits,
        )

    def use(self, name: str, bytes_today: int) -> UserUse:
        """What a user has: queues and partitions, and the sums of the queues' quotas."""
        records = [
            queue.record for queue in self._catalog.queues.values() if name in (queue.record.owner, queue.account)
        ]
        rates = sum(record.read_qps for record in records), sum(record.write_qps for record in records)
        return UserUse(len(records), *rates, sum(record.partitions for record in records), bytes_today)

    async def set(self, name: str, **changes: Any) -> UserInfo:
        """Changes what is named. Raises InvalidValue."""
        check_changes(name, changes)
        async with self._catalog.change(f"user/{name}") as change:
            record = self._catalog.users.get(name) or UserRecord(name, 0)
            await change.write(f"user/{name}", msgspec.structs.replace(record, modified_at_ms=now_ms(), **changes))
        return self.get(name)


def check_changes(name: str, changes: Mapping[str, Any]) -> None:
    """Raises InvalidValue for what can't be noted of a user."""
    check_name("user", name)
    if webhook := changes.get("webhook"):
        target_of(webhook)
    check_user({field: value for field, value in changes.items() if field != "webhook"})


class Grants:
    """Changes of levels, one after the other for each queue, whichever worker makes them."""

    def __init__(self, catalog: Catalog, records: QueueRecords) -> None:
        self._catalog = catalog
        self._records = records

    async def set(self, name: str, principal: str, word: str, tag: str = "") -> None:
        """Gives a principal a level in place of the one it had, on the queue or on messages of a
        tag; NONE takes it away. Raises InvalidValue, QueueNotFound, TagNotFound.
        """
        check_level(principal, word, tag)
        async with self._catalog.change(name) as change:
            queue = self._records.known(name)
            record = with_grant(queue.record, principal, word, queue.tag(tag).name if tag else "")
            if record.grants != queue.record.grants:
                await self._records.write(record, change)


def check_level(principal: str, word: str, tag: str = "") -> None:
    """Raises InvalidValue for a principal that can't be one, or a word that is no level of a queue,
    or of a tag.
    """
    check_name("principal", principal)
    words = TAG_LEVELS if tag else tuple(Level)
    if word not in words:
        of = "level of a tag" if tag else "level"
        raise InvalidValue(
            f"{of} must be one of {', '.join(words)}, given {word[:100]!r}",
            field="level",
            limit=list(words),
            given=word[:100],
        )


def with_grant(record: QueueRecord, principal: str, word: str, tag: str = "") -> QueueRecord:
    """The record of a queue with a level in place of the one that a principal had. Raises
    InvalidValue.
    """
    if principal == record.owner:
        raise InvalidValue(
            f"{principal!r} owns queue {record.name!r}: it may do everything", field="principal", given=principal
        )
    grants = with_level(record.grants, principal, Level(word), tag)
    given = sum(bool(grant.level) for grant in grants)
    if given > MAX_LEVELS:
        raise InvalidValue(
            f"{MAX_LEVELS} principals may have rights on a queue", field="principal", limit=MAX_LEVELS, given=given
        )
    return msgspec.structs.replace(record, grants=grants)
