"""A right or a key that is withdrawn while a receive waits ends the wait, and what was leased for
it goes back.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from typing import Any

import httpx
import pytest

from engine.engine import Engine
from engine.errors import NotAuthorised
from engine.shapes import Principal, SendEntry
from schemas.filters import Condition, Filter
from schemas.records.settings import QueueSettings
from schemas.vocabulary import Level
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, all_wait, drain, eventually, receive, send
from tests.integration.served import served
from tests.integration.test_transactions import GROUP, prepare

STRICT = {"auth": "required", "admin_key_id": "admin", "admin_key_secret": "secret"}
OWNER = Principal("owner")
SOON_S = 1.5
FILTER = Filter([Condition("kind", "string", b"a")], "AND")


@pytest.fixture
async def strict(make_engine: MakeEngine) -> Engine:
    engine = await make_engine(**STRICT)
    await engine.queues.create_queue(OWNER, "q", QueueSettings())
    await engine.callers.grant(OWNER, "q", "guest", Level.USE)
    return engine


async def guest(engine: Engine, key: str) -> Principal:
    _, secret = await engine.callers.create_key(BY, key, "guest", "member")
    return engine.callers.authenticate(key, secret)


def waits(engine: Engine, by: Principal, filter: Filter | None = None) -> asyncio.Task[Any]:
    return asyncio.create_task(engine.messages.receive(by, "q", None, 10, 20_000, None, None, filter))


@pytest.mark.parametrize("filter", [None, FILTER])
@pytest.mark.parametrize("what", ["key", "secret", "level"])
async def test_a_receive_that_waits_ends_when_its_key_or_right_is_withdrawn(
    strict: Engine, what: str, filter: Filter | None
) -> None:
    by, other = await guest(strict, "k1"), await guest(strict, "k2")
    mine, others, owners = waits(strict, by, filter), waits(strict, other, filter), waits(strict, OWNER, filter)

    async def all_three() -> bool:
        return strict.counts()["long_polls_waiting"] == 3

    await eventually(all_three)
    began = time.monotonic()
    if what == "key":
        await strict.callers.delete_key(BY, "k1")
    elif what == "secret":
        await strict.callers.rotate_key(BY, "k1", 0)
    else:
        await strict.callers.grant(OWNER, "q", "guest", Level.NONE)
    with pytest.raises(NotAuthorised):
        await mine
    assert time.monotonic() - began < SOON_S
    if what == "level":
        with pytest.raises(NotAuthorised):
            await others
    else:
        others.cancel()
    owners.cancel()
    await asyncio.gather(others, owners, return_exceptions=True)


async def test_another_worker_hears_of_it_too(make_engine: MakeEngine) -> None:
    one, two = await make_engine(**STRICT), await make_engine(**STRICT)
    await one.queues.create_queue(OWNER, "q", QueueSettings())
    await one.callers.grant(OWNER, "q", "guest", Level.USE)
    _, secret = await one.callers.create_key(BY, "k", "guest", "member")
    await two.catalog.sync()
    waiting = waits(two, two.callers.authenticate("k", secret))
    await all_wait(two)
    began = time.monotonic()
    await one.callers.delete_key(BY, "k")
    with pytest.raises(NotAuthorised, match="revoked"):
        await waiting
    assert time.monotonic() - began < SOON_S


async def test_nothing_is_delivered_once_the_worker_knows(strict: Engine) -> None:
    """A message and the revocation come together: whichever is first."""
    delivered = refused = 0
    for n in range(25):
        by = await guest(strict, f"r{n}")
        known: list[bool] = []
        strict.catalog.rights_changed.connect(lambda _, known=known: known.append(True))  # type: ignore[misc]

        async def wait(by: Principal = by, known: list[bool] = known) -> bool:
            try:
                got = await strict.messages.receive(by, "q", None, 1, 20_000, None)
            except NotAuthorised:
                return False
            assert not known, "delivered though the key was gone"
            assert len(got) == 1
            await strict.messages.ack(OWNER, "q", [got[0].handle])
            return True

        waiting = asyncio.create_task(wait())
        await all_wait(strict)
        deleting = asyncio.create_task(strict.callers.delete_key(BY, f"r{n}"))
        await asyncio.sleep(0.001 * (n % 12))
        await send(strict, "q", str(n))
        if await waiting:
            delivered += 1
        else:
            refused += 1
            # It is there for others at once, as if nobody had had it.
            (back,) = await receive(strict, "q", wait_ms=5_000)
            assert (back.message.body, back.receive_count) == (str(n).encode(), 1)
            await strict.messages.ack(OWNER, "q", [back.handle])
        await deleting
    print(f"{delivered} delivered, {refused} refused")
    assert refused > 0
    assert await drain(strict, "q", patience_ms=200) == []


async def test_a_change_that_takes_nothing_away_ends_no_wait(strict: Engine) -> None:
    by = await guest(strict, "k")
    waiting = waits(strict, by)
    await all_wait(strict)
    await strict.callers.grant(OWNER, "q", "somebody", Level.USE)
    await strict.callers.create_key(BY, "another", "guest", "member")
    await strict.callers.delete_key(BY, "another")
    await strict.queues.set_queue(OWNER, "q", QueueSettings(delay_ms=0))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    await strict.messages.send(OWNER, "q", [SendEntry(b"x")])
    assert [one.message.body for one in await waiting] == [b"x"]


async def test_clients_hear_a_403(strict: Engine) -> None:
    _, secret = await strict.callers.create_key(BY, "k", "guest", "member")
    proof = {"authorization": "Basic " + b64encode(f"k:{secret}".encode()).decode()}
    async with (
        served(strict, **STRICT) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client,
    ):
        waiting = asyncio.create_task(client.post("/v1/queues/q/receive", json={"wait_seconds": 15}, headers=proof))
        await all_wait(strict)
        began = time.monotonic()
        await strict.callers.delete_key(BY, "k")
        answer = await waiting
        assert (answer.status_code, answer.json()["code"]) == (403, "not_authorised")
        assert time.monotonic() - began < SOON_S
        assert (await client.post("/v1/queues/q/receive", json={}, headers=proof)).status_code == 401


async def test_who_waits_to_be_asked_about_transactions_is_asked_no_more(strict: Engine) -> None:
    _, secret = await strict.callers.create_key(BY, "k", "owner", "member")
    by = strict.callers.authenticate("k", secret)
    await prepare(strict, "q", "half", by=OWNER, immunity_ms=0)
    waiting = asyncio.create_task(strict.transactions.check(by, GROUP, 10, 9_000))
    await strict.callers.delete_key(BY, "k")
    assert await waiting == []
    assert [check.number for check in await strict.transactions.check(OWNER, GROUP, 10, 9_000)] == [1]
