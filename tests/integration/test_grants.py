"""Rights of others on a queue, who may use it as a dead-letter queue, edits of what is, redrive
tasks one at a time, leases in all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import msgspec
import pytest

from engine.engine import Engine
from engine.errors import InvalidValue, NotAllowedOnQueue, NotAuthorised
from engine.shapes import ExtendEntry, Principal, QueueInfo, QueueSettings, SendEntry
from schemas.identity import Handle
from schemas.records import Grant, QueueRecord, RedrivePolicy
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY

ALICE, BOB, CAROL = Principal("alice"), Principal("bob"), Principal("carol")


async def guarded(make_engine: MakeEngine) -> Engine:
    return await make_engine(auth="required", admin_key_secret="admin's secret", default_partitions=1)


async def test_a_grant_opens_its_verbs_to_its_principals_and_a_denial_closes_them(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    sends = Grant(True, ["bob", "carol"], ["send"])
    await engine.create_queue(ALICE, "q", QueueSettings(grants=[sends, Grant(False, ["carol"], ["*"]), Grant(True, ["*"], ["get_queue"])]))

    await engine.send(BOB, "q", [SendEntry(b"x")])
    assert (await engine.get_queue(BOB, "q")).name == "q"
    with pytest.raises(NotAuthorised):
        await engine.receive(BOB, "q", None, 1, 0, None)
    for call in (engine.send(CAROL, "q", [SendEntry(b"x")]), engine.get_queue(CAROL, "q")):
        with pytest.raises(NotAuthorised):
            await call
    await engine.set_queue(ALICE, "q", QueueSettings(grants=[Grant(False, ["*"], ["*"])]))
    assert len(await engine.receive(ALICE, "q", None, 1, 0, None)) == 1
    with pytest.raises(NotAuthorised):
        await engine.send(BOB, "q", [SendEntry(b"x")])


async def test_edits_made_at_once_are_all_kept(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    await engine.create_queue(ALICE, "q", QueueSettings(labels={"a": "1"}))

    def label(name: str) -> Awaitable[QueueInfo]:
        def edit(record: QueueRecord) -> QueueSettings:
            return QueueSettings(labels={**record.labels, name: "x"})

        return engine.set_queue(ALICE, "q", QueueSettings(), edit)

    await asyncio.gather(*(label(f"n{n}") for n in range(8)))

    assert set((await engine.get_queue(ALICE, "q")).labels) == {"a", *(f"n{n}" for n in range(8))}
    with pytest.raises(InvalidValue):
        await engine.set_queue(ALICE, "q", QueueSettings(), lambda record: QueueSettings(labels={str(n): "" for n in range(51)}))


async def test_a_dead_letter_queue_says_who_may_be_its_source(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    await engine.create_queue(BY, "dead", QueueSettings(allowed_sources=["good"]))
    await engine.create_queue(BY, "good", QueueSettings(redrive_policy=RedrivePolicy("dead", 1)))

    with pytest.raises(NotAllowedOnQueue):
        await engine.create_queue(BY, "bad", QueueSettings(redrive_policy=RedrivePolicy("dead", 1)))
    await engine.set_queue(BY, "dead", QueueSettings(allowed_sources=[]))
    with pytest.raises(NotAllowedOnQueue):
        await engine.set_redrive_policy(BY, "good", RedrivePolicy("dead", 2))


async def test_a_task_that_is_to_be_alone_waits_for_none(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    await engine.create_queue(BY, "dead", QueueSettings())
    with pytest.raises(NotAllowedOnQueue):
        await engine.redrive(BY, "dead", None, None, 1, True)
    await engine.create_queue(BY, "q", QueueSettings(redrive_policy=RedrivePolicy("dead", 1)))
    await engine.send(BY, "dead", [SendEntry(b"x")] * 3)

    tries = [engine.redrive(BY, "dead", "q", None, 1, True) for _ in range(3)]
    began = await asyncio.gather(*tries, return_exceptions=True)

    (task,) = (one for one in began if not isinstance(one, BaseException))
    assert sum(isinstance(one, NotAllowedOnQueue) for one in began) == 2
    assert (task.expected, [one.id for one in await engine.list_tasks(BY, "dead")]) == (3, [task.id])
    await engine.cancel_task(BY, task.id)
    again = await engine.redrive(BY, "dead", "q", None, 0, True)
    assert [one.id for one in await engine.list_tasks(BY, "dead")] == [again.id, task.id]


async def test_a_lease_may_be_bound_from_when_the_delivery_began(make_engine: MakeEngine) -> None:
    engine = await guarded(make_engine)
    await engine.create_queue(BY, "q", QueueSettings())
    await engine.send(BY, "q", [SendEntry(b"x")])
    (got,) = await engine.receive(BY, "q", None, 1, 0, None)
    secret = engine.settings.secret.encode()
    handle = Handle.parse(got.handle, secret)
    assert 0 <= got.next_visible_at_ms - handle.leased_at_ms - 30_000 <= 1
    hour_ago = msgspec.structs.replace(handle, leased_at_ms=handle.leased_at_ms - 3_600_000).text(secret)
    timeless = msgspec.structs.replace(handle, leased_at_ms=0).text(secret)

    async def extended(text: str, seconds: int, in_all_s: int | None) -> str:
        (result,) = await engine.extend(BY, "q", [ExtendEntry(text, seconds * 1000, in_all_s)])
        return result.status

    assert await extended(got.handle, 43_190, 43_200) == "ok"
    assert await extended(hour_ago, 43_200, None) == await extended(timeless, 43_200, 43_200) == "ok"
    assert await extended(hour_ago, 43_200 - 3_700, 43_200) == "ok"
    assert await extended(hour_ago, 43_200 - 3_500, 43_200) == "invalid"
    with pytest.raises(InvalidValue) as refused:
        await engine.extend(BY, "q", [ExtendEntry(hour_ago, (43_200 - 3_500) * 1000, 43_200)], all_or_none=True)
    assert refused.value.limit == 43_200
