"""Producers that can be asked about transactions: those with a telemetry stream, for the topics
that they publish to.

The producers of a topic are the producer group of that name. What a producer publishes to is known
from its settings and from the half messages that it sends, for a client that has lost its stream
opens another one long before it says its settings again (reference/rocketmq.md 5.4). Which of them
is asked is the engine's choice.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from engine.errors import EngineError
from engine.shapes import Check, Principal
from runtime.background import Background

if TYPE_CHECKING:
    from engine.engine import Engine

MOST_TOPICS: Final = 50  # of a producer; about others it is not asked
WAIT_MS: Final = 30_000
AGAIN_S: Final = 5.0
_MOST_CHECKS: Final = 10
_MOST_KNOWN: Final = 10_000  # producers whose topics are remembered

log = logging.getLogger("leaseway.rocketmq")
Ask = Callable[[str, Check], Awaitable[None]]  # the topic as the client calls it, and the question
Topics = Mapping[str, str]  # what clients call them, by the names of their queues


class Stream:
    """A telemetry stream on which its client can be asked."""

    def __init__(self, engine: Engine, by: Principal, ask: Ask) -> None:
        self._engine = engine
        self._by = by
        self._ask = ask
        self._asking: set[str] = set()
        self._background = Background()

    def publishes(self, topics: Topics) -> None:
        """Asks the client about transactions of these topics from now on."""
        for queue, topic in topics.items():
            if queue not in self._asking and len(self._asking) < MOST_TOPICS:
                self._asking.add(queue)
                self._background.start(self._serve(queue, topic), "ask a producer", awaited=True)

    async def close(self) -> None:
        """Asks no more. Returns when what was taken and not asked is given back."""
        await self._background.stop()

    async def _serve(self, queue: str, topic: str) -> None:
        while True:
            try:
                checks = await self._engine.transactions.check(self._by, queue, _MOST_CHECKS, WAIT_MS)
            except EngineError as error:
                log.info("action=check queue=%s error=%s", queue, error)
                await asyncio.sleep(AGAIN_S)
                continue
            await self._ask_all(topic, checks)

    async def _ask_all(self, topic: str, checks: list[Check]) -> None:
        for number, check in enumerate(checks):
            try:
                await self._ask(topic, check)
            except BaseException:
                self._engine.transactions.unchecked(checks[number:])
                raise


class Producers:
    """What the clients of this worker publish to, and their streams. Belongs to one event loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._topics: OrderedDict[tuple[str, str], dict[str, str]] = OrderedDict()
        self._streams: dict[tuple[str, str], Stream] = {}

    def opened(self, by: Principal, client_id: str, ask: Ask) -> Stream:
        """A stream of a client, which is asked on it about all that it publishes to; a newer one
        takes the place of an older one.
        """
        stream = self._streams[by.id, client_id] = Stream(self._engine, by, ask)
        stream.publishes(self._topics.get((by.id, client_id), {}))
        return stream

    async def closed(self, by: Principal, client_id: str, stream: Stream) -> None:
        """A stream has ended."""
        if self._streams.get((by.id, client_id)) is stream:
            del self._streams[by.id, client_id]
        await stream.close()

    def publishes(self, by: Principal, client_id: str, topics: Topics) -> None:
        """A client publishes to these topics."""
        key = (by.id, client_id)
        known = self._topics.setdefault(key, {})
        self._topics.move_to_end(key)
        known.update(list(topics.items())[: MOST_TOPICS - len(known)])
        while len(self._topics) > _MOST_KNOWN:
            self._topics.popitem(last=False)
        stream = self._streams.get(key)
        if stream is not None:
            stream.publishes(known)
