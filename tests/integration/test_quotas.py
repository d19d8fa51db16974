"""Requests a second of a queue, a tag and a user, over all workers; and how many queues a user
has.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
import pytest

from engine.engine import Engine
from engine.errors import InvalidValue, MessageTooLarge, NotAuthorised, Overloaded, QuotaExceeded
from engine.queues.callers import quotas
from engine.shapes import Principal, SendEntry, UserUse
from schemas.records.settings import QueueSettings
from state.errors import StateUnavailable
from state.shared.allotments import Allotments
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, all_wait, eventually

# What a worker takes of the default of bytes a day with the first send.
SHARE = 64_000_000
ALICE, BOB = Principal("alice"), Principal("bob")


class Allowed(NamedTuple):
    """How many of some requests were let through, and in how many seconds of Redis' clock they may
    have been, at most.
    """

    number: int
    seconds: int

    def fits(self, limit: int) -> bool:
        """Whether that is `limit` a second: at least that of one second, at most that of all."""
        return limit <= self.number <= limit * self.seconds


async def allowed(ask: Callable[[], Awaitable[Any]], tries: int) -> Allowed:
    """Asks as often at once."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    outcomes = await asyncio.gather(*(ask() for _ in range(tries)), return_exceptions=True)
    seconds = 2 + int(loop.time() - began)
    assert all(
        outcome is None or not isinstance(outcome, Exception) or isinstance(outcome, QuotaExceeded)
        for outcome in outcomes
    )
    return Allowed(sum(not isinstance(outcome, Exception) for outcome in outcomes), seconds)


def sends(engine: Engine, queue: str, by: Principal = BY) -> Callable[[], Awaitable[Any]]:
    return lambda: engine.messages.send(by, queue, [SendEntry(b"m")])


def receives(engine: Engine, queue: str, tag: str | None = None) -> Callable[[], Awaitable[Any]]:
    return lambda: engine.messages.receive(BY, queue, tag, 1, 0, None)


async def test_a_queue_has_so_many_sends_a_second_over_all_workers(make_engine: MakeEngine) -> None:
    one, other = await make_engine(), await make_engine()
    await one.queues.create_queue(BY, "q", QueueSettings(write_qps=20))
    await other.queues.get_queue(BY, "q")
    both = await asyncio.gather(allowed(sends(one, "q"), 60), allowed(sends(other, "q"), 60))
    assert Allowed(both[0].number + both[1].number, max(both[0].seconds, both[1].seconds)).fits(20), both
    with pytest.raises(QuotaExceeded, match="queue 'q' may have 20 sends a second"):
        await asyncio.gather(*(one.messages.send(BY, "q", [SendEntry(b"m")]) for _ in range(50)))
    assert (await allowed(receives(one, "q"), 30)).number == 30

    async def again() -> bool:
        return (await allowed(sends(one, "q"), 1)).number == 1

    await eventually(again, within_s=3)
    await one.queues.set_queue(BY, "q", QueueSettings(write_qps=0))
    assert (await allowed(sends(one, "q"), 100)).number == 100


async def test_receives_are_counted_by_queue_and_by_tag(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(read_qps=30))
    assert (await allowed(receives(engine, queue), 90)).fits(30)
    await engine.queues.create_queue(BY, f"{queue}-2", QueueSettings())
    await engine.queues.create_tag(BY, f"{queue}-2", "slow", 0, None, {}, read_qps=3)
    assert (await allowed(receives(engine, f"{queue}-2", "slow"), 10)).fits(3)
    assert (await allowed(receives(engine, f"{queue}-2"), 60)).number == 60
    with pytest.raises(QuotaExceeded, match="tag 'slow'"):
        await asyncio.gather(*(engine.messages.receive(BY, f"{queue}-2", "slow", 1, 0, None) for _ in range(10)))


