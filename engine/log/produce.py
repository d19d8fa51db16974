"""Appends: an idempotent producer (acks=all) and what collects its delivery reports.

The event loop polls the producer when there is something (`events`); a thread does so while the producer ends, and for a client that
cannot tell: it only gathers reports and wakes the loop once per poll. All bookkeeping of a batch is done on the event loop.
Neighbours: `log` gives work, `faults` maps errors. This module must not know what is appended.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias, cast

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from engine.log.events import ReportEvents
from engine.log.faults import FATAL, QUEUE_FULL, STOPPED, UNKNOWN, client_logger, engine_error, error_of, logger, note
from engine.log.shapes import MAX_RECORD_BYTES, Appended, Headers

_QUEUE_RECORDS = 100_000
_QUEUE_KIB = 128 * 1024
_POLL_S = 0.2
_METADATA_S = 1.0


class _Job:
    """Values for one partition and the future of their results, in order. Touched by the loop's thread only."""

    __slots__ = ("future", "headers", "key", "left", "partition", "repeated", "results", "single", "topic", "values")

    def __init__(self, topic: str, partition: int, values: Sequence[bytes | None], future: asyncio.Future[Any], single: bool) -> None:
        self.topic = topic
        self.partition = partition
        self.values = values
        self.future = future
        self.single = single
        self.key: bytes | None = None
        self.headers: Headers | None = None
        self.results: list[Appended | KafkaError | None] = [None] * len(values)
        self.left = len(values)
        self.repeated = False


_Report: TypeAlias = tuple[_Job, int, Appended | KafkaError]


class _Line:
    """One producer and who polls it. `broken` is set when the client has given itself up for good. Made and closed on the event loop."""

    def __init__(self, config: dict[str, Any], loop: asyncio.AbstractEventLoop, resolve: Callable[[list[_Report]], None]) -> None:
        self.broken = False
        self._reports: list[_Report] = []
        self._loop = loop
        self._resolve = resolve
        self._close_by: float | None = None
        self.producer = Producer({**config, "error_cb": self._on_error}, logger=client_logger)
        self._thread = threading.Thread(target=self._run, name="lw-log-produce", daemon=True)
        self._events = ReportEvents(self.producer) if ReportEvents.known() else None
        if self._events is None:
            self._thread.start()
        else:
            loop.add_reader(self._events.fileno(), self._collect)
            loop.call_soon(self._collect)  # what came before it could tell

    def _on_error(self, error: KafkaError) -> None:
        note(error)
        if error.fatal() or error.code() == FATAL:
            logger.warning("the producer has failed for good and is replaced: %s", error)
            self.broken = True

    def report(self, job: _Job, index: int, error: KafkaError | None, message: Message) -> None:
        """Delivery callback, called within `poll`."""
        if error is not None:
            self._reports.append((job, index, error))
            return
        self._reports.append((job, index, Appended(message.partition() or 0, message.offset() or 0, message.timestamp()[1])))

    def _collect(self) -> None:
        """Called on the loop when the client has something to report."""
        if self._events is None:  # closed: the thread collects
            return
        self._events.clear()
        self.producer.poll(0)
        if self._reports:
            reports, self._reports = self._reports, []
            self._resolve(reports)

    def _run(self) -> None:
        while self._close_by is None or (len(self.producer) > 0 and time.monotonic() < self._close_by):
            self.producer.poll(_POLL_S if self._close_by is None else 0.02)
            self._hand_over()
        self.producer.purge()
        give_up = time.monotonic() + 1
        while len(self.producer) > 0 and time.monotonic() < give_up:
            self.producer.poll(0.02)
        self._hand_over()

    def _hand_over(self) -> None:
        """Called in the thread: one wake-up of the loop for all reports of a poll."""
        if not self._reports:
            return
        reports, self._reports = self._reports, []
        try:
            self._loop.call_soon_threadsafe(self._resolve, reports)
        except RuntimeError:  # the loop is closed; nobody waits for these any more
            logger.debug("%d delivery reports came after the loop was closed", len(reports))

    def close(self, within_s: float) -> None:
        """Has the thread deliver what is queued for at most `within_s`, give up the rest, and end."""
        self._close_by = time.monotonic() + within_s
        if self._events is not None:
            self._loop.remove_reader(self._events.fileno())
            self._events.close()
            self._events = None
            self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether its thread still runs; after `close`."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Waits for the thread; call `close` first."""
        self._thread.join()


