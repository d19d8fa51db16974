"""The control topic under somebody who can write to it: what they write does not count, an alarm
tells of it, and the service goes on with what it has.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import secrets
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from engine.catalog.candidates import Candidate
from engine.catalog.seal import FRESH_MS, SEAL, SEEN, Reason, Seal
from engine.engine import Engine
from engine.errors import NotAuthenticated, NotOurs
from engine.log import Headers, Record
from engine.recovery.maintenance import Sealed
from engine.settings import Settings
from engine.wiring.foundation import wire_maintenance, wire_sealing
from facade.programs.cli import sealing as cli
from facade.programs.stack.processes.errors import StackError
from runtime.clock import now_ms
from schemas.records import GenerationRecord, KeyRecord, QueueRecord
from schemas.records.settings import QueueSettings
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
    return {alarm.queue: alarm.number for alarm in engine.alerts.alarms() if alarm.kind == "control_refused"}


async def refused(engine: Engine, reason: Reason, within_s: float = 10) -> None:
    await eventually(lambda: _is(reason in alarms(engine)), within_s)


async def _is(value: bool) -> bool:
    return value


def forged(principal: str = "mallory") -> bytes:
    return encode(KeyRecord("evil", "known to me", principal, True, now_ms()))


def queue_fields(name: str) -> dict[str, Any]:
    return {
        "name": name, "incarnation": secrets.token_hex(8), "owner": "alice", "created_at_ms": 1, "modified_at_ms": 1,
        "partitions": 1,
        "delay_ms": 0, "lease_ms": 30_000, "retention_ms": 345_600_000, "max_message_bytes": 262_144,
        "receive_wait_ms": 0,
        "max_receive_messages": 10, "tags": [], "next_tag_id": 1,
    }  # fmt: skip


@pytest.mark.parametrize("headers", [None, [(SEEN, b"9000000000")], [(SEEN, b"9000000000"), (SEAL, bytes(54))]])
async def test_a_forged_key_opens_nothing(
    guarded: Engine, make_engine: MakeEngine, stack: Services, headers: Headers | None
) -> None:
    append(stack, guarded.catalog.topic, "key/evil", forged(), headers)
    await guarded.catalog.sync()
    assert sum(alarms(guarded).values()) == 1
    with pytest.raises(NotAuthenticated):
        guarded.callers.authenticate("evil", "known to me")
    later = await make_engine(auth="required", admin_key_secret=ADMIN, secret=SECRET)
    assert sum(alarms(later).values()) == 1
    with pytest.raises(NotAuthenticated):
        later.callers.authenticate("evil", "known to me")
    await later.queues.create_queue(BY, "q", QueueSettings())
    await send(guarded, "q", "goes on")
    assert await drain(later, "q", expect=1) == ["goes on"]


async def test_a_key_whose_record_was_touched_goes_on_as_it_was(
    guarded: Engine, make_engine: MakeEngine, stack: Services
) -> None:
    _, secret = await guarded.callers.create_key(BY, "k", "alice", "member")
    (sealed,) = await records_of(guarded, "key/k")
    assert sealed.value is not None and secret.encode() not in sealed.value
    append(stack, guarded.catalog.topic, "key/k", sealed.value[:-1] + bytes([sealed.value[-1] ^ 1]), sealed.headers)
    await refused(guarded, Reason.ALTERED)
    assert guarded.callers.authenticate("k", secret).id == "alice"

    async def written_again() -> bool:
        found = await records_of(guarded, "key/k")
        return len(found) == 3

    await eventually(written_again)  # Kafka's compaction keeps the last one
    later = await make_engine(auth="required", admin_key_secret=ADMIN, secret=SECRET)
    assert later.callers.authenticate("k", secret).id == "alice"
    assert later.catalog._precedence.overwritten == {}


async def test_a_record_of_a_key_that_is_played_back_does_not_bring_it_back(
    guarded: Engine, make_engine: MakeEngine, stack: Services
) -> None:
    _, secret = await guarded.callers.create_key(BY, "k", "alice", "member")
    (sealed,) = await records_of(guarded, "key/k")
    await guarded.callers.delete_key(BY, "k")
    append(stack, guarded.catalog.topic, "key/k", sealed.value, sealed.headers)
    await refused(guarded, Reason.REPLAYED)
    later = await make_engine(auth="required", admin_key_secret=ADMIN, secret=SECRET)
    for engine in (guarded, later):
        with pytest.raises(NotAuthenticated):
            engine.callers.authenticate("k", secret)


async def test_a_backup_of_a_key_does_not_count_when_kafka_has_forgotten_that_it_was_deleted(
    guarded: Engine, stack: Services
) -> None:
    """As a record that was sealed before the last day, of a key of which nothing is left."""
    value, headers = Seal(guarded.catalog.topic, SECRET).close("key/k", forged(), 9_000_000, now_ms() - 2 * FRESH_MS)
    append(stack, guarded.catalog.topic, "key/k", value, headers)
    await refused(guarded, Reason.STALE)
    assert "k" not in guarded.catalog.keys


async def test_a_sealed_record_can_not_be_moved_to_another_name_or_installation(
    guarded: Engine, make_engine: MakeEngine, stack: Services
) -> None:
    await guarded.callers.create_key(BY, "k", "alice", "admin")
    (sealed,) = await records_of(guarded, "key/k")
    append(stack, guarded.catalog.topic, "key/other", sealed.value, sealed.headers)
    await refused(guarded, Reason.ALTERED)
    assert list(guarded.catalog.keys) == ["k"]
    elsewhere = await make_engine(topic_prefix=f"t{secrets.token_hex(4)}", secret=SECRET)
    append(stack, elsewhere.catalog.topic, "key/k", sealed.value, sealed.headers)
    await refused(elsewhere, Reason.ALTERED)
    assert elsewhere.catalog.keys == {}


async def test_nobody_else_deletes_or_takes_a_queue(guarded: Engine, make_engine: MakeEngine, stack: Services) -> None:
    await guarded.queues.create_queue(BY, "q", QueueSettings(), owner="alice")
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


async def test_what_was_refused_is_written_over_before_compaction_could_keep_it(
    guarded: Engine, stack: Services
) -> None:
    await guarded.queues.create_queue(BY, "q", QueueSettings())
    seal = Seal(guarded.catalog.topic, SECRET)
    for _ in range(3):
        append(stack, guarded.catalog.topic, "queue/q", None, None)

    async def last_counts() -> bool:
        last = (await records_of(guarded, "queue/q"))[-1]
        return last.headers is not None and seal.open("queue/q", last).value is not None

    await eventually(last_counts, 30)


async def test_another_secret_opens_nothing(guarded: Engine, make_engine: MakeEngine) -> None:
    await guarded.callers.create_key(BY, "k", "alice", "member")
    with pytest.raises(NotOurs, match="LEASEWAY_SECRET"):
        await make_engine(secret=NEW)


async def test_a_secret_is_replaced_while_the_service_runs(make_engine: MakeEngine, stack: Services) -> None:
    """As docs/how-to/secure.md says: each worker knows both secrets before one writes with the new
    one.
    """
    ways = {"auth": "required", "admin_key_secret": ADMIN}
    old = await make_engine(**ways, secret=SECRET, secret_old=NEW)
    _, secret = await old.callers.create_key(BY, "k", "alice", "member")
    await old.queues.create_queue(BY, "q", QueueSettings())
    await send(old, "q", "a")
    (delivery,) = await receive(old, "q", wait_ms=5_000)
    new = await make_engine(**ways, secret=NEW, secret_old=SECRET)
    await new.callers.create_key(BY, "l", "bob", "member")
    await old.catalog.sync()
    assert "l" in old.catalog.keys and new.callers.authenticate("k", secret).id == "alice"
    await ack(new, "q", [delivery])
    # Keys k and q and the generation were sealed with the former secret.
    done = await sealed_by(new.settings)
    assert (done.resealed, done.adopted, done.left) == (3, 0, [])
    last = await make_engine(**ways, secret=NEW)
    assert last.callers.authenticate("k", secret).id == "alice" and "q" in last.catalog.queues
    for engine in (old, new, last):
        assert alarms(engine) == {}


async def sealed_by(
    settings: Settings, names: Collection[str] = (), *, drop: bool = False, copied: bool = False
) -> Sealed:
    """As `leaseway seal --adopt NAMES` does."""
    sealing = wire_sealing(settings, copied=copied)
    try:
        await sealing.start()
        return await sealing.seal(names, drop=drop)
    finally:
        await sealing.stop()


async def shown_by(settings: Settings, *, copied: bool = False) -> dict[str, Candidate]:
    """As `leaseway seal` does: by key."""
    sealing = wire_sealing(settings, copied=copied)
    try:
        await sealing.start()
        return {one.key: one for one in sealing.found()}
    finally:
        await sealing.stop()


async def bare_topic(stack: Services, **settings: Any) -> tuple[Settings, str]:
    """The control topic of an installation that nobody has written to."""
    made = Settings(
        kafka_bootstrap=stack.bootstrap, redis_url=stack.redis_url, topic_prefix=f"t{secrets.token_hex(4)}", **settings
    )
    empty = wire_maintenance(made)
    await empty._log.start()
    await empty._catalog._make_topics()
    await empty._log.stop()
    return made, f"{made.topic_prefix}.control"


async def test_rotation_adopts_no_forgery_of_any_shape(
    guarded: Engine, make_engine: MakeEngine, stack: Services
) -> None:
    """Neither alone nor by name: each was appended while records were sealed."""
    topic = guarded.catalog.topic
    _, secret = await guarded.callers.create_key(BY, "k", "alice", "member")
    _, deleted = await guarded.callers.create_key(BY, "fired", "bob", "admin")
    (alice,), (fired,) = await records_of(guarded, "key/k"), await records_of(guarded, "key/fired")
    await guarded.callers.delete_key(BY, "fired")
    other, now = Seal(topic, "a secret of somebody"), now_ms()
    forge = functools.partial(append, stack, topic)
    forge("key/plain", forged(), None)
    forge("key/seen", forged(), [(SEEN, b"9000000000")])
    forge("key/empty-seal", forged(), [(SEEN, b"9000000000"), (SEAL, bytes(54))])
    forge("key/short-seal", forged(), [(SEEN, b"9000000000"), (SEAL, b"\x01")])
    forge("key/other", *other.close("key/other", forged(), 9_000_000, now, 9_000_000))
    forge("key/moved", alice.value, alice.headers)
    forge("key/moved-content", forged(), alice.headers)
    forge("key/fired", fired.value, fired.headers)
    forge("key/stale", *Seal(topic, SECRET).close("key/stale", forged(), 9_000_000, now - 2 * FRESH_MS, 9_000_000))
    forge("key/k", forged("alice"), None)
    forge("queue/theirs", encode(QueueRecord(**{**queue_fields("theirs"), "owner": "mallory"})), None)
    forge("key/with\n \x1b[2Jterminal", forged(), None)
    forge("user/alice", forged(), None)
    new = await make_engine(auth="required", admin_key_secret=ADMIN, secret=NEW, secret_old=SECRET)
    shown = await shown_by(new.settings)
    assert all(one.barred or one.counts for one in shown.values()), shown
    assert set(shown) >= {"key/plain", "key/other", "key/moved", "key/stale", "queue/theirs", "user/alice"}
    done = await sealed_by(new.settings, [one.name for one in shown.values()])
    assert done.adopted == 0 and done.resealed >= 1
    last = await make_engine(auth="required", admin_key_secret=ADMIN, secret=NEW)
    assert list(last.catalog.keys) == ["k"] and list(last.catalog.queues) == []
    assert last.callers.authenticate("k", secret).role == "member"
    for key, known in (("fired", deleted), ("plain", "known to me"), ("stale", "known to me"), ("k", "known to me")):
        with pytest.raises(NotAuthenticated):
            last.callers.authenticate(key, known)


async def test_what_was_sealed_first_may_be_gone(guarded: Engine, make_engine: MakeEngine, stack: Services) -> None:
    """A rotation writes everything again, and Kafka then forgets what was there before: a forgery
    may be the oldest record that is left.
    """
    topic = guarded.catalog.topic
    append(stack, topic, "key/plain", forged(), None)
    await guarded.catalog.sync()
    (plain,) = await records_of(guarded, "key/plain")
    await sealed_by((await make_engine(secret=NEW, secret_old=SECRET)).settings)
    await guarded.log.set_topic_config(topic, {"cleanup.policy": "delete"})  # only then can it be done at once
    admin = AdminClient({"bootstrap.servers": stack.bootstrap})
    (gone,) = admin.delete_records([TopicPartition(topic, 0, plain.offset)]).values()
    gone.result(20)
    later = dataclasses.replace(guarded.settings, secret=NEW)
    shown = await shown_by(later)
    assert shown["key/plain"].barred and (await sealed_by(later, [shown["key/plain"].name])).adopted == 0


async def test_a_topic_of_before_opens_once_an_operator_has_named_its_records(
    make_engine: MakeEngine, stack: Services
) -> None:
    made = await make_engine(topic_prefix=f"t{secrets.token_hex(4)}", secret=SECRET)
    await made.queues.create_queue(BY, "q", QueueSettings())
    before = await made.log.fetch(made.catalog.topic, 0, 0, 100, 4_000_000)
    settings, target = await bare_topic(stack, auth="required", admin_key_secret=ADMIN, secret=SECRET)
    for record in {record.key: record for record in before.records}.values():
        append(stack, target, (record.key or b"").decode(), record.value, [(SEEN, b"0")])
    append(stack, target, "key/k", encode(KeyRecord("k", "its secret", "alice", False, now_ms())), None)
    append(stack, target, "key/evil", forged(), None)
    append(stack, target, "key/later", forged(), None)
    append(stack, target, "key/gone", forged(), None)
    append(stack, target, "key/gone", None, None)
    own = {"topic_prefix": settings.topic_prefix, "auth": "required", "admin_key_secret": ADMIN, "secret": SECRET}
    with pytest.raises(NotOurs, match="leaseway seal"):
        await make_engine(**own)
    with pytest.raises(NotOurs):
        await sealed_by(settings, drop=True)  # which would delete everything

    assert (await sealed_by(settings)).adopted == 0  # nobody named anything
    shown = await shown_by(settings)
    assert not any(one.barred for one in shown.values())
    append(stack, target, "key/later", forged("somebody else"), None)
    wanted = ("generation", "queue/q", "key/k", "key/gone", "key/later")
    done = await sealed_by(settings, [shown[key].name for key in wanted])
    assert done.adopted == 4, "key/later is not what was shown"
    after = await make_engine(**own)
    assert after.callers.authenticate("k", "its secret").id == "alice"
    assert list(after.catalog.queues) == ["q"] and list(after.catalog.keys) == ["k"]
    # What was not named may be named later; what comes from now on had to be sealed.
    append(stack, target, "key/after", forged(), None)
    append(stack, target, "key/k", forged(), None)
    await eventually(lambda: _is(alarms(after).get(Reason.UNSEALED) is not None))
    shown = await shown_by(settings)
    assert {key for key, one in shown.items() if not one.barred} == {"key/evil", "key/later"}
    assert (await sealed_by(settings, [shown["key/after"].name])).adopted == 0
    await eventually(lambda: _is(after.callers.authenticate("k", "its secret").id == "alice"))
    done = await sealed_by(settings, drop=True)
    assert (done.dropped, [one for one in done.left if not one.barred]) == (3, [])
    assert (await records_of(after, "key/evil"))[-1].value is None


async def test_a_copy_in_another_cluster_opens_and_a_forgery_in_it_does_not(
    make_engine: MakeEngine, stack: Services
) -> None:
    settings, target = await bare_topic(stack, auth="required", admin_key_secret=ADMIN, secret=SECRET)
    seal, then = Seal(target, SECRET), now_ms() - 5 * FRESH_MS
    append(stack, target, "generation", *seal.close("generation", encode(GenerationRecord(1, "x", 0)), 0, then))
    mine = encode(KeyRecord("k", "its secret", "alice", False, then))
    append(stack, target, "key/k", *seal.close("key/k", mine, 1, then, 0))
    append(stack, target, "key/plain", forged(), None)
    plainly = await shown_by(settings)
    assert all(one.barred for one in plainly.values())
    shown = await shown_by(settings, copied=True)
    assert {key for key, one in shown.items() if not one.barred} == {"generation", "key/k"}
    done = await sealed_by(settings, [one.name for one in shown.values()], copied=True)
    assert (done.adopted, [one.key for one in done.left]) == (2, ["key/plain"])
    after = await make_engine(
        topic_prefix=settings.topic_prefix, auth="required", admin_key_secret=ADMIN, secret=SECRET
    )
    assert list(after.catalog.keys) == ["k"] and after.callers.authenticate("k", "its secret").id == "alice"


async def test_an_operator_sees_what_a_record_says_and_accepts_it(
    make_engine: MakeEngine, stack: Services, tmp_path: Path
) -> None:
    settings, target = await bare_topic(stack, auth="required", admin_key_secret=ADMIN, secret=SECRET)
    append(stack, target, "generation", encode(GenerationRecord(1, "x", 0)), None)
    append(stack, target, "key/k", encode(KeyRecord("k", "its secret", "alice", False, now_ms())), None)
    append(stack, target, "key/evil\x1b[2J", forged(), None)

    def run(wish: cli.Wish) -> tuple[int, list[str]]:
        return cli.seal(settings, wish)

    status, lines = await asyncio.to_thread(run, cli.Wish())
    text = "\n".join(lines)
    assert status == cli.EXIT_NOT_SEALED and text.isprintable() is False and "\x1b" not in text
    assert "ADMINISTRATOR" in text and "mallory" in text and "its secret" not in text and "known to me" not in text
    listed = tmp_path / "list"
    listed.write_text("\n".join(line for line in lines if not line.startswith("key/")))
    asked: list[str] = []

    def answer(question: str) -> str:
        asked.append(question)
        return "each" if "all 2" in question else "y" if "key/k@" in question and "evil" not in question else ""

    status, lines = await asyncio.to_thread(run, cli.Wish(adopt=True, names=cli.names_in(listed)))
    assert lines[-1].startswith("# sealed again 0, adopted 1,")
    with pytest.raises(StackError, match="nothing was sealed"):
        await asyncio.to_thread(run, cli.Wish(adopt=True, names=["key/k@00000000000000000000"]))
    status, lines = await asyncio.to_thread(run, cli.Wish(adopt=True, ask=answer))
    assert (status, len(asked)) == (cli.EXIT_NOT_SEALED, 3) and lines[-1].startswith("# sealed again 0, adopted 1,")
    after = await make_engine(
        topic_prefix=settings.topic_prefix, auth="required", admin_key_secret=ADMIN, secret=SECRET
    )
    assert list(after.catalog.keys) == ["k"]
