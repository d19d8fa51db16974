"""What stands before a script for its common case (state/lua/plain) does what the script does: each
history is played to a store with it and to one without, on units of their own, and both must answer
alike and leave the same in Redis.
"""

from __future__ import annotations

import hashlib
import random
import re
import secrets
from typing import Any

import msgspec
import pytest
import redis
from msgspec.structs import replace

from state.errors import OutboxFull, StateLost
from state.keys import Unit
from state.packed import pack_body
from state.redis.connection import Connection
from state.redis.scripts import FOLDER, Script, read_scripts
from state.replies import LoadEntry, Window
from state.store import Store

GENERATION, TAG = 7, 0
PLAIN = {
    script.name: script
    for script in read_scripts().values()
    if script.sha != read_scripts(plain=False)[script.name].sha
}
HISTORIES = 60


def plain_alone(connection: Connection, prefix: str, window: Window) -> Store:
    """A store of which the scripts answer nothing but the common case."""
    return Store(
        connection, prefix, window, {**read_scripts(), **{name: _alone(script) for name, script in PLAIN.items()}}
    )


def _alone(script: Script) -> Script:
    source = (FOLDER / "plain" / f"{script.name}.lua").read_text() + "\nreturn {'LOST'}"
    return replace(script, source=source, sha=_sha(source))


def _sha(source: str) -> str:
    return hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()


@pytest.fixture
def client(stack: Any) -> Any:
    return redis.Redis.from_url(stack.redis_url)


class Side:
    """One store and its unit."""

    def __init__(self, store: Store, prefix: str) -> None:
        self.store = store
        self.prefix = prefix
        self.unit = Unit(secrets.token_hex(6), 3)

    def held(self, client: Any) -> dict[str, Any]:
        """All that Redis has of the unit, by the end of a key."""
        found: dict[str, Any] = {}
        for key in client.scan_iter(f"{self.prefix}:*{self.unit.incarnation}*"):
            read = {
                b"hash": client.hgetall,
                b"zset": lambda k: client.zrange(k, 0, -1, withscores=True),
                b"list": lambda k: [msgspec.msgpack.decode(one) for one in client.lrange(k, 0, -1)],
                b"set": lambda k: sorted(client.smembers(k)),
            }[client.type(key)]
            found[key.decode().rpartition("}:")[2]] = read(key)
        return found


class Pair:
    """The same calls on both sides, at times that are given."""

    def __init__(self, connection: Connection, client: Any, seed: int) -> None:
        self.random = random.Random(seed)
        self.client = client
        window = Window(
            self.random.choice([4, 10_000]), self.random.choice([400, 10_000_000]), self.random.choice([20, 200_000])
        )
        prefix = f"plain{secrets.token_hex(3)}"
        stores = Store(connection, prefix, window), Store(connection, prefix, window, read_scripts(plain=False))
        self.sides = [Side(store, prefix) for store in stores]
        self.now, self.next = 1_000_000, self.random.choice([0, 5, 94, 995])
        self.handles: list[tuple[int, int]] = []

    async def both(self, verb: str, *arguments: Any, **options: Any) -> Any:
        """What both answer, if it is the same."""
        answers = []
        for side in self.sides:
            try:
                answers.append(await getattr(side.store.leases, verb)(side.unit, GENERATION, *arguments, **options))
            except (StateLost, OutboxFull) as error:
                answers.append(type(error))
        assert answers[0] == answers[1], verb
        return answers[0]

    async def open(self) -> None:
        fifo = self.random.random() < 0.1
        for side in self.sides:
            await side.store.upkeep.open(side.unit, GENERATION, [(TAG, self.next)], fifo=fifo)

    def entries(self) -> list[LoadEntry]:
        r, found = self.random, []
        kinds = r.choice(["bare", "bare", "bodies", "mixed"])
        offset = self.next + (r.choice([-2, 1, 3]) if r.random() < 0.1 else 0)
        for _ in range(r.randint(1, 4)):
            odd = kinds == "mixed" and r.random() < 0.5
            due = self.now + (r.choice([500, 90_000]) if odd and r.random() < 0.5 else -r.randint(0, 3))
            body = b"body" if kinds == "bodies" or (odd and r.random() < 0.5) else b""
            count = r.randint(1, 5) if not body else 1
            entry = LoadEntry(max(offset, 0), pack_body(self.now, due, None, body), "1", count=count)
            if odd:
                entry = replace(
                    entry, mask=r.choice("01"), group=r.choice([b"", b"groupgro"]), move_key=r.choice(["", "a", "b"])
                )
                entry = replace(entry, count=1)
            found.append(entry)
            offset += count
        self.next = max(self.next, offset)
        return found

    async def step(self) -> None:
        r = self.random
        self.now += r.choice([0, 1, 40, 2_000])
        what = r.choice(["load", "load", "receive", "receive", "receive", "ack", "ack", "release", "scan", "break"])
        if what == "load":
            await self.both("load", [TAG], self.entries(), now_ms=self.now)
        elif what == "receive":
            got = await self.both(
                "receive", TAG, max=r.choice([1, 3, 10]), lease_ms=r.choice([None, None, 0, 700]), queue_lease_ms=1_500,
                max_receive_count=r.choice([0, 2]), retention_ms=r.choice([3_000, 1_000_000]), move_ms=500,
                until_ms=r.choice([0, 0, self.now - 1]), now_ms=self.now,
            )  # fmt: skip
            if got not in (StateLost, OutboxFull):
                self.handles += [(one.offset, got.nonce) for one in got.leased]
        elif what in ("ack", "release") and self.handles:
            some = [r.choice(self.handles) for _ in range(r.randint(1, 4))]
            some = some if r.random() < 0.3 else list(dict.fromkeys(some))
            await self.both(what, TAG, some, late=r.random() < 0.5, now_ms=self.now)
        elif what == "scan":
            await self.both("load", [TAG], self.entries(), scan=(self.next, self.next + 3), now_ms=self.now)
        elif what == "break" and r.random() < 0.05:
            member = max(self.next - 1, 0)
            for side in self.sides:
                self.client.zrem(f"{side.prefix}:{{{side.unit.incarnation}:3}}:visible:{TAG}", member)

    def compare(self) -> None:
        ours, theirs = (side.held(self.client) for side in self.sides)
        assert ours == theirs


