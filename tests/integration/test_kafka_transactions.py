"""Transactions of Kafka-native producers: what was aborted is never delivered, what is open not
before its commit, and the service's own sends behind it are held up by none.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from confluent_kafka import Producer

import engine.loading.loader as loader_module
from engine.engine import Engine
from engine.recovery.verify import Verifier
from engine.shapes import SendEntry
from schemas.records import BatchMark, Message
from schemas.records.settings import QueueSettings
from schemas.wire import encode
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, eventually, receive, send
from tests.integration.test_rebuild import wipe
from tests.services import Services


class Transactional:
    """A producer of Kafka's own with one transaction at a time."""

    def __init__(self, stack: Services, engine: Engine, name: str) -> None:
        self.topic = f"{engine.settings.topic_prefix}.q.q"
        self._client = Producer(
            {"bootstrap.servers": stack.bootstrap, "transactional.id": f"{engine.settings.topic_prefix}-{name}"}
        )
        self._client.init_transactions(20)

    def write(self, *values: bytes) -> None:
        for value in values:
            self._client.produce(self.topic, value, partition=0)
        assert self._client.flush(20) == 0

    def begin(self, *values: bytes) -> None:
        self._client.begin_transaction()
        self.write(*values)

    def commit(self) -> None:
        self._client.commit_transaction(20)

    def abort(self) -> None:
        self._client.abort_transaction(20)


@pytest.fixture
async def worker(make_engine: MakeEngine) -> Engine:
    engine = await make_engine(kept_bytes=0)
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    return engine


@pytest.fixture
def producer(stack: Services, worker: Engine) -> Transactional:
    return Transactional(stack, worker, "t")


def native(stack: Any, engine: Engine, *values: bytes) -> None:
    client = Producer({"bootstrap.servers": stack.bootstrap})
    for value in values:
        client.produce(f"{engine.settings.topic_prefix}.q.q", value, partition=0)
    assert client.flush(20) == 0


async def at_rest(engine: Engine) -> None:
    async def empty() -> bool:
        await receive(engine, "q")
        return (await engine.queues.get_queue(BY, "q")).tags[0].backlog == 0

    await eventually(empty)
    base = engine.parts.base
    report = await Verifier(base.worker, base.log, base.store.upkeep, base.catalog, base.journal, base.reader).run(
        [engine.catalog.queues["q"]]
    )
    assert report.differences == []


async def test_what_was_aborted_is_never_delivered_also_after_a_rebuild(
    worker: Engine, producer: Transactional, stack: Services
) -> None:
    await send(worker, "q", "first")
    await asyncio.to_thread(producer.begin, b"no", b"never")
    await asyncio.to_thread(producer.abort)
    await asyncio.to_thread(native, stack, worker, b"raw")
    await asyncio.to_thread(producer.begin, b"yes")
    await asyncio.to_thread(producer.commit)
    await send(worker, "q", "last")
    page = await worker.messages.query(BY, "q", None, None, None, None, None, 10, None)
    assert [peeked.message.body for peeked in page.messages] == [b"first", b"raw", b"yes", b"last"]
    assert sorted(await drain(worker, "q", expect=4)) == ["first", "last", "raw", "yes"]
    await at_rest(worker)
    wipe(stack, worker)
    assert await drain(worker, "q", patience_ms=1_500) == []
    await at_rest(worker)


@pytest.mark.parametrize("commits", [True, False])
async def test_what_is_open_waits_and_our_own_sends_behind_it_do_not(
    worker: Engine, producer: Transactional, stack: Services, commits: bool
) -> None:
    await asyncio.to_thread(producer.begin, b"t0")
    assert (await worker.messages.send(BY, "q", [SendEntry(b"own"), SendEntry(b"two")]))[0].id
    await asyncio.to_thread(producer.write, b"t1")
    await asyncio.to_thread(native, stack, worker, b"raw")
    await send(worker, "q", "more")
    (got, *others) = await receive(worker, "q", max=10)
    assert sorted(d.message.body for d in (got, *others)) == [b"more", b"own", b"two"], "at once, by a short poll"
    await ack(worker, "q", [got, *others])
    assert await drain(worker, "q", patience_ms=1_000) == []
    await asyncio.to_thread(producer.commit if commits else producer.abort)
    expected = ["raw", "t0", "t1"] if commits else ["raw"]
    assert sorted(await drain(worker, "q", expect=len(expected))) == expected
    await at_rest(worker)


