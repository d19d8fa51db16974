"""What all batches have in common: entries with ids of their own, and what has failed.

Neighbours: `messages` and `handles`. This module must not know what an entry asks for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from facade.sqs.errors import EMPTY_BATCH, IDS_NOT_DISTINCT, INVALID_ENTRY_ID, TOO_MANY_ENTRIES, SqsError, missing
from facade.sqs.replies import FailedReply

_legal = re.compile(r"[A-Za-z0-9_-]{1,80}").fullmatch


class Entry(Protocol):
    """An entry of a batch."""

    @property
    def id(self) -> str | None: ...


_E = TypeVar("_E", bound=Entry)


def by_id(entries: Sequence[_E] | None, most: int) -> dict[str, _E]:
    """The entries, one to `most`, by their ids, in order. Raises SqsError, which fails the whole request."""
    if not entries:
        raise SqsError(EMPTY_BATCH, "There should be at least one entry in the request.")
    if len(entries) > most:
        raise SqsError(TOO_MANY_ENTRIES, f"Maximum number of entries per request are {most}. You have sent {len(entries)}.")
    ids = [entry.id or "" for entry in entries]
    if not all(map(_legal, ids)) or len(set(ids)) != len(ids):
        raise _fault(ids)
    return dict(zip(ids, entries, strict=True))


def _fault(ids: Sequence[str]) -> SqsError:
    """What is wrong with the first of `ids` that is wrong."""
    for at, entry_id in enumerate(ids):
        if not entry_id:
            return missing("Entries.Id")
        if not _legal(entry_id):
            break
        if entry_id in ids[:at]:
            return SqsError(IDS_NOT_DISTINCT, f"Id {entry_id} repeated.")
    return SqsError(INVALID_ENTRY_ID, "A batch entry id can only contain alphanumeric characters, hyphens and underscores, 1 to 80.")


def failed(id: str, error: SqsError) -> FailedReply:
    """An entry that has failed."""
    return FailedReply(id=id, sender_fault=error.shape.sender_fault, code=error.shape.code, message=error.message)
