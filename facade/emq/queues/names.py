"""Names of queues: EMQ's are `owner/name`, and the owner is whoever has created the queue.

The engine knows a queue by the short name, as every dialect does. Neighbours: every method asks.
This module must not know methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import QueueNotFound
from facade.emq.queues.call import EmqError
from facade.emq.wire.errors import ErrorCode
from schemas.accounts import full, full_principal, short_principal

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.shapes import Principal
    from schemas.records import QueueRecord


def full_name(owner: str, name: str) -> str:
    """The name by which clients call a queue once it is there."""
    return f"{owner}/{name}"


def new_name(text: str) -> str:
    """The short name of a queue that is to be made. Raises EmqError."""
    if not text:
        raise EmqError(ErrorCode.QUEUE_NAME_MISSING, "the request names no queue")
    if "/" in text:
        raise EmqError(ErrorCode.INVALID_ATTRIBUTE, f"the name of a new queue has no '/', given {text[:200]!r}")
    return text


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
    """The queue that a client calls so; the short name alone will do. Raises EmqError,
    QueueNotFound: also when `by` may do nothing with it.
    """
    owner, name = split(text)
    record = engine.known(name, by) or await engine.record(name, by)
    if owner and record.owner != short_principal(by.account, full_principal(by.account, owner)):
        # As the engine says it: the owner of a queue of that name is nobody's to find out.
        raise QueueNotFound(f"there is no queue {name[:200]!r}", field="queue", given=name[:200])
    return record


def name_of(engine: Engine, name: str, by: Principal | None = None) -> str:
    """The full name of a queue that a record names, or that the engine has shown to `by`; the short
    one when it is not known here.
    """
    account = "" if by is None else by.account
    record = engine.known(full(account, name))
    return name if record is None else full_name(short_principal(account, record.owner), name)
