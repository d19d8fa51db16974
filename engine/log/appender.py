"""Appends: an idempotent producer (acks=all), and what becomes of a job that fails or is late.

Time is kept here, not by Kafka's client. When a record of the client's runs out of time, the client
takes a new epoch and sends again, under that epoch, all that it has no answer for; the broker then
stores twice what it had stored already. So the client's records have no end: once a job is late its
producer is given up with all that it has, whose outcome is unknown, and what comes then goes by a
new one. Nothing is sent after it has failed: a record of a queue, or a snapshot, would come behind
the newer one that replaced it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, cast

from confluent_kafka import KafkaError, KafkaException

from engine.log.kafka_errors import PURGED, QUEUE_FULL, STOPPED, UNKNOWN, engine_error, error_of, logger
from engine.log.log_clock import LogClock
from engine.log.polled_producer import Job, PolledProducer, Report
from engine.log.shapes import MAX_RECORD_BYTES, Appended, Headers
from runtime.background import Background
from state.clock.boot import boot_s

_QUEUE_RECORDS = 100_000
QUEUE_KIB = 128 * 1024
BATCH_BYTES = 1024 * 1024
_METADATA_S = 1.0
# A timer that is so late says that this process stood still; then one more look after a moment.
STOOD_STILL_S = 1.0
LOOK_AGAIN_S = 0.3


class Appender:
    """Appends records. All methods belong to the event loop that called `start`."""

    def __init__(
        self,
        config: dict[str, Any],
        send_timeout_ms: int,
        threads: ThreadPoolExecutor,
        heard: Callable[[KafkaError], None],
        clock: LogClock,
    ) -> None:
        """`heard` is called with each error of the client as a whole; `clock` learns from each
        append.
        """
        self._config = {
            **config,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            "batch.size": BATCH_BYTES,
            "compression.type": "none",
            "message.timeout.ms": 0,  # never; see above
            "message.max.bytes": MAX_RECORD_BYTES,
            "queue.buffering.max.messages": _QUEUE_RECORDS,
            "queue.buffering.max.kbytes": QUEUE_KIB,
            # How long an unknown topic may be one that the broker is only about to hear of; we ask
            # once more ourselves.
            "topic.metadata.propagation.max.ms": 300,
            # How soon an unanswered question for a new topic's leader is asked again: 100 would be
            # the first append's p99.
            "topic.metadata.refresh.fast.interval.ms": 10,
        }
        self._timeout_s = send_timeout_ms / 1000
        self._threads = threads
        self._heard = heard
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._producer: PolledProducer | None = None
        self._old: list[PolledProducer] = []
        # Jobs that the producer has, oldest first, and when (loop time) they are late.
        self._late_at: dict[Job, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._repeats = Background()

    def start(self) -> None:
        """Starts the producer; Kafka need not be there. Idempotent."""
        if self._producer is None:
            self._loop = asyncio.get_running_loop()
            self._producer = PolledProducer(self._config, self._loop, self._resolve, self._heard, self._clock)

    async def stop(self) -> None:
        """Delivers what is queued (within the send time-out), fails the rest, ends the threads.
        Idempotent.
        """
        producer, self._producer = self._producer, None
        if producer is None:
            return
        await self._repeats.finished()
        producers, self._old = [*self._old, producer], []
        producer.close(self._timeout_s, partial(self._unreported, list(self._late_at)))
        for each in producers:
            await asyncio.get_running_loop().run_in_executor(self._threads, each.join)
        await asyncio.sleep(0)  # what the threads handed over last is resolved now
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def append(
        self, topic: str, partition: int, value: bytes | None, key: bytes | None, headers: Headers | None
    ) -> asyncio.Future[Appended]:
        """See `Log.append`."""
        future: asyncio.Future[Appended] = self._running().create_future()
        job = Job(topic, partition, (value,), future, single=True, key=key, headers=headers)
        self._send(job, [0])
        return future

    def append_many(
        self, topic: str, partition: int, values: Sequence[bytes]
    ) -> asyncio.Future[list[Appended | Exception]]:
        """See `Log.append_many`."""
        future: asyncio.Future[list[Appended | Exception]] = self._running().create_future()
        if values:
            self._send(Job(topic, partition, values, future, single=False), range(len(values)))
        else:
            future.set_result([])
        return future

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise RuntimeError("the log has not been started")
        return self._loop

    def _send(self, job: Job, indexes: Sequence[int]) -> None:
        producer = self._producer
        if producer is None:
            self._resolve([(job, i, KafkaError(STOPPED, "the log is stopped")) for i in indexes])
            return
        if producer.broken:
            producer = self._replace(producer)
        self._late_at[job] = self._running().time() + self._timeout_s
        job.sent_s = boot_s()
        if self._timer is None:
            self._timer = self._running().call_later(self._timeout_s, self._check_late)
        if job.single:
            refused = self._produce(producer, job)
        else:
            batch: list[dict[str, Any]] = [
                {"value": job.values[i], "callback": partial(producer.report, job, i)} for i in indexes
            ]
            producer.client.produce_batch(job.topic, batch, partition=job.partition)
            refused = [(job, i, entry["_error"]) for i, entry in zip(indexes, batch, strict=True) if "_error" in entry]
        if refused:
            self._resolve(refused)

    def _produce(self, producer: PolledProducer, job: Job) -> list[Report]:
        try:
            producer.client.produce(
                job.topic,
                value=job.values[0],
                key=job.key,
                partition=job.partition,
                on_delivery=partial(producer.report, job, 0),
                headers=cast("Any", job.headers or None),  # list is invariant
            )
        except BufferError:
            return [(job, 0, KafkaError(QUEUE_FULL))]
        except KafkaException as fault:
            return [(job, 0, error_of(fault))]
        return []

    def _replace(self, old: PolledProducer) -> PolledProducer:
        """Sends by a new producer from now on; what the old one has fails."""
        old.close(0, partial(self._unreported, list(self._late_at)))
        self._late_at.clear()
        self._old = [*(each for each in self._old if each.alive), old]
        self._producer = PolledProducer(self._config, self._running(), self._resolve, self._heard, self._clock)
        return self._producer

    def _check_late(self, again: bool = False) -> None:
        """Gives the producer up if its oldest job is late; called when that would be, and `again`
        when this process stood still meanwhile: what came for it is read first.
        """
        self._timer = None
        late_at, now = next(iter(self._late_at.values()), None), self._running().time()
        if late_at is None or self._producer is None:
            return
        if not again and now - late_at > STOOD_STILL_S:
            self._timer = self._running().call_later(LOOK_AGAIN_S, self._check_late, True)
        elif late_at <= now:
            logger.warning("no answer of Kafka in %g s: the producer is replaced", self._timeout_s)
            self._replace(self._producer)
        else:
            self._timer = self._running().call_at(late_at, self._check_late)

    def _resolve(self, reports: Sequence[Report]) -> None:
        for job, index, result in reports:
            job.results[index] = result
            job.left -= 1
            if not job.left:
                self._late_at.pop(job, None)
                self._settle(job)

    def _unreported(self, jobs: Sequence[Job]) -> None:
        """A producer has ended: what it has not said of its jobs, nobody will."""
        lost = KafkaError(PURGED, "the producer was given up")
        self._resolve([(job, i, lost) for job in jobs for i, result in enumerate(job.results) if result is None])

    def _settle(self, job: Job) -> None:
        unknown = [
            i for i, result in enumerate(job.results) if isinstance(result, KafkaError) and result.code() in UNKNOWN
        ]
        if unknown and not job.repeated and self._producer is not None:
            # The topic may be new, or deleted and made again, and the client's memory old: ask the
            # broker, send once more.
            job.repeated, job.left = True, len(unknown)
            self._repeats.start(self._repeat(self._producer, job, unknown), "append_again")
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

    async def _repeat(self, producer: PolledProducer, job: Job, indexes: list[int]) -> None:
        ask = partial(producer.client.list_topics, job.topic, _METADATA_S)
        try:
            await self._running().run_in_executor(self._threads, ask)
        except (KafkaException, RuntimeError) as fault:
            logger.debug("no answer about topic %s: %s", job.topic, fault)
        self._send(job, indexes)
