"""Calls scripts: by their SHA, and once more with their text when Redis has forgotten them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import hiredis

from runtime.cancel import before
from state.errors import Fenced, OutboxFull, StateLost, StateUnavailable
from state.redis.connection import Connection
from state.redis.scripts import Script, read_scripts
from state.redis.wire import Argument

T = TypeVar("T")

# How long something waits for Redis that does not need it: a send that Kafka has.
SOON_S = 1.0
# The first word of a reply of ours that says no.
_REFUSED: dict[bytes, type[StateLost | OutboxFull | Fenced]] = {
    b"LOST": StateLost,
    b"FULL": OutboxFull,
    b"FENCED": Fenced,
}
# A Redis that says one of these will take the command later.
REFUSALS = ("OOM", "READONLY", "LOADING", "MISCONF", "BUSY", "MASTERDOWN", "CLUSTERDOWN")


class ScriptCaller:
    """Runs scripts and plain commands on one connection. Safe for any number of tasks of one
    loop.
    """

    def __init__(self, connection: Connection, scripts: Mapping[str, Script] | None = None) -> None:
        """`scripts` None = all that there are."""
        self._connection = connection
        self._clock = connection.clock
        self._scripts = read_scripts() if scripts is None else scripts
        self.calls = 0

    async def soon(self, call: Callable[[], Awaitable[T]]) -> T:
        """The result of a call that its caller can do without: StateUnavailable within SOON_S, and
        at once while Redis is mute. It may be done all the same, later.
        """
        if self._connection.is_mute:
            raise StateUnavailable("Redis does not answer")
        late = StateUnavailable(f"Redis did not answer within {SOON_S:g} s")
        return await before(asyncio.get_running_loop().time() + SOON_S, call(), lambda: late)

    async def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> list[Any]:
        """Returns the reply of a script. Raises what its first word refuses."""
        script = self._scripts[name]
        self.calls += 1
        fence = self._connection.fence
        if not fence.admits(self._connection.life):
            await fence.enter(name, self._connection.life)
        life, turn = self._connection.life, fence.turn
        at = script.now_at
        if at >= 0 and not arguments[at]:
            # The one place where a script is given the time (ADR 0040).
            arguments = (*arguments[:at], self._clock.now_ms(), *arguments[at + 1 :])
        reply = await self._connection.call("EVALSHA", script.sha, len(keys), *keys, *arguments)
        if type(reply) is hiredis.ReplyError:
            reply = await self._again(name, reply, keys, arguments)
        if turn != fence.turn or not fence.admits(life):
            await fence.leave(name, life, turn)
        lost = _REFUSED.get(reply[0])
        if lost is not None:
            raise lost(name)
        return reply  # type: ignore[no-any-return]

    async def _again(
        self, name: str, error: hiredis.ReplyError, keys: Sequence[str], arguments: Sequence[Argument]
    ) -> Any:
        """The reply after the script was loaded, if that was all that was wrong."""
        reply: Any = error
        if str(error).startswith("NOSCRIPT"):
            script = self._scripts[name]
            await self._connection.call("SCRIPT", "LOAD", script.source)
            if not self._connection.fence.admits(self._connection.life):
                raise StateUnavailable(f"{name}: another Redis came into use before this one answered")
            reply = await self._connection.call("EVALSHA", script.sha, len(keys), *keys, *arguments)
        if not isinstance(reply, hiredis.ReplyError):
            return reply
        text = str(reply)
        # Redis 6.2 puts the refusal of a write inside a script behind "ERR Error running script ...
        # -".
        if text.split(" ", 1)[0] in REFUSALS or any(f" -{word} " in text for word in REFUSALS):
            raise StateUnavailable(f"Redis refused {name}: {text}")
        raise RuntimeError(f"{name}.lua failed: {text}")

    async def ask(self, *command: Argument) -> Any:
        """A plain command. Raises StateLost as a script does; StateUnavailable, also for what Redis
        refuses (it is loading its file, or read-only).
        """
        fence = self._connection.fence
        if not fence.admits(self._connection.life):
            await fence.enter(str(command[0]), self._connection.life)
        life, turn = self._connection.life, fence.turn
        reply = await self._connection.call(*command)
        if turn != fence.turn or not fence.admits(life):
            await fence.leave(str(command[0]), life, turn)
        if isinstance(reply, hiredis.ReplyError):
            raise StateUnavailable(f"Redis refused {command[0]!r}: {reply}")
        return reply
