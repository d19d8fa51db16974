"""MNS over HTTP by hand, for what its SDK hides: any method, target, header and body, and the reply
as it came.
"""

from __future__ import annotations

import http.client
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import sha1
from hmac import digest
from typing import Final
from urllib.parse import urlsplit
from xml.etree import ElementTree

from msgspec import Struct

NAMESPACE: Final = "{http://mns.aliyuncs.com/doc/v1}"
VERSION: Final = {"x-mns-version": "2015-06-06"}


class Reply(Struct):
    """A reply. Headers are pairs as they came."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        """The one header of that name, spelled so."""
        (value,) = (value for known, value in self.headers if known == name)
        return value

    @property
    def root(self) -> ElementTree.Element:
        return ElementTree.fromstring(self.body)

    @property
    def names(self) -> list[str]:
        """The elements in the root, in order."""
        return [child.tag.removeprefix(NAMESPACE) for child in self.root]

    def text(self, *path: str) -> str:
        """The text of an element."""
        found = self.root.findtext("/".join(NAMESPACE + name for name in path))
        assert found is not None, f"no {path} in {self.body!r}"
        return found

    def texts(self, *path: str) -> list[str]:
        """The texts of all elements of that path."""
        return [one.text or "" for one in self.root.findall("/".join(NAMESPACE + name for name in path))]

    @property
    def code(self) -> str:
        return self.text("Code")


def signature(secret: str, method: str, target: str, headers: Mapping[str, str]) -> str:
    """Signature V2, written from the document."""
    small = {name.lower(): value for name, value in headers.items()}
    lines = [method, small.get("content-md5", ""), small.get("content-type", ""), small.get("date", "")]
    lines += [f"{name}:{small[name]}" for name in sorted(small) if name.startswith("x-mns-")]
    return b64encode(digest(secret.encode(), "\n".join([*lines, target]).encode(), sha1)).decode()


def now() -> str:
    """The time as a Date."""
    return format_datetime(datetime.now(UTC), usegmt=True)


def signed(key: str, secret: str, method: str, target: str, headers: Mapping[str, str]) -> dict[str, str]:
    """Headers with a signature."""
    full = {"Date": now(), **VERSION, **headers}
    return {**full, "Authorization": f"MNS {key}:{signature(secret, method, target, full)}"}


class Raw:
    """Requests on a connection of their own each."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._host = urlsplit(endpoint).netloc

    def ask(self, method: str, target: str, body: str | bytes = b"", headers: Mapping[str, str] = VERSION) -> Reply:
        """One request."""
        connection = http.client.HTTPConnection(self._host, timeout=60)
        try:
            sent = body.encode() if isinstance(body, str) else body
            connection.request(method, target, sent, dict(headers))
            answer = connection.getresponse()
            return Reply(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def done(self, method: str, target: str, body: str | bytes = b"", *, status: int = 200) -> Reply:
        """As `ask`; another status fails the test."""
        reply = self.ask(method, target, body)
        assert reply.status == status, (reply.status, reply.body)
        return reply

    def send(self, queue: str, text: str, more: str = "") -> Reply:
        """Sends a message."""
        return self.done(
            "POST",
            f"/queues/{queue}/messages",
            f"<Message><MessageBody>{text}</MessageBody>{more}</Message>",
            status=201,
        )

    def receive(self, queue: str, wait_s: int = 2) -> Reply:
        """Receives a message."""
        return self.done("GET", f"/queues/{queue}/messages?waitseconds={wait_s}")

    def close(self) -> None:
        """Nothing is open."""
