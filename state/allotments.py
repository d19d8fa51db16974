"""Parts of a second's quota, for the workers of a service: together they do no more than the quota.

Neighbours: `engine.queues.callers.quotas`. Must not know what is counted.
"""

from __future__ import annotations

from typing import NamedTuple

from state.keys import quota_key
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
