"""What the request under way asks: who, which verb, of what. For the audit alone; it decides
nothing.

Who serves a request sets `current`; the authoriser and the verbs note here what they are asked.
"""

from __future__ import annotations

from contextvars import ContextVar

from msgspec import Struct, field

from schemas.vocabulary import CHANGES


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
    hidden: bool = False  # the queue was there, and the caller was told that it was not
    others: list[Asked] = field(default_factory=list)


current: ContextVar[Asked | None] = ContextVar("asked", default=None)


def note(principal: str, key_id: str, verb: str, queue: str = "", tag: str = "", subject: str = "") -> None:
    """Somebody asks for a verb: of a queue, of a tag of it, of something else (`subject`)."""
    asked = current.get()
    if asked is None or (asked.verb and verb not in CHANGES):
        return
    if asked.verb in CHANGES:
        # Who may do it is asked again on the way; of another queue it is another change.
        if queue and (verb, queue) not in {(asked.verb, asked.queue), *((one.verb, one.queue) for one in asked.others)}:
            asked.others.append(Asked(asked.peer, principal, key_id, verb, queue, tag, subject))
        return
    asked.principal, asked.key_id, asked.verb = principal, key_id, verb
    asked.queue, asked.tag, asked.subject = queue, tag, subject


def note_claim(key_id: str) -> None:
    """Somebody claims to have a key."""
    if (asked := current.get()) is not None:
        asked.key_id = key_id[:128]


def note_hidden() -> None:
    """Somebody is told that a queue is not there which is."""
    if (asked := current.get()) is not None:
        asked.hidden = True
