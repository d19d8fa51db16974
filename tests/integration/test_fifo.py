"""FIFO queues through the engine: order over workers, repeats, loss of Redis, dead letters. Real
Kafka and Redis.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from typing import Any

import pytest
import redis

from engine.engine import Engine
from engine.errors import InvalidValue, NotAllowedOnQueue
from engine.receive.poll import Leases, Poller
from engine.shapes import Delivery, ExtendEntry, SendEntry, Sent
from schemas.records import Message
from schemas.records.settings import QueueSettings, RedrivePolicy
from schemas.wire import encode
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, all_wait, drain, eventually, receive
from tests.integration.test_rebuild import drained, wipe
from tests.services import Services

FIFO = QueueSettings(fifo=True, lease_ms=60_000)
SPREAD = QueueSettings(fifo=True, dedup_scope="group", partitions=4, lease_ms=60_000)


async def put(engine: Engine, queue: str, group: str, *bodies: str, dedup: str | None = None) -> list[Sent]:
    """Sends one by one; the deduplication id is the body, unless given."""
    sent = []
    for body in bodies:
        sent += await engine.messages.send(
            BY, queue, [SendEntry(body.encode(), group=group, dedup_id=dedup or f"{group}-{body}")]
        )
    return sent


def texts(deliveries: list[Delivery]) -> list[str]:
    return [d.message.body.decode() for d in deliveries]


@pytest.mark.parametrize("settings", [FIFO, SPREAD], ids=["queue scope", "group scope"])
async def test_a_group_is_received_in_order_and_waits_for_what_is_leased(
    engine: Engine, queue: str, settings: QueueSettings
) -> None:
    await engine.queues.create_queue(BY, queue, settings)
    await put(engine, queue, "a", "1", "2", "3", "4")
    first = await receive(engine, queue, max=2)
    assert texts(first) == ["1", "2"]
    assert await receive(engine, queue) == []
    await put(engine, queue, "b", "x")
    assert texts(await receive(engine, queue)) == ["x"]
    await ack(engine, queue, first[:1])
    assert await receive(engine, queue) == []
    await engine.messages.release(BY, queue, [first[1].handle], 0)
    again = await receive(engine, queue)
    assert texts(again) == ["2", "3", "4"] and [d.receive_count for d in again] == [2, 1, 1]
    assert sorted(d.sequence_number for d in again) == [d.sequence_number for d in again]


@pytest.mark.parametrize("how", ["release", "extend", "lapse"])
@pytest.mark.parametrize("settings", [FIFO, SPREAD], ids=["queue scope", "group scope"])
async def test_what_is_visible_again_ahead_of_what_is_in_flight_comes_again(
    engine: Engine, queue: str, settings: QueueSettings, how: str
) -> None:
    """As in SQS: a group leases from its first message up to the first that is not visible, also
    while others of it are leased.
    """
    await engine.queues.create_queue(BY, queue, settings)
    await put(engine, queue, "a", "1", "2", "3", "4")
    one, two, three = await receive(engine, queue, max=3)
    if how == "release":
        await engine.messages.release(BY, queue, [one.handle], 0)
    else:
        await engine.messages.extend(BY, queue, [ExtendEntry(one.handle, 0 if how == "extend" else 300)])
    again = await receive(engine, queue, wait_ms=2_000)
    assert [(d.message.body, d.receive_count) for d in again] == [(b"1", 2)]
    await engine.messages.release(BY, queue, [three.handle], 0)
    assert await receive(engine, queue) == []
    await ack(engine, queue, again)
    assert await receive(engine, queue) == []
    await ack(engine, queue, [two])
    assert texts(await receive(engine, queue)) == ["3", "4"]


async def test_groups_of_one_batch_come_in_its_order(engine: Engine, queue: str) -> None:
    """All of it is of one ms; ten batches, for the groups' names are hashed."""
    await engine.queues.create_queue(BY, queue, FIFO)
    for turn in range(10):
        names = [f"{turn}-{number}" for number in range(5)]
        await engine.messages.send(BY, queue, [SendEntry(name.encode(), group=name, dedup_id=name) for name in names])
        first = texts(await receive(engine, queue, max=1)) + texts(await receive(engine, queue, max=1))
        assert first + texts(await receive(engine, queue)) == names


async def test_the_next_of_a_group_wakes_a_waiter_when_the_one_before_is_acked(make_engine: MakeEngine) -> None:
    one, two = await make_engine(), await make_engine()
    await one.queues.create_queue(BY, "q", FIFO)
    await put(one, "q", "a", "1", "2")
    first = await receive(one, "q", max=1)
    waiting = asyncio.create_task(receive(two, "q", wait_ms=10_000))
    await all_wait(two)
    started = time.monotonic()
    await ack(one, "q", first)
    assert texts(await waiting) == ["2"]
    assert time.monotonic() - started < 2


