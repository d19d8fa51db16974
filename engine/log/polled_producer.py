"""One producer of Kafka's client, who polls it, and the jobs that it has.

A thread polls: it gathers reports, and wakes the loop once per poll.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, Message, Producer

from engine.log.kafka_errors import FATAL, TIMED_OUT, client_logger, logger
from engine.log.log_clock import LogClock
from engine.log.shapes import Appended, Headers
from state.clock.boot import boot_s

_POLL_S = 0.2


class Job:
    """Values for one partition and the future of their results, in order; `left` have none yet.
    Touched by the loop's thread only.
    """

    __slots__ = (
        "future",
        "headers",
        "key",
        "left",
        "partition",
        "repeated",
        "results",
        "sent_s",
        "single",
        "topic",
        "values",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        values: Sequence[bytes | None],
        future: asyncio.Future[Any],
        *,
        single: bool,
        key: bytes | None = None,
        headers: Headers | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.values = values
        self.future = future
        self.single = single
        self.key = key
        self.headers = headers
        self.results: list[Appended | KafkaError | None] = [None] * len(values)
        self.left = len(values)
        self.repeated = False
        self.sent_s = 0.0  # boot_s() when it was handed to the client last


Report: TypeAlias = tuple[Job, int, Appended | KafkaError]


class PolledProducer:
    """One producer and who polls it. `broken` is set when the client has given itself up for good.
    Made and closed on the event loop.
    """

    def __init__(
        self,
        config: dict[str, Any],
        loop: asyncio.AbstractEventLoop,
        resolve: Callable[[list[Report]], None],
        heard: Callable[[KafkaError], None],
        clock: LogClock,
    ) -> None:
        """`heard` is called with each error of the client as a whole; `clock` gets the times that
        Kafka wrote.
        """
        self.broken = False
        self._reports: list[Report] = []
        self._clock = clock
        self._written: tuple[float, int] | None = None
        self._loop = loop
        self._resolve = resolve
        self._heard = heard
        self._close_by: float | None = None
        self._ended: Callable[[], None] = lambda: None
        self.client = Producer({**config, "error_cb": self._on_error}, logger=client_logger)
        self._thread = threading.Thread(target=self._run, name="lw-log-produce", daemon=True)
        self._thread.start()

    def _on_error(self, error: KafkaError) -> None:
        self._heard(error)
        if error.fatal() or error.code() == FATAL:
            logger.warning("the producer has failed for good and is replaced: %s", error)
            self.broken = True

    def report(self, job: Job, index: int, error: KafkaError | None, message: Message) -> None:
        """Delivery callback, called within `poll`.

        A repeat of the client's that Kafka has already, but not among the last few of this
        producer, is stored at an offset that nobody says: its outcome is as unknown as that of a
        record without an answer, and the loader finds it.
        """
        offset = message.offset()
        if error is not None or offset is None:
            nowhere = error or KafkaError(TIMED_OUT, "the record was stored before, and Kafka does not say where")
            self._reports.append((job, index, nowhere))
            return
        kind, at_ms = message.timestamp()
        if kind == TIMESTAMP_LOG_APPEND_TIME:
            self._written = job.sent_s, at_ms
        self._reports.append((job, index, Appended(message.partition() or 0, offset, at_ms)))

    def _run(self) -> None:
        while self._close_by is None or (len(self.client) > 0 and time.monotonic() < self._close_by):
            self.client.poll(_POLL_S if self._close_by is None else 0.02)
            self._hand_over()
        self.client.purge()
        give_up = time.monotonic() + 1
        while len(self.client) > 0 and time.monotonic() < give_up:
            self.client.poll(0.02)
        self._hand_over()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._ended)
        del self.client  # here: its end waits for the client's threads

    def _hand_over(self) -> None:
        """Called in the thread: one wake-up of the loop for all reports of a poll."""
        if self._written is not None:
            self._clock.note(self._written[0], boot_s(), self._written[1])
            self._written = None
        if not self._reports:
            return
        reports, self._reports = self._reports, []
        try:
            self._loop.call_soon_threadsafe(self._resolve, reports)
        except RuntimeError:  # the loop is closed; nobody waits for these any more
            logger.debug("%d delivery reports came after the loop was closed", len(reports))

    def close(self, within_s: float, ended: Callable[[], None]) -> None:
        """Has the thread deliver what is queued for at most `within_s`, give up the rest, and end.

        `ended` is called on the loop then, after the last report: on a machine with too much to do
        some never come.
        """
        self._ended = ended
        self._close_by = time.monotonic() + within_s

    @property
    def alive(self) -> bool:
        """Whether its thread still runs; after `close`."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Waits for the thread; call `close` first."""
        self._thread.join()
