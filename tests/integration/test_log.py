"""The log against a real broker: appends, fetches, topics, and what happens when topics or the
producer go away.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from engine.errors import LogUnavailable, MessageTooLarge, Overloaded
from engine.log import Appended, Chunk, Log, TopicSpec, reader_pool
from engine.log import log as log_module
from engine.log.kafka_errors import client_logger, note
from engine.log.polled_producer import PolledProducer
from engine.log.reader import READ_CONFIG
from tests.integration.drive import eventually
from tests.services import Services

MIB = 1 << 20


@pytest.fixture
async def log(stack: Services) -> AsyncIterator[Log]:
    """A started log, stopped after the test."""
    log = Log(stack.bootstrap, send_timeout_ms=10_000)
    await log.start()
    yield log
    await log.stop()


@pytest.fixture
async def topic(log: Log) -> AsyncIterator[str]:
    """A new topic of 4 partitions, deleted after the test."""
    name = f"log-{secrets.token_hex(6)}"
    await log.create_topics([spec(name)])
    yield name
    await log.delete_topics([name])


def spec(name: str) -> TopicSpec:
    return TopicSpec(name, 4, 1, {"message.timestamp.type": "LogAppendTime"})


def values(chunk: Chunk) -> list[bytes | None]:
    return [record.value for record in chunk.records]


async def read_all(log: Log, topic: str, partition: int, offset: int = 0, max_records: int = 1000) -> list[int]:
    offsets: list[int] = []
    while True:
        chunk = await log.fetch(topic, partition, offset, max_records, MIB)
        offsets += [record.offset for record in chunk.records]
        offset = chunk.next_offset
        if chunk.at_end:
            return offsets


async def test_a_record_is_fetched_as_it_was_appended(log: Log, topic: str) -> None:
    before_ms = int(time.time() * 1000)

    appended = await log.append(topic, 2, b"value", b"key", [("a", b"1"), ("none", None)])
    await log.append(topic, 2, None)
    chunk = await log.fetch(topic, 2, 0, 10, MIB)

    first, second = chunk.records
    assert appended == Appended(2, 0, first.timestamp_ms)
    assert before_ms <= first.timestamp_ms <= before_ms + 10_000
    assert (first.topic, first.partition, first.key, first.value, first.headers) == (
        topic,
        2,
        b"key",
        b"value",
        [("a", b"1"), ("none", None)],
    )
    assert (second.key, second.value, second.headers) == (None, None, None)
    assert (chunk.next_offset, chunk.at_end, chunk.truncated) == (2, True, False)


async def test_many_are_appended_in_order_and_each_gets_its_own_result(log: Log, topic: str) -> None:
    batches = [[b"%d-%d" % (batch, i) for i in range(100)] for batch in range(20)]

    results = await asyncio.gather(*(log.append_many(topic, 1, batch) for batch in batches))
    await log.append_many(topic, 1, [])

    assert [r.offset for batch in results for r in batch if isinstance(r, Appended)] == list(range(2000))
    assert values(await log.fetch(topic, 1, 0, 5000, 8 * MIB)) == [value for batch in batches for value in batch]


async def test_a_result_that_failed_stands_at_its_own_place(log: Log, topic: str) -> None:
    results = await log.append_many(topic, 0, [b"a", b"x" * (5 * MIB), b"b"])

    assert [type(r) for r in results] == [Appended, MessageTooLarge, Appended]
    assert values(await log.fetch(topic, 0, 0, 10, MIB)) == [b"a", b"b"]


async def test_an_append_to_what_does_not_exist_fails_soon(log: Log, topic: str) -> None:
    began = time.monotonic()
    for where in (("log-none", 0), (topic, 99)):
        with pytest.raises(LogUnavailable):
            await log.append(*where, b"x")
        assert [type(r) for r in await log.append_many(*where, [b"x", b"y"])] == [LogUnavailable] * 2
        with pytest.raises(LogUnavailable):
            await log.fetch(*where, 0, 10, MIB)
    assert time.monotonic() - began < 3


async def test_more_than_the_client_holds_is_overload_and_a_head_is_written(log: Log, topic: str) -> None:
    results = await log.append_many(topic, 0, [b"x"] * 110_000)

    kept = sum(isinstance(r, Appended) for r in results)
    assert 0 < kept < 110_000
    assert all(isinstance(r, Overloaded) for r in results[kept:])
    assert await log.end_offsets([(topic, 0)]) == {(topic, 0): kept}


async def test_a_cancelled_append_is_written_and_disturbs_nothing(log: Log, topic: str) -> None:
    log.append(topic, 0, b"a").cancel()

    assert (await log.append(topic, 0, b"b")).offset == 1


async def test_every_record_is_fetched_once_whatever_the_size_of_the_chunks(log: Log, topic: str) -> None:
    await log.append_many(topic, 0, [b"x" * 1024] * 3000)

    for max_records in (7, 500, 10_000):
        assert await read_all(log, topic, 0, 0, max_records) == list(range(3000))
    assert await read_all(log, topic, 0, 2990) == list(range(2990, 3000))


async def test_records_are_read_wherever_they_are(log: Log, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "NEAR_OFFSETS", 20)
    monkeypatch.setattr(log_module, "_STRETCH_RECORDS", 30)
    for start in range(0, 2_000, 500):
        await log.append_many(topic, 0, [b"%d" % n for n in range(start, start + 500)])
    draw = random.Random(2)
    near, far = range(300, 500, 3), draw.sample(range(600, 2_000), 40)
    for wanted in (near, far, [*far, *near, 1_999, 0, 0], [5_000], [1_990, 2_000, 2_001], []):
        got: list[tuple[int, bytes | None]] = []
        await log.read_each(topic, 0, wanted, lambda record, got=got: got.append((record.offset, record.value)))  # type: ignore[misc]
        assert sorted(got) == [(offset, b"%d" % offset) for offset in sorted({n for n in wanted if n < 2_000})]
    await log.delete_records({(topic, 0): 1_000})
    got = []
    await log.read_each(topic, 0, [3, 999, 1_000, 1_500], lambda record: got.append((record.offset, record.value)))
    assert sorted(got) == [(1_000, b"1000"), (1_500, b"1500")]
    with pytest.raises(LogUnavailable):
        await log.read_each(topic, 99, [1], got.append)  # type: ignore[arg-type]


async def test_a_chunk_keeps_to_its_bounds_but_has_at_least_one_record(log: Log, topic: str) -> None:
    await log.append_many(topic, 0, [b"x" * 1000] * 20)

    assert len((await log.fetch(topic, 0, 0, 20, 5500)).records) == 5
    assert len((await log.fetch(topic, 0, 5, 20, 10)).records) == 1
    assert len((await log.fetch(topic, 0, 6, 3, MIB)).records) == 3


async def test_one_failed_reader_makes_all_that_did_not_hear_of_the_broker_since_make_room(
    log: Log, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Idle clients whose broker was away may never find it again: a pool of them must not fail its
    users one by one.
    """
    await log.append_many(topic, 0, [b"%d" % n for n in range(10)])
    pool = log._readers
    await asyncio.gather(*(log.fetch(topic, 0, n, 1, MIB) for n in range(reader_pool.READERS)))
    assert len(pool._idle) == reader_pool.READERS
    # As after a fault: clients that know no broker, and are not new.
    monkeypatch.setattr(reader_pool, "_OLD_S", 0.0)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        lost = {"bootstrap.servers": f"127.0.0.1:{deaf.getsockname()[1]}"}
        for reader in pool._idle:
            reader._consumer.close()
            reader._consumer = Consumer({**READ_CONFIG, **lost, "error_cb": note}, logger=client_logger)
            reader._forget((topic, 0))
        failed = 0
        for n in range(reader_pool.READERS):
            try:
                assert values(await log.fetch(topic, 0, n, 1, MIB)) == [b"%d" % n]
            except LogUnavailable:
                failed += 1
    assert failed == 1


