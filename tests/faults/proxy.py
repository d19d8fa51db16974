"""A TCP proxy that fails on demand: refuse, cut, freeze, delay, cut after some bytes, throttle. Its
target can be another server.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Mode:
    """What happens to bytes. All off = pass. `cut_after` counts the bytes of all connections in
    both directions from now on.
    """

    refuse: bool = False
    frozen: bool = False
    delay_s: float = 0.0
    bytes_per_s: float = 0.0
    cut_after: int = -1


PASS = Mode()


class Proxy:
    """Listens on 127.0.0.1:`port` and joins each connection with one to `target`. All methods are
    for its own loop.
    """

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self.target = target
        self._mode = PASS
        self._left = -1
        self._flows = asyncio.Event()
        self._flows.set()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Begins to listen. Raises OSError when the port is taken."""
        self._server = await asyncio.start_server(self._join, "127.0.0.1", self.port)

    async def stop(self) -> None:
        """Listens no more and cuts all."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()
        self._flows.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def set(self, mode: Mode) -> None:
        """From now on so. Refusing cuts what is open; what was frozen flows on afterwards, as after
        a lost network.
        """
        self._mode, self._left = mode, mode.cut_after
        if mode.refuse:
            if self._server is not None:
                self._server.close()
                self._server = None
            self.cut()
        elif self._server is None:
            await self.start()
        if mode.frozen:
            self._flows.clear()
        else:
            self._flows.set()

    async def switch(self, target: int) -> None:
        """Another server is behind the address from now on; open connections are cut."""
        self.target = target
        self.cut()

    def cut(self) -> None:
        """Resets every open connection, in mid-word."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        back: asyncio.StreamWriter | None = None
        try:
            await self._flows.wait()
            far, back = await asyncio.open_connection("127.0.0.1", self.target)
            self._writers.add(back)
            both = [asyncio.create_task(self._pump(reader, back)), asyncio.create_task(self._pump(far, writer))]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)
        except OSError:
            pass  # the target is down: the client sees its connection cut
        finally:
            for end in (writer, back):
                if end is not None:
                    self._writers.discard(end)
                    end.transport.abort()
            self._tasks.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                mode = self._mode
                if mode.delay_s:
                    await asyncio.sleep(mode.delay_s)
                if mode.bytes_per_s:
                    await asyncio.sleep(len(data) / mode.bytes_per_s)
                await self._flows.wait()
                if self._left >= 0:
                    data = data[: self._left]
                    self._left -= len(data)
                writer.write(data)
                await writer.drain()
                if self._left == 0:
                    self._left = -1
                    self.cut()
