"""The topic of half messages: appended to by every worker, and read by every worker into its book.

A shard is a partition of the topic; the id of a transaction decides which. A worker reads a shard
when it needs it (`reach`, `sync`), and once a second what came meanwhile, if something did.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import zlib

from engine.errors import EngineError, LogUnavailable
from engine.log import MAX_RECORD_BYTES, Appended, Log, TopicSpec
from engine.settings import EngineSettings
from engine.transactions.book import Book, Transaction
from runtime.service import Periodic
from schemas.records import Message, TransactionRecord
from schemas.topics import half_topic
from schemas.wire import decode, decode_message, encode
from state.clock.boot import boot_s

logger = logging.getLogger(__name__)

FOLLOW_S = 1.0
REACH_S = 10.0
# Kafka may drop the records of a transaction that is over, tombstones too, KEEP_TOMBSTONES_MS after
# it was forgotten. A worker that has not read for half of that time may miss them: it begins anew.
KEEP_TOMBSTONES_MS = 3_600_000
REREAD_S = KEEP_TOMBSTONES_MS / 2000
# What is read at a time: decoding it holds up the other requests of the worker.
CHUNK_RECORDS = 500
CHUNK_BYTES = 2_000_000


class HalfLog:
    """Belongs to one event loop; any number of tasks may call."""

    def __init__(self, settings: EngineSettings, log: Log, book: Book) -> None:
        self._settings = settings
        self._log = log
        self._book = book
        self.topic = half_topic(settings.topic_prefix)
        self.shards = settings.journal_partitions
        self._applied: list[int] = []
        self._seen_s: list[float] = []  # when all of a shard was known last (`boot_s`)
        self._reading: list[asyncio.Lock] = []
        self._more = asyncio.Event()
        self._follower = Periodic("follow_transactions", self.sync_all, FOLLOW_S, first_s=0.0, quiet=(EngineError,))

    async def start(self) -> None:
        """Makes the topic; its records are read beside the caller. Raises LogUnavailable."""
        s = self._settings
        config = {
            "cleanup.policy": "compact",
            "segment.ms": "600000",
            "delete.retention.ms": str(KEEP_TOMBSTONES_MS),
            "retention.bytes": "-1",
            "message.timestamp.type": "LogAppendTime",
            "max.message.bytes": str(MAX_RECORD_BYTES),
            **({"min.insync.replicas": "2"} if s.replication_factor >= 3 else {}),
            **({"flush.messages": str(s.flush_messages)} if s.flush_messages else {}),
        }
        await self._log.create_topics([TopicSpec(self.topic, self.shards, s.replication_factor, config)])
        # What the topic has counts, not what a setting says: the id of a transaction names its
        # shard for ever.
        self.shards = await self._log.partition_count(self.topic) or self.shards
        self._applied, self._seen_s = [0] * self.shards, [boot_s()] * self.shards
        self._reading = [asyncio.Lock() for _ in range(self.shards)]
        await self._follower.start()

    async def stop(self) -> None:
        await self._follower.stop()

    def now_ms(self) -> int:
        """Returns the time of the topic's records, at the earliest."""
        return self._log.clock.earliest_ms()

    def shard_of(self, id: str) -> int:
        """Which shard has the records of a transaction."""
        return zlib.crc32(id.encode()) % self.shards

    async def append(self, record: TransactionRecord, name: str = "") -> Appended:
        """Appends a step of a transaction; `name` tells its key from those of other steps. Raises
        LogUnavailable (the outcome is unknown), MessageTooLarge.
        """
        key = key_of(record.id, name)
        return await self._log.append(self.topic, self.shard_of(record.id), encode(record), key=key)

    async def drop(self, id: str, keys: list[bytes]) -> None:
        """Tombstones, in this order. Raises LogUnavailable."""
        shard = self.shard_of(id)
        await asyncio.gather(*[self._log.append(self.topic, shard, None, key=key) for key in keys])

    async def half_of(self, one: Transaction) -> bytes | None:
        """The half of a transaction, from memory or Kafka; None = it was dropped meanwhile."""
        if one.value is not None or one.offset < 0:
            return one.value
        found = await self._log.read_at(self.topic, self.shard_of(one.id), [one.offset])
        return found[one.offset].value if one.offset in found else None

    async def messages_of(self, one: Transaction) -> list[Message] | None:
        """The messages of a half; None = it was dropped, so its transaction is done."""
        value = await self.half_of(one)
        half = decode(value) if value else None
        return [decode_message(part, None) for part in half.messages] if isinstance(half, TransactionRecord) else None

    async def reach(self, shard: int, offset: int) -> None:
        """Returns when the records of a shard before `offset` are in the book. Raises
        LogUnavailable after 10 s: what was read then stays read.
        """
        try:
            async with asyncio.timeout(REACH_S):
                while self._applied[shard] < offset:
                    async with self._reading[shard]:
                        if self._applied[shard] < offset:
                            await self._read(shard)
        except TimeoutError:
            raise LogUnavailable(f"{self.topic} was not read up to offset {offset} within {REACH_S:g} s") from None

    async def sync(self, shard: int) -> None:
        """Returns when all that was written to a shard before the call is in the book."""
        part = (self.topic, shard)
        end = (await self._log.end_offsets([part])).get(part)
        if end is None:
            raise LogUnavailable(f"the end of {self.topic} can't be read")
        await self.reach(shard, end)

    async def sync_all(self) -> None:
        """The same for all shards, with one request when there is nothing new."""
        parts = [(self.topic, shard) for shard in range(self.shards)]
        ends = await self._log.end_offsets(parts)
        for shard, part in enumerate(parts):
            if ends.get(part) == self._applied[shard]:
                self._seen_s[shard] = boot_s()
        behind = [
            (shard, ends.get(part, 0)) for shard, part in enumerate(parts) if ends.get(part, 0) > self._applied[shard]
        ]
        await asyncio.gather(*[self.reach(shard, end) for shard, end in behind])

    async def more(self, within_s: float) -> None:
        """Returns when records were read, at the latest after that time."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._more.wait(), within_s)

    async def _read(self, shard: int) -> None:
        if self._applied[shard] and boot_s() - self._seen_s[shard] > REREAD_S:
            logger.warning("action=read_again part=half shard=%d reason=it was not read for long", shard)
            self._book.forget_shard(shard)
            self._applied[shard] = 0
            self._seen_s[shard] = boot_s()
        chunk = await self._log.fetch(self.topic, shard, self._applied[shard], CHUNK_RECORDS, CHUNK_BYTES, wait_ms=200)
        read_at = asyncio.get_running_loop().time()
        for record in chunk.records:
            self._book.apply(record, read_at)
        if chunk.records:
            self._more.set()
            self._more = asyncio.Event()
        self._applied[shard] = max(self._applied[shard], chunk.next_offset)
        if chunk.at_end:
            self._seen_s[shard] = boot_s()


def key_of(id: str, name: str = "") -> bytes:
    """The key of a record: the half has the id itself."""
    return f"{id}/{name}".encode() if name else id.encode()


def own_name(kind: str) -> str:
    """The name of a step of which the first in the log counts: compaction, which keeps the last
    record of a key, must drop none of them.
    """
    return f"{kind}-{secrets.token_hex(4)}"
