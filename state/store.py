"""The state in Redis: scripts as methods, in three parts. Other packages see no keys and no
lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from state.deferred import DeferredScripts
from state.leases import LeaseScripts
from state.redis.connection import Connection
from state.redis.scripts import Script
from state.replies import Window
from state.unit_caller import UnitCaller
from state.upkeep import UpkeepScripts


class Store:
    """The three parts over one way to call scripts; whoever needs one part is given that one."""

    def __init__(
        self, connection: Connection, prefix: str, window: Window, scripts: Mapping[str, Script] | None = None
    ) -> None:
        """`scripts` None = all that there are."""
        units = self.units = UnitCaller(connection, prefix, window, scripts)
        self.leases: Final = LeaseScripts(units)
        self.deferred: Final = DeferredScripts(units)
        self.upkeep: Final = UpkeepScripts(units)
