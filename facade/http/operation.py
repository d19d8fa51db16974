"""An operation: one method at one path, as a value. Routes, the fast path and the OpenAPI
document are made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from re import Pattern
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from engine.errors import EngineError
from facade import dialect
from facade.dialect import Carried
from facade.http.problem import Problem

if TYPE_CHECKING:
    from engine.engine import Engine

JSON = "application/json"


class Call(dialect.Call, frozen=True, gc=False):
    """A request that has the right shape; the parts of the path, and the query as its struct."""

    path: Mapping[str, str]
    query: Any


class Answer(Struct, frozen=True):
    """What to answer: `content` is encoded as JSON unless it is bytes already; None = no body."""

    content: Any = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    media_type: str = JSON


@dataclass(frozen=True)
class PathRule:
    """What a part of the path must look like; `about` tells people."""

    pattern: Pattern[str]
    about: str
    example: str


@dataclass(frozen=True)
class Example:
    """A request and its reply as JSON values, shown in the OpenAPI document; the tests send
    them.
    """

    request: Any = None
    reply: Any = None


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method at one path.

    `replies` maps each status of success to the struct of its body (None = no body). `codes` are
    the problem codes that it may answer besides those that any operation may. `anonymous` = no
    credentials are asked for; `or_anonymous` = only those that are given are looked at. `long_poll`
    = the call is cancelled when the client goes. `bulky`: its body holds messages, so it may be as
    large as the service takes. `render` makes another error body of a problem
    than problem+json; `reword` puts an engine error into the words of the dialect.
    """

    name: str
    method: str
    path: str
    group: str
    summary: str
    run: Callable[[Engine, Call], Coroutine[Any, Any, Answer | Carried]]
    replies: Mapping[int, Any]
    example: Example
    rules: Mapping[str, PathRule] = field(default_factory=dict)
    body: Any = None
    body_optional: bool = False
    query: type[Struct] | None = None
    codes: tuple[str, ...] = ()
    anonymous: bool = False
    or_anonymous: bool = False
    long_poll: bool = False
    hot: bool = False
    bulky: bool = False
    media_type: str = JSON
    render: Callable[[Problem], Answer] | None = None
    reword: Callable[[EngineError], EngineError] | None = None

    @property
    def changes(self) -> bool:
        return self.method != "GET"
