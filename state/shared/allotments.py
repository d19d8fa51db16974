"""What workers share about callers: parts of a quota, so that together they do no more than that;
and when keys were used last.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from state.keys import last_uses_key, quota_key
from state.redis.connection import Connection
from state.redis.script_caller import ScriptCaller


class Allotted(NamedTuple):
    """So many, to be used within `left_ms`; and how many workers have taken in this span."""

    granted: int
    left_ms: int
    used: int = 0


class Allotments:
    """The quotas of a service. Any number of tasks may ask."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        self._scripts = ScriptCaller(connection)
        self.soon: Final = self._scripts.soon
        self._prefix = prefix

    async def allot(
        self, name: str, limit: int, wanted: int, span_ms: int, *, least: int = 0, now_ms: int = 0
    ) -> Allotted:
        """Takes up to `wanted` of the `limit` of this span, and nothing when fewer than `least` are
        left: the span of so many ms since 1970 in which it is now, as a second or a UTC day. Raises
        StateUnavailable.
        """
        arguments = now_ms, limit, wanted, span_ms, least
        _, granted, left_ms, used = await self._scripts.run("allot", (quota_key(self._prefix, name),), arguments)
        return Allotted(granted, left_ms, used)


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
