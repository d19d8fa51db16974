"""The store beside the property test: lost state, fencing, reconnects, forgotten scripts."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable

import msgspec
import pytest
import redis

from engine.journal.fold import TagState
from schemas.records import JournalEntry, OpenDelivery
from state.errors import Fenced, OutboxFull, StateLost, StateUnavailable
from state.keys import Unit
from state.packed import pack_body
from state.redis.connection import Connection
from state.redis.lock import LockBusy, lock
from state.replies import LoadEntry, Window
from state.store import Store
from tests.services import Services

NOW = 1_000_000


@pytest.fixture
async def unit(store: Store) -> Unit:
    made = Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(made, 1, [(0, 0)])
    return made


def entry(offset: int, *, due: int = NOW, move_key: str = "") -> LoadEntry:
    return LoadEntry(offset, pack_body(NOW, due, None, b"x"), "1", move_key)


async def receive(
    store: Store, unit: Unit, *, now_ms: int = NOW, max_receive_count: int = 0, generation: int = 1
) -> list[int]:
    got = await store.leases.receive(
        unit,
        generation,
        0,
        max=10,
        lease_ms=None,
        queue_lease_ms=1000,
        max_receive_count=max_receive_count,
        retention_ms=10**9,
        move_ms=1000,
        now_ms=now_ms,
    )
    return [m.offset for m in got.leased]


async def test_a_unit_without_state_or_of_another_generation_says_lost(store: Store, unit: Unit) -> None:
    for target, generation in ((Unit("0" * 12, 0), 1), (unit, 2)):
        with pytest.raises(StateLost):
            await receive(store, target, generation=generation)
        with pytest.raises(StateLost):
            await store.leases.load(target, generation, [0], [entry(0)])
        with pytest.raises(StateLost):
            await store.leases.ack(target, generation, 0, [(0, 1)])
    with pytest.raises(StateLost):
        await store.leases.load(unit, 1, [0, 1], [entry(0)])  # tag 1 was never opened


async def test_an_owner_that_renews_late_keeps_its_epoch_unless_somebody_took_the_unit(
    store: Store, unit: Unit
) -> None:
    """A busy worker that was a second late fenced itself, and loaded all its units anew."""
    first = await store.upkeep.own(unit, "one", lease_ms=100, now_ms=NOW)
    late = await store.upkeep.own(unit, "one", lease_ms=100, now_ms=NOW + 5_000)
    assert late.ours and late.number == first.number
    assert await store.upkeep.drain(unit, first.number, done_seq=0, max=1) == []
    assert await store.upkeep.disown(unit, first.number)
    again = await store.upkeep.own(unit, "one", lease_ms=100, now_ms=NOW + 5_001)
    assert again.number > first.number, "what it gave up it has anew"
    taken = await store.upkeep.own(unit, "two", lease_ms=100, now_ms=NOW + 10_000)
    back = await store.upkeep.own(unit, "one", lease_ms=100, now_ms=NOW + 20_000)
    assert taken.ours and back.ours and again.number < taken.number < back.number
    with pytest.raises(Fenced):
        await store.upkeep.drain(unit, first.number, done_seq=0, max=1)


async def test_an_owner_that_was_replaced_is_fenced(store: Store, unit: Unit) -> None:
    first = await store.upkeep.own(unit, "one", lease_ms=100, now_ms=NOW)
    assert first.ours
    other = await store.upkeep.own(unit, "two", lease_ms=100, now_ms=NOW + 50)
    assert not other.ours and other.number == 50
    second = await store.upkeep.own(unit, "two", lease_ms=100, now_ms=NOW + 101)
    assert second.ours and second.number > first.number
    for call in (
        store.upkeep.drain(unit, first.number, done_seq=0, max=1),
        store.leases.load(unit, 1, [0], [entry(0)], epoch=first.number, scan=(0, 1)),
        store.upkeep.restore(unit, first.number, 0, cursor=0, settled=[], deliveries=[]),
        store.upkeep.disown(unit, first.number),
    ):
        with pytest.raises(Fenced):
            await call
    assert (await store.leases.load(unit, 1, [0], [entry(0)], epoch=second.number, scan=(0, 1))).taken == 1


async def test_an_entry_leaves_the_outbox_only_when_the_journal_has_it(store: Store, unit: Unit) -> None:
    epoch = (await store.upkeep.own(unit, "one", lease_ms=10_000)).number
    await store.leases.load(unit, 1, [0], [entry(0), entry(1)], now_ms=NOW)
    await receive(store, unit)
    (leased,) = await store.upkeep.drain(unit, epoch, done_seq=0, max=10)
    assert (leased.kind, leased.offsets, leased.times) == ("leased", [0, 1], [NOW + 1000] * 2)
    assert await store.upkeep.drain(unit, epoch, done_seq=0, max=10) == [leased]
    assert not await store.upkeep.disown(unit, epoch)
    assert await store.upkeep.drain(unit, epoch, done_seq=leased.seq, max=10) == []
    assert await store.upkeep.disown(unit, epoch)


async def test_a_full_outbox_stops_consumers_and_changes_nothing(store: Store, unit: Unit, stack: Services) -> None:
    epoch = (await store.upkeep.own(unit, "one", lease_ms=60_000)).number
    await store.leases.load(unit, 1, [0], [entry(o) for o in range(3)], now_ms=NOW)
    got = await store.leases.receive(
        unit,
        1,
        0,
        max=1,
        lease_ms=None,
        queue_lease_ms=1000,
        max_receive_count=0,
        retention_ms=10**9,
        move_ms=1,
        now_ms=NOW,
    )
    client = redis.Redis.from_url(stack.redis_url)
    (outbox,) = client.scan_iter(f"*{unit.incarnation}*:outbox")
    packed = bytes(client.lrange(outbox, 0, -1)[0])  # type: ignore[arg-type]
    seq, *rest = msgspec.msgpack.decode(packed)
    client.rpush(outbox, *(msgspec.msgpack.encode([seq + more, *rest]) for more in range(1, 20_000)))
    client.hset(outbox.replace(b"outbox", b"meta"), "seq", seq + 19_999)
    before = await store.upkeep.info(unit, 1, [0], now_ms=NOW)
    pair = (got.leased[0].offset, got.nonce)
    for call in (
        receive(store, unit),
        store.leases.ack(unit, 1, 0, [pair], now_ms=NOW),
        store.leases.extend(unit, 1, 0, [(*pair, 5)], now_ms=NOW),
        store.leases.release(unit, 1, 0, [pair], now_ms=NOW),
        store.leases.kill(unit, 1, 0, [pair], move_ms=1, now_ms=NOW),
        store.leases.claim(unit, 1, 0, [(2, b"", "")], claim_ms=1, now_ms=NOW),
    ):
        with pytest.raises(OutboxFull):
            await call
    assert await store.upkeep.info(unit, 1, [0], now_ms=NOW) == before
    assert client.llen(outbox) == 20_000
    # What nobody was given goes back all the same: else it would stay leased, and count.
    assert await store.leases.give_back(unit, 1, 0, [(*pair, NOW)], rest_ms=1, now_ms=NOW) == ["ok"]
    assert client.llen(outbox) == 20_001
    client.close()
    await store.upkeep.drain(unit, epoch, done_seq=seq + 20_000, max=1)
    assert (await store.leases.ack(unit, 1, 0, [pair], now_ms=NOW)).words == ["released"]
    assert await receive(store, unit) == [0, 1, 2]


async def test_what_nobody_was_given_is_as_it_was_and_the_journal_says_so(store: Store, unit: Unit) -> None:
    epoch = (await store.upkeep.own(unit, "one", lease_ms=10_000)).number
    await store.leases.load(unit, 1, [0], [entry(o, due=NOW + o) for o in range(3)], now_ms=NOW + 5)
    got = await store.leases.receive(
        unit,
        1,
        0,
        max=2,
        lease_ms=9_000,
        queue_lease_ms=1,
        max_receive_count=1,
        retention_ms=10**9,
        move_ms=1,
        now_ms=NOW + 5,
    )
    rows = [(0, got.nonce, NOW), (1, got.nonce, 0), (2, got.nonce, NOW)]
    assert await store.leases.give_back(unit, 1, 0, rows, rest_ms=70, now_ms=NOW + 6) == ["ok", "ok", "stale"]
    states = await store.leases.states(unit, 1, 0, [0, 1, 2], now_ms=NOW + 6)
    assert [(s.state, s.count, s.first_received_at_ms) for s in states] == [
        ("ready", 0, None),
        ("delayed", 0, None),
        ("ready", 0, None),
    ]
    entries = await store.upkeep.drain(unit, epoch, done_seq=0, max=10)
    assert [(e.kind, e.offsets, e.times) for e in entries][1:] == [("returned", [0, 1], [NOW, NOW + 76])]
    assert await receive(store, unit, now_ms=NOW + 6, max_receive_count=1) == [0, 2]
    assert await receive(store, unit, now_ms=NOW + 76, max_receive_count=1) == [1]
    history = TagState()
    for e in entries:
        history.apply(JournalEntry(e.seq, e.at_ms, e.kind, e.tag, e.offsets, e.times, e.reason))
    assert [(d.offset, d.count, d.first_received_at_ms, d.time_ms) for d in history.deliveries.values()] == [
        (0, 0, 0, NOW), (1, 0, 0, NOW + 76),
    ]  # fmt: skip


async def test_what_is_leased_without_its_body_says_since_when_it_was_visible_and_keeps_its_place(
    connection: Connection,
) -> None:
    store, unit = Store(connection, f"since{secrets.token_hex(3)}", Window(10, 10_000)), Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(unit, 1, [(0, 0)])

    async def leased(now_ms: int, retention_ms: int = 10**9) -> tuple[int, dict[int, int]]:
        """Leases four for 50 ms; returns the nonce, and since when each was visible."""
        got = await store.leases.receive(
            unit,
            1,
            0,
            max=4,
            lease_ms=50,
            queue_lease_ms=1,
            max_receive_count=0,
            retention_ms=retention_ms,
            move_ms=1,
            now_ms=now_ms,
        )
        return got.nonce, {one.offset: one.since_ms for one in got.leased}

    sizes = {0: b"", 1: b"x", 2: b"", 3: b""}
    times = {0: NOW - 30, 1: NOW - 20, 2: NOW - 10, 3: NOW - 10}
    entries = [
        LoadEntry(offset, pack_body(times[offset], times[offset], None, size), "1") for offset, size in sizes.items()
    ]
    await store.leases.load(unit, 1, [0], entries, now_ms=NOW - 5)
    nonce, since = await leased(NOW)
    assert since == {0: NOW - 30, 1: 0, 2: NOW - 10, 3: NOW - 10}, "the body of 1 says when it was due"
    given = [(offset, nonce, since[offset]) for offset in (3, 2)]
    assert await store.leases.give_back(unit, 1, 0, given, rest_ms=1, now_ms=NOW + 1) == ["ok", "ok"]
    nonce, since = await leased(NOW + 50)
    assert since == {0: NOW + 50, 1: 0, 2: NOW - 10, 3: NOW - 10}, "0 is visible again since its lease ended"
    assert list(since) == [0, 1, 2, 3]
    assert await store.leases.give_back(unit, 1, 0, [(2, nonce, since[2])], rest_ms=1, now_ms=NOW + 51) == ["ok"]
    _, since = await leased(NOW + 100, retention_ms=110)
    assert 2 not in since, "given back it is no younger"


async def test_the_second_copy_of_a_move_is_skipped(store: Store, unit: Unit) -> None:
    await store.leases.load(unit, 1, [0], [entry(0, move_key="a/t"), entry(1, move_key="b/t")], now_ms=NOW)
    await store.leases.load(unit, 1, [0], [entry(2, move_key="a/t"), entry(0, move_key="a/t")], now_ms=NOW)
    assert await receive(store, unit) == [0, 1]
    assert (await store.upkeep.info(unit, 1, [0], now_ms=NOW))[0].cursor == 3


async def test_a_restored_lease_acks_and_is_not_loaded_again(store: Store, unit: Unit) -> None:
    epoch = (await store.upkeep.own(unit, "one", lease_ms=10_000)).number
    await store.upkeep.clear(unit, epoch, [0])
    leased = OpenDelivery(4, nonce=77, count=2, first_received_at_ms=NOW - 9, flag=0, time_ms=NOW + 500)
    await store.upkeep.restore(unit, epoch, 0, cursor=2, settled=[3], deliveries=[leased])
    with pytest.raises(StateLost):
        await receive(store, unit)
    await store.upkeep.open(unit, 1, [(0, 2)], epoch=epoch, seq=1000)
    assert (await store.leases.ack(unit, 1, 0, [(4, 77)], now_ms=NOW)).words == ["ok"]
    await store.leases.load(unit, 1, [0], [entry(o) for o in range(6)], epoch=epoch, scan=(0, 6), now_ms=NOW)
    assert await receive(store, unit) == [2, 5]


async def test_a_far_message_is_kept_without_its_body_and_a_full_window_takes_no_more(connection: Connection) -> None:
    store = Store(connection, f"s{secrets.token_hex(3)}", Window(16, 1_000_000, max_open=40, near_ms=100))
    unit = Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(unit, 1, [(0, 0)])
    await store.leases.load(unit, 1, [0], [entry(o, due=NOW + 500) for o in range(5)], now_ms=NOW)
    assert await store.upkeep.leftovers(unit) == (0, 0, 0)
    loaded = await store.leases.load(unit, 1, [0], [entry(o) for o in range(5, 60)], now_ms=NOW)
    assert loaded.full == [True] and loaded.cursors == [5 + 16]
    assert (await store.upkeep.leftovers(unit))[0] == 16


async def test_scripts_that_redis_forgot_are_loaded_again(store: Store, unit: Unit, stack: Services) -> None:
    client = redis.Redis.from_url(stack.redis_url)
    client.script_flush()
    client.close()
    assert await receive(store, unit) == []


async def test_a_lost_connection_fails_calls_and_comes_back(
    connection: Connection, store: Store, unit: Unit, stack: Services
) -> None:
    client = redis.Redis.from_url(stack.redis_url)
    waiting = connection.call("BLPOP", f"never-{secrets.token_hex(4)}", 10)
    client.client_kill_filter(_type="normal", skipme=True)
    client.close()
    with pytest.raises(StateUnavailable):
        await waiting
    for _ in range(200):
        try:
            assert await receive(store, unit) == []
            return
        except StateUnavailable:
            await asyncio.sleep(0.02)
    raise AssertionError("the connection did not come back")


async def test_a_lock_has_one_holder(connection: Connection) -> None:
    async with lock(connection, "s", "x", hold_ms=1000, wait_s=1):
        with pytest.raises(LockBusy):
            async with lock(connection, "s", "x", hold_ms=1000, wait_s=0.05):
                pass
    async with lock(connection, "s", "x", hold_ms=1000, wait_s=0):
        pass


async def eventually_connected(connection: Connection) -> None:
    for _ in range(100):
        if connection.connected:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("not connected within 5 s")


async def test_a_redis_that_evicts_is_refused(stack: Services, caplog: pytest.LogCaptureFixture) -> None:
    client = redis.Redis.from_url(stack.redis_url)
    client.config_set("maxmemory-policy", "allkeys-lru")
    connection = Connection(stack.redis_url)
    try:
        await connection.start()
        assert not connection.connected
        assert "noeviction" in caplog.text
        client.config_set("maxmemory-policy", "noeviction")
        await eventually_connected(connection)
    finally:
        client.config_set("maxmemory-policy", "noeviction")
        client.close()
        await connection.stop()


FIFO_KEYS = ("order:0", "groups:0", "dedup")


async def _filled(store: Store, unit: Unit, *, fifo: bool) -> tuple[int, int]:
    """A unit with something in every structure: leased, delayed, ahead, bodies, origins; returns a
    leased (offset, nonce).
    """
    await store.upkeep.open(unit, 1, [(0, 0)], fifo=fifo)
    rows = [entry(0, move_key="a/t"), entry(1), entry(2), entry(3, due=NOW + 9_000)]
    rows = (
        [msgspec.structs.replace(row, group=b"groupone", dedup=b"id%d" % row.offset) for row in rows] if fifo else rows
    )
    await store.leases.load(unit, 1, [0], rows, now_ms=NOW)
    await store.leases.claim(
        unit, 1, 0, [(9, b"grouptwo" if fifo else b"", "")], claim_ms=5_000, beyond=True, now_ms=NOW
    )
    got = await store.leases.receive(
        unit,
        1,
        0,
        max=1,
        lease_ms=None,
        queue_lease_ms=1000,
        max_receive_count=0,
        retention_ms=10**9,
        move_ms=1,
        now_ms=NOW,
    )
    return got.leased[0].offset, got.nonce


def _lose(stack: Services, unit: Unit, name: str, *, whole: bool) -> None:
    """A key of the unit, or one member of it."""
    with redis.Redis.from_url(stack.redis_url) as client:
        (key,) = client.scan_iter(f"*{unit.incarnation}*:{name}")
        if whole:
            client.delete(key)
        else:
            _lose_one(client, key)


@pytest.mark.parametrize("verb", ["ack", "settle"])
async def test_a_handle_that_is_named_twice_settles_once(store: Store, unit: Unit, verb: str) -> None:
    await store.leases.load(unit, 1, [0], [entry(0), entry(1)], now_ms=NOW)
    options = {
        "lease_ms": None,
        "queue_lease_ms": 1000,
        "max_receive_count": 0,
        "retention_ms": 10**9,
        "move_ms": 1,
        "now_ms": NOW,
    }
    got = await store.leases.receive(unit, 1, 0, max=2, **options)  # type: ignore[arg-type]
    pairs = [(0, got.nonce), (0, got.nonce), (1, got.nonce)]
    if verb == "ack":
        words = (await store.leases.ack(unit, 1, 0, pairs, now_ms=NOW)).words
    else:
        pairs = [
            (row.dying.offset, row.dying.nonce)
            for row in await store.leases.kill(unit, 1, 0, pairs[1:], move_ms=1, now_ms=NOW)
        ]
        words = await store.leases.settle(unit, 1, 0, "dead", [pairs[0], *pairs], now_ms=NOW)
    assert words == ["ok", "settled" if verb == "ack" else "stale", "ok"]
    assert await store.upkeep.leftovers(unit) == (0, 0, 0)
    epoch = (await store.upkeep.own(unit, "w", lease_ms=10_000)).number
    ended = [
        e.offsets for e in await store.upkeep.drain(unit, epoch, done_seq=0, max=100) if e.kind in ("acked", "dead")
    ]
    assert ended == [[0, 1]]


@pytest.mark.parametrize("whole", [True, False], ids=["key", "member"])
@pytest.mark.parametrize("name", ["visible:0", "delivery:0", "ahead:0", "delayed:0", "outbox", "origins", *FIFO_KEYS])
async def test_a_lost_key_or_member_is_noticed_before_any_answer(
    store: Store, stack: Services, name: str, whole: bool
) -> None:
    unit = Unit(secrets.token_hex(6), 0)
    pair = await _filled(store, unit, fifo=name in FIFO_KEYS)
    _lose(stack, unit, name, whole=whole)
    verbs: dict[str, Callable[[], Awaitable[object]]] = {
        "ahead:0": lambda: store.leases.load(unit, 1, [0], [entry(4)], now_ms=NOW),
        "origins": lambda: store.leases.load(unit, 1, [0], [entry(4)], now_ms=NOW),
        "dedup": lambda: store.leases.load(unit, 1, [0], [entry(4)], now_ms=NOW),
        "delayed:0": lambda: store.upkeep.info(unit, 1, [0], now_ms=NOW),
    }
    with pytest.raises(StateLost):
        await verbs.get(name, lambda: store.leases.ack(unit, 1, 0, [pair], now_ms=NOW))()
    with pytest.raises(StateLost):  # and it stays so until it is rebuilt
        await store.leases.probe(unit, 1, 0, now_ms=NOW)


@pytest.mark.parametrize("whole", [True, False], ids=["key", "member"])
@pytest.mark.parametrize("name", ["order:0", "groups:0", "delivery:0"])
async def test_a_lost_key_or_member_of_a_fair_unit_is_noticed(
    store: Store, unit: Unit, stack: Services, name: str, whole: bool
) -> None:
    rows = [
        msgspec.structs.replace(entry(offset), group=group)
        for offset, group in enumerate([b"groupone"] * 4 + [b"grouptwo"])
    ]
    await store.leases.load(unit, 1, [0], rows, now_ms=NOW)
    options = {
        "lease_ms": None,
        "queue_lease_ms": 1000,
        "max_receive_count": 0,
        "retention_ms": 10**9,
        "move_ms": 1,
        "now_ms": NOW,
    }
    got = await store.leases.receive(unit, 1, 0, max=2, **options)  # type: ignore[arg-type]
    assert [m.offset for m in got.leased] == [0, 4]
    _lose(stack, unit, name, whole=whole)
    with pytest.raises(StateLost):
        await store.leases.ack(unit, 1, 0, [(0, got.nonce)], now_ms=NOW)


async def test_a_purge_that_finds_ids_lost_takes_the_unit_out_of_service(store: Store, stack: Services) -> None:
    unit = Unit(secrets.token_hex(6), 0)
    await _filled(store, unit, fifo=True)
    with redis.Redis.from_url(stack.redis_url) as client:
        (key,) = client.scan_iter(f"*{unit.incarnation}*:dedup")
        _lose_one(client, key)
    with pytest.raises(StateLost):
        await store.deferred.purge(unit, 1, [0], 2, now_ms=NOW)


def _lose_one(client: redis.Redis, key: bytes) -> None:
    kind = client.type(key)
    if kind == b"zset":
        client.zpopmin(key)
    elif kind == b"hash":
        client.hdel(key, client.hkeys(key)[0])
    elif kind == b"set":
        client.spop(key)
    else:
        client.rpop(key)


@pytest.mark.parametrize(
    "field", ["generation", "c:0", "n:0", "a:0", "d:0", "f:0", "g:0", "seq", "drained", "bytes", "origins"]
)
async def test_a_lost_field_of_a_unit_is_noticed(store: Store, stack: Services, field: str) -> None:
    unit = Unit(secrets.token_hex(6), 0)
    pair = await _filled(store, unit, fifo=False)
    with redis.Redis.from_url(stack.redis_url) as client:
        (key,) = client.scan_iter(f"*{unit.incarnation}*:meta")
        assert client.hdel(key, field) == 1
    verbs: dict[str, Callable[[], Awaitable[object]]] = {
        "a:0": lambda: store.leases.load(unit, 1, [0], [entry(4)], now_ms=NOW),
        "bytes": lambda: store.leases.load(unit, 1, [0], [entry(4)], now_ms=NOW),
        "origins": lambda: store.leases.load(unit, 1, [0], [entry(4)], now_ms=NOW),
        "d:0": lambda: store.upkeep.info(unit, 1, [0], now_ms=NOW),
        "f:0": lambda: store.upkeep.info(unit, 1, [0], now_ms=NOW),
    }
    with pytest.raises(StateLost):
        await verbs.get(field, lambda: store.leases.ack(unit, 1, 0, [pair], now_ms=NOW))()


async def test_a_claim_beyond_the_window_knows_the_second_copy_of_a_move(store: Store, unit: Unit) -> None:
    claimed = await store.leases.claim(
        unit, 1, 0, [(0, b"", "a"), (1, b"", "b"), (2, b"", ""), (3, b"", "a")], claim_ms=5_000, now_ms=NOW
    )
    assert [word for word, _ in claimed.words] == ["ok", "ok", "stored", "settled"]
    await store.leases.load(unit, 1, [0], [entry(n, move_key="ab-a"[n].strip("-")) for n in range(4)], now_ms=NOW)
    assert await receive(store, unit) == [2]


async def test_of_two_copies_of_a_move_the_first_in_the_log_counts_whichever_comes_first(
    store: Store, unit: Unit
) -> None:
    """After a loss the loader reads again what was there before; a copy made meanwhile must not
    push it out: it may be settled already.
    """
    early = await store.leases.load(unit, 1, [0], [entry(2, move_key="a")], now_ms=NOW)
    assert (early.taken, early.cursors) == (0, [0])
    await store.leases.load(
        unit, 1, [0], [entry(0, move_key="a"), entry(1), entry(2, move_key="a")], scan=(0, 3), now_ms=NOW
    )
    assert await receive(store, unit) == [0, 1]
    in_turn = await store.leases.load(unit, 1, [0], [entry(3, move_key="b")], now_ms=NOW)
    assert (in_turn.taken, in_turn.cursors) == (1, [4])
    assert await receive(store, unit) == [3]


async def test_what_is_leased_leaves_room_in_the_window(connection: Connection) -> None:
    store = Store(connection, f"s{secrets.token_hex(3)}", Window(16, 1_000_000))
    unit = Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(unit, 1, [(0, 0)])
    leased = 0
    for start in range(0, 160, 8):
        await store.leases.load(unit, 1, [0], [entry(o) for o in range(start, start + 8)], now_ms=NOW)
        leased += len(await receive(store, unit))
    assert leased == 160 and (await store.upkeep.leftovers(unit))[0] <= 16
