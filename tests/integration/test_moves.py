"""Dead letters while Kafka is away: they move as soon as it answers again, each once, whoever asks
for messages meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import LogUnavailable
from engine.shapes import SendEntry
from runtime.background import Background
from schemas.records.settings import QueueSettings, RedrivePolicy
from state.errors import StateUnavailable
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, drain, eventually, receive
from tests.services import Services, running_services
from tests.stopping import stand_still

# Nothing keeps bodies: what is dying has to be read from Kafka.
BARE = {"window_messages": 10, "window_bytes": 65_536, "kept_bytes": 0}
LETTERS = 30


@pytest.fixture(scope="module")
def stack(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A Kafka of its own, for it is stopped: with the topics of all other tests it would take
    a minute to be back.
    """
    with running_services(tmp_path_factory.mktemp("own")) as services:
        yield services


async def once_delivered(engine: Engine) -> None:
    """Queue q, whose messages have all been delivered once, which is as often as they may be."""
    await engine.queues.create_queue(BY, "dlq", QueueSettings(partitions=2))
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, redrive_policy=RedrivePolicy("dlq", 1)))
    await engine.messages.send(BY, "q", [SendEntry((b"%d" % n).ljust(6000)) for n in range(LETTERS)])
    got: list[Any] = []
    while len(got) < LETTERS:
        got += await receive(engine, "q", max=100, wait_ms=2000, lease_ms=6000)
    await asyncio.gather(*(engine.messages.release(BY, "q", [d.handle]) for d in got))


async def letters(engine: Engine) -> int:
    return (await engine.queues.get_queue(BY, "dlq")).tags[0].backlog


@pytest.mark.long
async def test_letters_move_as_soon_as_kafka_answers_again(make_engine: MakeEngine, stack: Services) -> None:
    engine = await make_engine(**BARE)
    await once_delivered(engine)
    # Readers that stand idle when Kafka goes away.
    await asyncio.gather(*(engine.log.fetch(engine.catalog.journal_topic, p % 4, 0, 1, 1000) for p in range(8)))
    failures = Background.failures
    stand_still(stack.kafka_pid)
    try:
        assert await receive(engine, "q", max=100) == []
        await asyncio.sleep(12)
    finally:
        os.kill(stack.kafka_pid, signal.SIGCONT)
    await eventually(engine.log.alive, within_s=60)
    back = time.monotonic()

    async def moved() -> bool:
        return await letters(engine) == LETTERS

    # Nobody asks the source for messages, which would take them up after 30 s.
    await eventually(moved, within_s=18)
    print(f"{LETTERS} letters {time.monotonic() - back:.1f} s after Kafka answered")
    bodies = [body.strip() for body in await drain(engine, "dlq", expect=LETTERS)]
    assert sorted(map(int, bodies)) == list(range(LETTERS))
    assert (await engine.queues.get_queue(BY, "q")).tags[0].backlog == 0
    assert Background.failures == failures, "a background task lost its exception"


async def test_letters_move_also_when_kafka_was_away_for_longer_than_they_are_held(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("window.window", "move.copies", "move.dead_letters", "receive.poll"):
        monkeypatch.setattr(f"engine.{module}.MOVER_LEASE_MS", 1_500)
    monkeypatch.setattr("engine.move.dead_letters.LONGEST_AGAIN_S", 0.5)
    engine = await make_engine(**BARE)
    await once_delivered(engine)
    log, append, is_away = engine.log, engine.log.append, True

    async def no_answer(*given: Any, **named: Any) -> Any:
        if is_away and ".q.dlq" in given[0]:
            raise LogUnavailable("Kafka is away")
        return await append(*given, **named)

    monkeypatch.setattr(log, "append", no_answer)
    assert await receive(engine, "q", max=100) == []
    await asyncio.sleep(5)
    assert await receive(engine, "q", max=10) == []  # another mover has taken some of them up
    is_away = False

    async def moved() -> bool:
        return await letters(engine) == LETTERS

    # Nobody asks the source for messages.
    await eventually(moved, within_s=18)

    async def settled() -> bool:
        return (await engine.queues.get_queue(BY, "q")).tags[0].backlog == 0

    await eventually(settled, within_s=18)
    assert len(await drain(engine, "dlq", expect=LETTERS)) == LETTERS


async def test_a_letter_whose_append_had_no_answer_is_not_appended_twice(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await make_engine(**BARE)
    await once_delivered(engine)
    log, append, refused = engine.log, engine.log.append, 0

    async def without_answer(topic: str, *rest: Any, **more: Any) -> Any:
        nonlocal refused
        appended = await append(topic, *rest, **more)
        if ".dlq" in topic and refused < LETTERS:
            refused += 1
            raise LogUnavailable("the answer is lost")
        return appended

    monkeypatch.setattr(log, "append", without_answer)
    assert await receive(engine, "q", max=100) == []

    async def settled() -> bool:
        return (await engine.queues.get_queue(BY, "q")).tags[0].backlog == 0

    await eventually(settled, within_s=18)
    topic = engine.catalog.queues["dlq"].topic
    ends = await log.end_offsets([(topic, 0), (topic, 1)])
    assert sum(ends.values()) == LETTERS == refused
    assert len(await drain(engine, "dlq", expect=LETTERS)) == LETTERS


@pytest.mark.long
async def test_a_letter_whose_mover_died_is_not_appended_twice_while_the_secret_is_replaced(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the append and the note; a worker with the new secret takes it up."""
    old = await make_engine(**BARE, secret="first", secret_old="second")
    await once_delivered(old)
    tried = 0

    async def killed(*_: Any, **__: Any) -> Any:
        nonlocal tried
        tried += 1
        raise StateUnavailable("killed")

    monkeypatch.setattr(old.store.leases, "settle", killed)
    assert await receive(old, "q", max=100) == []

    async def all_appended() -> bool:
        return tried == LETTERS

    await eventually(all_appended)
    await old.stop()
    new = await make_engine(**BARE, secret="second", secret_old="first")

    async def settled() -> bool:
        await receive(new, "q", max=100)
        return (await new.queues.get_queue(BY, "q")).tags[0].backlog == 0

    await eventually(settled, within_s=60)
    topic = new.catalog.queues["dlq"].topic
    ends = await new.log.end_offsets([(topic, 0), (topic, 1)])
    assert sum(ends.values()) == LETTERS
    assert len(await drain(new, "dlq", expect=LETTERS)) == LETTERS
