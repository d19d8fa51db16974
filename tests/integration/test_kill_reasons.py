"""A kill may say why, and the dead letter tells it."""

from __future__ import annotations

import pytest

from engine.engine import Engine
from engine.errors import InvalidValue
from engine.rules.limits import MAX_REASON
from schemas.records.settings import QueueSettings, RedrivePolicy
from tests.integration.drive import BY, eventually, receive, send


async def test_a_dead_letter_tells_why_it_was_killed_until_it_goes_home(engine: Engine, queue: str) -> None:
    dead = f"{queue}-dead"
    await engine.queues.create_queue(BY, dead, QueueSettings())
    settings = QueueSettings(partitions=2, lease_ms=60_000, redrive_policy=RedrivePolicy(dead, 1))
    await engine.queues.create_queue(BY, queue, settings)
    await send(engine, queue, *"abcd")
    got = [d for _ in range(4) for d in await receive(engine, queue, max=1, wait_ms=5_000)]
    said = {got[0].handle: "no such customer", got[1].handle: "", got[2].handle: "x" * MAX_REASON}
    for reasons in (["late"], ["a\nb", "", ""], ["", "", "x" * (MAX_REASON + 1)]):
        with pytest.raises(InvalidValue, match="reason"):
            await engine.messages.kill(BY, queue, list(said), reasons)
    assert (await engine.messages.peek(BY, queue, got[0].id, None)).state == "leased", "a refused kill changes nothing"
    results = await engine.messages.kill(BY, queue, [*said, "none"], [*said.values(), "of no handle"])
    assert [result.status for result in results] == ["ok", "ok", "ok", "invalid"]
    await engine.messages.release(BY, queue, [got[3].handle])
    assert await receive(engine, queue, wait_ms=200) == [], "it dies by its count"

    async def died() -> bool:
        return len((await engine.messages.query(BY, dead, None, None, None, None, None, 10, None)).messages) == 4

    await eventually(died)
    page = await engine.messages.query(BY, dead, None, None, None, None, None, 10, None)
    told = {
        one.message.body: (one.message.origin.reason, one.message.origin.note)
        for one in page.messages
        if one.message.origin
    }
    assert told == {
        got[0].message.body: ("killed", "no such customer"),
        got[1].message.body: ("killed", ""),
        got[2].message.body: ("killed", "x" * MAX_REASON),
        got[3].message.body: ("exhausted", ""),
    }
    await engine.tasks.redrive(BY, dead, None, None, 0)
    home = [d for _ in range(4) for d in await receive(engine, queue, max=1, wait_ms=10_000)]
    assert [(d.message.origin.reason, d.message.origin.note) for d in home if d.message.origin] == [("", "")] * 4