async def test_the_queues_of_a_user_share_the_quota_of_the_user(make_engine: MakeEngine) -> None:
    engine = await make_engine(auth="required", admin_key_secret="admin's secret")
    for name in ("a", "b"):
        await engine.queues.create_queue(ALICE, name, QueueSettings())
    await engine.queues.create_queue(BOB, "c", QueueSettings())
    await engine.callers.set_user_quota(BY, "alice", 0, 10, 2)
    got = await asyncio.gather(*(allowed(sends(engine, name, ALICE), 20) for name in ("a", "b")))
    assert Allowed(got[0].number + got[1].number, max(got[0].seconds, got[1].seconds)).fits(10), got
    assert (await allowed(sends(engine, "c", BOB), 30)).number == 30
    with pytest.raises(QuotaExceeded, match="user 'alice' may have 2 queues"):
        await engine.queues.create_queue(ALICE, "d", QueueSettings())
    assert await engine.callers.get_user_use(ALICE, "alice") == UserUse(2, 0, 0, 8, SHARE)
    await engine.callers.set_user_quota(BY, "alice", 0, 0, 0)
    await engine.queues.create_queue(ALICE, "d", QueueSettings(read_qps=5, write_qps=7))
    assert await engine.callers.get_user_use(ALICE, "alice") == UserUse(3, 5, 7, 12, SHARE)


