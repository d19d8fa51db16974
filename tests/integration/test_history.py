"""What the numbers of queues were, when Redis has lost it: with the log, and time moved by hand."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from engine.engine import Engine
from engine.errors import LogUnavailable
from engine.queues.overview.overview import History
from engine.queues.overview.rings import SPANS
from engine.queues.overview.sampler import SAVED_MS, Sampler, Saving
from schemas.records.settings import QueueSettings
from schemas.topics import history_topic
from state.shared.history import HistoryStore
from state.shared.overview import Counted, Done
from tests.integration.drive import BY
from tests.services import Services

HOUR = SPANS["hour"]
NAMES = ("busy", "still", "seldom")


class Case:
    """Queues of an engine whose own collector stands still."""

    def __init__(self, engine: Engine, stack: Services) -> None:
        self.engine = engine
        self.prefix = engine.settings.topic_prefix
        self._stack = stack
        self.store = HistoryStore(engine.parts.base.connection, self.prefix)
        clock: Any = self
        self.history = History(self.store, clock)
        # Behind the time when its queues were made, at the beginning of a chunk of both spans.
        length_ms = 4 * 3_600_000
        self.now = (engine.parts.base.connection.clock.now_ms() // length_ms + 1) * length_ms
        self.begin()

    def now_ms(self) -> int:
        return self.now

    def begin(self) -> None:
        """Another worker counts from now on."""
        saving = Saving(self.prefix, self.store, self.engine.log, self.engine.catalog)
        self.sampler = Sampler(self.store, saving)

    async def count(self, at_ms: int = 0, **ready: int) -> None:
        """A step in which queues had so many messages."""
        self.now = at_ms or self.now + HOUR.step_ms
        rows = {self.incarnation(name): row(number) for name, number in ready.items()}
        self.sampler.note(rows)
        await self.sampler.sample(self.now)

    def incarnation(self, queue: str) -> str:
        return self.engine.catalog.queues[queue].incarnation

    async def look(self) -> dict[tuple[str, str, int, str], int | None]:
        """All that is shown: by queue, span, time and name of the number."""
        found = {}
        for queue in self.engine.catalog.queues.values():
            for span in SPANS:
                history = await self.history.of(queue, span)
                columns = {**history.numbers, **history.done["default"]}
                for name, numbers in columns.items():
                    found.update(
                        {
                            (queue.name, span, at_ms, name): number
                            for at_ms, number in zip(history.at_ms, numbers, strict=True)
                        }
                    )
        return found

    def lose(self) -> None:
        """Redis has nothing of the service any more."""
        with redis.Redis.from_url(self._stack.redis_url) as client:
            for key in client.scan_iter(f"{self.prefix}:*"):
                client.delete(key)


def row(ready: int) -> Counted:
    return Counted(ready, 0, 0, 0, 0, 0, 0, ready, {0: Done(acked=ready)})


@pytest.fixture
async def case(own_engine: Engine, stack: Services) -> Case:
    for name in NAMES:
        await own_engine.queues.create_queue(BY, name, QueueSettings(partitions=1))
    await own_engine.parts.administration.queues.collector.stop()
    case = Case(own_engine, stack)
    case.lose()
    return case


def shared(before: dict[Any, int | None], after: dict[Any, int | None], until_ms: int) -> list[dict[Any, int | None]]:
    """What both looks show of the times before one."""
    some = {key for key in before.keys() & after.keys() if key[2] < until_ms}
    assert len({key[2] for key in some}) > 360
    return [{key: look[key] for key in some} for look in (before, after)]


async def filled(case: Case) -> dict[Any, int | None]:
    """More steps than the hour has, and what is shown then."""
    await case.count(busy=0, still=5, seldom=1)
    for n in range(1, HOUR.length * (HOUR.kept + 1) + 4):
        await case.count(busy=n, still=5, **({"seldom": n} if n % 100 == 0 else {}))
    before = await case.look()
    numbers = {
        name: [before[name, "hour", case.now - ago * HOUR.step_ms, "ready"] for ago in (2, 1, 0)] for name in NAMES
    }
    assert numbers == {"busy": [481, 482, 483], "still": [5, 5, 5], "seldom": [400, 400, 400]}
    return before


async def test_what_redis_loses_is_there_again_as_long_as_the_worker_that_counts_lives(case: Case) -> None:
    before = await filled(case)
    lost_at = case.now + 1
    case.lose()
    assert {number for key, number in (await case.look()).items() if key[2] < lost_at} == {None}
    await case.count(busy=484)
    was, found = shared(before, await case.look(), lost_at)
    assert found == was
    case.lose()
    # Its lock is lost too, and it takes it again.
    await case.sampler.begin(case.now)
    await case.count(busy=485)
    was, found = shared(before, await case.look(), lost_at)
    assert found == was
    # It held still, others have counted since, and are gone like Redis.
    noted_ms, at_ms = case.now, case.now + 10 * HOUR.step_ms
    case.lose()
    await case.sampler.begin(at_ms)
    await case.count(at_ms, busy=1)
    assert (await case.look())["busy", "hour", noted_ms, "ready"] is None


async def test_without_that_worker_the_last_minute_is_lost_and_nothing_else(case: Case) -> None:
    before = await filled(case)
    lost_at = case.now // SAVED_MS * SAVED_MS
    case.lose()
    case.begin()
    await case.count(busy=484)
    was, found = shared(before, await case.look(), lost_at)
    assert found == was
    # It has saved nothing yet that it was not given by the log: it takes over, and is killed.
    case.lose()
    case.begin()
    await case.count(busy=485)
    was, found = shared(before, await case.look(), lost_at)
    assert found == was


async def test_who_takes_over_saves_what_the_one_before_did_not(case: Case) -> None:
    before = await filled(case)
    case.begin()
    await case.count(busy=484)
    case.lose()
    case.begin()
    await case.count(busy=485)
    was, found = shared(before, await case.look(), case.now - HOUR.step_ms)
    assert found == was


async def test_while_kafka_is_away_it_is_noted_and_saved_later_and_after_a_loss_it_is_a_gap(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(case)

    def away(*given: Any, **named: Any) -> Any:
        raise LogUnavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(case.engine.log, "append", away)
        for n in range(484, 500):
            await case.count(busy=n)
    await case.count(case.now // SAVED_MS * SAVED_MS + SAVED_MS, busy=500)
    before, lost_at = await case.look(), case.now
    case.lose()
    case.begin()
    with monkeypatch.context() as patched:
        patched.setattr(case.engine.log, "fetch", away)
        await case.count(busy=501)
        assert (await case.look())["busy", "hour", case.now, "ready"] is None
        assert await case.store.unsaved() == [], "what is not whole would be saved over what is"
    await case.count(busy=502)
    after = await case.look()
    was, found = shared(before, after, lost_at)
    assert found == was
    assert [after["busy", "hour", case.now - ago, "ready"] for ago in (HOUR.step_ms, 0)] == [None, 502]


async def test_a_queue_that_is_gone_is_gone_from_the_log_too_and_a_busy_one_takes_15_kb(case: Case) -> None:
    await filled(case)
    gone, busy = case.incarnation("still"), case.incarnation("busy")
    assert {name.partition("/")[0] for name in await in_the_log(case)} == {"", gone, busy, case.incarnation("seldom")}
    await case.engine.queues.delete_queue(BY, "still")
    await case.sampler.drop([gone])
    await case.count(case.now + SAVED_MS, busy=484)
    kept = await in_the_log(case)
    assert not [name for name in kept if name.startswith(gone)]
    busy_ones = {name: value for name, value in kept.items() if name.startswith(busy)}
    assert sum(map(len, busy_ones.values())) < 15_000
    assert len(busy_ones) <= 2 * HOUR.kept
    # One that was deleted while nobody counted.
    seldom = case.incarnation("seldom")
    await case.engine.queues.delete_queue(BY, "seldom")
    case.lose()
    case.begin()
    await case.count(busy=485)
    assert await case.store.read(seldom, "day", [case.now // SPANS["day"].step_ms // SPANS["day"].length]) == [None]
    await case.count(case.now + SAVED_MS, busy=486)
    assert not [name for name in await in_the_log(case) if name.startswith(seldom)]


async def in_the_log(case: Case) -> dict[str, bytes]:
    """The newest value of each name that the topic has."""
    chunk = await case.engine.log.fetch(history_topic(case.prefix), 0, 0, 100_000, 64_000_000)
    newest = {(record.key or b"").decode(): record.value for record in chunk.records}
    return {name: value for name, value in newest.items() if value}
