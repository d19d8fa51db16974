"""What Kafka's client reports of a record, as the engine takes it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, Message

from engine.log.kafka_errors import TIMED_OUT, UNKNOWN
from engine.log.log_clock import LogClock
from engine.log.polled_producer import Job, PolledProducer, Report
from engine.log.shapes import Appended


class Reported:
    """A record as the client reports it; no offset = it does not know one."""

    def __init__(self, offset: int | None) -> None:
        self._offset = offset

    def offset(self) -> int | None:
        return self._offset

    def partition(self) -> int:
        return 3

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_LOG_APPEND_TIME, 1_000


@pytest.mark.parametrize("offset", [0, 7, None])
async def test_a_record_that_is_stored_nobody_knows_where_has_no_known_outcome(offset: int | None) -> None:
    """It once was taken for the first record of its partition, and its sender got that one's id."""
    loop = asyncio.get_running_loop()
    heard: asyncio.Future[list[Report]] = loop.create_future()
    config: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:1"}
    producer = PolledProducer(config, loop, heard.set_result, lambda error: None, LogClock())
    try:
        producer.report(
            Job("t", 3, [b"x"], loop.create_future(), single=True), 0, None, cast(Message, Reported(offset))
        )
        ((_, index, result),) = await asyncio.wait_for(heard, 10)
    finally:
        producer.close(0, lambda: None)
        await asyncio.to_thread(producer.join)
    assert index == 0
    if offset is None:
        assert isinstance(result, KafkaError)
        assert result.code() == TIMED_OUT
        assert TIMED_OUT not in UNKNOWN, "what may be stored is not sent again"
    else:
        assert result == Appended(3, offset, 1_000)
