"""Levels of permission that a queue's owner gives to others.

Neighbours: `engine.rules.rights` says what a level allows, `access` asks it for each verb. Must not
know who gives: the engine has asked.
"""

from __future__ import annotations

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import InvalidValue
from engine.queues.queues import Queues
from engine.rules.limits import MAX_LEVELS, check_name
from engine.rules.rights import levels_of, with_level
from schemas.vocabulary import Level


class Grants:
    """Changes of levels, one after the other for each queue, whichever worker makes them."""

    def __init__(self, catalog: Catalog, queues: Queues) -> None:
        self._catalog = catalog
        self._queues = queues

    async def set(self, name: str, principal: str, word: str) -> None:
        """Gives a principal a level in place of the one it had; NONE takes it away. Raises
        InvalidValue, QueueNotFound.
        """
        check_name("principal", principal)
        if word not in set(Level):
            raise InvalidValue(f"level must be one of {', '.join(Level)}, given {word!r}", field="level", limit=list(Level), given=word)
        level = Level(word)
        async with self._catalog.change(name) as change:
            record = self._queues.known(name).record
            if principal == record.owner:
                raise InvalidValue(f"{principal!r} owns queue {name!r}: it may do everything", field="principal", given=principal)
            grants = with_level(record.grants, principal, level)
            given = len(levels_of(grants))
            if given > MAX_LEVELS:
                raise InvalidValue(f"{MAX_LEVELS} principals may have rights on a queue", field="principal", limit=MAX_LEVELS, given=given)
            if grants != record.grants:
                await self._queues.write(msgspec.structs.replace(record, grants=grants), change)