async def test_more_fetches_than_readers_run_side_by_side(log: Log, topic: str) -> None:
    for partition in range(4):
        await log.append_many(topic, partition, [b"x"] * 100)

    found = await asyncio.gather(*(read_all(log, topic, i % 4, i, 10) for i in range(40)))

    assert found == [list(range(i, 100)) for i in range(40)]


async def test_a_fetch_at_the_end_returns_at_once_and_sees_what_came_since(log: Log, topic: str) -> None:
    for i in range(100):
        assert await log.fetch(topic, 0, i, 10, MIB) == Chunk([], i, True)
        await log.append(topic, 0, b"%d" % i)
        assert values(await log.fetch(topic, 0, i, 10, MIB)) == [b"%d" % i]


async def test_a_waiting_fetch_gets_the_next_record_or_nothing_in_time(log: Log, topic: str) -> None:
    began = time.monotonic()
    assert await log.fetch(topic, 0, 0, 10, MIB, wait_ms=300) == Chunk([], 0, True)
    assert 0.25 < time.monotonic() - began < 1

    waiting = asyncio.create_task(log.fetch(topic, 0, 0, 10, MIB, wait_ms=5000))
    await asyncio.sleep(0.3)
    await log.append(topic, 0, b"x")
    began = time.monotonic()
    assert values(await waiting) == [b"x"]
    assert time.monotonic() - began < 0.2


def client_wakes() -> int:
    """How often threads of Kafka's clients in this process have gone to sleep so far."""
    wakes = 0
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            if (task / "comm").read_text().startswith("rdk:broker"):
                wakes += int(
                    re.findall(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.MULTILINE)[0]
                )
    return wakes


