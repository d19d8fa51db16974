"""Requests to the native API, over one connection of HTTP that is kept between them."""

from __future__ import annotations

import base64
import http.client
import json
import math
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from facade.programs.connect.answer import Encrypted, Fields, Plain, content_of
from facade.programs.connect.failures import FAILED, NOT_ALLOWED, WRONG_USE, Failure, Refused, Unreachable
from facade.programs.connect.profiles import Connection

MOST_BYTES: Final = 64 * 1024 * 1024  # of an answer; the service sends half of that at most
IDLE_S: Final = 20.0  # the service closes a connection that is idle for 75 s
PAGE: Final = 1000
LEAST_S: Final = 0.05  # that a request has, however little time is left
MOST_S: Final = 86_400.0


def path_to(*parts: str) -> str:
    """A path below /v1 of parts that may have any character."""
    return "/v1/" + "/".join(quote(part, safe="", errors="surrogateescape") for part in parts)


class Client:
    """Each request has the timeout of the connection from its beginning to the end of its answer,
    and no more than `until` leaves. Not safe for two threads.
    """

    def __init__(self, connection: Connection) -> None:
        self._at = connection
        self._headers = {"accept": "application/json"}
        if connection.key_id:
            key = f"{connection.key_id}:{connection.key_secret}".encode("utf-8", "surrogateescape")
            self._headers["authorization"] = "Basic " + base64.b64encode(key).decode()
        self._http: http.client.HTTPConnection | None = None
        self._used = 0.0
        self._ahead_ms = 0
        self._end = math.inf

    @property
    def clock_ms(self) -> int:
        """The time of the service, to a second, by its last answer; of this machine before one."""
        return int(time.time() * 1000) + self._ahead_ms

    @property
    def connection(self) -> Connection:
        """Where it speaks to."""
        return self._at

    def until(self, end: float | None) -> None:
        """Bounds the requests that follow: none goes on after this moment of time.monotonic(), but
        for 50 ms; None = no bound.
        """
        self._end = math.inf if end is None else end

    def get(self, path: str, **query: Any) -> Any:
        """What a GET answers. A parameter that is None is left out; a list is repeated."""
        return self.call("GET", path, query=query)

    def post(self, path: str, body: Any = None, *, wait_s: float = 0.0) -> Any:
        """What a POST answers, which may take `wait_s` longer than other requests."""
        return self.call("POST", path, body, wait_s=wait_s)

    def entries(
        self, path: str, field: str, *, after: str = "next", limit: int | None = None, **query: Any
    ) -> Iterator[Any]:
        """The entries of `field` over all pages, as of `pages`."""
        return chain.from_iterable(self.pages(path, field, after=after, limit=limit, **query))

    def pages(
        self, path: str, field: str, *, after: str = "next", limit: int | None = None, size: int = PAGE, **query: Any
    ) -> Iterator[list[Any]]:
        """The entries of `field`, page by page of `size`, at most `limit` in all; `after` is the
        parameter that continues.
        """
        left, place = limit, None
        while left is None or left > 0:
            page = self.get(path, **query, **{after: place, "limit": size if left is None else min(size, left)})
            yield page[field][:left]
            left = None if left is None else left - len(page[field])
            place = page["next"]
            if place is None:
                return

    def call(
        self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None, wait_s: float = 0.0
    ) -> Any:
        """The JSON object that a request is answered with; None = 204, which has no body. Raises
        Refused, Unreachable, Failure.
        """
        status, found = self.exchange(method, path, body, query=query, wait_s=wait_s)
        if status >= 300:
            raise Refused(status, found if isinstance(found, dict) else {})
        if not isinstance(found, dict) and (status != 204 or method == "GET"):
            raise Failure(f"{self._at.endpoint} answered {status} without a JSON object: is it a Leaseway?", FAILED)
        return found

    def exchange(
        self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None, wait_s: float = 0.0
    ) -> tuple[int, Any]:
        """As `call`, with the status and whatever it is. An answer that is no JSON and no success
        is a problem with a detail. Its objects are `Fields`.
        """
        target = _target(path, query or {})
        data = None if body is None else _encoded(body)
        headers = self._headers if data is None else {**self._headers, "content-type": "application/json"}
        answer, content = self._exchange(method, target, data, headers, wait_s)
        if not content:
            return answer.status, None
        kind = answer.getheader("content-type", "")
        try:
            if "json" in kind:
                return answer.status, json.loads(content, object_hook=Fields)
            what = f"{kind or 'no type'}, not JSON: is it a Leaseway?"
        except (ValueError, RecursionError):
            what = "broken JSON"
        said = f"{self._at.endpoint} answered {answer.status} with {what}"
        if answer.status >= 300:
            return answer.status, {"detail": said}
        raise Failure(said, FAILED)

    def text(self, path: str) -> tuple[int, str]:
        """The status and the text that a GET answers, whatever its type."""
        answer, content = self._exchange("GET", path, None, self._headers, 0.0)
        return answer.status, content.decode("utf-8", "replace")

    def close(self) -> None:
        """Closes the connection; the next request opens another."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def _exchange(
        self, method: str, target: str, data: bytes | None, headers: Mapping[str, str], wait_s: float
    ) -> tuple[http.client.HTTPResponse, bytes]:
        if self._http is not None and time.monotonic() - self._used > IDLE_S:
            self.close()
        began = time.monotonic()
        most = max(LEAST_S, min(self._at.timeout_s + min(max(wait_s, 0.0), MOST_S), self._end - began))
        try:
            opened = self._opened(began + most)
        except OSError as error:
            self.close()
            raise _unreached(self._at, error) from None
        try:
            opened.request(method, target, data, dict(headers))
            opened.sock.settimeout(_left(began + most))
            answer = opened.getresponse()
            content = content_of(answer, MOST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise _unanswered(self._at, error, most, sent=method != "GET") from None
        except BaseException:
            # The answer of this request must not become that of the next one.
            self.close()
            raise
        self._used = time.monotonic()
        self._ahead_ms = _ahead_ms(answer.getheader("date"))
        if len(content) > MOST_BYTES:
            self.close()
            raise Failure(f"the answer has more than {MOST_BYTES} bytes", FAILED)
        return answer, content

    def _opened(self, end: float) -> http.client.HTTPConnection:
        if self._http is None or self._http.sock is None:
            self._http = _http(self._at, _left(end))
            self._http.connect()
        self._http.sock.settimeout(_left(end))
        return self._http


def _left(end: float) -> float:
    return max(LEAST_S, end - time.monotonic())


def _target(path: str, query: Mapping[str, Any]) -> str:
    """The path with the parameters that are not None; it may have some of its own."""
    given = {name: value for name, value in query.items() if value is not None}
    if not given:
        return path
    return f"{path}{'&' if '?' in path else '?'}{urlencode(given, doseq=True, errors='surrogateescape')}"


def _encoded(body: Any) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except ValueError:
        raise Failure("a number must be finite, given inf or nan", WRONG_USE) from None


def _ahead_ms(date: str | None) -> int:
    """By how much the clock of a service is ahead of this machine's, to a second; 0 = not known."""
    try:
        return round((parsedate_to_datetime(date or "").timestamp() - time.time()) * 1000)
    except ValueError:
        return 0


