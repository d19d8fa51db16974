"""When a message is visible and when it expires, while the time of the service differs from that of
the log: what has no delay at once, a delay never early, retention not before the log has it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest

from schemas.vocabulary import FAR_DELAY_MS
from state.clock.boot import boot_s
from state.deferred import Mark, Pointed
from state.keys import Unit
from state.packed import pack_body
from state.redis.connection import Connection
from state.redis.scripts import read_scripts
from state.redis.wake import Wake
from state.replies import LoadEntry, Next, Received
from state.store import Store
from tests.services import Services

NOW = 1_700_000_000_000
GENERATION = 1
RETENTION_MS = 60_000
GROUP = b"groupdig"


@pytest.fixture(params=[True, False], ids=["with its fast path", "without"])
def scripts(request: pytest.FixtureRequest, store: Store) -> None:
    store.units.scripts._scripts = read_scripts(plain=request.param)


@pytest.fixture
async def unit(store: Store, scripts: None) -> Unit:
    made = Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(made, GENERATION, [(0, 0)])
    return made


@pytest.fixture
async def heard(stack: Services, store: Store, unit: Unit) -> AsyncIterator[asyncio.Queue[tuple[str, int, int]]]:
    """What another worker hears of the unit's queue."""
    told = asyncio.Queue[tuple[str, int, int]]()
    wake = Wake(stack.redis_url, store.units.prefix, "another", lambda *one: told.put_nowait(one))
    wake.want(unit.incarnation)
    await wake.start()
    while (await told.get())[0] != unit.incarnation:
        pass
    yield told
    await wake.stop()


def sent(offset: int, at_ms: int, delay_ms: int = 0, *, bare: bool = True, group: bytes = b"") -> LoadEntry:
    body = b"" if bare else b"body"
    return LoadEntry(offset, pack_body(at_ms, at_ms + delay_ms, None, body), "1", "", "", group)


async def peek(store: Store, unit: Unit, now_ms: int) -> list[Next]:
    return await store.leases.peek_next(
        unit, GENERATION, 0, max=1, max_receive_count=0, retention_ms=RETENTION_MS, now_ms=now_ms
    )


async def receive(store: Store, unit: Unit, now_ms: int) -> Received:
    return await store.leases.receive(
        unit, GENERATION, 0, max=10, lease_ms=None, queue_lease_ms=1000, max_receive_count=0, retention_ms=RETENTION_MS,
        move_ms=1,
        now_ms=now_ms,
    )  # fmt: skip


@pytest.mark.parametrize("bare", [True, False])
async def test_a_message_without_a_delay_is_visible_at_once_though_redis_is_behind_kafka(
    store: Store, unit: Unit, bare: bool
) -> None:
    await store.leases.load(unit, GENERATION, [0], [sent(0, NOW + 2000, bare=bare)], now_ms=NOW)
    await store.leases.load(unit, GENERATION, [0], [sent(1, NOW + 2001, bare=bare)], now_ms=NOW + 1)
    await store.leases.load(
        unit, GENERATION, [0], [sent(offset, NOW + 2002, bare=bare) for offset in range(2, 12)], now_ms=NOW + 1
    )
    assert [one.offset for one in (await receive(store, unit, NOW + 1)).leased] == list(range(10)), "the oldest first"


@pytest.mark.parametrize("bare", [True, False])
async def test_a_load_tells_who_waits_since_when_its_first_message_is_visible(
    store: Store, unit: Unit, bare: bool, heard: asyncio.Queue[tuple[str, int, int]]
) -> None:
    """Not by Kafka's time, which is ahead here."""
    for offsets, now_ms, delay_ms, head_ms in (
        (range(2), NOW, 0, NOW),
        (range(2, 3), NOW + 5000, 0, NOW + 2002),
        (range(3, 4), NOW + 5000, 9000, NOW + 11_003),
        (range(4), NOW + 5000, 0, 0),
    ):
        entries = [sent(offset, NOW + 2000 + offset, delay_ms, bare=bare) for offset in offsets]
        loaded = await store.leases.load(unit, GENERATION, [0], entries, now_ms=now_ms)
        assert loaded.head_ms == head_ms
        if head_ms:
            assert await asyncio.wait_for(heard.get(), 10) == (unit.incarnation, 0, head_ms)
    assert heard.empty(), "nothing was taken"


