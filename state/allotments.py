"""What workers share about callers: parts of a second's quota, so that together they do no more
than that; and when keys were used last.

Neighbours: `engine.queues.callers` asks. Must not know what is counted.
"""

from __future__ import annotations

from typing import NamedTuple

from state.keys import last_uses_key, quota_key
from state.redis.connection import Connection
from state.redis.script_caller import ScriptCaller


class Allotted(NamedTuple):
    """So many, to be used within `left_ms`."""

    granted: int
    left_ms: int


class Allotments(ScriptCaller):
    """The quotas of a service. Any number of tasks may ask."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        super().__init__(connection)
        self._prefix = prefix

    async def allot(self, name: str, limit: int, wanted: int, *, now_ms: int = 0) -> Allotted:
        """Takes up to `wanted` of the `limit` of this second. Raises StateUnavailable."""
        _, granted, left_ms = await self._run("allot", (quota_key(self._prefix, name),), (now_ms, limit, wanted))
        return Allotted(granted, left_ms)


class LastUses:
    """When things were used last, by name; kept for as long as Redis keeps it."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        self._connection = connection
        self._key = last_uses_key(prefix)

    async def note(self, name: str, at_ms: int) -> None:
        """Raises StateUnavailable."""
        await self._connection.call("HSET", self._key, name, at_ms)

    async def forget(self, name: str) -> None:
        """Raises StateUnavailable."""
        await self._connection.call("HDEL", self._key, name)

    async def all(self) -> dict[str, int]:
        """Epoch ms by name. Raises StateUnavailable."""
        found = await self._connection.call("HGETALL", self._key)
        if not isinstance(found, list):
            return {}
        return {name.decode(): int(at_ms) for name, at_ms in zip(found[::2], found[1::2], strict=True)}
