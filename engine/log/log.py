"""`Log`: all of Kafka that the engine uses, as one service with a start and a stop.

Errors are engine errors: LogUnavailable unless said otherwise.
"""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any

from engine.log.admin import Admin
from engine.log.appender import Appender
from engine.log.client.patience import Patience, Refusals, made
from engine.log.log_clock import LogClock
from engine.log.offsets import EARLIEST, LATEST, Offsets
from engine.log.reader import COMMITTED
from engine.log.reader_pool import Readers
from engine.log.shapes import Appended, Chunk, Headers, Record, TopicPartition, TopicSpec
from state.clock.service_clock import ServiceClock

__all__ = ["Appended", "Chunk", "Headers", "Log", "Record", "TopicPartition", "TopicSpec"]

# Who waits at the end of a partition asks the broker this often, and hears of a record at once all
# the same. Asked every 10 ms, as by readers that must be free for another place soon, an idle
# worker cost the broker 100 requests a second.
TAIL_WAIT_MS = 500
_ADMIN_THREADS = 8
# Records that lie so close together are read by one fetch, with what lies between them.
NEAR_OFFSETS = 200
READ_AT_BYTES = 64_000_000
# Of many records that lie far apart, each is one fetch, which brings a batch of the broker's and
# must bring little more: with the read-ahead of other readers, a record of 100 bytes cost a
# megabyte. So many fetches are under way at a time; a stretch that is longer is read as any other.
SCATTERED_READERS = 4
_SCATTERED_CONFIG = {"fetch.message.max.bytes": 16 * 1024, "queued.max.messages.kbytes": 16}
_STRETCH_RECORDS, _STRETCH_BYTES = 2_000, 4_000_000


def _client_config(bootstrap: str, client_id: str, options: Mapping[str, str]) -> dict[str, Any]:
    return {
        **options,
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        # After a broker's restart the first try that can succeed comes within this time.
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 400,
        # A broker that stood still and was fenced leaves metadata without brokers; by default a
        # client then asks its first addresses again after five minutes only.
        "metadata.recovery.rebootstrap.trigger.ms": 5_000,
        "socket.keepalive.enable": True,
        "log.connection.close": False,
        "log_level": 4,  # warnings and worse
    }


