"""How much a service, and a principal, may have; and that a creation which fails leaves nothing."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode

import httpx
import msgspec
import pytest
from confluent_kafka.admin import AdminClient

from engine.engine import Engine
from engine.errors import LogUnavailable, QuotaExceeded
from engine.log import TopicSpec
from runtime.failpoints import FailpointReached, arm, disarm
from schemas.records.settings import QueueSettings
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, drain, eventually, send
from tests.integration.served import served

STRICT = {"auth": "required", "admin_key_id": "admin", "admin_key_secret": "secret"}


async def topics(engine: Engine) -> set[str]:
    """The queues of this service that have a topic."""
    prefix = f"{engine.settings.topic_prefix}.q."
    kafka = AdminClient({"bootstrap.servers": engine.settings.kafka_bootstrap})
    listed = await asyncio.to_thread(kafka.list_topics, timeout=10)
    return {name.removeprefix(prefix) for name in listed.topics if name.startswith(prefix)}


async def test_a_service_has_so_many_queues_and_partitions(make_engine: MakeEngine) -> None:
    engine = await make_engine(max_queues=3, max_partitions=8)
    await engine.queues.create_queue(BY, "a", QueueSettings(partitions=4))
    with pytest.raises(QuotaExceeded, match="may have 8 partitions") as caught:
        await engine.queues.create_queue(BY, "b", QueueSettings(partitions=5))
    assert (caught.value.field, caught.value.limit, caught.value.given) == ("partitions", 8, 9)
    await engine.queues.create_queue(BY, "b", QueueSettings(partitions=1))
    await engine.queues.copy_queue(BY, "b", "c")
    for make in (
        engine.queues.create_queue(BY, "d", QueueSettings(partitions=1)),
        engine.queues.copy_queue(BY, "b", "d"),
    ):
        with pytest.raises(QuotaExceeded, match="may have 3 queues"):
            await make
    assert await engine.queues.create_queue(BY, "a", QueueSettings()) == (await engine.queues.get_queue(BY, "a"), False)
    assert (engine.counts()["queues"], engine.counts()["partitions"]) == (3, 6)
    await engine.queues.delete_queue(BY, "a")
    await engine.queues.create_queue(BY, "d", QueueSettings(partitions=1))
    assert await topics(engine) == {"b", "c", "d"}


async def test_clients_hear_it_in_the_words_of_their_dialect(make_engine: MakeEngine) -> None:
    engine = await make_engine(max_queues=1)
    await engine.queues.create_queue(BY, "a", QueueSettings())
    async with served(engine) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
        native = await client.post("/v1/queues", json={"name": "b"})
        assert (native.status_code, native.json()["code"], native.headers["retry-after"]) == (
            429,
            "quota_exceeded",
            "1",
        )
        target = {"x-amz-target": "AmazonSQS.CreateQueue", "content-type": "application/x-amz-json-1.0"}
        sqs = await client.post("/", content=json.dumps({"QueueName": "b"}), headers=target)
        assert (sqs.status_code, sqs.headers["retry-after"]) == (403, "1")
        assert sqs.json()["__type"] == "com.amazonaws.sqs#RequestThrottled"
        mns = await client.put("/queues/b", headers={"x-mns-version": "2015-06-06"})
        assert (mns.status_code, mns.headers["retry-after"]) == (429, "1")
        metrics = (await client.get("/metrics")).text
        assert "leaseway_queues 1.0" in metrics and "leaseway_partitions 4.0" in metrics


async def test_a_principal_has_so_many_receives_that_wait(make_engine: MakeEngine) -> None:
    engine = await make_engine(**STRICT, max_waits=3)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    proofs = {}
    for name in ("one", "other"):
        _, secret = await engine.callers.create_key(BY, name, name, "admin")
        proofs[name] = {"authorization": "Basic " + b64encode(f"{name}:{secret}".encode()).decode()}
    async with (
        served(engine, **STRICT) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client,
    ):

        def poll(name: str, seconds: int) -> asyncio.Task[httpx.Response]:
            return asyncio.create_task(
                client.post("/v1/queues/q/receive", json={"wait_seconds": seconds}, headers=proofs[name])
            )

        async def waiting(number: int) -> bool:
            return engine.counts()["long_polls_waiting"] == number

        polls = [poll("one", 3) for _ in range(3)]
        await eventually(lambda: waiting(3))
        assert engine.counts()["long_polls_waiting_of_one"] == 3
        refused = await poll("one", 3)
        assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (
            429,
            "quota_exceeded",
            "1",
        )
        assert refused.json()["limit"] == 3
        assert (await poll("one", 0)).status_code == 200
        others = poll("other", 1)
        await eventually(lambda: waiting(4))
        assert {(await one).status_code for one in (*polls, others)} == {200}
        assert (await poll("one", 1)).status_code == 200
    assert engine.counts()["long_polls_waiting_of_one"] == 0


@pytest.mark.parametrize("point", ["create.begun", "create.topic_made"])
async def test_a_creation_that_fails_leaves_no_topic(own_engine: Engine, point: str) -> None:
    engine = own_engine
    arm(f"{point}=raise*1")
    try:
        with pytest.raises(FailpointReached):
            await engine.queues.create_queue(BY, "q", QueueSettings())
    finally:
        disarm()
    assert await topics(engine) == ({"q"} if point == "create.topic_made" else set())
    assert engine.catalog.names == [] and engine.queues.deleted_at_ms(BY, "q") is None
    await engine.parts.administration.queues.deletions.finish_deletions()

    async def gone() -> bool:
        return await topics(engine) == set()

    await eventually(gone)
    assert engine.catalog.unfinished == {} and engine.queues.deleted_at_ms(BY, "q") is None
    await engine.queues.create_queue(BY, "q", QueueSettings())
    assert await topics(engine) == {"q"}


async def test_a_creation_that_kafka_did_not_answer_leaves_no_topic(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka has made the topic, and nobody heard of it."""
    engine = own_engine
    create = engine.log.create_topics

    async def unheard(specs: list[TopicSpec]) -> dict[str, str]:
        await create(specs)
        raise LogUnavailable("no answer")

    monkeypatch.setattr(engine.log, "create_topics", unheard)
    with pytest.raises(LogUnavailable):
        await engine.queues.create_queue(BY, "q", QueueSettings())
    monkeypatch.undo()
    assert await topics(engine) == {"q"}
    await engine.parts.administration.queues.deletions.finish_deletions()

    async def gone() -> bool:
        return await topics(engine) == set()

    await eventually(gone)