async def test_a_fetch_that_waits_leaves_the_broker_alone(log: Log, topic: str) -> None:
    await log.fetch(topic, 0, 0, 10, MIB, wait_ms=500)
    before = client_wakes()

    assert await log.fetch(topic, 0, 0, 10, MIB, wait_ms=2000) == Chunk([], 0, True)

    assert client_wakes() - before < 60  # 170 and more if it asked every 10 ms


async def test_a_cancelled_fetch_leaves_its_reader_usable(log: Log, topic: str) -> None:
    waiting = [asyncio.create_task(log.fetch(topic, 0, 0, 10, MIB, wait_ms=500)) for _ in range(8)]
    await asyncio.sleep(0.1)
    for task in waiting:
        task.cancel()
    await log.append(topic, 1, b"x")

    assert values(await log.fetch(topic, 1, 0, 10, MIB)) == [b"x"]


async def test_what_retention_has_taken_is_told(log: Log, topic: str) -> None:
    await log.append_many(topic, 0, [b"x"] * 100)
    await log.delete_records({(topic, 0): 60, ("log-none", 0): 3})

    chunk = await log.fetch(topic, 0, 10, 5, MIB)

    assert [r.offset for r in chunk.records] == [60, 61, 62, 63, 64]
    assert (chunk.truncated, chunk.next_offset) == (True, 65)
    assert await log.start_offsets([(topic, 0)]) == {(topic, 0): 60}
    assert await log.fetch(topic, 0, 500, 5, MIB) == Chunk([], 100, True)


async def test_offsets_are_known_of_existing_partitions_only(log: Log, topic: str) -> None:
    first = await log.append(topic, 0, b"a")
    await asyncio.sleep(0.01)
    second = await log.append(topic, 0, b"b")
    parts = [(topic, 0), (topic, 1), (topic, 99), ("log-none", 0)]

    assert await log.end_offsets(parts) == {(topic, 0): 2, (topic, 1): 0}
    assert await log.end_offsets([("log-none", 0)]) == {}
    assert await log.end_offsets([]) == {}
    assert await log.start_offsets(parts) == {(topic, 0): 0, (topic, 1): 0}
    assert await log.offsets_at(parts, first.timestamp_ms) == {(topic, 0): 0, (topic, 1): 0}
    assert await log.offsets_at([(topic, 0)], first.timestamp_ms + 1) == {(topic, 0): 1}
    assert await log.offsets_at([(topic, 0)], second.timestamp_ms + 1) == {(topic, 0): 2}


async def test_topics_are_created_once_listed_and_deleted(log: Log, topic: str) -> None:
    name = topic + "-more"

    assert await log.create_topics([spec(topic), spec(name)]) == {topic: "exists", name: "created"}
    assert await log.topic_names(topic) == [topic, name]
    await log.set_topic_config(name, {"retention.ms": "100000"})
    assert (await log.partition_count(name), await log.partition_count("log-none")) == (4, None)
    await log.delete_topics([name, "log-none"])

    async def forgotten() -> bool:
        return await log.partition_count(name) is None

    # The controller has deleted it; a broker's metadata follow a moment later.
    await eventually(forgotten)
    with pytest.raises(LogUnavailable):
        await log.create_topics([TopicSpec("log-wrong", 1, 3, {})])


async def test_group_offsets_are_written_and_groups_deleted(log: Log, topic: str) -> None:
    await log.commit_group_offsets("lw.log.test", {(topic, 0): 7, ("log-none", 0): 1})
    await log.commit_group_offsets("lw.log.test", {(topic, 0): 8})
    await log.delete_groups(["lw.log.test", "lw.log.none"])


@pytest.mark.parametrize("pause_s", [0.0, 1.2])
async def test_a_topic_made_again_is_written_and_read_within_a_second(log: Log, topic: str, pause_s: float) -> None:
    await log.append_many(topic, 0, [b"old"] * 5)
    assert len((await log.fetch(topic, 0, 0, 10, MIB)).records) == 5
    for life in range(3):
        await log.delete_topics([topic])
        await asyncio.sleep(pause_s)
        await log.create_topics([spec(topic)])
        began = time.monotonic()

        assert (await log.append(topic, 0, b"%d" % life)).offset == 0
        assert values(await log.fetch(topic, 0, 0, 10, MIB)) == [b"%d" % life]
        assert time.monotonic() - began < 5  # an old leader in a cache costs 10 s and more


