"""Messages that are due much later: they leave the window, and come back once, on time, whatever is
lost or killed in between. The clock of the scripts is moved; Kafka's is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import EngineError, MessageNotFound
from engine.loading import deferrals
from engine.loading.wheel import SLOTS
from engine.log import Chunk
from engine.shapes import SendEntry
from runtime.clock import now_ms
from runtime.failpoints import FailpointReached, arm
from schemas.filters import Condition, Filter
from schemas.records import Attribute, Message, Origin
from schemas.records.settings import DAY_MS, QueueSettings
from schemas.topics import delay_topic
from schemas.vocabulary import Reason
from schemas.wire import encode
from state.errors import StateError
from tests.clock import ScriptClock
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, eventually, receive, send
from tests.integration.test_rebuild import drained, wipe
from tests.integration.test_verify import clean, verify
from tests.services import Services

HOUR_MS = 3_600_000
RED = {"colour": Attribute("string", b"red")}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ScriptClock:
    return ScriptClock(monkeypatch)


@pytest.fixture
async def far(make_engine: MakeEngine) -> Engine:
    """An engine with queue `q` of one partition."""
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, lease_ms=600_000))
    return engine


async def filed(engine: Engine, queue: str = "q") -> None:
    """Returns when the wheel has all pointers of a queue."""
    for unit in engine.catalog.queues[queue].units:

        async def done(unit: object = unit) -> bool:
            loader = engine.parts.units.owner.owned.get(unit)  # type: ignore[call-overload]
            if loader is None:
                await receive(engine, queue)
                return False
            seen = await engine.store.deferred.deferred(loader.unit, engine.catalog.generation, [0], ahead_ms=0)
            if seen.pointers:
                await engine.parts.units.owner.turns.deferrals.file(loader, seen.pointers)
            return not seen.pointers

        await eventually(done)


async def delayed(engine: Engine, queue: str = "q") -> int:
    return (await engine.queues.get_queue(BY, queue)).tags[0].delayed


async def turn(engine: Engine, queue: str = "q") -> None:
    """A turn of every unit, now."""
    for unit in engine.catalog.queues[queue].units:
        loader = engine.parts.units.owner.owned.get(unit)
        if loader is not None:
            # As its owner does: what is lost is rebuilt, and a later turn goes on.
            with contextlib.suppress(StateError, EngineError):
                await engine.parts.units.owner.turns.deferrals.turn(loader)


async def take(engine: Engine, expect: int, tag: str | None = None) -> list[str]:
    """Receives by short polls, which look at every partition, and acks, until so many have come;
    fails if more come than that.
    """
    bodies: list[str] = []
    end = asyncio.get_running_loop().time() + 30
    while True:
        done = len(bodies) >= expect
        await turn(engine)
        got = await receive(engine, "q", max=100, tag=tag)
        bodies += [d.message.body.decode() for d in got]
        await ack(engine, "q", got)
        if (done and not got) or asyncio.get_running_loop().time() > end:
            return bodies


async def test_far_messages_are_not_in_the_window_and_come_when_they_are_due(far: Engine, clock: ScriptClock) -> None:
    sent = await send(far, "q", "late", delay_ms=2 * HOUR_MS)
    await send(far, "q", "later", delay_ms=30 * DAY_MS)
    await send(far, "q", "near", delay_ms=200_000)
    await send(far, "q", "now")
    assert await take(far, 1) == ["now"]
    unit = far.catalog.queues["q"].units[0]
    assert await far.store.upkeep.open_most(unit, [0]) == 1
    assert await delayed(far) == 3
    peeked = await far.messages.peek(BY, "q", sent[0].id, None)
    assert (peeked.state, peeked.next_visible_at_ms) == ("delayed", sent[0].sent_at_ms + 2 * HOUR_MS)
    page = await far.messages.query(BY, "q", None, None, None, "delayed", None, 10, None)
    assert [m.message.body for m in page.messages] == [b"late", b"later", b"near"]
    await filed(far)
    assert clean(await verify(far))
    clock.set(sent[0].sent_at_ms + 2 * HOUR_MS - 1_500)
    assert await take(far, 1) == ["near"]
    assert await take(far, 1) == ["late"]
    assert clock.now_ms() >= sent[0].sent_at_ms + 2 * HOUR_MS
    assert await delayed(far) == 1
    clock.pass_s(30 * 86_400)
    assert await take(far, 1) == ["later"]
    assert await take(far, 0) == []
    assert await delayed(far) == 0
    await drained(far)
    assert clean(await verify(far))


@pytest.mark.parametrize("in_wheel", [False, True])
async def test_a_loss_of_redis_forgets_no_far_message_and_doubles_none(
    far: Engine, clock: ScriptClock, stack: Services, in_wheel: bool
) -> None:
    for n in range(20):
        await send(far, "q", str(n), delay_ms=HOUR_MS + n * 60_000)
    (gone,) = await send(far, "q", "deleted", delay_ms=HOUR_MS)
    await far.messages.delete_message(BY, "q", gone.id)
    await send(far, "q", *map(str, range(100, 110)))
    assert len(await take(far, 10)) == 10
    if in_wheel:
        await filed(far)
        # A floor beyond the far messages, so that a rebuild knows of them by the wheel alone.
        await far.queues.get_queue(BY, "q")
    await drained(far)
    wipe(stack, far)
    assert await take(far, 0) == []

    async def counted() -> bool:
        return await delayed(far) == 20

    await eventually(counted)
    clock.pass_s(3600 + 5 * 60 - 30)
    assert await take(far, 5) == ["0", "1", "2", "3", "4"]
    await drained(far)
    wipe(stack, far)
    assert await take(far, 0) == []
    clock.pass_s(3600)
    assert await take(far, 15) == [str(n) for n in range(5, 20)]
    assert await delayed(far) == 0
    await drained(far)
    assert clean(await verify(far))


async def test_a_deleted_far_message_never_comes(far: Engine, clock: ScriptClock) -> None:
    sent = await far.messages.send(BY, "q", [SendEntry(b"%d" % n, delay_ms=HOUR_MS) for n in range(6)])
    for one in sent[::2]:
        await far.messages.delete_message(BY, "q", one.id)
    with pytest.raises(MessageNotFound):
        await far.messages.delete_message(BY, "q", sent[0].id)
    assert (await far.messages.peek(BY, "q", sent[0].id, None)).state == "settled"
    assert await delayed(far) == 3
    clock.pass_s(3600)
    assert await take(far, 3) == ["1", "3", "5"]
    await drained(far)
    assert clean(await verify(far))


async def test_each_tag_has_its_own_far_messages(far: Engine, clock: ScriptClock) -> None:
    await far.queues.create_tag(BY, "q", "red", 0, Filter([Condition("colour", "string", b"red")]), {})
    await far.messages.send(BY, "q", [SendEntry(b"red", RED, delay_ms=HOUR_MS), SendEntry(b"blue", delay_ms=HOUR_MS)])
    await filed(far)
    await far.queues.create_tag(BY, "q", "all", 0, None, {})
    await far.queues.create_tag(BY, "q", "new", -1, None, {})
    await send(far, "q", "after", delay_ms=HOUR_MS)

    async def counted() -> bool:
        return [tag.delayed for tag in (await far.queues.get_queue(BY, "q")).tags] == [3, 1, 3, 1]

    await eventually(counted)
    await far.queues.delete_tag(BY, "q", "all")
    clock.pass_s(3601)
    assert await take(far, 1, "new") == ["after"]
    assert await take(far, 1, "red") == ["red"]
    assert await take(far, 3) == ["red", "blue", "after"]
    await far.queues.create_tag(BY, "q", "replay", 0, None, {})
    assert await take(far, 3, "replay") == ["red", "blue", "after"]
    await drained(far)
    assert clean(await verify(far))


async def test_a_purge_settles_what_is_deferred(far: Engine, clock: ScriptClock, stack: Services) -> None:
    await send(far, "q", "old", "older", delay_ms=HOUR_MS)
    await filed(far)
    await send(far, "q", "unfiled", delay_ms=HOUR_MS)
    await far.queues.purge(BY, "q")
    assert await delayed(far) == 0
    await send(far, "q", "new", delay_ms=HOUR_MS)
    await drained(far)
    wipe(stack, far)
    clock.pass_s(3601)
    assert await take(far, 1) == ["new"]
    assert clean(await verify(far))


async def test_the_wheel_is_repaired_when_its_topic_is_lost(far: Engine, clock: ScriptClock) -> None:
    await send(far, "q", "a", "b", delay_ms=HOUR_MS)
    await filed(far)
    await far.log.delete_topics([delay_topic(far.settings.topic_prefix)])
    clock.pass_s(3601)
    assert sorted(await take(far, 2)) == ["a", "b"]


async def test_pointers_are_filed_as_fast_as_they_come(
    far: Engine, clock: ScriptClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is loaded behind 20,000 of them: a filing a second held up what was sent behind."""
    assert await receive(far, "q") == []  # so that it is owned
    loader = far.parts.units.owner.owned[far.catalog.queues["q"].units[0]]
    wheel = far.parts.units.owner.turns.deferrals._wheel
    append, entries, left = wheel.append, [SendEntry(b"m", delay_ms=HOUR_MS)] * 100, [1, 2, 3, 4]

    async def meanwhile(*given: Any) -> None:
        await append(*given)
        if left:
            left.pop()
            await far.messages.send(BY, "q", entries)

    monkeypatch.setattr(deferrals, "FILE_COUNT", 80)
    monkeypatch.setattr(wheel, "append", meanwhile)
    async with loader.turning:  # its own turns wait
        await far.messages.send(BY, "q", entries)
    await far.parts.units.owner.turns.deferrals.turn(loader)
    seen = await far.store.deferred.deferred(loader.unit, far.catalog.generation, [0], ahead_ms=0)
    assert (left, seen.pointers, seen.tags[0].total) == ([], [], 500)


