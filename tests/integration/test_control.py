"""The control topic when Kafka does not know its leader: a worker waits at its start, and a change
is not decided on what is old.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import LogUnavailable
from engine.log import Log
from engine.shapes import QueueSettings
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY


async def test_a_worker_waits_at_its_start_for_the_leader_of_a_topic_that_was_just_made(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await make_engine()
    await first.create_queue(BY, "q", QueueSettings())
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


async def test_nothing_is_decided_while_the_end_of_the_topic_is_not_known(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    async def leaderless(self: Log, parts: Sequence[Any]) -> dict[Any, int]:
        return {}

    monkeypatch.setattr(Log, "end_offsets", leaderless)
    with pytest.raises(LogUnavailable):
        await engine.catalog.sync()
