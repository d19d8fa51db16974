"""ASGI by hand: credentials of HTTP Basic, media types, replies, clients that go away."""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Callable, Coroutine, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Protocol, TypeVar

from starlette.types import Receive, Scope, Send

from engine.errors import NotAuthenticated
from facade.dialect import Response
from facade.http.problem import ProblemError
from runtime.background import Background

KEY_ID_CHARACTERS = 128
WATCH_AFTER_S = 0.02  # a receive that finds messages at once pays for no watcher
# The scope's extension by which the native server gives a `DirectBody`.
DIRECT = "leaseway.direct"
_NO_EXTENSIONS: Mapping[str, Any] = {}

_STATUS = {status.value: b"HTTP/1.1 %d %s\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus}
_LINE = b"%b: %b\r\n"
_T = TypeVar("_T")
_background = Background()


class ClientGone(Exception):
    """The client has closed the connection; nobody reads an answer."""


class DirectBody(Protocol):
    """What the native server can do besides ASGI's messages: a request and its reply in one step
    each.
    """

    def whole_body(self) -> bytes | None:
        """The body of the request, if all of it is there and none was received; it counts as
        received.
        """

    def reply(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes, *, look: bool = False) -> bool:
        """The whole reply; `headers` state its length unless `status` has no body. False = nothing
        was sent: the client has gone.

        `look`: asks the socket too, whether the client has closed it and nobody has heard of that
        yet.
        """


def direct_of(scope: Scope) -> DirectBody | None:
    """Returns the native server's own way, if it serves; to be asked before the client could go."""
    direct: DirectBody | None = scope.get("extensions", _NO_EXTENSIONS).get(DIRECT)
    return direct


def status_line(status: int) -> bytes:
    """Returns the first line of a reply."""
    return _STATUS.get(status) or b"HTTP/1.1 %d \r\n" % status


def header_lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Returns a line for each header. Raises ValueError for one of more than one line."""
    lines = [_LINE % header for header in headers]
    text = b"".join(lines)
    if text.count(b"\n") != len(lines) or text.count(b"\r") != len(lines):
        raise ValueError("a header of the reply has a line break in it")
    return text


def check_media_type(headers: Mapping[bytes, bytes]) -> None:
    """Raises ProblemError `unsupported_media_type` unless a body of this request is plain JSON in
    UTF-8.

    A client that states nothing, or a form as `curl -d` does, is taken at its word that it sends
    JSON.
    """
    encoding = headers.get(b"content-encoding", b"identity")
    if encoding.lower() != b"identity":
        raise ProblemError("unsupported_media_type", field="Content-Encoding", limit="identity", given=encoding)
    stated = headers.get(b"content-type")
    if stated in (None, b"", b"application/json", b"application/x-www-form-urlencoded"):
        return
    media_type, *parameters = (part.strip().lower() for part in stated.split(b";"))
    charsets = [p.partition(b"=")[2].strip(b'"') for p in parameters if p.startswith(b"charset=")]
    if media_type != b"application/json" or any(charset not in (b"utf-8", b"utf8") for charset in charsets):
        raise ProblemError("unsupported_media_type", field="Content-Type", limit="application/json", given=stated)


def credentials(headers: Mapping[bytes, bytes]) -> tuple[str | None, str | None]:
    """Key id and secret of HTTP Basic (RFC 7617), or (None, None). Raises NotAuthenticated for
    anything else.
    """
    stated = headers.get(b"authorization")
    if stated is None:
        return None, None
    scheme, _, encoded = stated.partition(b" ")
    try:
        if scheme.lower() != b"basic":
            raise ValueError(scheme)
        key_id, colon, secret = b64decode(encoded.strip(), validate=True).decode("utf-8").partition(":")
    except (ValueError, binascii.Error):
        key_id, colon, secret = "", "", ""
    if not colon or not 0 < len(key_id) <= KEY_ID_CHARACTERS or not key_id.isprintable():
        raise NotAuthenticated("Credentials are HTTP Basic: key id, colon, secret, in base64.", field="Authorization")
    return key_id, secret


async def unless_gone(call: Coroutine[Any, Any, _T], receive: Receive) -> _T:
    """What `call` returns; when the client goes first, `call` is cancelled and ClientGone raised.

    So nothing is leased to a receiver that has gone. To be called after the body has been read.
    """
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    gone = False
    watcher: asyncio.Task[None] | None = None

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        task.cancel()

    def begin() -> None:
        nonlocal watcher
        watcher = _background.start(watch(), "watch_client")

    timer = loop.call_later(WATCH_AFTER_S, begin)
    try:
        return await call
    except asyncio.CancelledError:
        # A shutdown may cancel us too: only our own cancel is swallowed.
        if gone and task.uncancel() == 0:
            raise ClientGone from None
        raise
    finally:
        timer.cancel()
        if watcher is not None:
            watcher.cancel()


async def _has_gone(receive: Receive) -> bool:
    """Returns whether the loop has heard that the client has gone. To be called after the body has
    been read.
    """
    try:
        async with asyncio.timeout(0):
            return bool((await receive())["type"] == "http.disconnect")
    except TimeoutError:
        return False


async def reply(
    send: Send, response: Response, unsent: Callable[[], None] | None = None, receive: Receive | None = None
) -> None:
    """Sends a whole response by ASGI's messages; `unsent` is called when it can't begin, or when
    `receive` tells that the client has gone.
    """
    if unsent is not None and receive is not None and await _has_gone(receive):
        unsent()
        return
    try:
        await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
    except BaseException:
        if unsent is not None:
            unsent()
        raise
    await send({"type": "http.response.body", "body": response.body})
