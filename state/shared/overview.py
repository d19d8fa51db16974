"""What is in each queue, as one worker has counted it for all of them; and which queues may have
changed since.

Nothing is decided by it, so it needs no script, and a loss of Redis costs no more than counting
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from state.keys import changed_key, overview_key
from state.redis.connection import Connection
from state.redis.script_caller import ScriptCaller


class Done(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What was done under a tag of a queue since that was made: deliveries that an answer carried,
    those of them that were not the first of their message, and messages that were acked, released
    or moved to a dead-letter queue.
    """

    received: int = 0
    redelivered: int = 0
    acked: int = 0
    released: int = 0
    dead: int = 0


class Counted(msgspec.Struct, frozen=True, array_like=True):
    """Messages of a queue by their state, over all partitions and tags; when the oldest of them was
    sent (0 = there is none, or that is not known), and when they were counted (epoch ms). `sent`
    (since the queue was made) and `done` (by the id of a tag) never go back. `set_back` are the
    ready messages that noisy groups have behind the others, `noisy` how many groups are, added up
    over tags; `groups_in_flight` those of which a consumer has a message, over partitions too.
    """

    ready: int
    delayed: int
    leased: int
    parked: int
    stored: int
    oldest_at_ms: int
    as_of_ms: int
    sent: int
    done: dict[int, Done]
    set_back: int = 0
    noisy: int = 0
    groups_in_flight: int = 0


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Counted)


class OverviewStore:
    """The rows of all queues, by incarnation. Any number of workers may call; the last row that is
    written of a queue stands. Every method raises StateUnavailable, and StateLost as a script does.
    """

    def __init__(self, connection: Connection, prefix: str) -> None:
        self._ask = ScriptCaller(connection).ask
        self._rows = overview_key(prefix)
        self._changed = changed_key(prefix)

    async def note_changed(self, incarnations: Iterable[str]) -> None:
        """These queues are in use: they are to be counted again soon."""
        if names := [*incarnations]:
            await self._ask("SADD", self._changed, *names)

    async def take_changed(self, most: int) -> list[str]:
        """Returns up to so many of those queues, which are then no longer among them."""
        return [name.decode() for name in await self._ask("SPOP", self._changed, most)]

    async def write(self, rows: Mapping[str, Counted]) -> None:
        """Keeps the rows."""
        if rows:
            fields = [part for name, row in rows.items() for part in (name, _ENCODER.encode(row))]
            await self._ask("HSET", self._rows, *fields)

    async def drop(self, incarnations: Iterable[str]) -> None:
        """Forgets the rows of queues that are gone."""
        if names := [*incarnations]:
            await self._ask("HDEL", self._rows, *names)

    async def size(self) -> int:
        """Returns how many rows there are."""
        return int(await self._ask("HLEN", self._rows))

    async def names(self) -> set[str]:
        """Returns the incarnations that have a row."""
        return {name.decode() for name in await self._ask("HKEYS", self._rows)}

    async def all(self) -> dict[str, Counted]:
        """Returns every row; one that another version has written otherwise is left out."""
        found = await self._ask("HGETALL", self._rows)
        rows = {}
        for name, packed in zip(found[::2], found[1::2], strict=True):
            try:
                rows[name.decode()] = _DECODER.decode(packed)
            except msgspec.DecodeError:
                continue
        return rows
