"""Requests of MNS on the app of a recording engine."""

from __future__ import annotations

from typing import cast
from xml.etree import ElementTree

import httpx
from msgspec import Struct

from engine.engine import Engine
from facade.app import create_app
from facade.config import Settings
from tests.unit.facade.double import RecordingEngine

NAMESPACE = "{http://mns.aliyuncs.com/doc/v1}"
VERSION = {"x-mns-version": "2015-06-06"}


class Answer(Struct):
    """A reply."""

    status: int
    headers: httpx.Headers
    body: bytes

    def text(self, *path: str) -> str | None:
        """The text of an element."""
        return ElementTree.fromstring(self.body).findtext("/".join(NAMESPACE + name for name in path))

    @property
    def told(self) -> tuple[int, str | None]:
        """Status and code of an error."""
        return self.status, self.text("Code")


async def ask(
    engine: RecordingEngine,
    method: str,
    target: str,
    body: bytes | str = b"",
    headers: dict[str, str] | None = None,
    settings: Settings | None = None,
) -> Answer:
    """One request; None = with the header of the version alone."""
    transport = httpx.ASGITransport(create_app(settings or Settings(), cast(Engine, engine)))
    sent = body.encode() if isinstance(body, str) else body
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:9400") as client:
        url = httpx.URL(f"http://localhost:9400{target}")
        reply = await client.request(method, url, content=sent, headers=VERSION if headers is None else headers)
    return Answer(reply.status_code, reply.headers, reply.content)
