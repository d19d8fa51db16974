"""Nothing waits longer than its request may: one time for all that it waits for, from when it
came.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import EngineError
from engine.recovery.lives import Lives
from engine.rules.queue import Queue
from engine.shapes import ExtendEntry, SendEntry
from runtime import deadline
from runtime.deadline import MESSAGES_S
from schemas.records.settings import QueueSettings
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY
from tests.integration.served import served
from tests.integration.test_rebuild import wipe
from tests.outside.deadlines import hold_up, stopped, take_all
from tests.services import Services

SEND_S = 2.0
ACK_S = 2.0
STATE_S = 4.0
STOP_S = 6.5
# What a slow machine may need to serve all clients, who live in the same process.
SLOW_S = 2.0


async def test_no_answer_comes_late_while_kafka_stands_still_and_what_was_not_stored_is_not_delivered(
    make_engine: MakeEngine, stack: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "JOURNAL_S", ACK_S)
    engine = await make_engine(send_timeout_ms=int(SEND_S * 1000))
    await engine.queues.create_queue(BY, "to", QueueSettings())
    await engine.queues.create_queue(BY, "acked", QueueSettings(durable_acks=True, partitions=1))
    async with served(engine) as port:
        book = await hold_up(port, stack.kafka_pid, senders=80, ackers=10, stop_s=STOP_S, queues=("to", "acked"))
        print(book.told())
        found = await take_all(port, "to")
    assert max(book.took["send"]) < SEND_S + SLOW_S
    assert max(book.took["ack"]) < ACK_S + SLOW_S
    assert book.unknown and book.not_stored, "nobody waited"
    assert not book.not_stored & found.keys()
    assert not book.stored - found.keys()
    assert set(found.values()) == {1}


async def test_verbs_answer_in_time_while_redis_is_lost_again_and_again(
    own_engine: Engine, stack: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rebuild takes less than the bound, and what it has brought is lost at once."""
    monkeypatch.setattr(deadline, "STATE_S", STATE_S)
    engine, loop = own_engine, asyncio.get_running_loop()
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    (sent, *_) = await engine.messages.send(BY, "q", [SendEntry(b"%d" % n) for n in range(10)])
    got = [d.handle for d in await engine.messages.receive(BY, "q", None, 5, 0, 600_000)]
    begin, recover = Lives.begin, engine.parts.base.rebuilder.recover
    took: dict[str, float] = {}

    async def slowly(lives: Lives, *units: Any) -> Any:
        await asyncio.sleep(0.75 * STATE_S)
        return await begin(lives, *units)

    async def in_vain(queue: Queue, *until: float) -> None:
        await recover(queue, *until)
        wipe(stack, engine)

    async def timed(name: str, verb: Awaitable[object]) -> None:
        began = loop.time()
        with contextlib.suppress(EngineError):
            await verb
        took[name] = loop.time() - began

    monkeypatch.setattr(Lives, "begin", slowly)
    monkeypatch.setattr(engine.parts.base.rebuilder, "recover", in_vain)
    wipe(stack, engine)
    verbs = {
        "ack": engine.messages.ack(BY, "q", got[:1]),
        "extend": engine.messages.extend(BY, "q", [ExtendEntry(got[2], 600_000)]),
        "release": engine.messages.release(BY, "q", got[3:4]),
        "kill": engine.messages.kill(BY, "q", got[4:5]),
        "receive": engine.messages.receive(BY, "q", None, 1, 0, None),
        "receive long": engine.messages.receive(BY, "q", None, 1, 100, None),
        "peek": engine.messages.peek(BY, "q", sent.id, None),
        "peek next": engine.messages.peek_next(BY, "q", None, 1),
        "purge": engine.queues.purge(BY, "q"),
        "send": engine.messages.send(BY, "q", [SendEntry(b"m")]),
        "redrive": engine.tasks.redrive(BY, "q", "q", None, 0),
    }
    await asyncio.gather(*(timed(name, verb) for name, verb in verbs.items()), return_exceptions=True)
    assert {name: time for name, time in took.items() if time > STATE_S + SLOW_S} == {}
    assert took["ack"] > STATE_S / 2, "nothing was lost"


async def test_verbs_that_only_look_are_answered_in_time_however_many_wait_for_kafka(
    make_engine: MakeEngine, stack: Services
) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings())
    sent = await engine.messages.send(BY, "q", [SendEntry(str(n).encode()) for n in range(60)])
    half = await engine.transactions.prepare(BY, "q", "producers", [SendEntry(b"half")])
    loop = asyncio.get_running_loop()
    took: list[float] = []

    async def timed(verb: Awaitable[object]) -> None:
        began = loop.time()
        with contextlib.suppress(EngineError):
            await verb
        took.append(loop.time() - began)

    with stopped(stack.kafka_pid):
        looks = asyncio.gather(
            *(timed(engine.messages.peek(BY, "q", one.id, None)) for one in sent),
            *(timed(engine.transactions.get_transaction(BY, half.id)) for _ in range(3)),
            *(timed(engine.queues.get_queue(BY, name)) for name in ("q", "nobody")),
        )
        await asyncio.sleep(MESSAGES_S + SLOW_S + 0.5)
    await looks
    assert max(took) < MESSAGES_S + SLOW_S
