"""Subscribes to wake-ups: another worker has made messages of a queue receivable.

A lost wake-up costs time, never a message: waiters look again every few seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

import hiredis

from runtime.background import Background
from runtime.cancel import cancel_all
from state.errors import StateUnavailable
from state.keys import wake_channel
from state.redis.address import redis_address
from state.redis.wire import NOTHING, Argument, Wire, opened

logger = logging.getLogger(__name__)

AGAIN_S = 0.2
# Redis is asked so often whether it is there, and the connection cut when it has said nothing for
# three times as long.
PING_S = 5.0


class _Subscriber(Wire):
    """A connection on which Redis says what it likes; each such list goes to `told`."""

    def __init__(self, told: Callable[[bytes, bytes, bytes], None]) -> None:
        super().__init__()
        self._told = told

    def data_received(self, data: bytes) -> None:
        self.reader.feed(data)
        self.heard = self.loop.time()
        while (reply := self.reader.gets()) is not NOTHING:
            if isinstance(reply, list):
                self._told(*[*reply, b""][:3])
            elif self.waiting:  # AUTH's
                if not (future := self.waiting.popleft()).done():
                    future.set_result(reply)
            else:
                logger.warning("action=listen part=redis error=%s", reply)

    def send(self, *arguments: Argument) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(hiredis.pack_command(arguments))  # type: ignore[arg-type]


class Wake:
    """A subscriber. `heard(incarnation, partition, visible since ms or 0)` is called on the loop;
    -1 = all: a subscription begins.

    Wake-ups that name this worker (`name`) are left out.
    """

    def __init__(self, url: str, prefix: str, name: str, heard: Callable[[str, int, int], None]) -> None:
        self._address = redis_address(url)
        self._prefix = prefix
        self._name = name
        self._heard = heard
        self._wanted: set[str] = set()
        self._background = Background()
        self._task: asyncio.Task[None] | None = None
        self._subscriber: _Subscriber | None = None

    async def start(self) -> None:
        if self._task is None:
            self._task = self._background.keep(self._loop, "listen")

    async def stop(self) -> None:
        if self._task is not None:
            await cancel_all(self._task)
            self._task = None

    def want(self, incarnation: str) -> None:
        """Hears of this queue from now on: `heard` is called (-1) when it listens. Idempotent."""
        if incarnation not in self._wanted:
            self._wanted.add(incarnation)
            self._ask("SUBSCRIBE", incarnation)

    def forget(self, incarnation: str) -> None:
        """Hears of this queue no more."""
        self._wanted.discard(incarnation)
        self._ask("UNSUBSCRIBE", incarnation)

    def reconnect(self) -> None:
        """Another server is in use: looks the address up again, for this one may be the one of
        before, where nobody wakes anybody.
        """
        if self._subscriber is not None:
            self._subscriber.close()

    def _ask(self, command: str, *incarnations: str) -> None:
        """A connection that is lost meanwhile is followed by one that asks for all that is
        wanted.
        """
        if self._subscriber is not None:
            self._subscriber.send(command, *(wake_channel(self._prefix, incarnation) for incarnation in incarnations))

    async def _loop(self) -> None:
        while True:
            try:
                subscriber = await opened(self._address, partial(_Subscriber, self._told))
            except (OSError, TimeoutError, StateUnavailable) as error:
                logger.debug("action=listen part=redis error=%s", error)
            else:
                await self._listen(subscriber)
            await asyncio.sleep(AGAIN_S)

    async def _listen(self, subscriber: _Subscriber) -> None:
        """Returns when the connection is lost."""
        self._subscriber = subscriber
        try:
            # The first is every worker's: `store.workers` counts them.
            self._ask("SUBSCRIBE", "", *self._wanted)
            while not subscriber.closed.done() and subscriber.loop.time() - subscriber.heard < 3 * PING_S:
                await asyncio.wait([subscriber.closed], timeout=PING_S)
                subscriber.send("PING")
        finally:
            self._subscriber = None
            subscriber.close()

    def _told(self, kind: bytes, channel: bytes, data: bytes) -> None:
        incarnation = channel.decode().rpartition(":")[2]
        if kind == b"message":
            partition, *more = data.decode().split(" ")
            if more[:1] != [self._name]:
                self._heard(incarnation, int(partition), int(more[1]) if len(more) > 1 else 0)
        elif kind == b"subscribe":
            # What was published before Redis had the subscription was not heard.
            self._heard(incarnation, -1, 0)