async def test_another_worker_brings_what_the_first_has_deferred(
    make_engine: MakeEngine, far: Engine, clock: ScriptClock
) -> None:
    await send(far, "q", "a", delay_ms=HOUR_MS)
    await filed(far)
    await send(far, "q", "b", delay_ms=HOUR_MS)
    await far.stop()
    other = await make_engine()
    clock.pass_s(3601)
    assert await take(other, 2) == ["a", "b"]


async def a_step(far: Engine, clock: ScriptClock, point: str) -> None:
    """Defers messages and brings them; at one of the steps the worker fails."""
    await far.messages.send(BY, "q", [SendEntry(b"%d" % n, delay_ms=HOUR_MS) for n in range(10)])
    arm(f"{point}=raise*1")
    if point.startswith("file"):
        with pytest.raises(FailpointReached):
            await filed(far)
        await filed(far)
    clock.pass_s(3600 - 30)
    with contextlib.suppress(FailpointReached):
        await turn(far)
    assert await take(far, 0) == []
    clock.pass_s(31)
    assert await take(far, 10) == [str(n) for n in range(10)]
    assert await take(far, 0) == []
    assert await delayed(far) == 0
    await drained(far)
    assert clean(await verify(far))


async def test_ties_and_many_at_once(far: Engine, clock: ScriptClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferrals, "SLICE", 7)
    for start in range(0, 100, 25):
        await far.messages.send(BY, "q", [SendEntry(b"%d" % n, delay_ms=HOUR_MS) for n in range(start, start + 25)])
    clock.pass_s(3601)
    got = await take(far, 100)
    assert sorted(map(int, got)) == list(range(100))


