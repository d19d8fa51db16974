"""Atomic batches on their way from Kafka into the window: windows that stop inside one, others'
records in between, senders that died.
"""

from __future__ import annotations

import asyncio

import pytest

import engine.loading.loader
import engine.loading.renewals
import engine.window.batches.atomic_batches
import engine.window.batches.message_log
from engine.engine import Engine
from engine.log import Chunk
from engine.rules.queue import Queue
from engine.shapes import SendEntry
from engine.window.batches.atomic_batches import Assembled, Fetch
from engine.window.batches.message_log import Unfinished
from schemas.records import BatchMark, Message
from schemas.records.settings import QueueSettings
from schemas.wire import encode
from tests.clock import Clock
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, drain


def part(batch: str, index: int, size: int) -> bytes:
    return encode(Message(f"{batch}{index}".encode(), sender="tester", batch=BatchMark(batch, index, size)))


def single(body: bytes) -> bytes:
    return encode(Message(body, sender="tester"))


async def append(engine: Engine, values: list[bytes]) -> None:
    """Appends records to the only partition of queue "q", in order, as another program would."""
    for at in range(0, len(values), 500):
        await asyncio.gather(
            *(engine.log.append(f"{engine.settings.topic_prefix}.q.q", 0, value) for value in values[at : at + 500])
        )


@pytest.fixture
async def small(make_engine: MakeEngine) -> Engine:
    """An engine whose window stops inside of batches, and its queue "q" of one partition."""
    engine = await make_engine(window_messages=130, kept_bytes=0)
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    return engine


async def test_the_rest_of_a_batch_comes_also_far_behind_the_start_of_the_log(small: Engine) -> None:
    """What a fetch returns at once is less than what is asked for: the head of the batch must not
    be looked for in vain.
    """
    for start in range(0, 2000, 100):
        await small.messages.send(BY, "q", [SendEntry(b"%d" % n + b"." * 1000) for n in range(start, start + 100)])
    assert sorted(int(body.rstrip(".")) for body in await drain(small, "q", expect=2000)) == list(range(2000))


async def test_the_head_of_a_batch_is_found_behind_more_records_of_others_than_a_chunk_has(small: Engine) -> None:
    singles = [single(b"s%d" % n) for n in range(1500)]
    head, tail = [part("b", n, 60) for n in range(30)], [part("b", n, 60) for n in range(30, 60)]
    await append(small, [*head, *singles, *tail])
    got = await drain(small, "q", expect=1560)
    assert sorted(got) == sorted([*(f"b{n}" for n in range(60)), *(f"s{n}" for n in range(1500))])


async def test_a_batch_of_more_bytes_than_a_chunk_comes_whole(make_engine: MakeEngine) -> None:
    engine = await make_engine(window_messages=16, window_bytes=2_000_000, kept_bytes=0)
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, max_message_bytes=1_048_576))
    await engine.messages.send(BY, "q", [SendEntry(b"%d" % n + b"." * 39_000) for n in range(100)])
    assert sorted(int(body.rstrip(".")) for body in await drain(engine, "q", expect=100)) == list(range(100))


