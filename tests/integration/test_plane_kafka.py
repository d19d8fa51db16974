"""The plane's own way to Kafka, beside the appender: the same records, and refusals by the same
words.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, KafkaError

from engine.errors import EngineError, LogUnavailable, MessageTooLarge, Overloaded
from engine.log import Log, TopicSpec
from engine.log.client.plane_options import plane_options
from engine.log.kafka_errors import AUTHENTICATION, engine_error
from engine.send.sender import messages_of
from engine.shapes import SendEntry
from schemas.wire import encode
from tests.own_kafka import set_password
from tests.plane_kafka import Entry, Outcome, PlaneKafka, kept, plane_kafka
from tests.services import Services

pytestmark = pytest.mark.usefixtures("library")


@pytest.fixture
async def log(stack: Services) -> AsyncIterator[Log]:
    log = Log(stack.bootstrap, send_timeout_ms=10_000)
    await log.start()
    yield log
    await log.stop()


async def made(log: Log, partitions: int = 1, **config: str) -> str:
    """Returns a new topic."""
    name = f"plane-{secrets.token_hex(4)}"
    spec = TopicSpec(name, partitions, 1, {name.replace("_", "."): value for name, value in config.items()})
    await log.create_topics([spec])
    return name


@pytest.fixture
def plane(stack: Services) -> Iterator[PlaneKafka]:
    with plane_kafka(plane_options(stack.bootstrap, "plane", 10_000, {})) as plane:
        yield plane


def a_batch(seeded: random.Random) -> list[Entry]:
    """One to thirty records, as varied as the appender takes them."""

    def piece(most: int) -> bytes | None:
        return None if seeded.random() < 0.1 else seeded.randbytes(seeded.randrange(most))

    names = ["a", "", "übung", "x" * 300]
    return [
        Entry(
            piece(seeded.choice([1, 70, 200, 3_000, 20_000])),
            piece(200),
            [(seeded.choice(names), piece(140)) for _ in range(seeded.randrange(4))],
        )
        for _ in range(seeded.randrange(1, 30))
    ]


async def test_records_are_what_the_appender_writes(log: Log, plane: PlaneKafka, stack: Services) -> None:
    seeded = random.Random(44)
    theirs, ours = await made(log, 2), await made(log, 2)
    batches = [(number % 2, a_batch(seeded)) for number in range(200)]
    await asyncio.gather(
        *(log.append(theirs, partition, e.value, e.key, list(e.headers)) for partition, batch in batches for e in batch)
    )
    tokens = [plane.append(ours, partition, batch) for partition, batch in batches]
    plane.settle()
    for partition in range(2):
        written, expected = kept(stack.bootstrap, ours, partition), kept(stack.bootstrap, theirs, partition)
        assert [(m.key(), m.value(), m.headers()) for m in written] == [
            (m.key(), m.value(), m.headers()) for m in expected
        ]
        assert {m.timestamp()[0] for m in (*written, *expected)} == {TIMESTAMP_LOG_APPEND_TIME}
        offset = 0
        for token, (at, batch) in zip(tokens, batches, strict=True):
            if at == partition:
                assert plane.outcomes[token] == Outcome("stored", offset, written[offset].timestamp()[1])
                offset += len(batch)
        assert offset == len(written)


async def test_a_batch_of_a_send_is_whole_and_has_the_mark_of_the_sender(
    log: Log, plane: PlaneKafka, stack: Services
) -> None:
    entries = [SendEntry(body, body_is_text=True) for body in (b"one", b"two", "drei €".encode())]
    values = [encode(message) for message in messages_of(entries, "alice", 0, 0)]
    theirs, ours = await made(log), await made(log)
    assert not any(isinstance(one, Exception) for one in await log.append_many(theirs, 0, values))
    assert plane.outcome(ours, 0, [Entry(value) for value in values]).kind == "stored"
    written, expected = kept(stack.bootstrap, ours, 0), kept(stack.bootstrap, theirs, 0)
    assert [m.value() for m in written] == [m.value() for m in expected] == values
    assert len({m.timestamp() for m in written}) == 1  # of one batch


async def test_times_of_producers_are_kept_where_the_topic_says_so(
    log: Log, plane: PlaneKafka, stack: Services
) -> None:
    topic = await made(log, message_timestamp_type="CreateTime")
    times = [1_700_000_000_123, 1_700_000_000_000, 1_800_000_000_000 - 10**11]
    assert plane.outcome(topic, 0, [Entry(b"x", timestamp_ms=at) for at in times]) == Outcome("stored", 0, -1)
    assert [m.timestamp() for m in kept(stack.bootstrap, topic, 0)] == [(TIMESTAMP_CREATE_TIME, at) for at in times]


async def test_appends_to_a_partition_keep_the_order_of_the_calls(log: Log, plane: PlaneKafka, stack: Services) -> None:
    topic = await made(log, 3)
    tokens = [plane.append(topic, number % 3, [Entry(str(number).encode())]) for number in range(1_000)]
    plane.turn()
    tokens += [plane.append(topic, number % 3, [Entry(str(number).encode())]) for number in range(1_000, 3_000)]
    plane.settle()
    assert plane.held == 0
    for partition in range(3):
        found = kept(stack.bootstrap, topic, partition)
        assert [m.value() for m in found] == [str(number).encode() for number in range(partition, 3_000, 3)]
        assert [plane.outcomes[token].number for token in tokens[partition::3]] == [m.offset() for m in found]


async def refused(log: Log, topic: str, partition: int, value: bytes) -> type[Exception]:
    """Returns what the appender raises."""
    with pytest.raises(EngineError) as raised:
        await log.append(topic, partition, value)
    return raised.type


async def test_what_is_refused_is_called_as_the_appender_calls_it(log: Log, plane: PlaneKafka) -> None:
    topic = await made(log, 1, max_message_bytes="20000")
    for place, partition, value, error in (
        ("missing", 0, b"x", LogUnavailable),
        (topic, 7, b"x", LogUnavailable),
        (topic, 0, bytes(50_000), MessageTooLarge),
        (topic, 0, bytes(20_000_000), MessageTooLarge),
    ):
        outcome = plane.outcome(place, partition, [Entry(value)])
        assert outcome.kind == "not_stored"
        assert type(engine_error(KafkaError(outcome.number, outcome.more))) is error
        assert await refused(log, place, partition, value) is error
    compacted = await made(log, 1, cleanup_policy="compact")
    assert plane.outcome(compacted, 0, [Entry(b"without a key")])[:2] == ("not_stored", KafkaError.INVALID_RECORD)


async def test_one_that_is_too_large_does_not_harm_those_beside_it(
    log: Log, plane: PlaneKafka, stack: Services
) -> None:
    topic = await made(log, 1, max_message_bytes="20000")
    sizes = [100, 15_000, 15_000, 30_000, 100]
    first = plane.append(topic, 0, [Entry(b"x")])
    tokens = [plane.append(topic, 0, [Entry(bytes(size))]) for size in sizes]
    plane.settle()
    assert plane.outcomes[first].kind == "stored"
    assert [plane.outcomes[token].kind for token in tokens] == ["stored", "stored", "stored", "not_stored", "stored"]
    assert [len(m.value() or b"") for m in kept(stack.bootstrap, topic, 0)] == [1, 100, 15_000, 15_000, 100]


async def test_what_does_not_fit_into_the_bound_is_refused_at_once(log: Log, stack: Services) -> None:
    topic = await made(log)
    options = plane_options(stack.bootstrap, "plane", 10_000, {}) | {"queue.buffering.max.kbytes": "100"}
    with plane_kafka(options) as plane:
        tokens = [plane.append(topic, 0, [Entry(bytes(30_000))]) for _ in range(5)]
        plane.settle()
        kinds = [plane.outcomes[token].kind for token in tokens]
        assert kinds == ["stored"] * 3 + ["not_stored"] * 2
        number, text = plane.outcomes[tokens[-1]][1:]
        assert isinstance(engine_error(KafkaError(number, text)), Overloaded) and "102400 are the most" in text
        assert plane.outcome(topic, 0, [Entry(bytes(30_000))]).kind == "stored"


async def test_the_password_of_the_service_opens_and_another_one_is_said_to_be_wrong(log: Log, stack: Services) -> None:
    topic = await made(log)
    place = f"127.0.0.1:{stack.service_port}"
    known = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "leaseway"}
    secret = (Path(stack.folder) / "kafka_secret").read_text().strip()
    with plane_kafka(plane_options(place, "plane", 10_000, known | {"sasl.password": secret})) as plane:
        assert plane.outcome(topic, 0, [Entry(b"x")]).kind == "stored"
    with plane_kafka(plane_options(place, "plane", 10_000, known | {"sasl.password": "another"})) as plane:
        plane.reach()
        plane.until(lambda: plane.trouble)
        assert plane.trouble is not None and plane.trouble[0] == AUTHENTICATION and not plane.is_reached
        outcome = plane.outcome(topic, 0, [Entry(b"x")], within_ms=500)
        assert outcome.kind == "not_stored" and "SASL authentication error: Authentication failed" in outcome.more


async def test_who_has_no_right_to_a_topic_hears_so(log: Log, stack: Services) -> None:
    topic, user = await made(log), f"u{secrets.token_hex(4)}"
    set_password({"bootstrap.servers": stack.bootstrap}, user, "p=,w")
    known = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": "p=,w",
    }
    with plane_kafka(plane_options(f"127.0.0.1:{stack.service_port}", "plane", 10_000, known)) as plane:
        assert plane.outcome(topic, 0, [Entry(b"x")])[:2] == ("not_stored", KafkaError.TOPIC_AUTHORIZATION_FAILED)


async def test_a_producer_that_is_stopped_answers_all_that_it_has(log: Log, plane: PlaneKafka, stack: Services) -> None:
    topic = await made(log, 2)
    assert plane.outcome(topic, 0, [Entry(b"first")]).kind == "stored"
    sent, waiting = plane.append(topic, 0, [Entry(b"sent")]), plane.append(topic, 1, [Entry(b"waits")])
    plane.stop()
    assert {plane.outcomes[sent].kind, plane.outcomes[waiting].kind} <= {"unknown", "not_stored"}
    assert plane.held == 0