async def test_hours_of_overdue_messages_are_read_together(
    far: Engine, clock: ScriptClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue that was idle for days: each partition of the wheel is read once, not for each of its
    hours.
    """
    hours = 90
    await far.messages.send(BY, "q", [SendEntry(b"%d" % n, delay_ms=(n + 1) * HOUR_MS) for n in range(hours)])
    await filed(far)
    topic, fetch, places = delay_topic(far.settings.topic_prefix), far.log.fetch, list[int]()

    async def counted(of: str, partition: int, *more: int, **others: Any) -> Chunk:
        if of == topic:
            places.append(partition)
        return await fetch(of, partition, *more, **others)

    monkeypatch.setattr(far.log, "fetch", counted)
    clock.pass_s(hours * 3600 + 1)
    assert await take(far, hours) == [str(n) for n in range(hours)]
    assert sorted(places) == list(range(SLOTS))


async def test_what_is_overdue_comes_once_and_in_order_in_whatever_pieces(
    far: Engine, clock: ScriptClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, number in {"SLICE": 5, "READ_FIRST": 3, "READ_MOST": 12, "HOURS_POINTERS": 20}.items():
        monkeypatch.setattr(deferrals, name, number)
    draw, sent = random.Random(5), dict[int, str]()
    delays = draw.sample(range(HOUR_MS, 60 * HOUR_MS, 60_000), 200)
    for start in range(0, 200, 50):
        some = delays[start : start + 50]
        made = await far.messages.send(BY, "q", [SendEntry(b"%d" % delay, delay_ms=delay) for delay in some])
        sent.update((one.sent_at_ms + delay, str(delay)) for one, delay in zip(made, some, strict=True))
    await filed(far)
    clock.pass_s(60 * 3600 + 1)
    assert await take(far, 200) == [body for _, body in sorted(sent.items())]
    assert await take(far, 0) == []
    assert await delayed(far) == 0
    await drained(far)
    assert clean(await verify(far))


async def test_a_receive_with_a_filter_finds_what_was_deferred(far: Engine, clock: ScriptClock) -> None:
    red = Filter([Condition("colour", "string", b"red")], "AND")
    entries = [SendEntry(b"%d" % n, attributes=RED if n % 2 else {}, delay_ms=HOUR_MS) for n in range(4)]
    sent = await far.messages.send(BY, "q", entries)
    await far.messages.send(BY, "q", [SendEntry(b"near", attributes=RED)])
    assert await take(far, 1) == ["near"]
    await filed(far)
    unit = far.catalog.queues["q"].units[0]
    assert [tag.floor for tag in await far.store.upkeep.info(unit, far.catalog.generation, [0])] == [5]
    clock.set(sent[0].sent_at_ms + HOUR_MS)

    async def come() -> bool:
        await turn(far)
        return (await far.queues.get_queue(BY, "q")).tags[0].ready == 4

    await eventually(come)
    got = await far.messages.receive(BY, "q", None, 10, 0, None, filter=red)
    assert [d.message.body for d in got] == [b"1", b"3"]
    await ack(far, "q", got)
    assert await far.messages.receive(BY, "q", None, 10, 0, None, filter=red) == []
    assert await take(far, 2) == ["0", "2"]


@pytest.mark.parametrize("lost", [False, True], ids=["", "and Redis loses everything"])
async def test_a_second_copy_of_a_committed_message_is_not_taken_for_deferred(
    far: Engine, stack: Services, lost: bool
) -> None:
    at_ms = now_ms()
    origin = Origin("a" * 32 + "/0", "", "a" * 32, "q", "", Reason.COMMITTED, 0, 0, at_ms, at_ms)
    copy = encode(Message(b"once", {}, HOUR_MS, sender="producer", origin=origin))
    for _ in range(2):
        await far.log.append(far.catalog.queues["q"].topic, 0, copy)
    await receive(far, "q")
    await filed(far)
    await delayed(far)  # asks for the floor, which passes both
    await drained(far)
    if lost:
        wipe(stack, far)
    assert await delayed(far) == 1
    messages = (await far.messages.query(BY, "q", None, None, None, None, None, 10, None)).messages
    assert [message.state for message in messages] == ["delayed", "settled"]
    with pytest.raises(MessageNotFound):
        await far.messages.reschedule(BY, "q", messages[1].id, 0)
    await far.messages.cancel(BY, "q", messages[0].id)
    assert await delayed(far) == 0
    await drained(far)
    assert clean(await verify(far))
