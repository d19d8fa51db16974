"""A row of a dialect's table of queue attributes: how the dialect calls a setting, and what it
allows.
"""

from __future__ import annotations

from msgspec import Struct

from schemas.records.settings import EffectiveSettings


class Attribute(Struct, frozen=True):
    """An attribute that is a number: `low` to `high` of the dialect's units, each of which is
    `units` of the setting's. The engine's ranges are wider, so a queue that another dialect has
    made may show larger numbers.
    """

    name: str  # on the wire
    setting: str  # of schemas/records/settings.py
    units: int
    low: int
    high: int
    default: int = 0  # of a new queue, where the dialect has a default of its own

    def shown(self, queue: EffectiveSettings) -> int:
        """Returns the attribute of a queue, rounded down."""
        value: int = getattr(queue, self.setting)
        return value // self.units

    def given(self, value: int) -> int:
        """Returns the setting for a value that the dialect allows."""
        return value * self.units