async def test_what_lies_behind_an_open_transaction_is_found_by_a_rebuild(
    worker: Engine, producer: Transactional, stack: Services
) -> None:
    """More of it than is read together."""
    await send(worker, "q", "before")
    await asyncio.to_thread(producer.begin, b"open")
    for start in range(0, 3_000, 100):
        await worker.messages.send(BY, "q", [SendEntry(b"%d" % n) for n in range(start, start + 100)])
    wipe(stack, worker)
    got = await drain(worker, "q", expect=3_001, patience_ms=1_500)
    assert len(got) == 3_001 and set(got) == {"before", *map(str, range(3_000))}
    await asyncio.to_thread(producer.commit)
    assert await drain(worker, "q", expect=1) == ["open"]
    await at_rest(worker)


async def test_a_batch_that_a_transaction_divides_is_whole_at_once(worker: Engine, producer: Transactional) -> None:
    def part(index: int) -> bytes:
        return encode(Message(b"b%d" % index, sender="tester", batch=BatchMark("b", index, 3)))

    await worker.log.append(producer.topic, 0, part(0))
    await asyncio.to_thread(producer.begin, b"open")
    await worker.log.append(producer.topic, 0, part(1))
    await asyncio.to_thread(producer.write, b"more of it")
    assert await drain(worker, "q", patience_ms=500) == []
    await worker.log.append(producer.topic, 0, part(2))
    assert sorted(await drain(worker, "q", expect=3)) == ["b0", "b1", "b2"]
    await asyncio.to_thread(producer.abort)
    await at_rest(worker)
    assert "torn_batch_records_total" not in worker.counts()


async def test_a_fifo_queue_waits_for_the_transaction(make_engine: MakeEngine, stack: Services) -> None:
    worker = await make_engine(kept_bytes=0)
    await worker.queues.create_queue(BY, "q", QueueSettings(partitions=1, fifo=True))
    producer = await asyncio.to_thread(Transactional, stack, worker, "f")
    await worker.messages.send(BY, "q", [SendEntry(b"1", group="g", dedup_id="1")])
    await asyncio.to_thread(producer.begin, b"2", b"3")
    await worker.messages.send(BY, "q", [SendEntry(b"4", group="h", dedup_id="4")])
    assert await drain(worker, "q", patience_ms=1_000) == ["1"]
    await asyncio.to_thread(producer.commit)
    assert sorted(await drain(worker, "q", expect=3)) == ["2", "3", "4"]
    await asyncio.to_thread(producer.begin, b"5")
    await worker.messages.send(BY, "q", [SendEntry(b"6", group="g", dedup_id="6")])
    wipe(stack, worker)
    assert await drain(worker, "q", patience_ms=2_000) == []
    await asyncio.to_thread(producer.abort)
    assert await drain(worker, "q", expect=1) == ["6"]
    await at_rest(worker)


async def test_a_transaction_that_hangs_alarms_and_names_what_it_holds_up(
    worker: Engine,
    producer: Transactional,
    stack: Services,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(loader_module, "HUNG_S", 0.5)
    await asyncio.to_thread(producer.begin, b"hangs")
    await asyncio.to_thread(native, stack, worker, b"one", b"two")
    assert await drain(worker, "q", patience_ms=1_500) == []
    await worker.parts.administration.watch.alarm_monitor.run_once()
    assert [(alarm.kind, alarm.queue, alarm.number) for alarm in worker.alerts.alarms()] == [
        ("transaction_open", "q", 3)
    ]
    (line,) = [r.getMessage() for r in caplog.records if r.getMessage().startswith("action=wait ")]
    assert line.startswith("action=wait queue=q partition=0 offset=0 records=3 reason=")
    await asyncio.to_thread(producer.abort)
    assert await drain(worker, "q", expect=2) == ["one", "two"]
    await worker.parts.administration.watch.alarm_monitor.run_once()
    assert worker.alerts.alarms() == []
