"""Plain requests, which the engine begins many at a time: told once each, by the rules of the verbs
themselves, or left to them untouched.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest
import redis

from engine.engine import Engine
from engine.errors import Overloaded, StoreUnavailable
from engine.send.sender import Sender
from engine.shapes import Delivery, NewTag, QueueSettings
from schemas.vocabulary import EntryStatus
from state.errors import StateUnavailable
from state.keys import Unit
from state.store import Store
from tests.integration.drive import BY, ack, all_wait, drain, eventually, receive, send
from tests.integration.test_rebuild import drained, wipe
from tests.services import Services

HOUR = 3_600_000


class Told:
    """What was told, by token; each once."""

    def __init__(self) -> None:
        self.of: dict[int, Any] = {}

    def __call__(self, token: int, told: Any, at_ms: list[int] | None = None) -> None:
        assert token not in self.of, "told twice"
        self.of[token] = told

    async def wait(self, number: int) -> dict[int, Any]:
        async def told() -> bool:
            return len(self.of) >= number

        await eventually(told)
        await asyncio.sleep(0.02)
        assert len(self.of) == number
        return self.of


def plain(token: int, *texts: str) -> tuple[int, list[bytes], list[str]]:
    bodies = [text.encode() for text in texts]
    return token, bodies, [hashlib.md5(body).hexdigest() for body in bodies]


async def sent(engine: Engine, queue: str, *texts: str) -> list[str]:
    """Ids of messages that were sent plainly, one by one."""
    told = Told()
    assert engine.send_soon(BY, queue, [plain(token, text) for token, text in enumerate(texts)], told) == []
    return [(await told.wait(len(texts)))[token][0] for token in range(len(texts))]


async def test_sends_are_answered_with_the_ids_that_receivers_get(engine: Engine, queue: str) -> None:
    await engine.create_queue(BY, queue, QueueSettings())
    told = Told()
    assert engine.send_soon(BY, queue, [plain(1, "a"), plain(2, "b", "c"), plain(3, "d")], told) == []
    ids = await told.wait(3)
    assert [len(ids[token]) for token in (1, 2, 3)] == [1, 2, 1]
    got: list[Delivery] = []
    while len(got) < 4:
        got += await receive(engine, queue, wait_ms=2000)
    assert {d.id: d.message.body for d in got} == dict(zip([*ids[1], *ids[2], *ids[3]], [b"a", b"b", b"c", b"d"], strict=True))
    assert all(d.message.sender == BY.id and d.message.body_is_text for d in got)
    assert [d.message.batch.index if d.message.batch else None for d in sorted(got, key=lambda d: d.message.body)] == [None, 0, 1, None]


@pytest.mark.parametrize(
    "settings", [QueueSettings(fifo=True), QueueSettings(delay_ms=1000), QueueSettings(priority=True), QueueSettings(write_qps=100)]
)
async def test_sends_that_follow_other_rules_are_left(engine: Engine, queue: str, settings: QueueSettings) -> None:
    name = f"{queue}.fifo" if settings.fifo else queue
    await engine.create_queue(BY, name, settings)
    told = Told()
    assert engine.send_soon(BY, name, [plain(1, "a"), plain(2, "b")], told) == [1, 2]
    assert engine.send_soon(BY, f"{queue}-not-there", [plain(1, "a")], told) == [1]
    await asyncio.sleep(0.1)
    assert told.of == {} and await receive(engine, name) == []


async def test_a_send_that_is_too_large_or_one_too_many_is_left_alone(engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await engine.create_queue(BY, queue, QueueSettings(max_message_bytes=10))
    told = Told()
    assert engine.send_soon(BY, queue, [plain(1, "x" * 11), plain(2, "x" * 10), plain(3, "y", "x" * 11)], told) == [1, 3]
    assert list(await told.wait(1)) == [2]
    assert await drain(engine, queue, expect=1) == ["x" * 10]

    def full(*_: Any) -> None:
        raise Overloaded("too many sends are waiting")

    monkeypatch.setattr(Sender, "begin", full)
    assert engine.send_soon(BY, queue, [plain(4, "z")], told) == [4]


async def test_a_queue_of_a_user_with_quotas_is_left(own_engine: Engine, queue: str) -> None:
    engine = own_engine
    await engine.create_queue(BY, queue, QueueSettings(), owner="greta")
    assert engine.send_soon(BY, queue, [plain(1, "a")], Told()) == []
    await engine.set_user_quota(BY, "greta", 1, 1, 0)
    assert engine.send_soon(BY, queue, [plain(1, "a")], Told()) == [1]
    assert engine.receive_soon(BY, queue, None, [(1, 1, 1000, None)], Told()) == [1]
    # What is noted of her is nothing to the queues of others.
    await engine.create_queue(BY, f"{queue}-2", QueueSettings(), owner="hugo")
    assert engine.send_soon(BY, f"{queue}-2", [plain(1, "a")], Told()) == []


async def test_receives_that_wait_are_served_by_a_send(engine: Engine, queue: str) -> None:
    await engine.create_queue(BY, queue, QueueSettings())
    told = Told()
    assert engine.receive_soon(BY, queue, None, [(1, 10, 5000, HOUR)], told) == []  # the first makes the worker hear of the queue
    await all_wait(engine, 1)
    assert engine.receive_soon(BY, queue, None, [(2, 10, 5000, HOUR), (3, 10, 5000, HOUR)], told) == []
    await all_wait(engine, 3)
    await sent(engine, queue, "a", "b", "c")

    async def all_came() -> bool:
        return sum(len(found) for found in told.of.values()) == 3

    await eventually(all_came)
    got = [d for found in told.of.values() for d in found]
    assert {d.message.body for d in got} == {b"a", b"b", b"c"}
    for token in {1, 2, 3} - set(told.of):
        engine.leave(token)
    await all_wait(engine, 0)


async def test_a_receive_whose_time_is_over_is_told_that_there_is_nothing(engine: Engine, queue: str) -> None:
    await engine.create_queue(BY, queue, QueueSettings())
    await receive(engine, queue, wait_ms=1)
    told = Told()
    assert engine.receive_soon(BY, queue, None, [(1, 1, 100, None), (2, 1, 0, None), (3, 1, None, None)], told) == []
    assert await told.wait(3) == {1: [], 2: [], 3: []}
    assert not next(line for line in engine.parts.units.wait_lists if not line.waiters).waiters
    await all_wait(engine, 0)


async def test_a_receive_that_does_not_wait_gets_what_is_there(engine: Engine, queue: str) -> None:
    await engine.create_queue(BY, queue, QueueSettings())
    await sent(engine, queue, "a", "b")
    told = Told()
    assert engine.receive_soon(BY, queue, None, [(1, 10, 0, HOUR)], told) == []
    assert {d.message.body for d in (await told.wait(1))[1]} == {b"a", b"b"}


async def test_receives_of_what_is_not_there_or_in_order_are_left(engine: Engine, queue: str) -> None:
    await engine.create_queue(BY, f"{queue}.fifo", QueueSettings(fifo=True))
    await engine.create_queue(BY, queue, QueueSettings())
    told, asked = Told(), [(1, 1, 1000, None)]
    assert engine.receive_soon(BY, f"{queue}.fifo", None, asked, told) == [1]
    assert engine.receive_soon(BY, queue, "nobody", asked, told) == [1]
    assert engine.receive_soon(BY, f"{queue}-not-there", None, asked, told) == [1]
    assert told.of == {}


@pytest.mark.parametrize("wait_ms", [10_000, 0])
async def test_who_has_left_is_leased_nothing_and_nothing_is_counted(
    engine: Engine, queue: str, wait_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.create_queue(BY, queue, QueueSettings(partitions=1, lease_ms=HOUR))
    await receive(engine, queue, wait_ms=1)
    told, leased, real = Told(), asyncio.Event(), Store.receive

    async def late(*given: Any, **named: Any) -> Any:
        received = await real(*given, **named)
        if received.leased:
            leased.set()
            await asyncio.sleep(0.2)
        return received

    if wait_ms == 0:
        await sent(engine, queue, "a")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "receive", late)
        assert engine.receive_soon(BY, queue, None, [(1, 1, wait_ms, None)], told) == []
        if wait_ms:
            await all_wait(engine, 1)
            await sent(engine, queue, "a")
        async with asyncio.timeout(5):
            await leased.wait()
        engine.leave(1)
        engine.leave(1)  # as often as one likes
        await asyncio.sleep(0.4)
    assert told.of == {}
    (delivery,) = await receive(engine, queue, wait_ms=5000)
    assert (delivery.message.body, delivery.receive_count) == (b"a", 1)
    await all_wait(engine, 0)


async def received(engine: Engine, queue: str, number: int, tag: str | None = None) -> list[Delivery]:
    got: list[Delivery] = []
    while len(got) < number:
        got += await receive(engine, queue, wait_ms=2000, lease_ms=HOUR, tag=tag)
    return got


async def sent_and_received(engine: Engine, queue: str) -> list[Delivery]:
    await send(engine, queue, "fresh")
    return await received(engine, queue, 1)


async def test_acks_of_several_partitions_and_tags_settle_all(engine: Engine, queue: str) -> None:
    await engine.create_queue(BY, queue, QueueSettings(partitions=4), [NewTag("t")])
    for text in "abcdefgh":
        await send(engine, queue, text)
    handles = [d.handle for tag in (None, "t") for d in await received(engine, queue, 8, tag)]
    told = Told()
    assert engine.ack_soon(BY, queue, [(1, handles[:1]), (2, handles[1:])], told) == []
    assert await told.wait(2) == {1: ["ok"], 2: ["ok"] * 15}
    info = await engine.get_queue(BY, queue)
    assert [(tag.ready, tag.leased, tag.backlog) for tag in info.tags] == [(0, 0, 0)] * 2
    # Done once more they are stale, which is no error; each by its place among the others.
    (fresh,) = await sent_and_received(engine, queue)
    again = Told()
    assert engine.ack_soon(BY, queue, [(1, [*handles[:9], fresh.handle, *handles[9:12]])], again) == []
    assert await again.wait(1) == {1: ["stale"] * 9 + ["ok"] + ["stale"] * 3}
    assert {one.status for one in await engine.ack(BY, queue, handles[:3])} == {EntryStatus.STALE}


async def test_acks_that_follow_other_rules_are_left(engine: Engine, queue: str) -> None:
    for name, settings in (
        (f"{queue}.fifo", QueueSettings(fifo=True)),
        (f"{queue}-d", QueueSettings(durable_acks=True)),
        (queue, QueueSettings()),
    ):
        await engine.create_queue(BY, name, settings)
    await send(engine, f"{queue}-d", "a")
    await send(engine, queue, "b")
    (durable,), (own,) = await received(engine, f"{queue}-d", 1), await received(engine, queue, 1)
    told = Told()
    assert engine.ack_soon(BY, f"{queue}-d", [(1, [durable.handle])], told) == [1]
    assert engine.ack_soon(BY, f"{queue}.fifo", [(1, [own.handle])], told) == [1]
    assert engine.ack_soon(BY, queue, [(1, [own.handle, "no handle"]), (2, [durable.handle]), (3, [engine.one_use(own)])], told) == [
        1,
        2,
        3,
    ]
    assert told.of == {}
    assert (await engine.peek(BY, queue, own.id, None)).state == "leased"
    await ack(engine, queue, [own])


async def test_an_ack_on_lost_state_is_made_when_it_was_rebuilt(own_engine: Engine, stack: Services, queue: str) -> None:
    engine = own_engine
    await engine.create_queue(BY, queue, QueueSettings())
    await send(engine, queue, "a", "b")
    got = await received(engine, queue, 2)
    await drained(engine)
    wipe(stack, engine)
    told = Told()
    assert engine.ack_soon(BY, queue, [(1, [d.handle for d in got])], told) == []
    assert await told.wait(1) == {1: ["ok", "ok"]}


async def test_an_ack_that_redis_does_not_take_is_refused(engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await engine.create_queue(BY, queue, QueueSettings())
    await send(engine, queue, "a")
    got = await received(engine, queue, 1)

    async def away(*given: Any, **named: Any) -> Any:
        raise StateUnavailable("away")

    told = Told()
    with monkeypatch.context() as patch:
        patch.setattr(Store, "ack", away)
        assert engine.ack_soon(BY, queue, [(1, [d.handle for d in got])], told) == []
        assert isinstance((await told.wait(1))[1], StoreUnavailable)
    await ack(engine, queue, got)


async def leased_of_two_partitions(engine: Engine, queue: str) -> list[Delivery]:
    await engine.create_queue(BY, queue, QueueSettings(partitions=2))
    got: list[Delivery] = []
    while {d.partition for d in got} != {0, 1}:
        await send(engine, queue, "x")
        got += await received(engine, queue, 1)
    await drained(engine)
    return [next(d for d in got if d.partition == partition) for partition in (0, 1)]


@pytest.mark.parametrize("lost", [0, 1])
async def test_what_an_ack_has_settled_is_ok_though_another_partition_was_lost(
    own_engine: Engine, stack: Services, queue: str, lost: int
) -> None:
    got = await leased_of_two_partitions(own_engine, queue)
    unit = own_engine.catalog.queues[queue].units[lost]
    with redis.Redis.from_url(stack.redis_url) as client:
        for key in list(client.scan_iter(f"{own_engine.settings.topic_prefix}:{{{unit.incarnation}:{unit.partition}}}:*")):
            client.delete(key)
    told = Told()
    assert own_engine.ack_soon(BY, queue, [(1, [d.handle for d in got])], told) == []
    assert await told.wait(1) == {1: ["ok", "ok"]}


async def test_an_ack_whose_reply_is_lost_is_unknown(engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    got, real, lost = await leased_of_two_partitions(engine, queue), Store.ack, [0]

    async def lossy(store: Store, unit: Unit, *given: Any, **named: Any) -> Any:
        found = await real(store, unit, *given, **named)
        if unit.partition in lost:
            lost.clear()
            raise StateUnavailable("the connection to Redis was lost before the reply")
        return found

    told = Told()
    with monkeypatch.context() as patch:
        patch.setattr(Store, "ack", lossy)
        assert engine.ack_soon(BY, queue, [(1, [d.handle for d in got])], told) == []
        assert isinstance((await told.wait(1))[1], StoreUnavailable)
    assert {one.status for one in await engine.ack(BY, queue, [d.handle for d in got])} == {EntryStatus.STALE}