@pytest.mark.parametrize("seed", range(HISTORIES))
async def test_with_and_without_are_the_same(connection: Connection, client: Any, seed: int) -> None:
    pair = Pair(connection, client, seed)
    await pair.open()
    for _ in range(30):
        await pair.step()
        pair.compare()


async def test_the_common_case_needs_nothing_else(connection: Connection, client: Any) -> None:
    store, unit = (
        plain_alone(connection, f"plain{secrets.token_hex(3)}", Window(8_000, 6_000_000)),
        Unit(secrets.token_hex(6), 3),
    )
    await store.upkeep.open(unit, GENERATION, [(TAG, 3_000)])
    now = int(client.time()[0]) * 1000
    body = pack_body(now, now, None, b"")
    assert (await store.leases.load(unit, GENERATION, [TAG], [LoadEntry(3_000, body, "1", count=6)])).cursors == [3_006]
    got = await store.leases.receive(
        unit,
        GENERATION,
        TAG,
        max=4,
        lease_ms=None,
        queue_lease_ms=30_000,
        max_receive_count=3,
        retention_ms=10**9,
        move_ms=1000,
    )
    assert [one.offset for one in got.leased] == [3_000, 3_001, 3_002, 3_003]
    assert (await store.leases.ack(unit, GENERATION, TAG, [(one.offset, got.nonce) for one in got.leased])).words == [
        "ok"
    ] * 4
    got = await store.leases.receive(
        unit,
        GENERATION,
        TAG,
        max=4,
        lease_ms=None,
        queue_lease_ms=30_000,
        max_receive_count=3,
        retention_ms=10**9,
        move_ms=1000,
    )
    assert [one.offset for one in got.leased] == [3_004, 3_005]


@pytest.mark.parametrize("name", PLAIN)
def test_it_uses_only_what_the_header_has_and_answers_as_the_script(name: str) -> None:
    plain, script = (FOLDER / "plain" / f"{name}.lua").read_text(), PLAIN[name]
    for word, names, more in (
        ("KEYS", script.keys, script.keys_more),
        ("ARGV", script.arguments, script.arguments_more),
    ):
        used = {int(number) for number in re.findall(rf"{word}\[(\d+)\]", plain)}
        assert more or used <= set(range(1, len(names) + 1))
    assert set(re.findall(r"'([A-Z]{2,})'", plain)) & set(script.status) == {"OK"}
    (reply,) = re.findall(r"return \{(.*?)\}$", plain, re.M | re.S)
    while reply != (inner := re.sub(r"\{[^{}]*\}|\([^()]*\)", "", reply)):
        reply = inner
    assert reply.count(",") + 1 == len(script.outs)
    full = 20_000
    assert f"waiting < {full}" in plain or "outbox" not in plain


def test_the_scripts_of_the_hot_verbs_have_one() -> None:
    assert set(PLAIN) == {"load", "receive", "ack"} == {path.stem for path in (FOLDER / "plain").glob("*.lua")}
