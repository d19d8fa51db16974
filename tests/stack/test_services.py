"""The shared broker and redis-server are real: they take data, and keep it when they are killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import redis
import redis.asyncio
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from facade.programs.stack.processes.settings import ONLY_SESSION_MS, SESSION_MS
from facade.programs.stack.redis_server import SOCKET_PATH_BYTES, socket_path
from state.errors import StateUnavailable
from state.redis.connection import Connection
from tests.services import Services, running_services


@pytest.fixture(scope="module")
def own(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    # Not the session's: these tests kill.
    with running_services(tmp_path_factory.mktemp("own")) as services:
        yield services


def wait_for_new_pid(services: Services, part: str, old: int) -> None:
    end = time.monotonic() + 20
    while getattr(services, part) == old:
        assert time.monotonic() < end, f"{part} is still {old}"
        time.sleep(0.02)


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 0})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _record: failed.append(error) if error else None)
    assert producer.flush(60) == 0
    assert failed == []


def consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe([topic])
    records = consumer.consume(count, timeout=30)
    consumer.close()
    return [record.value() or b"" for record in records]


def session_ms(services: Services) -> int:
    """After how long without a heartbeat the broker would be fenced in this life."""
    lines = (services.folder / "kafka.properties").read_text().splitlines()
    (found,) = [line.partition("=")[2] for line in lines if line.startswith("broker.session.timeout.ms=")]
    return int(found)


def test_only_a_broker_that_follows_a_killed_one_has_a_short_session(programs: None, tmp_path: Path) -> None:
    """With three seconds a busy machine fenced the only broker; with more, one that was killed is
    away for longer than a send waits.
    """
    with running_services(tmp_path) as services:
        assert session_ms(services) == int(ONLY_SESSION_MS)
        old = services.kafka_pid
        os.kill(old, signal.SIGKILL)
        wait_for_new_pid(services, "kafka_pid", old)
        assert session_ms(services) == int(SESSION_MS) < int(ONLY_SESSION_MS)
        assert wait_until_answered(services)
    with running_services(tmp_path) as services:
        assert session_ms(services) == int(ONLY_SESSION_MS), "it was stopped, so nobody waits for its session"


def wait_until_answered(services: Services) -> bool:
    """Whether the broker answers within two minutes: then it has registered again."""
    return bool(AdminClient({"bootstrap.servers": services.bootstrap, "log_level": 0}).list_topics(timeout=120).brokers)


def test_records_that_were_acknowledged_survive_kill_9_of_the_broker(own: Services) -> None:
    # Kept in a name: without one, the client is gone before its answer is there.
    admin = AdminClient({"bootstrap.servers": own.bootstrap})
    admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(30)
    produce(own.bootstrap, "kept", [b"%d" % number for number in range(100)])
    old = own.kafka_pid

    os.kill(old, signal.SIGKILL)

    wait_for_new_pid(own, "kafka_pid", old)
    produce(own.bootstrap, "kept", [b"after"])
    assert consume(own.bootstrap, "kept", 101) == [*(b"%d" % number for number in range(100)), b"after"]


def test_a_topic_is_not_made_by_a_typing_error(own: Services) -> None:
    admin = AdminClient({"bootstrap.servers": own.bootstrap})

    admin.list_topics("mistyped", timeout=10)

    assert "mistyped" not in admin.list_topics(timeout=10).topics


def test_redis_refuses_to_evict_and_keeps_its_data_over_kill_9(own: Services) -> None:
    with redis.Redis.from_url(own.redis_url) as client:
        client.set("key", "value")
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        # The file is written at the end of each loop and synced each second; kill -9 loses none of
        # what was written.
        time.sleep(0.05)
    old = own.redis_pid

    os.kill(old, signal.SIGKILL)

    wait_for_new_pid(own, "redis_pid", old)
    with redis.Redis.from_url(own.redis_url, retry_on_error=[redis.ConnectionError]) as client:
        end = time.monotonic() + 20
        while True:
            try:
                assert client.get("key") == b"value"
                break
            except redis.ConnectionError:
                assert time.monotonic() < end
                time.sleep(0.05)


async def test_redis_is_reached_by_its_socket_too_also_after_kill_9(own: Services) -> None:
    path = socket_path(own.folder)
    assert path is not None
    url = f"unix://{quote(str(path))}?db=1"
    connection = Connection(url)
    await connection.start()
    try:
        assert await connection.call("SET", "by", "socket") == b"OK"
        async with redis.asyncio.Redis.from_url(url) as client:
            assert await client.get("by") == b"socket"
        with redis.Redis.from_url(own.redis_url) as client:
            assert client.get("by") is None  # another database
        old = own.redis_pid
        os.kill(old, signal.SIGKILL)
        wait_for_new_pid(own, "redis_pid", old)
        end = time.monotonic() + 20
        kept = None
        while kept != b"socket":
            assert time.monotonic() < end
            with contextlib.suppress(StateUnavailable):
                kept = await connection.call("GET", "by")
            await asyncio.sleep(0.02)
    finally:
        await connection.stop()
    with pytest.raises(StateUnavailable, match=f"no connection to Redis at {path}$"):
        connection.call("PING")


def test_a_folder_too_deep_for_a_socket_has_none(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * SOCKET_PATH_BYTES)
    assert socket_path(deep) is None
    fits = Path("/" + "x" * (SOCKET_PATH_BYTES - len("//redis/redis.sock")))
    assert len(str(socket_path(fits))) == SOCKET_PATH_BYTES
