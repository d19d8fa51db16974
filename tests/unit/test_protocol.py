"""A reply leaves in one write."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from facade.stack.protocol import Together


class Recorder:
    """What reaches the socket, in order."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def writelines(self, held: list[bytes]) -> None:
        self.done.append(b"".join(held))

    def close(self) -> None:
        self.done.append("close")

    def is_closing(self) -> bool:
        return "close" in self.done


async def test_what_one_tick_writes_is_one_write() -> None:
    socket = Recorder()
    together = Together(cast(asyncio.Transport, socket), asyncio.get_running_loop())
    together.write(b"head")
    together.write(b"body")
    assert socket.done == []
    await asyncio.sleep(0)
    together.write(b"next")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert socket.done == [b"headbody", b"next"]


async def test_what_was_written_leaves_before_the_end() -> None:
    socket = Recorder()
    together = Together(cast(asyncio.Transport, socket), asyncio.get_running_loop())
    together.write(b"last")
    together.close()
    await asyncio.sleep(0)
    assert socket.done == [b"last", "close"]
    assert together.is_closing()
