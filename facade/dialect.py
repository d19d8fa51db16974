"""The seam between the service and a dialect: what a dialect, and a request in it, can do.

A dialect is a folder, and `app.py` builds it; CONTRIBUTING says what else a new one touches.
`facade.http.front` serves every request by these protocols (ADR 0011).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from msgspec import Struct
from starlette.types import Scope

from engine.errors import EngineError
from engine.shapes import Principal


class Call(Struct, frozen=True, gc=False):
    """A request that can be done: who asks, and the body as its struct. A dialect adds what else
    its verbs read.
    """

    by: Principal
    body: Any


class Carried(Struct, frozen=True, gc=False):
    """What a verb answers, and what is called when not one byte of the answer could be given to the
    client.
    """

    content: Any
    unsent: Callable[[], None]


class Response(Struct, frozen=True, gc=False):
    """A whole reply, encoded."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Refusal(Exception):
    """What a dialect refuses in its own words. Its exchanges raise it and render it."""


class Exchange(Protocol):
    """One request and its reply in a dialect. The methods are called in the order they stand here,
    `check_head` only if it `signs_body`; `error` may follow any of them.
    """

    @property
    def headers(self) -> Mapping[bytes, bytes]:
        """The headers of the request."""

    @property
    def verb(self) -> str:
        """What is asked for, for the metrics and the log: out of a small set. It may be known only
        after `start`.
        """

    @property
    def changes(self) -> bool:
        """False = whoever makes a browser send this has changed nothing."""

    @property
    def suspects_get(self) -> bool:
        """Whether a GET is refused that does not say where it comes from, whoever sends it: it
        would change something, and nobody proves to be anybody.
        """

    @property
    def signs_body(self) -> bool:
        """Who asks can be told only when the body has been read. Read before `principal`."""

    @property
    def most_bytes(self) -> int | None:
        """What a body may have in this dialect, where that is less than the service takes; None =
        as much as that.
        """

    @property
    def id_header(self) -> bytes:
        """The header of its answers that has the id of the request, in small letters."""

    @property
    def short_id(self) -> bool:
        """Whether the id has 24 digits, not the form of a UUID."""

    @property
    def long_poll(self) -> bool:
        """The call is cancelled when its client goes. Read after `start`."""

    def check_head(self) -> None:
        """Raises for all that the head alone makes wrong, as a claim of nobody or by a key that
        is not there: such a body is not read.
        """

    def principal(self, body: bytes) -> Principal:
        """Who asks; `body` is empty unless the exchange `signs_body`. Raises for all that the head
        alone makes wrong.
        """

    def start(self, by: Principal, body: bytes) -> Coroutine[Any, Any, Any]:
        """What does the verb, to be awaited; `body` is the whole body. Raises for what can't be
        read. With a long body it is called in a thread of its own: it reads, and does nothing.
        """

    def output(self, content: Any) -> Response:
        """The reply that says what the verb has answered."""

    def error(self, error: Exception) -> Response:
        """The reply to a request that failed: by an EngineError, a ProblemError of the front, a
        Refusal of this dialect, or anything else, of which nothing is told.
        """


class Dialect(Protocol):
    """One way to speak to the service over HTTP."""

    @property
    def name(self) -> str:
        """Begins the names of its settings, and of its verbs in the metrics unless they are those
        of the engine.
        """

    @property
    def errors(self) -> Mapping[type[EngineError], Any]:
        """What each error of the engine becomes: a row for each class."""

    def claims(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Exchange | None:
        """The request in this dialect, None = it is in another. Looks at the head alone."""


class Audit(Protocol):
    """What hears of each request that is served; `engine.queues.callers.audit` has the rules."""

    quiet: frozenset[str]

    def begin(self, peer: str) -> Any:
        """A request begins in this task; what comes of it is an `Asked`."""

    async def end(
        self, asked: Any, operation: str, status: int, error: BaseException | None, request_id: str = ""
    ) -> None:
        """It is answered. To be called when it failed, or its verb is not `quiet`."""


class Spans(Protocol):
    """What makes a span of each request that carries a sampled trace context; each call is about
    the request that this task serves, and returns at once.
    """

    def begin(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """A request over HTTP begins."""

    def begin_call(self, path: str, metadata: Mapping[str, str]) -> None:
        """A call over gRPC begins."""

    def failed(self, error: BaseException) -> None:
        """It will be answered with an error."""

    def end(self, verb: str, status: int) -> None:
        """It is answered; `verb` and `status` as in the metrics."""