@pytest.mark.parametrize("bare", [False, True], ids=["with a body", "without"])
async def test_what_one_worker_has_loaded_is_visible_to_one_whose_clock_is_behind(
    store: Store, unit: Unit, bare: bool
) -> None:
    """In the time of that one it would be visible in 20 ms."""
    await store.leases.load(unit, GENERATION, [0], [sent(0, NOW, bare=bare)], now_ms=NOW)
    assert (await store.leases.probe(unit, GENERATION, 0, now_ms=NOW - 20)).wait_ms == 0
    (state,) = await store.leases.states(unit, GENERATION, 0, [0], now_ms=NOW - 20)
    assert state.state == "ready"
    assert [one.offset for one in await peek(store, unit, NOW - 20)] == [0]
    assert [one.offset for one in (await receive(store, unit, NOW - 20)).leased] == [0]
    await store.leases.load(unit, GENERATION, [0], [sent(1, NOW, 10, bare=bare)], now_ms=NOW)
    assert (await receive(store, unit, NOW - 20)).leased == [], "a delay is waited for"


async def test_a_group_goes_on_in_order_though_redis_is_behind_kafka(store: Store, scripts: None) -> None:
    unit = Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(unit, GENERATION, [(0, 0)], fifo=True)
    entries = [sent(offset, NOW + 2000 + offset, bare=False, group=GROUP) for offset in range(3)]
    await store.leases.load(unit, GENERATION, [0], entries, scan=(0, 3), prime=(0, 0), now_ms=NOW)  # type: ignore[arg-type]
    assert [one.offset for one in (await receive(store, unit, NOW)).leased] == [0, 1, 2]


@pytest.mark.parametrize("bare", [True, False])
async def test_a_delay_is_over_in_the_time_of_kafka(
    store: Store, connection: Connection, unit: Unit, bare: bool
) -> None:
    connection.clock.note_log(-300_000, 0)
    kafka_ms = NOW - 300_000
    await store.leases.load(
        unit, GENERATION, [0], [sent(0, kafka_ms, 1000, bare=bare), sent(1, kafka_ms, bare=bare)], now_ms=NOW
    )
    assert [one.offset for one in (await receive(store, unit, NOW)).leased] == [1]
    assert (await receive(store, unit, NOW + 999)).leased == []
    assert [one.offset for one in (await receive(store, unit, NOW + 1000)).leased][:1] == [0]


async def test_a_delay_that_was_over_when_it_was_loaded_by_redis_alone_is_not(
    store: Store, connection: Connection, unit: Unit
) -> None:
    connection.clock.note_log(-300_000, 0)
    await store.leases.load(unit, GENERATION, [0], [sent(0, NOW - 300_000, 100_000)], now_ms=NOW)
    assert (await receive(store, unit, NOW + 99_999)).leased == []
    assert len((await receive(store, unit, NOW + 100_000)).leased) == 1


async def test_a_far_delay_is_over_in_the_time_of_kafka(store: Store, connection: Connection, unit: Unit) -> None:
    kafka_ms = NOW - 300_000
    await store.leases.load(unit, GENERATION, [0], [sent(0, kafka_ms, FAR_DELAY_MS + 60_000, bare=False)], now_ms=NOW)
    epoch = (await store.upkeep.own(unit, "w", lease_ms=60_000, now_ms=NOW)).number
    connection.clock.note_log(-300_000, 0)
    (found,) = (await store.deferred.deferred(unit, GENERATION, [0], ahead_ms=10**9, now_ms=NOW)).tags
    due_ms = kafka_ms + FAR_DELAY_MS + 60_000
    message = Pointed(0, due_ms, pack_body(kafka_ms, due_ms, None, b"body"), b"")
    brought = await store.deferred.bring(unit, GENERATION, epoch, 0, found.mark, Mark(due_ms, 1), [message], now_ms=NOW)
    assert (brought.count, brought.head_ms) == (1, due_ms + 300_000)
    assert (await receive(store, unit, due_ms + 299_999)).leased == []
    assert len((await receive(store, unit, due_ms + 300_000)).leased) == 1


