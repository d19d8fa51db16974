"""The record of a new queue, and how many partitions a queue of each kind has."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from engine.errors import InvalidValue
from engine.shapes import NewTag
from schemas.records import QueueRecord, TagRecord
from schemas.records.settings import QueueSettings, named
from schemas.vocabulary import DEFAULT_TAG, PRIORITIES


def check_priority_settings(settings: QueueSettings) -> None:
    """Raises InvalidValue for a queue with priority that is FIFO too, or names another number of
    partitions.
    """
    if not settings.priority:
        return
    if settings.fifo:
        raise InvalidValue("a queue is FIFO or has priority, not both", field="priority", limit="a standard queue", given=True)
    if settings.partitions not in (None, PRIORITIES):
        raise InvalidValue(
            f"a queue with priority has {PRIORITIES} partitions, one for each, given {settings.partitions}",
            field="partitions",
            limit=PRIORITIES,
            given=settings.partitions,
        )


def least_partitions(settings: QueueSettings) -> int | None:
    """Partitions of a queue whose kind decides that; None = the default of the service."""
    if settings.priority:
        return PRIORITIES
    return 1 if settings.fifo and settings.dedup_scope != "group" else None


def new_record(name: str, owner: str, settings: QueueSettings, default_partitions: int, tags: Sequence[NewTag], at_ms: int) -> QueueRecord:
    """The record of a queue made at `at_ms`. What `settings` does not name has its default."""
    partitions = settings.partitions or least_partitions(settings) or default_partitions
    more = [
        TagRecord(number, tag.name, at_ms, 0, [0] * partitions, tag.filter, tag.user_attributes, tag.read_qps)
        for number, tag in enumerate(tags, 1)
    ]
    return QueueRecord(
        name=name,
        incarnation=secrets.token_hex(6),
        owner=owner,
        created_at_ms=at_ms,
        modified_at_ms=at_ms,
        tags=[TagRecord(0, DEFAULT_TAG, at_ms, 0, [0] * partitions), *more],
        next_tag_id=len(more) + 1,
        **{**named(settings), "partitions": partitions},
    )
