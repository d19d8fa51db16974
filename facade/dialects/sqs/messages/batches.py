"""What all batches have in common: entries with ids of their own, and what has failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from facade.dialects.sqs.wire.errors import (
    EMPTY_BATCH,
    IDS_NOT_DISTINCT,
    INVALID_ENTRY_ID,
    TOO_MANY_ENTRIES,
    SqsError,
    missing,
)
from facade.dialects.sqs.wire.replies import FailedReply

_legal = re.compile(r"[A-Za-z0-9_-]{1,80}").fullmatch


class Entry(Protocol):
    """An entry of a batch."""

    @property
    def id(self) -> str | None: ...


_E = TypeVar("_E", bound=Entry)


def by_id(action: str, entries: Sequence[_E] | None, most: int) -> dict[str, _E]:
    """The entries, one to `most`, by their ids, in order. Raises SqsError, which fails the whole
    request.
    """
    if not entries:
        raise SqsError(EMPTY_BATCH, f"There should be at least one {action}RequestEntry in the request.")
    if len(entries) > most:
        raise SqsError(
            TOO_MANY_ENTRIES, f"Maximum number of entries per request are {most}. You have sent {len(entries)}."
        )
    ids = [entry.id or "" for entry in entries]
    if not all(map(_legal, ids)) or len(set(ids)) != len(ids):
        raise _fault(action, entries)
    return dict(zip(ids, entries, strict=True))


def _fault(action: str, entries: Sequence[Entry]) -> SqsError:
    """What is wrong with the first entry that has a wrong id."""
    seen: set[str] = set()
    for number, entry in enumerate(entries, 1):
        if entry.id is None:
            return missing(f"{action}RequestEntry.{number}.Id")
        if not _legal(entry.id):
            break
        if entry.id in seen:
            return SqsError(IDS_NOT_DISTINCT, f"Id {entry.id} repeated.")
        seen.add(entry.id)
    about = "can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."
    return SqsError(INVALID_ENTRY_ID, f"A batch entry id {about}")


def failed(id: str, error: SqsError) -> FailedReply:
    """An entry that has failed."""
    return FailedReply(id=id, sender_fault=error.shape.sender_fault, code=error.shape.code, message=error.message)
