"""Bodies of requests, read within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.types import Receive

from engine.errors import Overloaded
from facade.http.asgi import ClientGone, DirectBody
from facade.http.bounds.shares import GAVE_WAY, Share, Shares
from facade.http.problem import ProblemError

# Of one request: 100 messages x 1 MiB x base64 would be 140 MB; who sends large ones sends fewer.
BODY_BYTES = 16 * 1024 * 1024
HELD_REQUESTS = 25_000  # in hand at once, long polls too; each costs some KiB whatever its body


class Intake:
    """Reads bodies and counts the bytes in hand. Each `read` is paired with a `release` of what it
    returned.
    """

    def __init__(
        self, body_bytes: int = BODY_BYTES, shares: Shares | None = None, held_requests: int = HELD_REQUESTS
    ) -> None:
        self._body_bytes = body_bytes
        self.shares = shares if shares is not None else Shares()
        self._held_requests = held_requests
        self.requests = 0

    @property
    def state(self) -> str:
        """`ok`, or why a small request would be refused now."""
        if self.requests >= self._held_requests:
            return f"{self.requests} requests are in hand"
        return f"requests hold {self.shares.held} bytes" if self.shares.is_full else "ok"

    async def read(
        self, headers: Mapping[bytes, bytes], receive: Receive, most: int | None = None, holder: str = ""
    ) -> bytes:
        """The whole body, of up to `most` bytes (None = BODY_BYTES), counted for `holder` while it
        comes. Raises ProblemError `body_too_large`, Overloaded, or ClientGone; then nothing stays
        counted.
        """
        most = self._body_bytes if most is None else most
        stated = headers.get(b"content-length", b"")
        if stated.isdigit() and (len(stated) > 18 or int(stated) > most):
            raise _too_large(most)
        if self.requests >= self._held_requests:
            raise Overloaded("Too many requests are in hand.")
        task = asyncio.current_task()
        assert task is not None
        share = self.shares.begin(holder, task.cancel)
        self.requests += 1
        try:
            return await self._read(receive, most, share)
        except BaseException as error:
            gave_way = not share.is_coming and isinstance(error, asyncio.CancelledError)
            self.shares.end(share)
            self.requests -= 1
            # A shutdown may cancel us too: only the cancel of our share is swallowed.
            if gave_way and task.uncancel() == 0:
                raise Overloaded(GAVE_WAY.detail) from None
            raise

    async def _read(self, receive: Receive, most: int, share: Share) -> bytes:
        more = True
        chunks: list[bytes] = []
        while more:
            event = await receive()
            if event["type"] == "http.disconnect":
                raise ClientGone
            body, more = event.get("body", b""), event.get("more_body", False)
            if share.bytes + len(body) > most:
                raise _too_large(most)
            self.shares.grow(share, len(body))
            chunks.append(body)
        self.shares.whole(share)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def take_buffered(self, direct: DirectBody | None, most: int | None = None) -> bytes | None:
        """The whole body, if it is there already; else `read` it. `most` and what is raised as
        there.
        """
        if direct is None or self.requests >= self._held_requests:
            return None
        body = direct.whole_body()
        if body is not None:
            size = len(body)
            most = self._body_bytes if most is None else most
            if size > most:
                raise _too_large(most)
            self.shares.take(size)
            self.requests += 1
        return body

    def release(self, body: bytes) -> None:
        """The request of `body` is done with."""
        self.shares.release(len(body))
        self.requests -= 1


def _too_large(most: int) -> ProblemError:
    return ProblemError("body_too_large", f"A request may have {most} bytes.", field="body", limit=most)
