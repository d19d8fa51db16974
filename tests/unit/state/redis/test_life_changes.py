"""Whoever calls Redis by a connection of its own hears at once that the server has another life."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from state.redis.connection import Connection

INFO = "run_id:r\r\nmaxmemory_policy:noeviction\r\nevicted_keys:%d\r\n"


async def test_that_keys_were_evicted_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection("redis://nowhere")
    evicted = 0

    def call(*command: Any) -> asyncio.Future[Any]:
        reply = asyncio.get_running_loop().create_future()
        reply.set_result((INFO % evicted).encode())
        return reply

    monkeypatch.setattr(connection, "call", call)
    await connection.look()
    connection.fence.open(connection.life, 1e15)
    admitted: list[bool] = []
    connection.fence.changed = lambda: admitted.append(connection.fence.admits(connection.life))
    await connection.look()
    assert admitted == []
    evicted = 1
    await connection.look()
    assert admitted == [False]
