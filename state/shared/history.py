"""What the numbers of queues were, in chunks of a span of time, and when they were noted at all;
and which of that the log does not have yet.

Nothing is decided by it, so it needs no script.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from state.keys import history_key, unsaved_key
from state.redis.connection import Connection
from state.redis.script_caller import ScriptCaller

# Queues whose commands leave together: others get in between.
GROUP = 128
# Before the name of what is gone.
GONE = "-"
_WHOLE = "whole"


class HistoryStore:
    """Chunks by the name of their span and their number, named `<incarnation>/<span>:<number>` as a
    whole; without an incarnation it is when numbers were noted. One worker writes, any may read.
    Every method raises StateUnavailable, and StateLost as a script does.
    """

    def __init__(self, connection: Connection, prefix: str) -> None:
        self._ask = ScriptCaller(connection).ask
        self._prefix = prefix
        self._unsaved = unsaved_key(prefix)

    async def write(self, span: str, number: int, chunks: Mapping[str, bytes]) -> None:
        """Keeps a chunk of each of these queues, by incarnation."""
        await self._unsave(f"{name}/{span}:{number}" for name in chunks)
        await self.put({f"{name}/{span}:{number}": chunk for name, chunk in chunks.items()})

    async def note(self, span: str, number: int, places: int) -> None:
        """Numbers of all queues were noted at these places (bits) of a chunk."""
        await self.write(span, number, {"": b"%d" % places})

    async def noted(self, span: str, numbers: Sequence[int]) -> list[int]:
        """Returns at which places of each of these chunks numbers were noted."""
        return [int(found or 0) for found in await self.read("", span, numbers)]

    async def read(self, incarnation: str, span: str, numbers: Sequence[int]) -> list[bytes | None]:
        """Returns these chunks of a queue; None = it has none of that number."""
        fields = [f"{span}:{number}" for number in numbers]
        found: list[bytes | None] = await self._ask("HMGET", history_key(self._prefix, incarnation), *fields)
        return found

    async def newest(self, incarnation: str, span: str, below: int) -> bytes | None:
        """Returns the last chunk of a queue below a number: since its last point nothing has
        changed until then. None = there is none.
        """
        numbers = [number for number in await self._numbers(incarnation, span) if number < below]
        return (await self.read(incarnation, span, [max(numbers)]))[0] if numbers else None

    async def trim(self, span: str, lowest: int, incarnations: Sequence[str] = ("",)) -> None:
        """Drops chunks below a number, of these queues; "" = of when numbers were noted."""
        for at in range(0, len(incarnations), GROUP):
            await asyncio.gather(*(self._trim(span, lowest, name) for name in incarnations[at : at + GROUP]))

    async def _trim(self, span: str, lowest: int, incarnation: str) -> None:
        if old := [f"{span}:{number}" for number in await self._numbers(incarnation, span) if number < lowest]:
            await self._unsave(f"{GONE}{incarnation}/{field}" for field in old)
            await self._ask("HDEL", history_key(self._prefix, incarnation), *old)

    async def _numbers(self, incarnation: str, span: str) -> list[int]:
        fields = (
            field.decode().partition(":") for field in await self._ask("HKEYS", history_key(self._prefix, incarnation))
        )
        return [int(number) for name, _, number in fields if name == span]

    async def drop(self, incarnations: Iterable[str]) -> None:
        """Forgets queues that are gone."""
        for incarnation in incarnations:
            key = history_key(self._prefix, incarnation)
            await self.unsave_gone(f"{incarnation}/{field.decode()}" for field in await self._ask("HKEYS", key))
            await self._ask("UNLINK", key)

    async def unsave_gone(self, names: Iterable[str]) -> None:
        """What the log has by these names is to go there."""
        await self._unsave(f"{GONE}{name}" for name in names)

    async def _unsave(self, names: Iterable[str]) -> None:
        if some := [*names]:
            await self._ask("SADD", self._unsaved, *some)

    async def unsaved(self) -> list[str]:
        """Returns the names that are to be saved; behind GONE, of what is gone."""
        return [name.decode() for name in await self._ask("SMEMBERS", self._unsaved)]

    async def note_saved(self, names: Sequence[str]) -> None:
        """The log has these, which `unsaved` has returned, as they are now."""
        if names:
            await self._ask("SREM", self._unsaved, *names)

    async def values(self, names: Sequence[str]) -> list[bytes | None]:
        """Returns what is kept by these names."""
        found: list[bytes | None] = []
        for at in range(0, len(names), GROUP):
            some = (name.partition("/") for name in names[at : at + GROUP])
            found += await asyncio.gather(
                *(self._ask("HGET", history_key(self._prefix, key), field) for key, _, field in some)
            )
        return found

    async def put(self, values: Mapping[str, bytes | None]) -> None:
        """Keeps what has these names as it is; None = drops it."""
        names = [*values]
        for at in range(0, len(names), GROUP):
            await asyncio.gather(
                *(self._put(*name.partition("/")[::2], values[name]) for name in names[at : at + GROUP])
            )

    async def _put(self, incarnation: str, field: str, value: bytes | None) -> None:
        key = history_key(self._prefix, incarnation)
        await (self._ask("HDEL", key, field) if value is None else self._ask("HSET", key, field, value))

    async def is_whole(self) -> bool:
        """Returns whether everything is here that `note_whole` was told of: Redis has lost nothing
        since.
        """
        return bool(await self._ask("HEXISTS", history_key(self._prefix), _WHOLE))

    async def note_whole(self) -> None:
        """What the log has is here."""
        await self._ask("HSET", history_key(self._prefix), _WHOLE, 1)
