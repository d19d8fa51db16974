"""Calls scripts: by their SHA, and once more with their text when Redis has forgotten them.

Neighbours: the stores and `lock.py` inherit from it. It must not know what a script is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hiredis

from state.errors import Fenced, OutboxFull, StateLost, StateUnavailable
from state.redis.connection import Connection
from state.redis.scripts import read_scripts
from state.redis.wire import Argument

# The first word of a reply of ours that says no.
_REFUSED: dict[bytes, type[StateLost | OutboxFull | Fenced]] = {b"LOST": StateLost, b"FULL": OutboxFull, b"FENCED": Fenced}
# A Redis that says one of these will take the command later.
REFUSALS = ("OOM", "READONLY", "LOADING", "MISCONF", "BUSY", "MASTERDOWN", "CLUSTERDOWN")


class ScriptCaller:
    """Runs scripts and plain commands on one connection. Safe for any number of tasks of one
    loop.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._clock = connection.clock
        self._scripts = read_scripts()
        self.calls = 0
        self._trusted_run_id: str | None = None

    def trust(self, run_id: str | None) -> None:
        """Names the life of the Redis server whose state is the true one: scripts on another one
        answer StateLost. None = not asked.
        """
        self._trusted_run_id = run_id

    def is_trusted(self, run_id: str | None) -> bool:
        return self._trusted_run_id == run_id

    async def _run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> list[Any]:
        script = self._scripts[name]
        self.calls += 1
        if self._connection.run_id != self._trusted_run_id and self._trusted_run_id is not None:
            raise StateLost(f"{name}: Redis was started again")
        at = script.now_at
        if at >= 0 and not arguments[at]:
            # The one place where a script is given the time (ADR 0040).
            arguments = (*arguments[:at], self._clock.now_ms(), *arguments[at + 1 :])
        reply = await self._connection.call("EVALSHA", script.sha, len(keys), *keys, *arguments)
        if type(reply) is hiredis.ReplyError:
            reply = await self._again(name, reply, keys, arguments)
        lost = _REFUSED.get(reply[0])
        if lost is not None:
            raise lost(name)
        return reply  # type: ignore[no-any-return]

    async def _again(self, name: str, error: hiredis.ReplyError, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        """The reply after the script was loaded, if that was all that was wrong."""
        reply: Any = error
        if str(error).startswith("NOSCRIPT"):
            script = self._scripts[name]
            await self._connection.call("SCRIPT", "LOAD", script.source)
            reply = await self._connection.call("EVALSHA", script.sha, len(keys), *keys, *arguments)
        if not isinstance(reply, hiredis.ReplyError):
            return reply
        text = str(reply)
        # Redis 6.2 puts the refusal of a write inside a script behind "ERR Error running script ...
        # -".
        if text.split(" ", 1)[0] in REFUSALS or any(f" -{word} " in text for word in REFUSALS):
            raise StateUnavailable(f"Redis refused {name}: {text}")
        raise RuntimeError(f"{name}.lua failed: {text}")

    async def _ask(self, *command: Argument) -> Any:
        """A plain command. Raises StateUnavailable, also for what Redis refuses (it is loading its
        file, or read-only).
        """
        reply = await self._connection.call(*command)
        if isinstance(reply, hiredis.ReplyError):
            raise StateUnavailable(f"Redis refused {command[0]!r}: {reply}")
        return reply