async def test_a_torn_batch_holds_up_no_log_that_is_longer_than_what_is_looked_at(
    small: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sender died, others went on fast: within 30 s more came than a loader looks at together."""
    monkeypatch.setattr(engine.window.batches.atomic_batches, "LOOK_AHEAD", 50)
    monkeypatch.setattr(engine.window.batches.atomic_batches, "BATCH_SPAN_MS", 2000)
    monkeypatch.setattr(engine.window.batches.message_log, "BATCH_SPAN_MS", 2000)
    monkeypatch.setattr(engine.window.batches.message_log, "BATCH_CLOCK_MARGIN_MS", 200)
    await append(small, [part("torn", n, 10) for n in range(5)])
    await append(small, [single(b"s%d" % n) for n in range(1500)])
    got = await drain(small, "q", expect=1500)
    assert sorted(got) == sorted(f"s{n}" for n in range(1500))
    status = (await small.queues.get_queue(BY, "q")).tags[0]
    assert (status.stored, status.ready) == (0, 0), "the cursor has passed the torn batch"
    assert small.counts()["torn_batch_records_total"] == 5
    await small.parts.administration.watch.alarm_monitor.run_once()
    assert [(alarm.kind, alarm.queue, alarm.number) for alarm in small.alerts.alarms()] == [("records_skipped", "q", 5)]


@pytest.mark.parametrize("ahead_s", [300, -300])
async def test_a_clock_that_differs_from_that_of_kafka_tears_no_batch(
    small: Engine, clock: Clock, ahead_s: int
) -> None:
    """The second half of an answered batch is appended while the loader has seen the first, in
    several requests, as over a slow link.
    """
    clock.pass_s(ahead_s)
    await append(small, [single(b"before"), part("b", 0, 4)])
    assert await drain(small, "q", expect=1) == ["before"]
    for index in (1, 2):
        await append(small, [part("b", index, 4)])
        assert await drain(small, "q", patience_ms=300) == []
    await append(small, [part("b", 3, 4)])
    assert await drain(small, "q", expect=4) == ["b0", "b1", "b2", "b3"]
    assert "torn_batch_records_total" not in small.counts()


@pytest.mark.parametrize("fifo", [False, True])
async def test_a_torn_batch_at_the_end_of_an_idle_partition_is_settled(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fifo: bool
) -> None:
    """This worker appends nothing, and nothing comes later in the log."""
    monkeypatch.setattr(engine.window.batches.message_log, "BATCH_SPAN_MS", 1000)
    monkeypatch.setattr(engine.window.batches.message_log, "BATCH_CLOCK_MARGIN_MS", 500)
    worker = await make_engine()
    await worker.queues.create_queue(BY, "q", QueueSettings(partitions=1, fifo=fifo))
    await append(
        worker,
        [
            part("torn", 0, 3),
            part("torn", 1, 3),
            encode(Message(b"after", sender="tester", group="g" if fifo else None)),
        ],
    )
    got = await drain(worker, "q", expect=0 if fifo else 1, patience_ms=500)
    assert got == ([] if fifo else ["after"])
    assert await drain(worker, "q", expect=1 if fifo else 0, patience_ms=4_000) == (["after"] if fifo else [])
    async with asyncio.timeout(10):
        while worker.counts().get("torn_batch_records_total") != 2:
            await drain(worker, "q", patience_ms=200)
    (line,) = [r.getMessage() for r in caplog.records if "reason=torn_batch" in r.getMessage()]
    assert line.startswith("action=skip queue=q partition=0 offset=0 ") and line.endswith("batch=torn records=2 of=3")
    assert (await worker.queues.get_queue(BY, "q")).tags[0].backlog == 0


@pytest.mark.parametrize("index", [-1, 7, 1 << 40])
async def test_a_forged_place_in_a_batch_holds_up_nothing(small: Engine, index: int) -> None:
    await append(small, [single(b"before"), part("forged", index, 3), part("forged", index, 0), single(b"after")])
    async with asyncio.timeout(10):
        assert sorted(await drain(small, "q", expect=2, patience_ms=500)) == ["after", "before"]


async def test_a_partition_that_does_not_get_on_is_looked_at_less_often_and_told(
    small: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, real = [0], engine.window.batches.atomic_batches.assemble

    async def stuck(unfinished: Unfinished, queue: Queue, chunk: Chunk, fetch: Fetch) -> Assembled:
        looks[0] += 1
        await asyncio.sleep(0.05)
        return Assembled([], [], chunk.records[0].offset, [], chunk.records[0].offset)

    monkeypatch.setattr(engine.loading.loader, "assemble", stuck)
    monkeypatch.setattr(engine.loading.renewals, "STOPPED_S", 0.5)
    await append(small, [single(b"held")])
    assert await drain(small, "q") == [] and looks[0] <= 5
    await small.parts.administration.watch.alarm_monitor.run_once()
    assert [(alarm.kind, alarm.queue, alarm.number) for alarm in small.alerts.alarms()] == [("load_stopped", "q", 1)]
    monkeypatch.setattr(engine.loading.loader, "assemble", real)
    assert await drain(small, "q", expect=1) == ["held"]
    await small.parts.administration.watch.alarm_monitor.run_once()
    assert small.alerts.alarms() == []
