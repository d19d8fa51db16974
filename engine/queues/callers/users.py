"""What is known of a user: how to reach them, and how much they may use.

A user is a principal, or an account as a whole, and needs no record until something is noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from engine.catalog.catalog import Catalog
from engine.outgoing.signature import webhook_secret
from engine.outgoing.targets import target_of
from engine.queues.callers.quotas import UserBounds
from engine.rules.limits import check_name, check_user
from engine.shapes import UserInfo, UserUse
from runtime.clock import now_ms
from schemas.records import UserRecord


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
        records = [queue.record for queue in self._catalog.queues.values() if name in (queue.record.owner, queue.account)]
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
