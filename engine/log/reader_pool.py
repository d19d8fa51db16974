"""Fetches: a small pool of consumers, each going on where it stopped, driven from threads.

Kafka's client is made for tailing; the engine wants to pull (topic, partition, offset). A reader
therefore keeps its place: the next fetch at that place is served from what has been read ahead. Any
other place costs a new assignment.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from engine.errors import LogUnavailable
from engine.log.reader import Reader
from engine.log.shapes import Chunk, TopicPartition
from runtime.background import Background
from runtime.cancel import cancel_all

T = TypeVar("T")

READERS = 8
# A client whose broker was fenced while it stood still may not find it again ("Broker transport
# failure" for ever, seen with librdkafka 2.16). So a failed fetch throws doubt on every reader that
# has not heard from the broker since, and one that is not new makes room for another: were each to
# fail by itself first, a pool of idle readers would fail its users for minutes after Kafka is back.
_OLD_S = 5.0
# An idle reader at the end of its partition would go on polling the broker, and hold what it read
# ahead.
_REST_AFTER_S = 1.0


class Readers:
    """A pool of `most` readers. Belongs to one event loop; fetches of several tasks run side by
    side, one for each reader.

    `end_of` is handed on to each `Reader`.
    """

    def __init__(
        self, config: dict[str, Any], end_of: Callable[[TopicPartition], int | None], most: int = READERS
    ) -> None:
        self._config = config
        self._end_of = end_of
        self._most = most
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="lw-log-read")
        self._free = asyncio.Semaphore(most)
        self._all: list[Reader] = []
        self._idle: list[Reader] = []  # least recently used first
        self._doubted_at = 0.0
        self._background = Background()
        self._tidier: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the tidier. Idempotent."""
        if self._tidier is None:
            self._tidier = self._background.keep(self._tidy, "tidy")

    async def stop(self) -> None:
        """Waits for the fetches under way, closes the consumers, ends the threads. Idempotent;
        final.
        """
        if self._tidier is not None:
            tidier, self._tidier = self._tidier, None
            await cancel_all(tidier)
        for reader in self._all:
            reader.stop()
        await self._background.finished()
        readers, self._all, self._idle = self._all, [], []
        await asyncio.gather(*map(self._close, readers))
        self._threads.shutdown(wait=True)

    async def fetch(self, unit: TopicPartition, offset: int, max_records: int, max_bytes: int, wait_ms: int) -> Chunk:
        """See `Log.fetch`."""
        self._check()
        await self._free.acquire()
        try:
            self._check()  # a stop may have come meanwhile
        except LogUnavailable:
            self._free.release()
            raise
        reader = self._choose(unit, offset)
        return await self._spawn(reader, partial(reader.fetch, unit, offset, max_records, max_bytes, wait_ms / 1000))

    def _check(self) -> None:
        if self._tidier is None:
            raise LogUnavailable("the log is stopped")

    async def _spawn(self, reader: Reader, work: Callable[[], T]) -> T:
        """Runs `work` with `reader`, whose permit the caller has taken."""
        task = self._background.start(self._work(reader, work), "fetch", awaited=True)
        # A caller that is cancelled goes away at once, but its reader stays busy until the thread
        # has come back.
        return await asyncio.shield(task)

    def _choose(self, unit: TopicPartition, offset: int) -> Reader:
        """The reader that stands at that place, else one without a place, else a new one, else the
        longest unused.
        """
        self._replace_doubtful()
        for reader in self._idle:
            if reader.stands_at(unit, offset):
                break
        else:
            resting = next((reader for reader in self._idle if reader.unit is None), None)
            if resting is not None:
                reader = resting
            elif len(self._all) < self._most:
                reader = Reader(self._config, self._end_of)
                self._all.append(reader)
                return reader
            else:
                reader = self._idle[0]
        self._idle.remove(reader)
        return reader

    async def _work(self, reader: Reader, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except LogUnavailable:
            self._doubted_at = time.monotonic()
            raise
        finally:
            reader.note_use()
            self._idle.append(reader)
            self._free.release()

    def _replace_doubtful(self) -> None:
        before = time.monotonic() - _OLD_S
        for reader in [r for r in self._idle if r.heard_at < self._doubted_at and r.made_at < before]:
            self._idle.remove(reader)
            self._all.remove(reader)
            self._background.start(self._close(reader), "close_reader")

    async def _close(self, reader: Reader) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, reader.close)

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(_REST_AFTER_S / 2)
            await self.rest_idle(_REST_AFTER_S)

    async def rest_idle(self, after_s: float) -> None:
        """Lets readers that have been idle for `after_s` give up their place and what they read
        ahead.
        """
        before = time.monotonic() - after_s
        for reader in [r for r in self._idle if r.unit is not None and r.used_at <= before]:
            if self._free.locked():
                return  # all are wanted
            if reader not in self._idle:
                continue  # taken while another was let rest
            await self._free.acquire()  # at once, without letting another task run: it is not locked
            self._idle.remove(reader)
            await self._spawn(reader, reader.rest)
