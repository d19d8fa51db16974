"""The connection to Redis when it is cut: callers hear of it, and nothing is raised where nobody
catches it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvloop

from state.connection import Connection
from state.errors import StateUnavailable
from tests.services import Services


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_call_beside_a_cut_fails_once_and_raises_nothing_in_the_loop(stack: Services, new_loop: Any) -> None:
    unseen: list[dict[str, Any]] = []

    async def cut() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: unseen.append(context))
        connection = Connection(stack.redis_url)
        await connection.start()
        assert await connection.call("PING") is not None
        wire: Any = connection._wire
        call = connection.call("PING")
        wire.close()
        with pytest.raises(StateUnavailable):
            await call
        await asyncio.sleep(0.1)
        await connection.stop()

    loop = new_loop()
    try:
        loop.run_until_complete(cut())
    finally:
        loop.close()
    assert unseen == []
