"""What an operation of MNS gets, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from engine.shapes import Principal
from facade.dialects.mns.wire.replies import Items
from facade.dialects.mns.wire.xml import Element

if TYPE_CHECKING:
    from engine.engine import Engine


class Options(Struct, frozen=True):
    """What the settings say of this dialect: queues made through it have priority; to delete what
    is not there is no error.
    """

    priority: bool
    missing_deleted: bool


class Call(Struct, frozen=True, gc=False):
    """A request that can be done: who asks, the name in its path ("" = none), its query, body and
    headers. `base` is how the client called us.
    """

    by: Principal
    name: str
    query: Mapping[str, str]
    body: Element | None
    headers: Mapping[bytes, bytes]
    base: str
    options: Options

    def url(self, name: str) -> str:
        """The URL of a queue."""
        return f"{self.base}/queues/{name}"


class Answer(Struct, frozen=True, gc=False):
    """What is answered: a status, and a document unless `root` is empty."""

    status: int
    root: str = ""
    items: Items = ()
    location: str = ""


DONE: Final = Answer(204)


class Action(Struct, frozen=True):
    """An operation: its name, and what does it."""

    name: str
    run: Callable[[Engine, Call], Coroutine[Any, Any, Any]]
    long_poll: bool = False