async def test_a_repeat_is_answered_as_the_first_and_not_delivered(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, FIFO)
    (first,) = await put(engine, queue, "a", "one", dedup="same")
    (second,) = await put(engine, queue, "b", "other body", dedup="same")
    assert (second.id, second.sequence_number) == (first.id, first.sequence_number)
    (third,) = await put(engine, queue, "b", "two")
    assert third.id != first.id
    assert await drain(engine, queue, expect=2) == ["one", "two"]
    assert (await engine.queues.get_queue(BY, queue)).tags[0].backlog == 0


async def test_in_group_scope_two_groups_may_use_one_id(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, SPREAD)
    await put(engine, queue, "a", "one", dedup="same")
    await put(engine, queue, "b", "two", dedup="same")
    await put(engine, queue, "a", "three", dedup="same")
    assert sorted(await drain(engine, queue, expect=2)) == ["one", "two"]


async def test_content_dedup_takes_the_body_as_id(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(fifo=True, content_dedup=True))
    for body in (b"x", b"x", b"y"):
        await engine.messages.send(BY, queue, [SendEntry(body, group="g")])
    assert await drain(engine, queue, expect=2) == ["x", "y"]


async def test_many_senders_of_repeats_while_redis_is_wiped_deliver_each_once(
    make_engine: MakeEngine, stack: Services
) -> None:
    """1,000 sends of 500 ids by four senders on two workers, Redis emptied in the middle."""
    engines = [await make_engine(), await make_engine()]
    await engines[0].queues.create_queue(BY, "q", FIFO)
    rest = random.Random(7)
    ids = [f"m{n}" for n in range(500)] * 2
    rest.shuffle(ids)
    halves = [ids[:500], ids[500:]]

    async def sender(number: int, mine: list[str]) -> None:
        for name in mine:
            await put(engines[number % 2], "q", f"g{int(name[1:]) % 10}", name, dedup=name)

    await asyncio.gather(*(sender(n, halves[0][n::4]) for n in range(4)))
    seen = Counter[str]()
    got = await receive(engines[0], "q", max=100)
    await ack(engines[0], "q", got)
    seen.update(texts(got))
    await drained(engines[0])
    await drained(engines[1])
    wipe(stack, engines[0])
    await asyncio.gather(*(sender(n, halves[1][n::4]) for n in range(4)))
    seen.update(await drain(engines[1], "q", expect=500 - seen.total(), patience_ms=500))
    assert seen == Counter({f"m{n}": 1 for n in range(500)})


