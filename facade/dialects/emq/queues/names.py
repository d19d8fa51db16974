"""Names of queues: EMQ's are `developer/name`, and each developer has a name space of their own.

What alice calls `orders`, and others `alice/orders`, is the engine's `alice-orders`: short names of
EMQ have no `-`. Queues that were made otherwise are `owner/name` too; if their owner has one of
that name over EMQ, they are `-/name`. Who names no developer, in open mode, has no name space: what
they make has one name in every dialect. Every method asks this module, which knows no method.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from engine.errors import QueueNotFound
from facade.dialects.emq.queues.call import EmqError
from facade.dialects.emq.wire.errors import ErrorCode
from schemas.accounts import full, full_principal, short_principal
from schemas.vocabulary import ANONYMOUS

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.shapes import Principal
    from schemas.records import QueueRecord

NO_DEVELOPER: Final = "-"
_NOT_IN_NAMES: Final = re.compile(r"\A[.-]|[^A-Za-z0-9_.-]")


class Owned(Protocol):
    """A queue as the engine has shown it to a caller."""

    @property
    def owner(self) -> str: ...
    @property
    def name(self) -> str: ...


@lru_cache(maxsize=1024)
def _space(owner: str) -> str:
    """What the engine's names of a developer's queues begin with, "" = they have no name space."""
    if owner in ("", ANONYMOUS, NO_DEVELOPER):
        return ""
    return _NOT_IN_NAMES.sub(lambda found: f"_x{ord(found[0]):x}", owner) + "-"


def full_name(engine: Engine, queue: Owned, by: Principal | None) -> str:
    """The name by which `by` calls a queue that the engine has shown to them."""
    owner, name = queue.owner, queue.name
    space = _space(owner)
    if space and name.startswith(space) and name != space:
        return f"{owner}/{name.removeprefix(space)}"
    if space and _owned(engine, owner, space + name, by) is not None:
        return f"{NO_DEVELOPER}/{name}"
    return f"{owner}/{name}"


def new_name(engine: Engine, owner: str, name: str, by: Principal) -> str:
    """What the engine is to call a new queue of a developer. Raises EmqError."""
    if not name:
        raise EmqError(ErrorCode.QUEUE_NAME_MISSING, "the request names no queue")
    if "/" in name:
        raise EmqError(ErrorCode.INVALID_ATTRIBUTE, f"the name of a new queue has no '/', given {name[:200]!r}")
    owner = _shown(owner, by)
    space = _space(owner)
    if space and "-" in name:
        raise EmqError(
            ErrorCode.INVALID_ATTRIBUTE, f"the name of a developer's new queue has no '-', given {name[:200]!r}"
        )
    if space and _owned(engine, owner, name, by) is not None:
        raise exists(f"{owner}/{name}")
    return space + name


def exists(name: str) -> EmqError:
    """There is a queue of that full name. Storm's spout takes it from behind the last colon."""
    return EmqError(ErrorCode.QUEUE_EXIST, f"there is a queue of that name:{name}")


def split(text: str) -> tuple[str, str]:
    """The owner ("" = it is not named) and the short name. Raises EmqError."""
    if not text:
        raise EmqError(ErrorCode.QUEUE_NAME_MISSING, "the request names no queue")
    owner, slash, name = text.rpartition("/")
    if slash and (not owner or not name or "/" in owner):
        raise EmqError(ErrorCode.INVALID_ATTRIBUTE, f"the name of a queue is owner/name, given {text[:200]!r}")
    return owner, name


def is_own(text: str, by: Principal) -> bool:
    """Whether a full name names `by` as the owner. Raises EmqError."""
    owner, _ = split(text)
    return bool(owner) and full_principal(by.account, owner) == by.id


async def record_of(engine: Engine, text: str, by: Principal) -> QueueRecord:
    """The queue that a client calls so. A short name is that of a queue of `by`, or else of the
    queue that the engine calls so. Raises EmqError, QueueNotFound: also when `by` may do nothing
    with it.
    """
    owner, name = split(text)
    record = _found(engine, owner, name, by)
    if record is None:
        is_known = engine.queues.known(full(by.account, name)) is not None
        with suppress(QueueNotFound):  # waits once for all that this worker has not heard of
            await engine.queues.record(name if is_known else _space(_shown(owner or by.id, by)) + name, by)
        record = _found(engine, owner, name, by)
    if record is None:
        # As the engine says it: the owner of a queue of that name is nobody's to find out.
        raise QueueNotFound(f"there is no queue {text[:200]!r}", field="queue", given=text[:200])
    return record


def steady_record_of(engine: Engine, text: str, by: Principal) -> QueueRecord | None:
    """The queue that a client calls so, if this worker has heard of it and it keeps that name
    whatever queues are made: it is in the name space of its developer, or there is none. Raises
    EmqError.
    """
    owner, name = split(text)
    record = _found(engine, owner, name, by)
    return record if record is not None and record.name == _space(_shown(owner or by.id, by)) + name else None


def name_of(engine: Engine, name: str, by: Principal | None = None) -> str:
    """The full name of a queue that a record names, or that the engine has shown to `by`; the
    engine's when it is not known here.
    """
    record = engine.queues.known(name) if by is None else engine.queues.known(full(by.account, name))
    if record is None:
        return name
    return full_name(engine, _Shown(_shown(record.owner, by), name), by)


def source_of(engine: Engine, text: str) -> str:
    """What the engine calls, in dead letters, the queue that they show as `text`."""
    owner, _, name = text.rpartition("/")
    record = _found(engine, owner, name, None)
    return _space(owner) + name if record is None else record.name


def as_called(detail: str, text: str, by: Principal) -> str:
    """An error of the engine with the name by which `by` has called its queue."""
    owner, _, name = text.rpartition("/")
    space = _space(_shown(owner or by.id, by))
    return detail.replace(repr(full(by.account, space + name)), repr(text)) if space else detail


class _Shown:
    """See `Owned`."""

    def __init__(self, owner: str, name: str) -> None:
        self.owner = owner
        self.name = name


def _shown(owner: str, by: Principal | None) -> str:
    """An owner as `by` is shown them."""
    return owner if by is None else short_principal(by.account, full_principal(by.account, owner))


def _found(engine: Engine, owner: str, name: str, by: Principal | None) -> QueueRecord | None:
    """The queue of that owner, if this worker has heard of it."""
    shown = _shown(owner or ("" if by is None else by.id), by)
    if (space := _space(shown)) and (record := _owned(engine, shown, space + name, by)) is not None:
        return record
    if owner and owner != NO_DEVELOPER:
        return _owned(engine, shown, name, by)
    return engine.queues.known(name, by)


def _owned(engine: Engine, owner: str, called: str, by: Principal | None) -> QueueRecord | None:
    """A queue by the engine's name, if it is that owner's."""
    record = engine.queues.known(called, by)
    return record if record is not None and record.owner == owner else None
