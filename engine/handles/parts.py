"""What the verbs on handles are made of."""

from __future__ import annotations

from dataclasses import dataclass

from engine.handles.attempts import Attempts
from engine.handles.handles import Handles
from engine.handles.kills import Kills
from engine.handles.leases import Leases
from engine.handles.refusals import Refusals
from engine.handles.settlements import Settlements


@dataclass(frozen=True)
class HandleParts:
    """One of each for a worker."""

    handles: Handles
    settlements: Settlements
    leases: Leases
    kills: Kills
    attempts: Attempts
    refusals: Refusals
