"""Levels of permission that a queue's owner gives to others."""

from __future__ import annotations

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import InvalidValue
from engine.queues.records import QueueRecords
from engine.rules.grants import TAG_LEVELS, with_level
from engine.rules.limits import MAX_LEVELS, check_name
from schemas.records import QueueRecord
from schemas.vocabulary import Level


class Grants:
    """Changes of levels, one after the other for each queue, whichever worker makes them."""

    def __init__(self, catalog: Catalog, records: QueueRecords) -> None:
        self._catalog = catalog
        self._records = records

    async def set(self, name: str, principal: str, word: str, tag: str = "") -> None:
        """Gives a principal a level in place of the one it had, on the queue or on messages of a
        tag; NONE takes it away. Raises InvalidValue, QueueNotFound, TagNotFound.
        """
        check_level(principal, word, tag)
        async with self._catalog.change(name) as change:
            queue = self._records.known(name)
            record = with_grant(queue.record, principal, word, queue.tag(tag).name if tag else "")
            if record.grants != queue.record.grants:
                await self._records.write(record, change)


def check_level(principal: str, word: str, tag: str = "") -> None:
    """Raises InvalidValue for a principal that can't be one, or a word that is no level of a queue,
    or of a tag.
    """
    check_name("principal", principal)
    words = TAG_LEVELS if tag else tuple(Level)
    if word not in words:
        of = "level of a tag" if tag else "level"
        raise InvalidValue(
            f"{of} must be one of {', '.join(words)}, given {word[:100]!r}", field="level", limit=list(words), given=word[:100]
        )


def with_grant(record: QueueRecord, principal: str, word: str, tag: str = "") -> QueueRecord:
    """The record of a queue with a level in place of the one that a principal had. Raises
    InvalidValue.
    """
    if principal == record.owner:
        raise InvalidValue(f"{principal!r} owns queue {record.name!r}: it may do everything", field="principal", given=principal)
    grants = with_level(record.grants, principal, Level(word), tag)
    given = sum(bool(grant.level) for grant in grants)
    if given > MAX_LEVELS:
        raise InvalidValue(f"{MAX_LEVELS} principals may have rights on a queue", field="principal", limit=MAX_LEVELS, given=given)
    return msgspec.structs.replace(record, grants=grants)