async def test_records_of_a_native_producer_survive_a_creation_that_fails(own_engine: Engine) -> None:
    """Before the creation, and between its two steps."""
    engine = own_engine
    prefix = f"{engine.settings.topic_prefix}.q."
    await engine.parts.administration.watch.alarm_monitor.stop()  # it would delete a topic that has no record yet
    await engine.log.create_topics([TopicSpec(f"{prefix}old", 4, 1, {})])
    await engine.log.append(f"{prefix}old", 0, b"first")
    for name, point in (("old", "create.topic_made"), ("new", "create.begun")):
        arm(f"{point}=raise*1")
        try:
            with pytest.raises(FailpointReached):
                await engine.queues.create_queue(BY, name, QueueSettings())
        finally:
            disarm()
    await engine.log.create_topics([TopicSpec(f"{prefix}new", 4, 1, {})])
    await engine.log.append(f"{prefix}new", 0, b"second")
    await engine.parts.administration.queues.deletions.finish_deletions()
    assert engine.catalog.unfinished == {}
    assert await topics(engine) == {"old", "new"}
    for name, body in (("old", "first"), ("new", "second")):
        await engine.queues.create_queue(BY, name, QueueSettings())
        assert await drain(engine, name, expect=1) == [body]


async def test_a_deletion_takes_the_topic_of_a_queue_also_when_its_id_was_never_noted(own_engine: Engine) -> None:
    """As of a queue of before, or when Kafka did not tell the id: a new queue of that name is not
    to get what was in it.
    """
    engine = own_engine
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    records = engine.parts.administration.queues.records
    async with engine.catalog.change("q") as change:
        await records.write(msgspec.structs.replace(records.known("q").record, topic_id=""), change)
    await send(engine, "q", "of the old owner")
    await engine.queues.delete_queue(BY, "q")
    assert await topics(engine) == set()
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    assert await drain(engine, "q", patience_ms=300) == []
