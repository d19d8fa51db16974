"""Minutes of requests on their way to Kafka: none is lost or counted twice while it comes back."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.errors import LogUnavailable
from engine.meters.meters import Meters
from engine.meters.reporter import ROWS, Reporter
from engine.meters.requests import CHARACTERS
from schemas.records.watching import Request, RequestsRecord
from schemas.vocabulary import KEPT_MINUTES, OK
from schemas.wire import decode

RECORD_BYTES = 1_000_000  # A broker takes so many, if its settings say nothing else.


class Kafka:
    """Takes records, or not; `lost`: it takes them, and its answers are lost."""

    def __init__(self) -> None:
        self.records: list[RequestsRecord] = []
        self.sizes: list[int] = []
        self.lost = self.refuses = False

    def append(self, topic: str, partition: int, value: bytes, key: bytes) -> asyncio.Future[int]:
        assert (topic, partition, key) == ("lw.requests", 0, b"w1")
        answer = asyncio.get_running_loop().create_future()
        if not self.refuses:
            self.records.append(cast(RequestsRecord, decode(value)))
            self.sizes.append(len(value))
        if self.refuses or self.lost:
            answer.set_exception(LogUnavailable("by the test"))
        else:
            answer.set_result(0)
        return answer

    @property
    def once(self) -> dict[int, RequestsRecord]:
        """As readers see them."""
        return {record.number: record for record in self.records}


def stage() -> tuple[Kafka, Meters, list[int], Reporter]:
    kafka, meters, dropped = Kafka(), Meters(), list[int]()
    catalog: Any = SimpleNamespace(by_incarnation={})
    return kafka, meters, dropped, Reporter("w1", "lw", 60_000, cast(Any, kafka), catalog, meters, dropped.append)


def ask(meters: Meters, principal: str) -> None:
    meters.requests.add(Request(principal, "orders", "send", "send", OK), 1, 5, 5)


async def test_a_minute_with_many_rows_is_several_records_that_a_broker_takes() -> None:
    kafka, meters, _, reporter = stage()
    for number in range(2 * ROWS + 1):
        ask(meters, f"{number:04}" + "\U0001f512" * CHARACTERS)
    await reporter.stop()
    assert [len(record.rows) for record in kafka.records] == [ROWS, ROWS, 1]
    assert [record.number for record in kafka.records] == [1, 2, 3]
    assert len({(record.minute_ms, record.worker) for record in kafka.records}) == 1
    assert len({row.principal for record in kafka.records for row in record.rows}) == 2 * ROWS + 1
    assert max(kafka.sizes) < RECORD_BYTES


@pytest.mark.parametrize("way", ["refuses", "lost"])
async def test_what_is_written_again_has_its_number(way: str) -> None:
    kafka, meters, _, reporter = stage()
    setattr(kafka, way, True)
    ask(meters, "a")
    reporter._take(1)
    await reporter._write()
    await reporter._write()
    setattr(kafka, way, False)
    ask(meters, "b")
    await reporter.stop()
    assert len(kafka.records) == (2 if way == "refuses" else 4)
    assert {number: record.rows[0].principal for number, record in kafka.once.items()} == {1: "a", 2: "b"}
    assert len(reporter.requests) == 0


async def test_what_kafka_does_not_take_is_kept_for_so_many_minutes() -> None:
    kafka, meters, dropped, reporter = stage()
    kafka.refuses = True
    for minute in range(KEPT_MINUTES + 3):
        ask(meters, f"p{minute}")
        reporter._take(minute)
        await reporter._write()
    assert len(reporter.requests) == KEPT_MINUTES
    assert dropped == [1, 1, 1]
    kafka.refuses = False
    await reporter.stop()
    assert [record.rows[0].principal for record in kafka.records] == [f"p{n}" for n in range(3, KEPT_MINUTES + 3)]