async def test_a_user_has_bounds_in_required_mode_unless_they_are_lifted(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await make_engine(auth="required", admin_key_secret="admin's secret")
    lifted = await make_engine(auth="required", admin_key_secret="admin's secret", quotas="none")
    shown = await engine.callers.get_user(ALICE, "alice")
    assert (shown.queues, shown.partitions, shown.daily_bytes, shown.waits) == (1_000, 4_000, 50_000_000_000, 1_000)
    assert (shown.read_qps, shown.write_qps) == (0, 0)
    monkeypatch.setattr(quotas, "OF_USER", msgspec.structs.replace(quotas.OF_USER, partitions=6))
    await engine.queues.create_queue(ALICE, "first", QueueSettings(partitions=4))
    with pytest.raises(QuotaExceeded, match="user 'alice' may have 6 partitions"):
        await engine.queues.create_queue(ALICE, "second", QueueSettings(partitions=4))
    await engine.queues.create_queue(Principal("admin", role=BY.role), "administrators", QueueSettings(partitions=8))
    await engine.callers.set_user_quota(BY, "alice", 0, 0, 0, partitions=8)
    await engine.queues.create_queue(ALICE, "second", QueueSettings(partitions=4))
    await lifted.catalog.sync()
    assert (await lifted.callers.get_user(ALICE, "alice")).queues == 0
    account = await engine.callers.get_user(BY, "111122223333")
    assert (account.queues, account.daily_bytes) == (5_000, 250_000_000_000)
    assert (await engine.callers.get_user(BY, "admin")).queues == 0


async def test_nothing_is_counted_while_redis_is_away(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(write_qps=1))

    async def away(*given: Any, **named: Any) -> Any:
        raise StateUnavailable("no connection")

    monkeypatch.setattr(Allotments, "allot", away)
    assert (await allowed(sends(engine, queue), 30)).number == 30


async def test_who_may_note_and_bound_what_of_a_user(make_engine: MakeEngine) -> None:
    engine = await make_engine(auth="required", admin_key_secret="admin's secret")
    made = await engine.callers.set_contacts(ALICE, "alice", "Alice", "alice@example.com", "1")
    assert (made.display_name, made.email, made.phone, made.queues) == ("Alice", "alice@example.com", "1", 1_000)
    quota = await engine.callers.set_user_quota(BY, "alice", 1, 2, 3)
    assert (quota.email, quota.read_qps, quota.write_qps, quota.queues) == ("alice@example.com", 1, 2, 3)
    other = await make_engine(auth="required", admin_key_secret="admin's secret")
    assert (await other.callers.get_user(ALICE, "alice")) == quota == (await other.callers.get_user(BY, "alice"))
    assert (await other.callers.get_user(BOB, "bob")).email == ""
    with pytest.raises(NotAuthorised):
        (await engine.callers.get_user(BOB, "alice"))
    with pytest.raises(NotAuthorised):
        await engine.callers.get_user_use(BOB, "alice")
    with pytest.raises(NotAuthorised):
        await engine.callers.set_contacts(BOB, "alice", "", "", "")
    with pytest.raises(NotAuthorised):
        await engine.callers.set_user_quota(ALICE, "alice", 0, 0, 0)
    for wrong in (-1, 100_001):
        with pytest.raises(InvalidValue, match="read_qps must be 0 to 100000"):
            await engine.callers.set_user_quota(BY, "alice", wrong, 0, 0)
    for text in ("x" * 201, "a\nb"):
        with pytest.raises(InvalidValue, match="email must be"):
            await engine.callers.set_contacts(ALICE, "alice", "", text, "")


async def test_the_bytes_of_a_day_are_bounded_for_a_queue_and_for_all_of_a_user(make_engine: MakeEngine) -> None:
    one, other = [await make_engine(auth="required", admin_key_secret="admin's secret") for _ in range(2)]
    await one.queues.create_queue(ALICE, "a", QueueSettings(daily_bytes=3000))
    await one.queues.create_queue(ALICE, "b", QueueSettings())
    await one.callers.set_user_quota(BY, "alice", 0, 0, 0, daily_bytes=10_000)

    async def knows() -> bool:
        return (await other.callers.get_user(ALICE, "alice")).daily_bytes == 10_000

    await eventually(knows)

    async def sent(engine: Engine, queue: str, size: int) -> bool:
        try:
            await engine.messages.send(
                ALICE, queue, [SendEntry(b"x" * (size // 2)), SendEntry(b"x" * (size - size // 2))]
            )
        except QuotaExceeded as refused:
            return not ((refused.field, refused.given) == ("quota", size) and 1 <= refused.retry_after_s <= 86_400)
        return True

    assert [await sent(one, "a", 1000) for _ in range(4)] == [True, True, True, False]
    assert [await sent(worker, "b", 1000) for worker in (one, other) * 5].count(True) in (6, 7)
    assert (await one.callers.get_user_use(ALICE, "alice")).bytes_today in range(9000, 10_001)
    with pytest.raises(QuotaExceeded, match="user 'alice' may have 10000 bytes a day"):
        await one.messages.send(ALICE, "b", [SendEntry(b"x" * 5000)])
    with pytest.raises(MessageTooLarge):
        await one.messages.send(ALICE, "b", [SendEntry(b"x" * 300_000)])
    assert (await one.queues.get_queue(ALICE, "b")).tags[0].backlog in (12, 14), "what is refused is not stored"
    assert 2 <= one.counts()["quota_refusals_total"] <= 6
    await one.callers.set_user_quota(BY, "alice", 0, 0, 0, daily_bytes=20_000)

    async def again() -> bool:
        return await sent(one, "b", 1000) and await sent(other, "b", 1000)

    await eventually(again, within_s=5)  # a day's bound may be raised before the day is over
    assert (await one.queues.get_queue(ALICE, "a")).daily_bytes == 3000
    await one.callers.set_user_quota(BY, "alice", 0, 0, 0)
    assert (await one.callers.get_user(ALICE, "alice")).daily_bytes == 20_000, "what is not named stays"


async def test_what_is_refused_takes_nothing_of_the_day(make_engine: MakeEngine) -> None:
    one, other = [await make_engine(auth="required", admin_key_secret="admin's secret") for _ in range(2)]
    await one.queues.create_queue(ALICE, "a", QueueSettings(daily_bytes=4000))
    await one.queues.create_queue(ALICE, "b", QueueSettings())
    await one.callers.set_user_quota(BY, "alice", 0, 0, 0, daily_bytes=5000)

    async def knows() -> bool:
        return (await other.callers.get_user(ALICE, "alice")).daily_bytes == 5000

    await eventually(knows)
    await one.messages.send(ALICE, "b", [SendEntry(b"x" * 1500)])
    for queue in ("b", "a"):
        with pytest.raises(QuotaExceeded, match="user 'alice'"):
            await one.messages.send(ALICE, queue, [SendEntry(b"x" * 3900)])
    await one.messages.send(
        ALICE, "b", [SendEntry(b"x" * 100)]
    )  # within the second for which 3,900 are not asked for again
    assert (await one.callers.get_user_use(ALICE, "alice")).bytes_today <= 1600 + 250
    await other.messages.send(ALICE, "b", [SendEntry(b"x" * 1000)])
    # The queue did not pay for what its owner might not send.
    await one.callers.set_user_quota(BY, "alice", 0, 0, 0, daily_bytes=50_000)

    async def sent() -> bool:
        with contextlib.suppress(QuotaExceeded):
            await one.messages.send(ALICE, "a", [SendEntry(b"x" * 3900)])
            return True
        return False

    await eventually(sent, within_s=5)


async def test_receives_that_wait_are_bounded_for_a_queue_and_for_all_of_an_account(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    for name, waits in (("1" * 12 + ".a", 2), ("1" * 12 + ".b", 0)):
        await engine.queues.create_queue(BY, name, QueueSettings(waits=waits))
    await engine.callers.set_user_quota(BY, "1" * 12, 0, 0, 0, waits=3)

    async def poll(queue: str) -> bool:
        try:
            return await engine.messages.receive(BY, f"{'1' * 12}.{queue}", None, 1, 2000, None) == []
        except QuotaExceeded as refused:
            return refused.field != "waits"

    polls = [asyncio.create_task(poll(queue)) for queue in ("a", "a")]
    await all_wait(engine, 2)
    assert not await poll("a")
    polls.append(asyncio.create_task(poll("b")))
    await all_wait(engine, 3)
    assert not await poll("b")
    assert await asyncio.gather(*polls) == [True] * 3
    assert engine.counts()["quota_refusals_total"] == 2
    assert await poll("b"), "who waits no more is not counted"


async def test_many_sends_at_once_take_one_part_of_the_day(make_engine: MakeEngine) -> None:
    """Of a new day, or in a worker that has just begun, each would ask for a twentieth."""
    one, other = await make_engine(), await make_engine()
    await one.queues.create_queue(BY, "q", QueueSettings(daily_bytes=100_000))
    await other.queues.get_queue(BY, "q")
    await asyncio.gather(*(one.messages.send(BY, "q", [SendEntry(b"x" * 1000)]) for _ in range(20)))
    await asyncio.gather(*(other.messages.send(BY, "q", [SendEntry(b"x" * 1000)]) for _ in range(20)))


@pytest.mark.parametrize("prepares", [False, True])
async def test_what_was_not_stored_is_not_of_the_day(
    engine: Engine, queue: str, prepares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(daily_bytes=3000))
    entries = [SendEntry(b"x" * 2000)]
    begun: list[bool] = []

    async def full(*given: Any) -> Any:
        begun.append(True)
        raise Overloaded("too much waits")

    with monkeypatch.context() as patched:
        if prepares:
            patched.setattr(engine.parts.transactions.transactions, "prepare", full)
        else:
            patched.setattr(engine.parts.messages.sends.sender, "send", full)
        for _ in range(5):
            with pytest.raises(Overloaded):
                await (
                    engine.transactions.prepare(BY, queue, "g", entries)
                    if prepares
                    else engine.messages.send(BY, queue, entries)
                )
    await engine.messages.send(BY, queue, entries)
    assert len(begun) == 5


async def test_what_was_not_stored_goes_back_though_others_took_more_meanwhile(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(daily_bytes=100_000))
    entries = [SendEntry(b"x" * 4_000)]
    charge = await engine.parts.administration.callers.quotas.take_send(engine.catalog.queues[queue], entries)
    for _ in range(12):  # a worker takes 5,000 at once
        await engine.messages.send(BY, queue, entries)
    charge.give_back()
    for _ in range(13):
        await engine.messages.send(BY, queue, entries)
    with pytest.raises(QuotaExceeded):
        await engine.messages.send(BY, queue, entries)
