"""A real HTTP server and a real SMTP server of a few lines, which note what they get."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple


class Posted(NamedTuple):
    """A request: its path, headers by small names, and body."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


class Hooks:
    """An HTTP server. `statuses` are answered in turn, then 200; `headers` go with each answer.
    `silent` = it takes requests and never answers.
    """

    def __init__(self) -> None:
        self.port = 0
        self.posted: list[Posted] = []
        self.statuses: list[int] = []
        self.headers = ""
        self.silent = False
        self.closing = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?of=tests"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line, *rest = head.split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in rest if text)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.posted.append(Posted(line.split(" ")[1], headers, body))
            if self.silent:
                await self.closing.wait()
            status = self.statuses.pop(0) if self.statuses else 200
            writer.write(f"HTTP/1.1 {status} So\r\nContent-Length: 0\r\n{self.headers}\r\n".encode())
            await writer.drain()
        writer.close()


class Letterbox:
    """An SMTP server. `mails` are (recipients, data); `refusals` mails are refused first."""

    def __init__(self) -> None:
        self.port = 0
        self.mails: list[tuple[list[str], str]] = []
        self.refusals = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def say(text: str) -> None:
            writer.write(text.encode() + b"\r\n")

        to: list[str] = []
        say("220 tests")
        while line := (await reader.readline()).decode().strip():
            verb = line[:4].upper()
            if verb == "RCPT":
                to.append(line.partition("<")[2].partition(">")[0])
            if verb == "DATA" and self.refusals:
                self.refusals -= 1
                say("451 not now")
            elif verb == "DATA":
                say("354 go on")
                data = (await reader.readuntil(b"\r\n.\r\n")).decode()
                self.mails.append((to, data))
                to = []
                say("250 taken")
            else:
                say("221 bye" if verb == "QUIT" else "250 fine")
            if verb == "QUIT":
                break
        writer.close()


@contextlib.asynccontextmanager
async def hooks() -> AsyncIterator[Hooks]:
    """A running HTTP server."""
    made = Hooks()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        made.closing.set()
        await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def letterbox() -> AsyncIterator[Letterbox]:
    """A running SMTP server."""
    made = Letterbox()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
