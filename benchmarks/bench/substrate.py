"""What lies below: Kafka's and Redis' own speed on this machine, through the clients that Leaseway
uses.

Neighbours: `__main__` gives it the Kafka and Redis of a running Leaseway. It must not know queues.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from state.redis.address import redis_address
from state.redis.connection import Connection

BODY = b"x" * 1024
PARTITIONS = 4
RECORDS = 100_000
ONE_BY_ONE = 2_000
PINGS = 50_000


def _per_s(count: int, work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


def kafka(options: dict[str, str]) -> dict[str, float]:
    """Records of 1 KiB a second: produced one by one (each acknowledged first), all at once, and
    consumed.
    """
    topic = f"bench-raw-{secrets.token_hex(4)}"
    admin = AdminClient({**options})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    try:
        settings = {**options, "acks": "all", "enable.idempotence": True, "linger.ms": 0}
        producer = Producer(settings)
        failed: list[KafkaError] = []

        def report(error: KafkaError | None, message: object) -> None:
            if error is not None:
                failed.append(error)

        def produce(records: int, flush_each: bool) -> None:
            for number in range(records):
                while True:
                    try:
                        producer.produce(topic, BODY, partition=number % PARTITIONS, on_delivery=report)
                        break
                    except BufferError:
                        producer.poll(0.01)
                producer.flush() if flush_each else producer.poll(0)
            producer.flush()

        produce(1000, flush_each=False)
        alone = _per_s(ONE_BY_ONE, lambda: produce(ONE_BY_ONE, flush_each=True))
        many = _per_s(RECORDS, lambda: produce(RECORDS, flush_each=False))
        if failed:
            raise RuntimeError(f"{len(failed)} records were not taken: {failed[0]}")
        return {
            "Kafka produce 1 KiB, one in flight": alone,
            "Kafka produce 1 KiB, many": many,
            "Kafka consume 1 KiB": _consume(options, topic),
        }
    finally:
        admin.delete_topics([topic])[topic].result(30)


def _consume(options: dict[str, str], topic: str) -> float:
    consumer = Consumer({**options, "group.id": topic, "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        got = len(consumer.consume(1, 30))
        began, first = time.perf_counter(), got
        while got < RECORDS:
            records = consumer.consume(10_000, 5)
            if not records:
                raise RuntimeError(f"{got} of {RECORDS} records came")
            got += len(records)
        return (got - first) / (time.perf_counter() - began)
    finally:
        consumer.close()


def redis(url: str) -> dict[str, float]:
    """Commands a second: PING one by one and 100 in flight through our own connection;
    redis-benchmark's where it is installed.
    """
    found = asyncio.run(_pings(url))
    program = shutil.which("redis-benchmark")
    if program:
        address = redis_address(url)
        command = [
            program,
            *(("-s", address.socket) if address.socket else ("-h", address.host, "-p", str(address.port))),
            "-t",
            "set",
            "-d",
            "1024",
            "-n",
            "100000",
            "-P",
            "16",
            "--csv",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        row = done.stdout.strip().splitlines()[-1].split(",")
        found["redis-benchmark SET 1 KiB, 50 connections, pipelines of 16"] = float(row[1].strip('"'))
    return found


async def _pings(url: str) -> dict[str, float]:
    connection = Connection(url)
    await connection.start()
    try:
        began = time.perf_counter()
        for _ in range(ONE_BY_ONE):
            await connection.call("PING")
        alone = ONE_BY_ONE / (time.perf_counter() - began)
        began = time.perf_counter()
        for _ in range(PINGS // 100):
            await asyncio.gather(*(connection.call("PING") for _ in range(100)))
        return {"Redis PING, one in flight": alone, "Redis PING, 100 in flight": PINGS / (time.perf_counter() - began)}
    finally:
        await connection.stop()
