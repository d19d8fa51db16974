"""Questions to a broker that is too busy to answer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.errors import LogUnavailable
from engine.log import offsets
from engine.log.offsets import LATEST, Offsets


@contextlib.asynccontextmanager
async def mute_broker() -> AsyncIterator[str]:
    """The address of a server that takes connections and answers nothing."""
    over = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    over.set()
    server.close()


async def test_a_topic_made_a_moment_ago_is_asked_for_as_long_as_it_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for the two seconds of one question: to create a queue failed so on a busy machine."""
    monkeypatch.setattr(offsets, "_SETTLE_S", 3.0)
    with ThreadPoolExecutor(1) as threads:
        async with mute_broker() as address:
            asked = Offsets({"bootstrap.servers": address}, threads)
            asked.start()
            began = time.monotonic()
            with pytest.raises(LogUnavailable):
                await asked.at([("t", 0)], LATEST, wait_for_unknown=True)
            took = time.monotonic() - began
            asked.stop()
    assert took >= 3.0
