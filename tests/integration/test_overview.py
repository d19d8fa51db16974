"""What is in all queues at a glance, against what clients have done."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
import redis

from engine.engine import Engine
from engine.errors import InvalidValue, StoreUnavailable
from engine.queues.overview import turns
from engine.queues.overview.overview import FRESH_S
from engine.shapes import Principal, QueueCounts
from schemas.records.settings import QueueSettings, RedrivePolicy
from state.errors import StateUnavailable
from state.keys import Unit
from state.leases import LeaseScripts
from state.shared.overview import Done
from state.upkeep import UpkeepScripts
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, eventually, receive, send
from tests.integration.test_rebuild import drained, wipe
from tests.integration.test_verify import clean, verify
from tests.services import Services


async def _row(engine: Engine, queue: str) -> QueueCounts:
    rows, _ = await engine.queues.list_counts(BY, queue)
    (row,) = [row for row in rows if row.name == queue]
    return row


async def _counted(engine: Engine, queue: str, within_s: float = 8.0, **numbers: int) -> QueueCounts:
    """Returns the row of a queue when it has these numbers, and those of the queue itself."""
    found = QueueCounts(queue)

    async def same() -> bool:
        nonlocal found
        found = await _row(engine, queue)
        return bool(found.as_of_ms) and all(getattr(found, name) == number for name, number in numbers.items())

    try:
        await eventually(same, within_s)
    except AssertionError:
        raise AssertionError(f"{found} has not {numbers}") from None
    return found


async def test_numbers_follow_what_clients_do(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=2))
    assert (await _counted(engine, queue, backlog=0)).oldest_at_ms == 0
    before = time.time() * 1000
    await send(engine, queue, *(f"m{n}" for n in range(10)))
    after = time.time() * 1000
    await send(engine, queue, "later", delay_ms=60_000)
    row = await _counted(engine, queue, backlog=11, ready=10, delayed=1, leased=0)
    # Between two looks, so up to 2 s too early.
    assert before - 2_100 <= row.oldest_at_ms <= after
    got = await receive(engine, queue, max=4, lease_ms=60_000)
    await ack(engine, queue, got[:1])
    row = await _counted(engine, queue, backlog=10, ready=6, delayed=1, leased=3)
    (tag,) = (await engine.queues.get_queue(BY, queue)).tags
    assert (tag.backlog, tag.ready, tag.delayed, tag.leased) == (row.backlog, row.ready, row.delayed, row.leased)


async def test_time_alone_changes_numbers(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    await send(engine, queue, "a", "b")
    await send(engine, queue, "c", delay_ms=9_000)
    await receive(engine, queue, max=1, lease_ms=9_000)
    await _counted(engine, queue, ready=1, leased=1, delayed=1)
    # Nobody uses it meanwhile, so nobody owns its units any more when that ends.
    await asyncio.sleep(8)
    await _counted(engine, queue, within_s=8, ready=3, leased=0, delayed=0)


async def test_the_oldest_is_of_what_is_not_settled(own_engine: Engine) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    (first,) = await send(own_engine, "q", "first")
    await asyncio.sleep(4)
    (second,) = await send(own_engine, "q", "second")
    row = await _counted(own_engine, "q", ready=2)
    assert first.sent_at_ms - 2_000 <= row.oldest_at_ms <= first.sent_at_ms
    await ack(own_engine, "q", await receive(own_engine, "q", max=1))
    row = await _counted(own_engine, "q", ready=1, backlog=1)
    assert second.sent_at_ms - 2_000 <= row.oldest_at_ms <= second.sent_at_ms
    await ack(own_engine, "q", await receive(own_engine, "q", max=1))
    assert (await _counted(own_engine, "q", backlog=0)).oldest_at_ms == 0


async def test_another_worker_counts_when_one_stops_and_shows_what_that_counted(make_engine: MakeEngine) -> None:
    one, two = await make_engine(), await make_engine()
    await one.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(one, "q", "a")
    await _counted(two, "q", ready=1)
    await one.stop()
    await send(two, "q", "b")
    await _counted(two, "q", ready=2)


async def test_lost_rows_are_counted_again(own_engine: Engine, stack: Services) -> None:
    for name in ("used", "idle"):
        await own_engine.queues.create_queue(BY, name, QueueSettings(partitions=1))
        await send(own_engine, name, "a", "b")
        await _counted(own_engine, name, ready=2)
    with redis.Redis.from_url(stack.redis_url) as client:
        client.flushall()
    for name in ("used", "idle"):
        await _counted(own_engine, name, within_s=20, backlog=2)


async def _done(engine: Engine, sent: int, done: Done, within_s: float = 8.0) -> None:
    """Returns when these numbers of queue `q` are shown."""
    found = QueueCounts("q")

    async def same() -> bool:
        nonlocal found
        found = await _row(engine, "q")
        return (found.sent, found.done) == (sent, {"default": done})

    try:
        await eventually(same, within_s)
    except AssertionError:
        raise AssertionError(f"{found} has not {sent} and {done}") from None


async def _noted(engine: Engine, acked: int) -> dict[int, int]:
    """Returns the acks of queue `q` in the last hour by time, when the last that was noted are so
    many.
    """
    found: dict[int, int] = {}

    async def same() -> bool:
        nonlocal found
        history = await engine.queues.history(BY, "q", "hour")
        numbers = zip(history.at_ms, history.done["default"]["acked"], strict=True)
        found = {at_ms: number for at_ms, number in numbers if number is not None}
        return [*found.values()][-1:] == [acked]

    await eventually(same, within_s=20)
    return found


async def test_what_was_done_is_what_clients_did_and_the_same_after_a_rebuild(
    make_engine: MakeEngine, stack: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await make_engine(), await make_engine()
    # Who has counted goes on when Redis has lost everything, its lock too.
    await two.parts.administration.queues.collector.stop()
    await one.queues.create_queue(BY, "letters", QueueSettings(partitions=1))
    policy = RedrivePolicy("letters", 9)
    await one.queues.create_queue(BY, "q", QueueSettings(partitions=2, lease_ms=600_000, redrive_policy=policy))
    await send(one, "q", *"abcdef")
    got = await receive(two, "q")
    assert len(got) == 6
    await ack(one, "q", got[:2])
    again = await one.messages.ack(BY, "q", [delivery.handle for delivery in got[:2]])
    assert [result.status for result in again] == ["stale", "stale"]
    await two.messages.release(BY, "q", [delivery.handle for delivery in got[2:4]], 0)
    await two.messages.kill(BY, "q", [got[4].handle])
    await _done(one, 6, Done(received=6, acked=2, released=2, dead=1))
    leased = asyncio.Event()
    real = LeaseScripts.receive

    async def slow(*given: Any, **named: Any) -> Any:
        received = await real(*given, **named)
        if received.leased:
            leased.set()
            await asyncio.sleep(0.3)
        return received

    with monkeypatch.context() as patched:
        patched.setattr(LeaseScripts, "receive", slow)
        unheard = asyncio.create_task(receive(one, "q"))
        await leased.wait()
        unheard.cancel()
        await asyncio.gather(unheard, return_exceptions=True)

    async def given_back() -> bool:
        return (await one.queues.get_queue(BY, "q")).tags[0].ready == 2

    await eventually(given_back)
    since, looks = (await _row(two, "q")).as_of_ms, set[int]()

    async def looked_three_times() -> bool:
        looks.add((await _row(two, "q")).as_of_ms)
        return len(looks - {since}) == 3

    await eventually(looked_three_times)
    await _done(two, 6, Done(received=6, acked=2, released=2, dead=1))
    await ack(one, "q", await receive(one, "q"))
    done = Done(received=8, redelivered=2, acked=4, released=2, dead=1)
    await _done(two, 6, done)

    before = await _noted(two, acked=4)
    await drained(one)
    assert clean(await verify(one, "q"))
    wipe(stack, one)
    after = await _noted(two, acked=4)
    assert before.items() <= after.items()
    await two.parts.administration.queues.collector.start()
    await _done(one, 6, done, within_s=20)
    assert clean(await verify(one, "q"))
    await one.stop()
    await send(two, "q", "g")
    await _done(two, 7, done, within_s=20)


async def test_a_queue_that_is_gone_leaves_no_row(own_engine: Engine) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await _counted(own_engine, "q", backlog=0)
    store = own_engine.parts.administration.queues.collector.store
    assert await store.size() == 1
    await own_engine.queues.delete_queue(BY, "q")

    async def gone() -> bool:
        return await store.size() == 0

    await eventually(gone)


async def test_a_queue_of_nobody_is_counted_in_its_turn(own_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "STILL_S", 1.0)
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await _counted(own_engine, "q", backlog=0)
    # As a producer of Kafka does, of which no worker hears.
    record = own_engine.catalog.queues["q"]
    await own_engine.log.append(record.topic, 0, b"raw")
    await _counted(own_engine, "q", backlog=1)


async def test_a_message_that_comes_back_from_a_far_delay_has_its_age(own_engine: Engine) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    (sent,) = await send(own_engine, "q", "far", delay_ms=400_000)
    row = await _counted(own_engine, "q", delayed=1)
    assert row.oldest_at_ms == 0, "it waits in the wheel, and no offset is open"
    await own_engine.messages.reschedule(BY, "q", sent.id, int(time.time() * 1000) + 1_000)
    row = await _counted(own_engine, "q", within_s=20, ready=1, delayed=0)
    assert sent.sent_at_ms - 2_000 <= row.oldest_at_ms <= sent.sent_at_ms


async def test_a_queue_that_is_made_again_has_no_age_of_its_last_life(own_engine: Engine) -> None:
    for life in range(2):
        await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
        (sent,) = await send(own_engine, "q", f"{life}")
        row = await _counted(own_engine, "q", ready=1)
        assert sent.sent_at_ms - 2_000 <= row.oldest_at_ms <= sent.sent_at_ms
        await asyncio.sleep(3)
        await own_engine.queues.delete_queue(BY, "q")


async def test_one_queue_that_can_not_be_counted_keeps_no_other(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("broken", "good"):
        await own_engine.queues.create_queue(BY, name, QueueSettings(partitions=1))
    info = UpkeepScripts.info

    async def failing(self: UpkeepScripts, unit: Unit, *arguments: Any, **options: Any) -> Any:
        if own_engine.catalog.by_incarnation[unit.incarnation].record.name == "broken":
            raise RuntimeError("a poisoned key")
        return await info(self, unit, *arguments, **options)

    monkeypatch.setattr(UpkeepScripts, "info", failing)
    await send(own_engine, "broken", "a")
    await send(own_engine, "good", "a")
    await _counted(own_engine, "good", backlog=1)
    before = await _row(own_engine, "broken")  # a count that began before it was poisoned has ended
    await send(own_engine, "good", "b")
    await _counted(own_engine, "good", backlog=2)
    assert await _row(own_engine, "broken") == before
    assert before.backlog == 0


async def test_what_redis_refuses_is_no_row(own_engine: Engine, stack: Services) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await _counted(own_engine, "q", backlog=0)
    store = own_engine.parts.administration.queues.collector.store
    with redis.Redis.from_url(stack.redis_url) as client:
        prefix = own_engine.settings.topic_prefix
        client.set(f"{prefix}:overview", "no hash")
        with pytest.raises(StateUnavailable, match="WRONGTYPE"):
            await store.all()
        await asyncio.sleep(FRESH_S)
        with pytest.raises(StoreUnavailable):
            await own_engine.queues.list_counts(BY)
        client.delete(f"{prefix}:overview")
    await _counted(own_engine, "q", backlog=0)


async def test_pages_and_what_is_refused(own_engine: Engine) -> None:
    for number in range(5):
        await own_engine.queues.create_queue(BY, f"q{number}", QueueSettings(partitions=1))
        await send(own_engine, f"q{number}", *"x" * number)
    await _counted(own_engine, "q4", ready=4)
    names, cursor = [], ""
    while True:
        rows, after = await own_engine.queues.list_counts(BY, "q", 2, "backlog", cursor)
        names += [row.name for row in rows]
        if after is None:
            break
        cursor = after
    assert names == ["q4", "q3", "q2", "q1", "q0"]
    with pytest.raises(InvalidValue, match="sort must be one of name, backlog"):
        await own_engine.queues.list_counts(BY, sort="worst")
    with pytest.raises(InvalidValue, match="cursor"):
        await own_engine.queues.list_counts(BY, cursor="?")


async def test_nobody_sees_the_numbers_of_a_queue_that_they_may_not_look_at(make_engine: MakeEngine) -> None:
    engine = await make_engine(auth="required", admin_key_id="root", admin_key_secret="s" * 16)
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await _counted(engine, "q", backlog=0)
    stranger = Principal("stranger")
    assert await engine.queues.list_counts(stranger) == ([], None)
    assert await engine.queues.count_each(stranger) == []


async def test_an_administrator_has_the_queues_of_all_accounts_in_one_answer(own_engine: Engine) -> None:
    member = Principal("222222222222", account="222222222222", admin=True)
    await own_engine.queues.create_queue(member, "theirs", QueueSettings(partitions=1))
    await own_engine.queues.create_queue(BY, "ours", QueueSettings(partitions=1))
    names = [row.name for row in await own_engine.queues.count_each(BY)]
    assert "ours" in names
    assert any(name.endswith("theirs") for name in names)


async def test_only_queues_for_dead_letters(own_engine: Engine) -> None:
    for name, settings in (
        ("dead", QueueSettings(partitions=1)),
        ("made", QueueSettings(partitions=1, dead_letter=True)),
        ("q", QueueSettings(partitions=1, redrive_policy=RedrivePolicy("dead", 3))),
    ):
        await own_engine.queues.create_queue(BY, name, settings)
    rows, _ = await own_engine.queues.list_counts(BY, dead_letters=True)
    assert [row.name for row in rows] == ["dead", "made"]
    await own_engine.queues.set_redrive_policy(BY, "q", None)
    rows, _ = await own_engine.queues.list_counts(BY, "m", dead_letters=True)
    assert [row.name for row in rows] == ["made"]
    rows, _ = await own_engine.queues.list_counts(BY, dead_letters=True)
    assert [row.name for row in rows] == ["made"]
