"""The connection to Redis when it is cut: callers hear of it, and nothing is raised where nobody
catches it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
import redis
import uvloop

from state.errors import StateUnavailable
from state.redis import connection as module
from state.redis.connection import Connection
from tests.services import Services
from tests.stopping import stand_still


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


WAITS = """
import asyncio, sys
import uvloop
from state.redis import connection as module

module.REPLY_S = 1.0

async def main() -> None:
    connection = module.Connection(sys.argv[1])
    await connection.start()
    reply = connection.call("BLPOP", sys.argv[2], "0")
    await asyncio.sleep(0.1)
    print("asked", flush=True)
    print((await reply)[1].decode(), flush=True)

{"uvloop": uvloop.run, "asyncio": asyncio.run}[sys.argv[3]](main())
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_reply_that_came_while_the_process_was_stopped_is_read(stack: Services, loop: str) -> None:
    client, key = redis.Redis.from_url(stack.redis_url), f"wait-{secrets.token_hex(4)}"
    command = [sys.executable, "-c", WAITS, stack.redis_url, key, loop]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "asked\n"
            stand_still(child.pid)
            time.sleep(0.2)
            client.lpush(key, "lease")
            time.sleep(2)
            os.kill(child.pid, signal.SIGCONT)
            assert child.stdout.readline() == "lease\n"
        finally:
            child.kill()
    client.close()


async def test_a_redis_that_hangs_is_cut_off(stack: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPLY_S", 0.5)
    connection = Connection(stack.redis_url)
    await connection.start()
    began = time.monotonic()
    with pytest.raises(StateUnavailable):
        await connection.call("BLPOP", "nothing", "0")
    assert 0.5 < time.monotonic() - began < 5
    await connection.stop()