@pytest.mark.parametrize("bare", [True, False])
@pytest.mark.parametrize(("ahead_ms", "kept_ms"), [(0, 0), (-61_000, 61_000), (61_000, 0)])
async def test_retention_is_over_when_it_is_in_the_time_of_kafka(
    store: Store, connection: Connection, unit: Unit, bare: bool, ahead_ms: int, kept_ms: int
) -> None:
    """`ahead_ms`: Kafka's clock, of that of the service."""
    await store.leases.load(unit, GENERATION, [0], [sent(0, NOW + min(ahead_ms, 0), bare=bare)], now_ms=NOW)
    connection.clock.note_log(ahead_ms, 0)
    over_ms = NOW + min(ahead_ms, 0) + RETENTION_MS + kept_ms
    assert len(await peek(store, unit, over_ms - 1)) == 1
    assert await peek(store, unit, over_ms) == []
    assert (await receive(store, unit, over_ms)).leased == []
    assert (await store.leases.probe(unit, GENERATION, 0, now_ms=over_ms)).open == 0, "it is settled"


@pytest.mark.parametrize("bare", [True, False])
async def test_nothing_expires_while_kafkas_time_is_not_known(
    store: Store, connection: Connection, unit: Unit, bare: bool
) -> None:
    connection.clock.require()
    connection.clock.take(boot_s(), NOW)
    await store.leases.load(unit, GENERATION, [0], [sent(0, NOW - 10 * RETENTION_MS, bare=bare)])
    assert len(await peek(store, unit, 0)) == 1
    connection.clock.note_log(0, 5)
    assert await peek(store, unit, 0) == []
    connection.clock.note_log(-10 * RETENTION_MS, 5)
    assert len((await receive(store, unit, 0)).leased) == 1


@pytest.mark.parametrize("bare", [True, False])
async def test_a_delay_is_no_longer_than_asked_for_while_the_service_is_behind_kafka(
    store: Store, connection: Connection, unit: Unit, bare: bool
) -> None:
    """The clock of the whole machine was set ahead: Kafka shows it, the time of the service goes
    on, and follows by a hundredth of what passes.
    """
    connection.clock.note_log(300_000, 0)
    kafka_ms = NOW + 300_000
    entries = [
        sent(0, kafka_ms, 10_000, bare=bare),
        sent(1, kafka_ms - 20_000, 10_000, bare=bare),
        sent(2, kafka_ms, bare=bare),
    ]
    await store.leases.load(unit, GENERATION, [0], entries, now_ms=NOW)
    assert {one.offset for one in (await receive(store, unit, NOW)).leased} == {1, 2}
    assert 0 not in {one.offset for one in (await receive(store, unit, NOW + 10_099)).leased}
    assert 0 in {one.offset for one in (await receive(store, unit, NOW + 10_100)).leased}


async def test_what_is_less_than_the_error_is_no_difference(connection: Connection) -> None:
    for ahead_ms, shift_ms in ((4, 0), (-4, 0), (100, 0), (2000, -1995), (-100, 105)):
        connection.clock.note_log(ahead_ms, 5)
        assert connection.clock.early_ms == shift_ms


async def test_far_messages_are_looked_for_in_the_time_of_kafka(
    store: Store, connection: Connection, unit: Unit
) -> None:
    connection.clock.require()
    connection.clock.take(boot_s(), NOW)
    connection.clock.note_log(300_000, 0)
    seen = await store.deferred.deferred(unit, GENERATION, [0], ahead_ms=60_000)
    assert NOW + 300_000 <= seen.now_ms < NOW + 330_000