class Log:
    """The log. Belongs to one event loop; every method is safe for concurrent tasks of that loop.

    `bootstrap` is host:port[,host:port]; `send_timeout_ms` bounds an append; `options` say how the
    client gets in, in librdkafka's words. Kafka may be away when it starts, and may come and go.
    `clock` is Kafka's time, as the appends of this worker tell it, and before these the clock of
    the `service`.
    """

    def __init__(
        self,
        bootstrap: str,
        send_timeout_ms: int,
        options: Mapping[str, str] = MappingProxyType({}),
        client_id: str = "leaseway",
        service: ServiceClock | None = None,
    ) -> None:
        config = _client_config(bootstrap, client_id, options)
        self._threads = ThreadPoolExecutor(_ADMIN_THREADS, thread_name_prefix="lw-log-admin")
        self._offsets = Offsets(config, self._threads)
        self._admin = Admin(config, self._threads, self._offsets)
        self._refusals = Refusals()
        self.clock = LogClock(service)
        self._appender = Appender(config, send_timeout_ms, self._threads, self._refusals.heard, self.clock)
        self._readers = Readers(config, self._offsets.end_of)
        self._stable = Offsets(config, self._threads, committed=True)
        self._committed = Readers({**config, "isolation.level": COMMITTED}, self._stable.end_of)
        self._tails = Readers({**config, "fetch.wait.max.ms": TAIL_WAIT_MS}, self._offsets.end_of)
        self._scattered = Readers({**config, **_SCATTERED_CONFIG}, self._offsets.end_of, SCATTERED_READERS)
        self._stopped = False

    async def start(self) -> None:
        """Starts the clients and threads. Idempotent. RuntimeError after a stop: make a new Log.

        LogUnavailable, with the reason, when the client does not take `options`, or a file of them.
        """
        if self._stopped:
            raise RuntimeError("a stopped log can't be started again")
        with made():
            self._offsets.start()
            self._admin.start()
            self._appender.start()
            self._readers.start()
            self._stable.start()
            self._committed.start()
            self._tails.start()
            self._scattered.start()

    async def reach(self) -> None:
        """Returns when a broker has let the client in and answered. LogUnavailable after 10 s, with
        what the client says of why it gets nowhere.
        """
        with self._refusals.explained():
            await self._offsets.answered()

    @staticmethod
    def patience(wait_s: float) -> Patience:
        """For the first calls of a start, from now on."""
        return Patience(wait_s)

    async def stop(self) -> None:
        """Delivers what was appended (within the send time-out; the rest fails), lets fetches end,
        joins threads. Idempotent.
        """
        if self._stopped:
            return
        self._stopped = True
        await asyncio.gather(
            *(readers.stop() for readers in (self._readers, self._committed, self._tails, self._scattered))
        )
        await self._appender.stop()
        self._admin.stop()
        self._offsets.stop()
        self._stable.stop()
        self._threads.shutdown(wait=True)

    def append(
        self, topic: str, partition: int, value: bytes | None, key: bytes | None = None, headers: Headers | None = None
    ) -> asyncio.Future[Appended]:
        """Appends one record; resolved when all in-sync replicas have it (acks=all, idempotent).

        Fails with LogUnavailable (no answer within the send time-out: the outcome is unknown; or no
        such partition: not written), Overloaded (too much is waiting: not written), MessageTooLarge
        (over 4 MiB or the topic's limit: not written). Appends to one partition keep the order of
        the calls. Cancelling the future recalls nothing. Raises RuntimeError before `start`.
        """
        return self._appender.append(topic, partition, value, key, headers)

    def append_many(
        self, topic: str, partition: int, values: Sequence[bytes]
    ) -> asyncio.Future[list[Appended | Exception]]:
        """Appends records to one partition in order; resolved once, with a result or an error (as
        `append`) for each.

        The future itself never fails. If the client's queue overflows within `values`, a head of
        them is written and the tail has Overloaded. Raises RuntimeError before `start`.
        """
        return self._appender.append_many(topic, partition, values)

    async def fetch(
        self,
        topic: str,
        partition: int,
        offset: int,
        max_records: int,
        max_bytes: int,
        wait_ms: int = 0,
        *,
        committed: bool = False,
    ) -> Chunk:
        """Up to `max_records` and about `max_bytes` (at least one record) from `offset` on.

        At the end of the log it returns at once with `at_end`, or waits up to `wait_ms` ms for a
        record; a waiting fetch holds one of 8 readers of its own kind, so tail few partitions that
        way. It may return fewer records than there are: go on at `next_offset`, which is fastest.
        An offset below the log's start is moved up (`truncated`); one beyond its end gives an empty
        chunk whose `next_offset` is that end. Raises LogUnavailable if there is no such partition
        or no answer in 5 s. `committed`: without records of Kafka's transactions that were
        aborted, and up to the first one that has not ended; without `wait_ms`.
        """
        readers = self._committed if committed else self._tails if wait_ms else self._readers
        return await readers.fetch((topic, partition), offset, max_records, max_bytes, wait_ms)

    async def read_at(
        self, topic: str, partition: int, offsets: Sequence[int], *, committed: bool = False, max_bytes: int = 0
    ) -> dict[int, Record]:
        """The records at these offsets; one that Kafka no longer has is absent. `committed` as in
        `fetch`. Raises LogUnavailable.

        `max_bytes` (0 = no bound): when the values have so many bytes (`value_bytes`), it reads no
        further than the last offset that it returns.
        """
        found: dict[int, Record] = {}
        wanted = sorted(offsets)
        at = size = 0
        while at < len(wanted) and (not max_bytes or size < max_bytes):
            last = at
            while last + 1 < len(wanted) and wanted[last + 1] - wanted[at] < NEAR_OFFSETS:
                last += 1
            most = min(READ_AT_BYTES, max_bytes - size) if max_bytes else READ_AT_BYTES
            chunk = await self.fetch(
                topic, partition, wanted[at], wanted[last] - wanted[at] + 1, most, committed=committed
            )
            asked = set(wanted[at : last + 1])
            some = {record.offset: record for record in chunk.records if record.offset in asked}
            found.update(some)
            size += value_bytes(some.values())
            done = bisect.bisect_left(wanted, chunk.next_offset)
            at = max(at + 1, min(done, last + 1))
        return found

    async def read_each(
        self, topic: str, partition: int, offsets: Collection[int], use: Callable[[Record], None]
    ) -> None:
        """Hands the records at these offsets to `use`, in no order; one that Kafka no longer has is
        left out. For any number of them, near or far apart: some MB are in memory at a time.

        Raises LogUnavailable: `use` may have had some.
        """
        stretches = iter(_stretches(sorted(set(offsets))))

        async def read() -> None:
            for wanted in stretches:
                await self._read_stretch((topic, partition), wanted, use)

        reads = await asyncio.gather(*(read() for _ in range(SCATTERED_READERS)), return_exceptions=True)
        for failed in reads:
            if failed is not None:
                raise failed

    async def _read_stretch(self, part: TopicPartition, wanted: Sequence[int], use: Callable[[Record], None]) -> None:
        at, end, asked = wanted[0], wanted[-1] + 1, set(wanted)
        readers = self._scattered if end - at <= NEAR_OFFSETS else self._readers
        while at < end:
            chunk = await readers.fetch(part, at, min(end - at, _STRETCH_RECORDS), _STRETCH_BYTES, 0)
            for record in chunk.records:
                if record.offset in asked:
                    use(record)
            if chunk.next_offset <= at:
                return  # the log ends before
            at = chunk.next_offset

    async def end_offsets(self, parts: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last record of each of `parts` (topic, partition); a missing
        partition is absent. One request.
        """
        return await self._offsets.at(parts, LATEST)

    async def stable_offsets(self, parts: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The first record of a transaction of Kafka that has not ended, of each of `parts`, or
        its end if there is none; a missing partition is absent. One request.
        """
        return await self._stable.at(parts, LATEST)

    async def start_offsets(self, parts: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset still kept of each of `parts`; a missing partition is absent. One
        request.
        """
        return await self._offsets.at(parts, EARLIEST)

    async def offsets_at(self, parts: Sequence[TopicPartition], at_ms: int) -> dict[TopicPartition, int]:
        """The first offset whose timestamp is >= `at_ms` (epoch ms), the end offset if there is
        none; missing ones absent.
        """
        return await self._offsets.at_time(parts, at_ms)

    async def create_topics(self, specs: Sequence[TopicSpec]) -> dict[str, str]:
        """Creates topics: name -> "created" or "exists" (whatever its settings). Returns when their
        leaders answer.

        If one can't be created, LogUnavailable; others of the same call may have been. A repeat is
        safe.
        """
        return await self._admin.create_topics(specs)

    async def delete_topics(self, names: Sequence[str]) -> None:
        """Deletes topics; a missing one is fine."""
        await self._admin.delete_topics(names)

    async def delete_records(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Deletes the records below the given offset of each partition; a missing partition is
        fine.
        """
        await self._admin.delete_records(offsets)

    async def set_topic_config(self, topic: str, config: Mapping[str, str]) -> None:
        """Sets the named settings of a topic, leaving the others. LogUnavailable if there is no
        such topic or setting.
        """
        await self._admin.set_topic_config(topic, config)

    async def topic_config(self, topic: str) -> dict[str, str]:
        """All settings of a topic, with the broker's defaults. LogUnavailable if there is no such
        topic.
        """
        return await self._admin.topic_config(topic)

    async def topic_names(self, prefix: str) -> list[str]:
        """Names of all topics that start with `prefix`, sorted."""
        return await self._admin.topic_names(prefix)

    async def partition_count(self, topic: str) -> int | None:
        """How many partitions a topic has; None if there is no such topic."""
        return await self._admin.partition_count(topic)

    async def topic_id(self, topic: str) -> str | None:
        """Kafka's id of a topic: another topic of that name has another. None if there is no such
        topic. Raises LogUnavailable.
        """
        return await self._admin.topic_id(topic)

    async def commit_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Writes offsets of a consumer group, for lag tools; a missing partition is skipped. The
        group must have no members.
        """
        await self._admin.commit_group_offsets(group, offsets)

    async def delete_groups(self, groups: Sequence[str]) -> None:
        """Deletes consumer groups; a missing one is fine."""
        await self._admin.delete_groups(groups)

    async def alive(self) -> bool:
        """Whether a broker answers within 2 s. Never raises."""
        return await self._offsets.alive()


def value_bytes(records: Iterable[Record]) -> int:
    """Returns how many bytes the values of some records have."""
    return sum(len(record.value or b"") for record in records)


def _stretches(offsets: Sequence[int]) -> Iterator[Sequence[int]]:
    """Ascending offsets in pieces, each of offsets that lie near to each other."""
    first = 0
    for at in range(1, len(offsets) + 1):
        if at == len(offsets) or offsets[at] - offsets[at - 1] >= NEAR_OFFSETS:
            yield offsets[first:at]
            first = at
