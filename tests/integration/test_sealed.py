"""The control topic under somebody who can write to it: what they write does not count, an alarm
tells of it, and the service goes on with what it has.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import pytest
from confluent_kafka import Producer

from engine.catalog.seal import FRESH_MS, SEAL, SEEN, Reason, Seal
from engine.engine import Engine
from engine.errors import NotAuthenticated, NotOurs
from engine.log import Headers, Record
from engine.recovery.maintenance import Maintenance
from engine.runtime.clock import now_ms
from engine.settings import Settings
from engine.shapes import QueueSettings
from engine.wiring import wire_maintenance
from schemas.records import GenerationRecord, KeyRecord, QueueRecord
from schemas.wire import encode
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, eventually, receive, send
from tests.services import Services

ADMIN = "the secret of the admin"
SECRET, NEW = "a secret of this service", "another secret of 2026"


@pytest.fixture
async def guarded(make_engine: MakeEngine) -> Engine:
    return await make_engine(auth="required", admin_key_secret=ADMIN, secret=SECRET)


def append(stack: Services, topic: str, key: str, value: bytes | None, headers: Headers | None) -> None:
    """As anybody who reaches Kafka can."""
    producer = Producer({"bootstrap.servers": stack.bootstrap})
    producer.produce(topic, value, key, headers=headers)  # type: ignore[arg-type]
    assert producer.flush(20) == 0


async def records_of(engine: Engine, key: str) -> list[Record]:
    """All of a key that Kafka has."""
    chunk = await engine.log.fetch(engine.catalog.topic, 0, 0, 10_000, 16_000_000)
    return [record for record in chunk.records if record.key == key.encode()]


def alarms(engine: Engine) -> dict[str, float]:
    return {alarm.queue: alarm.number for alarm in engine.alarms() if alarm.kind == "control_refused"}


async def refused(engine: Engine, reason: Reason, within_s: float = 10) -> None:
    await eventually(lambda: _is(reason in alarms(engine)), within_s)


async def _is(value: bool) -> bool:
    return value


def forged(principal: str = "mallory") -> bytes:
    return encode(KeyRecord("evil", "known to me", principal, True, now_ms()))


@pytest.mark.parametrize("headers", [None, [(SEEN, b"9000000000")], [(SEEN, b"9000000000"), (SEAL, bytes(46))]])
async def test_a_forged_key_opens_nothing(guarded: Engine, make_engine: MakeEngine, stack: Services, headers: Headers | None) -> None:
    append(stack, guarded.catalog.topic, "key/evil", forged(), headers)
    await guarded.catalog.sync()
    assert sum(alarms(guarded).values()) == 1
    with pytest.raises(NotAuthenticated):
        guarded.authenticate("evil", "known to me")
    later = await make_engine(auth="required", admin_key_secret=ADMIN, secret=SECRET)
    assert sum(alarms(later).values()) == 1
    with pytest.raises(NotAuthenticated):
        later.authenticate("evil", "known to me")
    await later.create_queue(BY, "q", QueueSettings())
    await send(guarded, "q", "goes on")
    assert await drain(later, "q", expect=1) == ["goes on"]


async def test_a_key_whose_record_was_touched_goes_on_as_it_was(guarded: Engine, make_engine: MakeEngine, stack: Services) -> None:
    _, secret = await guarded.create_key(BY, "k", "alice", "member")
    (sealed,) = await records_of(guarded, "key/k")
    assert sealed.value is not None and secret.encode() not in sealed.value
    append(stack, guarded.catalog.topic, "key/k", sealed.value[:-1] + bytes([sealed.value[-1] ^ 1]), sealed.headers)
    await refused(guarded, Reason.ALTERED)
    assert guarded.authenticate("k", secret).id == "alice"

    async def written_again() -> bool:
        found = await records_of(guarded, "key/k")
        return len(found) == 3

    await eventually(written_again)  # Kafka's compaction keeps the last one
    later = await make_engine(auth="required", admin_key_secret=ADMIN, secret=SECRET)
    assert later.authenticate("k", secret).id == "alice"
    assert later.catalog._precedence.overwritten == {}


async def test_a_record_of_a_key_that_is_played_back_does_not_bring_it_back(
    guarded: Engine, make_engine: MakeEngine, stack: Services
) -> None:
    _, secret = await guarded.create_key(BY, "k", "alice", "member")
    (sealed,) = await records_of(guarded, "key/k")
    await guarded.delete_key(BY, "k")
    append(stack, guarded.catalog.topic, "key/k", sealed.value, sealed.headers)
    await refused(guarded, Reason.REPLAYED)
    later = await make_engine(auth="required", admin_key_secret=ADMIN, secret=SECRET)
    for engine in (guarded, later):
        with pytest.raises(NotAuthenticated):
            engine.authenticate("k", secret)


async def test_a_backup_of_a_key_does_not_count_when_kafka_has_forgotten_that_it_was_deleted(guarded: Engine, stack: Services) -> None:
    """As a record that was sealed before the last day, of a key of which nothing is left."""
    value, headers = Seal(guarded.catalog.topic, SECRET).close("key/k", forged(), 9_000_000, now_ms() - 2 * FRESH_MS)
    append(stack, guarded.catalog.topic, "key/k", value, headers)
    await refused(guarded, Reason.STALE)
    assert "k" not in guarded.catalog.keys


async def test_a_sealed_record_can_not_be_moved_to_another_name_or_installation(
    guarded: Engine, make_engine: MakeEngine, stack: Services
) -> None:
    await guarded.create_key(BY, "k", "alice", "admin")
    (sealed,) = await records_of(guarded, "key/k")
    append(stack, guarded.catalog.topic, "key/other", sealed.value, sealed.headers)
    await refused(guarded, Reason.ALTERED)
    assert list(guarded.catalog.keys) == ["k"]
    elsewhere = await make_engine(topic_prefix=f"t{secrets.token_hex(4)}", secret=SECRET)
    append(stack, elsewhere.catalog.topic, "key/k", sealed.value, sealed.headers)
    await refused(elsewhere, Reason.ALTERED)
    assert elsewhere.catalog.keys == {}


async def test_nobody_else_deletes_or_takes_a_queue(guarded: Engine, make_engine: MakeEngine, stack: Services) -> None:
    await guarded.create_queue(BY, "q", QueueSettings(), owner="alice")
    record = guarded.catalog.queues["q"].record
    await send(guarded, "q", "kept")
    append(stack, guarded.catalog.topic, "queue/q", None, [(SEEN, b"9000000000")])
    mine = {**{f: getattr(record, f) for f in QueueRecord.__struct_fields__}, "owner": "mallory"}
    append(stack, guarded.catalog.topic, "queue/q", encode(QueueRecord(**mine)), [(SEEN, b"9000000000")])
    append(stack, guarded.catalog.topic, "generation", encode(GenerationRecord(9_999, "x", 0)), None)
    await eventually(lambda: _is(alarms(guarded).get(Reason.UNSEALED) == 3))
    later = await make_engine(auth="required", admin_key_secret=ADMIN, secret=SECRET)
    for engine in (guarded, later):
        assert engine.catalog.queues["q"].record == record
        assert engine.catalog.generation == 1
    assert await drain(later, "q", expect=1) == ["kept"]


async def test_what_was_refused_is_written_over_before_compaction_could_keep_it(guarded: Engine, stack: Services) -> None:
    await guarded.create_queue(BY, "q", QueueSettings())
    seal = Seal(guarded.catalog.topic, SECRET)
    for _ in range(3):
        append(stack, guarded.catalog.topic, "queue/q", None, None)

    async def last_counts() -> bool:
        last = (await records_of(guarded, "queue/q"))[-1]
        return last.headers is not None and seal.open("queue/q", last).value is not None

    await eventually(last_counts, 30)


async def test_another_secret_opens_nothing(guarded: Engine, make_engine: MakeEngine) -> None:
    await guarded.create_key(BY, "k", "alice", "member")
    with pytest.raises(NotOurs, match="LEASEWAY_SECRET"):
        await make_engine(secret=NEW)


async def test_a_secret_is_replaced_while_the_service_runs(make_engine: MakeEngine, stack: Services) -> None:
    """As docs/how-to/secure.md says: each worker knows both secrets before one writes with the new
    one.
    """
    ways = {"auth": "required", "admin_key_secret": ADMIN}
    old = await make_engine(**ways, secret=SECRET, secret_old=NEW)
    _, secret = await old.create_key(BY, "k", "alice", "member")
    await old.create_queue(BY, "q", QueueSettings())
    await send(old, "q", "a")
    (delivery,) = await receive(old, "q", wait_ms=5_000)
    new = await make_engine(**ways, secret=NEW, secret_old=SECRET)
    await new.create_key(BY, "l", "bob", "member")
    await old.catalog.sync()
    assert "l" in old.catalog.keys and new.authenticate("k", secret).id == "alice"
    await ack(new, "q", [delivery])
    assert await sealed_by(new.settings, drop=False) == (3, 0)
    last = await make_engine(**ways, secret=NEW)
    assert last.authenticate("k", secret).id == "alice" and "q" in last.catalog.queues
    for engine in (old, new, last):
        assert alarms(engine) == {}


async def sealed_by(settings: Settings, *, drop: bool, adopt: bool = True) -> tuple[int, int]:
    """As `leaseway seal` with --adopt does."""
    maintenance: Maintenance = wire_maintenance(settings, adopt=adopt)
    try:
        await maintenance.start()
        done = await maintenance.seal(drop=drop)
        assert maintenance.unsealed() == []
        return done
    finally:
        await maintenance.stop()


async def test_a_topic_of_before_opens_once_it_was_sealed(make_engine: MakeEngine, stack: Services) -> None:
    prefix = f"t{secrets.token_hex(4)}"
    made = await make_engine(topic_prefix=prefix, secret=SECRET)
    topic = made.catalog.topic
    settings: dict[str, Any] = {"auth": "required", "admin_key_secret": ADMIN, "secret": SECRET, "topic_prefix": f"{prefix}b"}
    await made.create_queue(BY, "q", QueueSettings())
    before = await made.log.fetch(topic, 0, 0, 100, 4_000_000)
    old = {record.key: record for record in before.records}
    empty = wire_maintenance(Settings(kafka_bootstrap=stack.bootstrap, redis_url=stack.redis_url, **settings))
    await empty._log.start()
    await empty._catalog._make_topics()
    await empty._log.stop()
    target = f"{prefix}b.control"
    for key, record in old.items():
        append(stack, target, (key or b"").decode(), record.value, [(SEEN, b"0")])
    append(stack, target, "key/k", encode(KeyRecord("k", "its secret", "alice", False, now_ms())), None)
    append(stack, target, "key/gone", forged(), None)
    append(stack, target, "key/gone", None, None)

    with pytest.raises(NotOurs, match="leaseway seal"):
        await make_engine(**settings)
    assert await sealed_by(Settings(kafka_bootstrap=stack.bootstrap, redis_url=stack.redis_url, **settings), drop=False) == (4, 0)
    after = await make_engine(**settings)
    assert after.authenticate("k", "its secret").id == "alice"
    assert alarms(after) == {} and list(after.catalog.queues) == ["q"] and list(after.catalog.keys) == ["k"]
    # From now on nothing without a seal counts, nor is it adopted over what has one.
    append(stack, target, "key/k", forged(), None)
    append(stack, target, "key/evil", forged(), None)
    await eventually(lambda: _is(alarms(after).get(Reason.UNSEALED) == 2))
    await asyncio.sleep(0)
    assert after.authenticate("k", "its secret").id == "alice"
    assert "evil" not in after.catalog.keys
    assert await sealed_by(after.settings, drop=True, adopt=False) == (0, 1)
    assert (await records_of(after, "key/evil"))[-1].value is None
