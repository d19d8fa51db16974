"""Subscribes to wake-ups: another worker has made messages of a queue receivable.

Neighbours: `engine.receive.receiver` subscribes queues it has waiters for. A lost wake-up costs
time, never a message: waiters look again every few seconds. Must not know what waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

import redis.asyncio
from redis.exceptions import RedisError

from state.background import Background
from state.cancel import cancel_all
from state.keys import wake_channel

logger = logging.getLogger(__name__)


class Wake:
    """A subscriber. `heard(incarnation, partition, visible since ms or 0)` is called on the loop;
    -1 = all: a subscription begins.

    Wake-ups that name this worker (`name`) are left out.
    """

    def __init__(self, url: str, prefix: str, name: str, heard: Callable[[str, int, int], None]) -> None:
        self._url = url
        self._prefix = prefix
        self._name = name
        self._heard = heard
        self._wanted: set[str] = set()
        self._background = Background()
        self._task: asyncio.Task[None] | None = None
        self._subscriber: redis.asyncio.client.PubSub | None = None

    async def start(self) -> None:
        if self._task is None:
            self._task = self._background.keep(self._loop, "listen")

    async def stop(self) -> None:
        if self._task is not None:
            await cancel_all(self._task)
            self._task = None

    def hears(self, incarnation: str) -> bool:
        """Whether `want` has been called for this queue."""
        return incarnation in self._wanted

    async def want(self, incarnation: str) -> None:
        """Hears of this queue from now on; returns when Redis has been asked, and `heard` is called
        (-1) when it listens. Idempotent.
        """
        if incarnation in self._wanted:
            return
        self._wanted.add(incarnation)
        if self._subscriber is not None:
            with contextlib.suppress(RedisError, OSError):
                await self._subscriber.subscribe(wake_channel(self._prefix, incarnation))

    async def forget(self, incarnation: str) -> None:
        """Hears of this queue no more."""
        self._wanted.discard(incarnation)
        if self._subscriber is not None:
            with contextlib.suppress(RedisError, OSError):
                await self._subscriber.unsubscribe(wake_channel(self._prefix, incarnation))

    async def _loop(self) -> None:
        while True:
            client = redis.asyncio.Redis.from_url(self._url, socket_connect_timeout=2)
            subscriber = client.pubsub()
            try:
                await self._listen(subscriber)
            except (RedisError, OSError) as error:
                logger.debug("action=listen part=redis error=%s", error)
            finally:
                self._subscriber = None
                with contextlib.suppress(RedisError, OSError):
                    await subscriber.aclose()  # type: ignore[no-untyped-call]
                    await client.aclose()
            await asyncio.sleep(0.2)

    async def _listen(self, subscriber: redis.asyncio.client.PubSub) -> None:
        await subscriber.subscribe(wake_channel(self._prefix, ""))  # every worker's: `store.workers` counts them
        self._subscriber = subscriber
        wanted = list(self._wanted)
        if wanted:
            await subscriber.subscribe(*(wake_channel(self._prefix, incarnation) for incarnation in wanted))
        async for message in subscriber.listen():
            incarnation = message["channel"].decode().rpartition(":")[2]
            if message["type"] == "message":
                partition, name, head_ms = (*message["data"].decode().split(" "), "", "0")[:3]
                if name != self._name:
                    self._heard(incarnation, int(partition), int(head_ms))
            elif message["type"] == "subscribe":
                # What was published before Redis had the subscription was not heard.
                self._heard(incarnation, -1, 0)
