"""A lock among workers, for changes of control records: at most one holder while Redis keeps the key.

Neighbours: `engine.control` takes it. A lock makes changes orderly, it does not guard messages: those are guarded by scripts.
Must not know what it protects.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import hiredis

from state.connection import Connection
from state.errors import StateError, StateUnavailable
from state.keys import lock_key

_UNLOCK = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


_KEEP = """
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""


async def keep(connection: Connection, prefix: str, name: str, token: str, *, hold_ms: int) -> bool:
    """Takes or renews lock `name` for `token`; it ends by itself. False when another token has it. Raises StateUnavailable."""
    reply = await connection.call("EVAL", _KEEP, 1, lock_key(prefix, name), token, hold_ms)
    if isinstance(reply, hiredis.ReplyError):
        raise StateUnavailable(f"Redis refused a lock: {reply}")
    return bool(reply)


class LockBusy(StateError):
    """Somebody else holds the lock."""


@asynccontextmanager
async def lock(connection: Connection, prefix: str, name: str, *, hold_ms: int, wait_s: float) -> AsyncIterator[None]:
    """Holds lock `name`, for `hold_ms` at most. Raises LockBusy after `wait_s`, StateUnavailable without Redis."""
    key, token = lock_key(prefix, name), secrets.token_hex(8)
    loop = asyncio.get_running_loop()
    give_up = loop.time() + wait_s
    while True:
        reply = await connection.call("SET", key, token, "NX", "PX", hold_ms)
        if isinstance(reply, hiredis.ReplyError):
            raise StateUnavailable(f"Redis refused a lock: {reply}")
        if reply is not None:
            break
        if loop.time() > give_up:
            raise LockBusy(name)
        await asyncio.sleep(0.02)
    try:
        yield
    finally:
        with suppress(StateError):
            await connection.call("EVAL", _UNLOCK, 1, key, token)
