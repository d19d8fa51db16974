"""The control topic when Kafka does not know its leader: a worker waits at its start, and a change
is not decided on what is old.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import LogUnavailable, TagNotFound
from engine.log import Log
from schemas.records.settings import QueueSettings
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY


async def test_a_worker_waits_at_its_start_for_the_leader_of_a_topic_that_was_just_made(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await make_engine()
    await first.queues.create_queue(BY, "q", QueueSettings())
    ask, asked = Log.end_offsets, 0

    async def leaderless(self: Log, parts: Sequence[Any]) -> dict[Any, int]:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise LogUnavailable("no leader")
        return {} if asked == 2 else await ask(self, parts)

    monkeypatch.setattr(Log, "end_offsets", leaderless)
    second = await make_engine()
    assert asked > 2
    assert "q" in second.catalog.queues


async def test_nothing_is_decided_while_the_end_of_the_topic_is_not_known(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def leaderless(self: Log, parts: Sequence[Any]) -> dict[Any, int]:
        return {}

    monkeypatch.setattr(Log, "end_offsets", leaderless)
    with pytest.raises(LogUnavailable):
        await engine.catalog.sync()


async def test_a_tag_can_be_used_at_every_worker_as_soon_as_it_is_made(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await make_engine()
    second = await make_engine(topic_prefix=first.settings.topic_prefix)
    await first.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await second.queues.get_queue(BY, "q")
    read = second.catalog._read

    async def hears_late(wait_ms: int) -> None:
        await asyncio.sleep(0.2)
        await read(wait_ms)

    monkeypatch.setattr(second.catalog, "_read", hears_late)
    for number in range(3):
        await first.queues.create_tag(BY, "q", f"t{number}", 0, None, {})
        assert await second.messages.receive(BY, "q", f"t{number}", 1, 0, None) == []
    await first.queues.create_tag(BY, "q", "seen", 0, None, {})
    assert await second.messages.peek_next(BY, "q", "seen", 1) == []
    with pytest.raises(TagNotFound):
        await second.messages.receive(BY, "q", "none", 1, 0, None)