async def test_a_topic_made_again_after_failed_appends_is_written_within_a_second(log: Log, topic: str) -> None:
    await log.append(topic, 0, b"old")
    await log.delete_topics([topic])
    with pytest.raises(LogUnavailable):
        await log.append(topic, 0, b"nowhere")
    with pytest.raises(LogUnavailable):
        await log.fetch(topic, 0, 1, 10, MIB)
    await log.create_topics([spec(topic)])
    began = time.monotonic()

    assert (await log.append(topic, 0, b"new")).offset == 0
    assert values(await log.fetch(topic, 0, 0, 10, MIB)) == [b"new"]
    assert time.monotonic() - began < 1


async def test_a_producer_that_failed_for_good_is_replaced(log: Log, topic: str) -> None:
    await log.append(topic, 0, b"a")
    producer = log._appender._producer
    assert producer is not None
    producer.broken = True  # librdkafka can't be made to fail for good from here

    assert (await log.append(topic, 0, b"b")).offset == 1
    assert log._appender._producer is not producer


async def test_a_stop_delivers_what_was_appended_and_leaves_no_thread(stack: Services, topic: str) -> None:
    before = set(threading.enumerate())
    log = Log(stack.bootstrap, send_timeout_ms=10_000)
    await log.stop()
    log = Log(stack.bootstrap, send_timeout_ms=10_000)
    await log.start()
    await log.start()
    appended = [log.append_many(topic, 0, [b"x" * 1024] * 1000) for _ in range(10)]
    waiting = asyncio.create_task(log.fetch(topic, 1, 0, 10, MIB, wait_ms=60_000))
    await asyncio.sleep(0.05)

    await log.stop()
    await log.stop()

    assert all(isinstance(r, Appended) for future in appended for r in future.result())
    assert await waiting == Chunk([], 0, True)
    assert set(threading.enumerate()) <= before
    assert not await log.alive()
    for late in (log.append(topic, 0, b"x"), log.fetch(topic, 0, 0, 1, 1), log.end_offsets([(topic, 0)])):
        with pytest.raises(LogUnavailable):
            await late


async def test_what_an_old_producer_never_reports_fails_when_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with too much to do its thread may end before the client has reported what it
    gave up.
    """
    monkeypatch.setattr(PolledProducer, "_hand_over", lambda self: self._reports.clear())
    log = Log("127.0.0.1:1", send_timeout_ms=300)
    await log.start()
    try:
        async with asyncio.timeout(10):
            with pytest.raises(LogUnavailable):
                await log.append("t", 0, b"one")
            (one, two) = await log.append_many("t", 0, [b"two", b"three"])
            assert isinstance(one, LogUnavailable) and isinstance(two, LogUnavailable)
    finally:
        await log.stop()


@pytest.mark.long
async def test_a_log_without_kafka_starts_fails_in_time_and_stops() -> None:
    log = Log("127.0.0.1:1", send_timeout_ms=1000)
    began = time.monotonic()

    await log.start()
    assert not await log.alive()
    with pytest.raises(LogUnavailable):
        await log.append("t", 0, b"x")
    with pytest.raises(LogUnavailable):
        await log.fetch("t", 0, 0, 1, 1)
    await log.stop()

    assert time.monotonic() - began < 30


async def test_appends_tell_the_time_of_kafka(log: Log, topic: str) -> None:
    assert log.clock.now_ms() is None
    for _ in range(5):
        appended = await log.append(topic, 0, b"x")
    known = log.clock.now_ms()
    assert known is not None and log.clock.error_ms < 5_000
    # Kafka is on this machine here, so its clock is ours.
    assert abs(known - time.time() * 1000) <= log.clock.error_ms + 50
    assert appended.timestamp_ms <= known + log.clock.error_ms


async def test_a_topic_of_its_producers_times_does_not_tell_the_time_of_kafka(log: Log) -> None:
    name = f"log-{secrets.token_hex(6)}"
    await log.create_topics([TopicSpec(name, 1, 1, {"message.timestamp.type": "CreateTime"})])
    await log.append(name, 0, b"x")
    assert log.clock.now_ms() is None
    await log.delete_topics([name])


async def test_what_was_read_ahead_long_ago_does_not_tell_where_the_log_ends(log: Log, topic: str) -> None:
    """A reader holds a MiB ahead, and asks for no more until that is taken: of what is appended
    meanwhile it has not heard.
    """
    body = b"x" * 2_000_000
    await log.append(topic, 0, body)
    first = await log.fetch(topic, 0, 0, 10, 10_000_000)
    await log.append(topic, 0, body)
    await asyncio.sleep(1)
    await log.append(topic, 0, body)
    second = await log.fetch(topic, 0, first.next_offset, 10, 10_000_000)
    offsets = [record.offset for record in second.records]
    assert offsets == [1, 2] or (offsets == [1] and not second.at_end)
    assert second.at_end or [record.offset for record in (await log.fetch(topic, 0, 2, 10, 10_000_000)).records] == [2]