class Appender:
    """Appends records. All methods belong to the event loop that called `start`."""

    def __init__(self, config: dict[str, Any], send_timeout_ms: int, threads: ThreadPoolExecutor) -> None:
        self._config = {
            **config,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            "batch.size": 1024 * 1024,
            "compression.type": "none",
            "message.timeout.ms": send_timeout_ms,
            "message.max.bytes": MAX_RECORD_BYTES,
            "queue.buffering.max.messages": _QUEUE_RECORDS,
            "queue.buffering.max.kbytes": _QUEUE_KIB,
            # How long an unknown topic may be one that the broker is only about to hear of; we ask once more ourselves.
            "topic.metadata.propagation.max.ms": 300,
            # How soon an unanswered question for a new topic's leader is asked again: 100 would be the first append's p99.
            "topic.metadata.refresh.fast.interval.ms": 10,
        }
        self._timeout_s = send_timeout_ms / 1000
        self._threads = threads
        self._loop: asyncio.AbstractEventLoop | None = None
        self._line: _Line | None = None
        self._old: list[_Line] = []
        self._repeats: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Starts the producer; Kafka need not be there. Idempotent."""
        if self._line is None:
            self._loop = asyncio.get_running_loop()
            self._line = _Line(self._config, self._loop, self._resolve)

    async def stop(self) -> None:
        """Delivers what is queued (within the send time-out), fails the rest, ends the threads. Idempotent."""
        line, self._line = self._line, None
        if line is None:
            return
        for repeat in list(self._repeats):
            await repeat
        lines, self._old = [*self._old, line], []
        for each in lines:
            each.close(self._timeout_s)
        for each in lines:
            await asyncio.get_running_loop().run_in_executor(self._threads, each.join)
        await asyncio.sleep(0)  # what the threads handed over last is resolved now

    def append(
        self, topic: str, partition: int, value: bytes | None, key: bytes | None, headers: Headers | None
    ) -> asyncio.Future[Appended]:
        """See `Log.append`."""
        future: asyncio.Future[Appended] = self._running().create_future()
        job = _Job(topic, partition, (value,), future, single=True)
        job.key, job.headers = key, headers
        self._send(job, [0])
        return future

    def append_many(self, topic: str, partition: int, values: Sequence[bytes]) -> asyncio.Future[list[Appended | Exception]]:
        """See `Log.append_many`."""
        future: asyncio.Future[list[Appended | Exception]] = self._running().create_future()
        if values:
            self._send(_Job(topic, partition, values, future, single=False), range(len(values)))
        else:
            future.set_result([])
        return future

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise RuntimeError("the log has not been started")
        return self._loop

    def _send(self, job: _Job, indexes: Sequence[int]) -> None:
        line = self._line
        if line is None:
            self._resolve([(job, i, KafkaError(STOPPED, "the log is stopped")) for i in indexes])
            return
        if line.broken:
            line = self._replace(line)
        if job.single:
            refused = self._produce(line, job)
        else:
            batch: list[dict[str, Any]] = [{"value": job.values[i], "callback": partial(line.report, job, i)} for i in indexes]
            line.producer.produce_batch(job.topic, batch, partition=job.partition)
            refused = [(job, i, entry["_error"]) for i, entry in zip(indexes, batch, strict=True) if "_error" in entry]
        if refused:
            self._resolve(refused)

    def _produce(self, line: _Line, job: _Job) -> list[_Report]:
        try:
            line.producer.produce(
                job.topic,
                value=job.values[0],
                key=job.key,
                partition=job.partition,
                on_delivery=partial(line.report, job, 0),
                headers=cast("Any", job.headers or None),  # list is invariant
            )
        except BufferError:
            return [(job, 0, KafkaError(QUEUE_FULL))]
        except KafkaException as fault:
            return [(job, 0, error_of(fault))]
        return []

    def _replace(self, line: _Line) -> _Line:
        line.close(0)  # a broken producer delivers nothing more: what it holds fails now
        self._old = [*(old for old in self._old if old.alive), line]
        self._line = _Line(self._config, self._running(), self._resolve)
        return self._line

    def _resolve(self, reports: Sequence[_Report]) -> None:
        for job, index, result in reports:
            job.results[index] = result
            job.left -= 1
            if not job.left:
                self._settle(job)

    def _settle(self, job: _Job) -> None:
        unknown = [i for i, result in enumerate(job.results) if isinstance(result, KafkaError) and result.code() in UNKNOWN]
        if unknown and not job.repeated and self._line is not None:
            # The topic may be new, or deleted and made again, and the client's memory old: ask the broker, send once more.
            job.repeated, job.left = True, len(unknown)
            repeat = self._running().create_task(self._repeat(self._line, job, unknown))
            self._repeats.add(repeat)
            repeat.add_done_callback(self._repeats.discard)
            return
        if job.future.done():  # cancelled by a caller that went away
            return
        results = [engine_error(r) if isinstance(r, KafkaError) else r for r in job.results]
        if not job.single:
            job.future.set_result(results)
        elif isinstance(results[0], Exception):
            job.future.set_exception(results[0])
        else:
            job.future.set_result(results[0])

    async def _repeat(self, line: _Line, job: _Job, indexes: list[int]) -> None:
        ask = partial(line.producer.list_topics, job.topic, _METADATA_S)
        try:
            await self._running().run_in_executor(self._threads, ask)
        except (KafkaException, RuntimeError) as fault:
            logger.debug("no answer about topic %s: %s", job.topic, fault)
        self._send(job, indexes)
