"""What the request under way asks: who, which verb, of what. For the audit and the counts of
requests; it decides nothing.

Who serves a request sets `current`; the authoriser and the verbs note here what they are asked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from msgspec import Struct, field

from schemas.vocabulary import CHANGES

P = ParamSpec("P")
T = TypeVar("T")


class Asked(Struct):
    """A request. The first verb that is noted is the one that was asked for, and what it asks for
    in turn is not; but a change counts before a look that a dialect takes first. `others`: further
    changes, of other queues or of other kinds, that the dialect makes for the same request.
    """

    peer: str
    principal: str = ""
    key_id: str = ""
    verb: str = ""
    queue: str = ""
    tag: str = ""
    subject: str = ""
    is_change: bool = False  # the verb is, and what was asked for was more than a look
    hidden: bool = False  # the queue was there, and the caller was told that it was not
    others: list[Asked] = field(default_factory=list)
    caller: str = ""  # who asks, whether or not the engine was asked for a verb


current: ContextVar[Asked | None] = ContextVar("asked", default=None)
_looking: ContextVar[bool] = ContextVar("looking", default=False)


def look(verb: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Has a verb count as a look, though it needs the right of a change."""

    @functools.wraps(verb)
    async def looked(*args: P.args, **kwargs: P.kwargs) -> T:
        token = _looking.set(True)
        try:
            return await verb(*args, **kwargs)
        finally:
            _looking.reset(token)

    return looked


def note(principal: str, key_id: str, verb: str, queue: str = "", tag: str = "", subject: str = "") -> None:
    """Somebody asks for a verb: of a queue, of a tag of it, of something else (`subject`)."""
    asked = current.get()
    is_change = verb in CHANGES and not _looking.get()
    if asked is None or (asked.verb and not is_change):
        return
    if asked.is_change:
        # Who may do it is asked again on the way; of another queue it is another change.
        if queue and (verb, queue) not in {(asked.verb, asked.queue), *((one.verb, one.queue) for one in asked.others)}:
            asked.others.append(Asked(asked.peer, principal, key_id, verb, queue, tag, subject, is_change))
        return
    asked.principal, asked.key_id, asked.verb = principal, key_id, verb
    asked.queue, asked.tag, asked.subject, asked.is_change = queue, tag, subject, is_change


def note_caller(principal: str) -> None:
    """The caller has proved to be somebody, or says so where nobody has to prove it."""
    if (asked := current.get()) is not None:
        asked.caller = principal


def note_claim(key_id: str) -> None:
    """Somebody claims to have a key."""
    if (asked := current.get()) is not None:
        asked.key_id = key_id[:128]


def note_hidden() -> None:
    """Somebody is told that a queue is not there which is."""
    if (asked := current.get()) is not None:
        asked.hidden = True
