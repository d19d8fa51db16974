"""TLS before a Redis that speaks none: the redis-server of the packages is built without it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from urllib.parse import urlsplit

from runtime.cancel import cancel_all
from tests.certificates import Certificates


class TlsProxy:
    """Asks for a client certificate, unless `is_open`, and hands on to the real Redis."""

    def __init__(
        self, real: str, certificates: Certificates, *, is_open: bool = False, most: ssl.TLSVersion | None = None
    ) -> None:
        self._real = real
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificates.ca))
        self._context.load_cert_chain(certificates.server)
        self._context.verify_mode = ssl.CERT_NONE if is_open else ssl.CERT_REQUIRED
        if most is not None:
            self._context.maximum_version = most
        self._serving: set[asyncio.Task[None] | None] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Serves from now on; returns host:port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        await cancel_all(*self._serving)
        await asyncio.sleep(0.1)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.current_task())
        address = urlsplit(self._real)
        inside, outside = await asyncio.open_connection(address.hostname, address.port)
        with contextlib.suppress(OSError):
            try:
                await asyncio.wait(
                    {asyncio.create_task(_copy(reader, outside)), asyncio.create_task(_copy(inside, writer))},
                    return_when=asyncio.FIRST_COMPLETED,
                )
            finally:
                for one in (writer, outside):
                    one.close()
                    await one.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
