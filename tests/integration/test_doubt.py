"""A deduplication id that is sent every few minutes, for longer than a worker reads back, and a
loss of Redis: nothing is lost. Real Kafka and Redis.

The records are written past the service, with times of their own, by a producer.
"""

from __future__ import annotations

from confluent_kafka import Producer

from engine.engine import Engine
from engine.shapes import SendEntry
from runtime.clock import now_ms
from schemas.records import Message
from schemas.records.settings import QueueSettings
from schemas.wire import encode
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, drain
from tests.integration.test_rebuild import drained, wipe
from tests.services import Services

MINUTE_MS = 60_000


def plant(stack: Services, topic: str, minutes: list[int], begin_ms: int) -> None:
    """Messages of one id, that so many minutes after the beginning were sent."""
    producer = Producer({"bootstrap.servers": stack.bootstrap, "linger.ms": 0})
    for minute in minutes:
        value = encode(Message(b"%d" % minute, group="g", dedup_id="heartbeat", sender="t"))
        producer.produce(topic, value, partition=0, timestamp=begin_ms + minute * MINUTE_MS)
    assert producer.flush(10) == 0


async def survived(
    make_engine: MakeEngine, stack: Services, minutes: list[int], later: list[int], settled: list[str]
) -> Engine:
    """A queue whose messages of `minutes` are settled, `settled` by consumers, and which loses its
    state in Redis before those of `later` are loaded. The last of them is a minute old.
    """
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings(fifo=True, partitions=1, lease_ms=60_000))
    topic = engine.catalog.queues["q"].topic
    await engine.log.set_topic_config(topic, {"message.timestamp.type": "CreateTime"})
    begin_ms = now_ms() - (later[-1] + 1) * MINUTE_MS
    plant(stack, topic, minutes, begin_ms)
    assert await drain(engine, "q", expect=len(settled)) == settled
    await drained(engine)
    await engine.stop()
    plant(stack, topic, later, begin_ms)
    wipe(stack, engine)
    return await make_engine()


async def test_an_id_without_a_pause_loses_no_message_with_redis(make_engine: MakeEngine, stack: Services) -> None:
    engine = await survived(make_engine, stack, [0, 3, 6, 9], [12, 15, 18, 21, 24, 27], ["0", "6"])

    # Minute 3 is the first that is looked at again, and repeated a message that is not looked at.
    # So nobody can know which of these repeat one: 12, 18 and 24 do not.
    assert await drain(engine, "q", expect=6) == ["12", "15", "18", "21", "24", "27"]
    sent = [await engine.messages.send(BY, "q", [SendEntry(b"30", group="g", dedup_id="heartbeat")]) for _ in range(2)]
    assert sent[0][0].id == sent[1][0].id
    assert await drain(engine, "q", expect=1) == ["30"]


async def test_nothing_is_in_doubt_when_the_whole_log_is_looked_at_again(
    make_engine: MakeEngine, stack: Services
) -> None:
    engine = await survived(make_engine, stack, [0, 4], [8, 9], ["0"])

    assert await drain(engine, "q", expect=1) == ["8"]
