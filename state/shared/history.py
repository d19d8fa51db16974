"""What the numbers of queues were, in chunks of a span of time, and when they were noted at all.

Nothing is decided by it, so it needs no script.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from state.keys import history_key
from state.redis.connection import Connection
from state.redis.script_caller import ScriptCaller

# A queue of which nothing was written for so long has no history left.
KEPT_S = 90_000
# Queues whose commands leave together: others get in between.
GROUP = 128


class HistoryStore:
    """Chunks by the name of their span and their number. One worker writes, any may read. Every
    method raises StateUnavailable, and StateLost as a script does.
    """

    def __init__(self, connection: Connection, prefix: str) -> None:
        self._ask = ScriptCaller(connection).ask
        self._prefix = prefix

    async def write(self, span: str, number: int, chunks: Mapping[str, bytes]) -> None:
        """Keeps a chunk of each of these queues, by incarnation."""
        names = [*chunks]
        for at in range(0, len(names), GROUP):
            await asyncio.gather(*(self._write(name, f"{span}:{number}", chunks[name]) for name in names[at : at + GROUP]))

    async def _write(self, incarnation: str, field: str, chunk: bytes) -> None:
        key = history_key(self._prefix, incarnation)
        await asyncio.gather(self._ask("HSET", key, field, chunk), self._ask("EXPIRE", key, KEPT_S))

    async def note(self, span: str, number: int, places: int) -> None:
        """Numbers of all queues were noted at these places (bits) of a chunk."""
        await self._ask("HSET", history_key(self._prefix), f"{span}:{number}", places)

    async def noted(self, span: str, numbers: Sequence[int]) -> list[int]:
        """Returns at which places of each of these chunks numbers were noted."""
        return [int(found or 0) for found in await self._ask("HMGET", history_key(self._prefix), *_fields(span, numbers))]

    async def read(self, incarnation: str, span: str, numbers: Sequence[int]) -> list[bytes | None]:
        """Returns these chunks of a queue; None = it has none of that number."""
        found: list[bytes | None] = await self._ask("HMGET", history_key(self._prefix, incarnation), *_fields(span, numbers))
        return found

    async def trim(self, span: str, lowest: int, incarnations: Sequence[str] = ("",)) -> None:
        """Drops chunks below a number, of these queues; "" = of when numbers were noted."""
        for at in range(0, len(incarnations), GROUP):
            await asyncio.gather(*(self._trim(span, lowest, name) for name in incarnations[at : at + GROUP]))

    async def _trim(self, span: str, lowest: int, incarnation: str) -> None:
        key = history_key(self._prefix, incarnation)
        fields = (field.decode().partition(":") for field in await self._ask("HKEYS", key))
        if old := [f"{name}:{number}" for name, _, number in fields if name == span and int(number) < lowest]:
            await self._ask("HDEL", key, *old)

    async def drop(self, incarnations: Iterable[str]) -> None:
        """Forgets queues that are gone."""
        if keys := [history_key(self._prefix, incarnation) for incarnation in incarnations]:
            await self._ask("UNLINK", *keys)


def _fields(span: str, numbers: Sequence[int]) -> list[str]:
    return [f"{span}:{number}" for number in numbers]
