"""What all scripts on units are called with: names of keys, the bounds of a window, the time."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from time import time_ns
from typing import Final

from state.keys import Unit, UnitKeys
from state.redis.connection import Connection
from state.redis.script_caller import ScriptCaller
from state.redis.scripts import Script
from state.replies import Window

# Kinds of units, as the scripts that receive name them.
STANDARD, FIFO = b"STANDARD", b"FIFO"


class UnitCaller:
    """Calls scripts on units. Safe for any number of tasks of one loop."""

    def __init__(
        self, connection: Connection, prefix: str, window: Window, scripts: Mapping[str, Script] | None = None
    ) -> None:
        self.scripts: Final = ScriptCaller(connection, scripts)
        self.clock = connection.clock
        self.sightings = connection.sightings
        self.prefix = prefix
        self.window = window
        # Stands in the wake-ups of loads: who loads wakes those who wait in the same worker by
        # itself.
        self.name = secrets.token_hex(4)
        self.alone = False
        # Of units that are not standard: what the last receive found, by tag.
        self.kinds: dict[Unit, dict[int, bytes]] = {}
        self._keys: dict[Unit, UnitKeys] = {}

    def now_ms(self) -> int:
        """Returns the time of the service, of which the times of leases, delays and entries are;
        the clock of this machine where nobody keeps it. Raises StateUnavailable while it is not
        known.
        """
        return self.clock.now_ms() or time_ns() // 1_000_000

    @property
    def early_ms(self) -> int:
        """How much later than by the log's clock a delay ends by the time of the service now."""
        return self.clock.early_ms

    def keep_ms(self, retention_ms: int) -> int:
        """Returns how long a message stays by the time of the service, so that by the time of the
        log it has its retention.
        """
        return retention_ms + self.clock.keep_ms

    def note_alone(self, alone: bool) -> None:
        """Whether this worker is known to be the only one that listens for wake-ups: then loads
        send none.
        """
        self.alone = alone

    def of(self, unit: Unit) -> UnitKeys:
        """Returns the names of a unit's keys."""
        keys = self._keys.get(unit)
        if keys is None:
            keys = self._keys[unit] = UnitKeys(self.prefix, unit)
        return keys

    def forget(self, unit: Unit) -> None:
        """A unit's queue is gone."""
        self._keys.pop(unit, None)
        self.kinds.pop(unit, None)

    def counted(self, unit: Unit, tag: int, partitions: int) -> Sequence[str]:
        """Returns the keys by which a script counts what is leased of a tag."""
        names: list[str] = []
        for partition in range(partitions):
            keys = self.of(Unit(unit.incarnation, partition))
            t = keys.tag(tag)
            names += (keys.meta, t.visible, t.delayed)
        return names

    def note_kind(self, unit: Unit, tag: int, kind: bytes) -> None:
        """Notes of which kind a script has found a unit under a tag."""
        kinds = self.kinds.setdefault(unit, {})
        if kind == STANDARD:
            kinds.pop(tag, None)
        else:
            kinds[tag] = kind
