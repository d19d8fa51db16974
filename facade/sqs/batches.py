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
    found: dict[str, _E] = {}
    for entry in entries:
        entry_id = entry.id
        if not entry_id:
            raise missing("Entries.Id")
        if not _legal(entry_id):
            raise SqsError(INVALID_ENTRY_ID, "A batch entry id can only contain alphanumeric characters, hyphens and underscores, 1 to 80.")
        if entry_id in found:
            raise SqsError(IDS_NOT_DISTINCT, f"Id {entry_id} repeated.")
        found[entry_id] = entry
    return found


def failed(id: str, error: SqsError) -> FailedReply:
    """An entry that has failed."""
    return FailedReply(id=id, sender_fault=error.shape.sender_fault, code=error.shape.code, message=error.message)