async def test_what_was_leased_for_a_waiter_that_left_is_not_shared_among_others(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first waiter goes while its batch is under way: one other may have it, or a part of it,
    not two.
    """
    await engine.queues.create_queue(BY, queue, FIFO)
    await put(engine, queue, "a", "0")
    got = await receive(engine, queue)
    await put(engine, queue, "a", "1", "2", "3", "4")
    poll, was_leased, has_left = Poller.poll, asyncio.Event(), asyncio.Event()

    async def slow(self: Poller, *args: Any, **named: Any) -> Leases:
        leased = await poll(self, *args, **named)
        if leased:
            was_leased.set()
            await has_left.wait()
        return leased

    leaves = asyncio.create_task(receive(engine, queue, max=4, wait_ms=2000))
    await all_wait(engine, 1)
    others = [asyncio.create_task(receive(engine, queue, max=2, wait_ms=2000)) for _ in range(2)]
    await all_wait(engine, 3)
    monkeypatch.setattr(Poller, "poll", slow)
    await ack(engine, queue, got)
    await was_leased.wait()
    leaves.cancel()
    await asyncio.wait([leaves])
    has_left.set()
    assert leaves.cancelled()
    assert sorted(texts(got) for got in await asyncio.gather(*others)) == [[], ["1", "2"]]


@pytest.mark.long
async def test_order_holds_over_workers_lapses_and_a_wipe(make_engine: MakeEngine, stack: Services) -> None:
    """20 groups x 12 messages, six consumers that ack, release or let lapse at random; Redis
    emptied in the middle.
    """
    engines = [await make_engine(), await make_engine()]
    await engines[0].queues.create_queue(BY, "q", SPREAD)
    groups = [f"g{n}" for n in range(20)]
    for number in range(12):
        await asyncio.gather(*(put(engines[n % 2], "q", group, str(number)) for n, group in enumerate(groups)))
    acked: dict[str, list[int]] = {group: [] for group in groups}
    breaches: list[str] = []

    async def consumer(number: int) -> None:
        rest, engine, quiet = random.Random(number), engines[number % 2], 0
        while quiet < 4:
            got = await receive(engine, "q", max=rest.randint(1, 6), wait_ms=700, lease_ms=1_500)
            quiet = 0 if got else quiet + 1
            for d in got:
                group, value = d.message.group or "", int(d.message.body)
                if value not in acked[group] and acked[group] and value < max(acked[group]):
                    breaches.append(f"{group}: {value} after {acked[group][-1]}")
                fate = rest.random()
                if fate < 0.7:
                    (result,) = await engine.messages.ack(BY, "q", [d.handle])
                    if result.status == "ok":
                        acked[group].append(value)
                        continue
                elif fate < 0.85:
                    await engine.messages.release(BY, "q", [d.handle], 0)
                break  # what follows in the batch lapses

    async def many_are_acked() -> bool:
        return sum(map(len, acked.values())) >= 80

    async def wiper() -> None:
        await eventually(many_are_acked)
        await drained(engines[0])
        await drained(engines[1])
        wipe(stack, engines[0])

    await asyncio.gather(*(consumer(n) for n in range(6)), wiper())
    assert breaches == []
    # An ack of the last moments before the wipe may be forgotten, so that its message comes again;
    # none may be missing.
    assert {group: sorted(set(values)) for group, values in acked.items()} == {
        group: list(range(12)) for group in groups
    }


async def test_dead_letters_of_a_fifo_queue_keep_group_and_order(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}-dlq", FIFO)
    await engine.queues.create_queue(
        BY, queue, QueueSettings(fifo=True, lease_ms=60_000, redrive_policy=RedrivePolicy(f"{queue}-dlq", 1))
    )
    await put(engine, queue, "a", "1", "2", "3")
    for body in ("1", "2"):
        got = await receive(engine, queue, max=1, wait_ms=3000)
        assert texts(got) == [body]
        await engine.messages.kill(BY, queue, [got[0].handle])
    assert texts(await receive(engine, queue, wait_ms=3000)) == ["3"]
    letters = await receive(engine, f"{queue}-dlq", wait_ms=3000)
    assert texts(letters) == ["1", "2"] and {d.message.group for d in letters} == {"a"}
    assert [d.message.origin.original_queue for d in letters if d.message.origin] == [queue, queue]
    for d in letters:
        await engine.messages.release(BY, f"{queue}-dlq", [d.handle], 0)
    task = await engine.tasks.redrive(BY, f"{queue}-dlq", None, None, 0)

    async def done() -> bool:
        return (await engine.tasks.get_task(BY, task.id)).status == "completed"

    await eventually(done)
    assert (await engine.tasks.get_task(BY, task.id)).moved == 2


async def test_a_tag_made_later_sees_no_repeats(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, FIFO)
    for body in ("1", "1", "2", "1", "2", "3"):
        await put(engine, queue, "a", body)
    assert await drain(engine, queue, expect=3) == ["1", "2", "3"]
    await engine.queues.create_tag(BY, queue, "late", 0, None, {})
    assert await drain(engine, queue, "late", expect=3) == ["1", "2", "3"]
    await put(engine, queue, "a", "3")
    assert await drain(engine, queue, patience_ms=300) == []


@pytest.mark.parametrize("window", [200, 10])
async def test_a_purge_forgets_ids_and_order_goes_on(make_engine: MakeEngine, window: int) -> None:
    """With a window of 10 most of what is purged was never loaded."""
    engine = await make_engine(window_messages=window, kept_bytes=0)
    await engine.queues.create_queue(BY, "q", FIFO)
    old = await put(engine, "q", "a", *(str(n) for n in range(40)))
    await engine.queues.purge(BY, "q")
    new = await put(engine, "q", "a", "11", "1", "x", "1")
    assert not {sent.id for sent in new} & {sent.id for sent in old} and new[3].id == new[1].id
    assert await drain(engine, "q", expect=3, patience_ms=1000) == ["11", "1", "x"]


async def test_a_backlog_of_a_shut_group_does_not_hide_what_is_behind_it(
    make_engine: MakeEngine, stack: Services
) -> None:
    """20,000 messages of one group, of which the first is leased; the window holds 500 bodies."""
    engine = await make_engine(window_messages=500, kept_bytes=0)
    await engine.queues.create_queue(BY, "q", FIFO)
    await put(engine, "q", "shut", "first")
    (first,) = await receive(engine, "q", max=1)
    for start in range(0, 20_000, 2_000):
        rows = [
            [SendEntry(b"x", group="shut", dedup_id=f"{n + m}") for m in range(100)]
            for n in range(start, start + 2_000, 100)
        ]
        await asyncio.gather(*(engine.messages.send(BY, "q", entries) for entries in rows))
    await put(engine, "q", "free", "1")
    began = time.monotonic()
    got = await receive(engine, "q", wait_ms=20_000)
    assert texts(got) == ["1"] and time.monotonic() - began < 2
    unit = engine.catalog.queues["q"].units[0]
    bodies, _, size = await engine.store.upkeep.leftovers(unit)
    assert bodies <= 501 and size < 200_000
    with redis.Redis.from_url(stack.redis_url) as client:
        keys = list(client.scan_iter(f"*{unit.incarnation}:0}}:*"))
        used = sum(client.memory_usage(key, samples=0) or 0 for key in keys)
    print(f"bytes for each message without a body: {(used - size) / 20_000:.0f}")
    assert used / 20_000 < 500
    await ack(engine, "q", [first, *got])
    assert len(await drain(engine, "q", expect=20_000)) == 20_000


async def test_a_message_of_a_backlog_keeps_its_own_lease(make_engine: MakeEngine) -> None:
    """Also where the window had no room for its body."""
    engine = await make_engine(window_messages=10, kept_bytes=0)
    await engine.queues.create_queue(BY, "q", FIFO)
    await put(engine, "q", "shut", *(str(n) for n in range(30)))
    assert texts(await receive(engine, "q", max=1)) == ["0"]
    entry = SendEntry(b"mine", group="free", dedup_id="mine", lease_ms=1_000)
    await engine.messages.send(BY, "q", [entry])
    (mine,) = await receive(engine, "q", wait_ms=5_000)
    assert mine.message.body == b"mine" and mine.next_visible_at_ms - mine.first_received_at_ms < 2_000
    assert texts(await receive(engine, "q", wait_ms=3_000)) == ["mine"]


BAD_SENDS: list[tuple[dict[str, Any], str]] = [
    ({}, "group"),
    ({"group": "a"}, "dedup_id"),
    ({"group": "a b", "dedup_id": "x"}, "group"),
    ({"group": "a", "dedup_id": "x" * 129}, "dedup_id"),
    ({"group": "a", "dedup_id": "x", "delay_ms": 1000}, "delay_ms"),
]


@pytest.mark.parametrize(("given", "field"), BAD_SENDS, ids=[str(b[0])[:40] for b in BAD_SENDS])
async def test_a_send_that_a_fifo_queue_refuses_names_the_field(
    engine: Engine, queue: str, given: dict[str, Any], field: str
) -> None:
    await engine.queues.create_queue(BY, queue, FIFO)
    with pytest.raises(InvalidValue) as caught:
        await engine.messages.send(BY, queue, [SendEntry(b"x", **given)])
    assert caught.value.field == field
    assert await receive(engine, queue) == []


async def test_settings_of_fifo_queues_are_checked(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}-plain", QueueSettings())
    await engine.queues.create_queue(BY, queue, FIFO)
    with pytest.raises(InvalidValue, match="FIFO queues only"):
        await engine.queues.create_queue(BY, "x", QueueSettings(content_dedup=True))
    with pytest.raises(InvalidValue, match="queue or group"):
        await engine.queues.create_queue(BY, "x", QueueSettings(fifo=True, dedup_scope="topic"))
    with pytest.raises(NotAllowedOnQueue, match="standard queue"):
        await engine.queues.create_queue(
            BY, "x", QueueSettings(fifo=True, redrive_policy=RedrivePolicy(f"{queue}-plain", 3))
        )
    with pytest.raises(InvalidValue, match="FIFO queues only"):
        await engine.messages.send(BY, f"{queue}-plain", [SendEntry(b"x", dedup_id="d")])
    await put(engine, queue, "a", "1")
    with pytest.raises(NotAllowedOnQueue, match="empty"):
        await engine.queues.set_queue(BY, queue, QueueSettings(dedup_scope="group"))
    await drain(engine, queue, patience_ms=200)
    await engine.queues.set_queue(BY, queue, QueueSettings(dedup_scope="group"))
    with pytest.raises(InvalidValue, match="one group"):
        await engine.messages.send(BY, queue, [SendEntry(b"1", group=g, dedup_id=g) for g in "ab"])


async def test_a_repeat_that_comes_before_the_record_it_follows_is_answered_as_the_first(
    engine: Engine, queue: str
) -> None:
    """Another worker's record is in the log and not in the window yet: the sender waits for its
    turn.
    """
    await engine.queues.create_queue(BY, queue, FIFO)
    (first,) = await put(engine, queue, "a", "one", dedup="same")
    found = engine.catalog.queues[queue]
    other = Message(b"of another worker", group="b", dedup_id="other", sender="t")
    await engine.log.append_many(found.topic, 0, [encode(other)])
    (again,) = await put(engine, queue, "a", "two", dedup="same")
    assert again.id == first.id
    assert sorted(await drain(engine, queue, expect=2)) == ["of another worker", "one"]