def _http(at: Connection, timeout: float) -> http.client.HTTPConnection:
    place = urlsplit(at.endpoint)
    try:
        port = place.port
    except ValueError:
        raise Failure(f"the port of an endpoint is 1 to 65535, given {at.endpoint!r}", 2) from None
    if place.scheme == "http":
        return Plain(place.hostname or "", port, timeout=timeout)
    import ssl

    try:
        context = ssl.create_default_context(cafile=at.ca_file or None)
    except OSError as error:
        raise Failure(f"the CA file {at.ca_file} can't be used: {error.strerror or error}", 2) from None
    return Encrypted(place.hostname or "", port, timeout=timeout, context=context)


def _unreached(at: Connection, error: OSError) -> Failure:
    verified = getattr(error, "verify_message", "")
    if verified:
        return Failure(
            f"{at.endpoint} has a certificate that can't be trusted: {verified} (--ca-file names a CA)", NOT_ALLOWED
        )
    return Unreachable(f"{at.endpoint} can't be reached: {_said(error)}")


def _unanswered(at: Connection, error: Exception, most: float, *, sent: bool) -> Unreachable:
    if isinstance(error, TimeoutError):
        why = f"did not answer within {round(most, 3):g} s (--timeout)"
    elif isinstance(error, http.client.IncompleteRead):
        why = "cut its answer short"
    else:
        why = f"broke the connection: {_said(error)}"
    doubt = "; it may have been done all the same" if sent else ""
    return Unreachable(f"{at.endpoint} {why}{doubt}", sent=sent)


def _said(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__).rstrip(".").lower()
