"""Handles of delayed messages: what is brought forward is due by Kafka's time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from facade.dialects.mns.messages.delayed import bring_forward, message_of
from facade.dialects.mns.queues.call import Call

ID = "00000000-0000-8000-8000-000000000000"


class Messages:
    """What was asked of the engine."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    async def reschedule(self, *asked: Any) -> None:
        self.asked.append(asked[1:])


@pytest.mark.parametrize("set_s", [-300, 300])
async def test_it_is_due_so_long_from_now_by_kafkas_clock(monkeypatch: pytest.MonkeyPatch, set_s: int) -> None:
    monkeypatch.setattr("time.time_ns", lambda: (1_000 + set_s) * 1_000_000_000)
    messages = Messages()
    call = Call(cast(Any, None), "q", {}, None, {}, "", cast(Any, None))
    engine = cast(Any, SimpleNamespace(messages=messages, queues=SimpleNamespace(kafka_ms=lambda: 1_000_000)))
    handle, due_ms = await bring_forward(engine, call, ID, 2_000)
    assert (due_ms, message_of(handle)) == (1_002_000, ID)
    assert messages.asked == [("q", ID, 1_002_000)]
