"""Builds what the verbs on handles are made of."""

from __future__ import annotations

from dataclasses import dataclass

from engine.catalog.ground import Ground
from engine.handles.attempts import Attempts
from engine.handles.handles import ByUnit, Handles, Refusals
from engine.handles.leases import Kills, Leases, MoveDead
from engine.handles.settlements import Acks, Settlements
from engine.meters.meters import Meters
from engine.window.parts import WindowParts
from engine.window.window import Journaled


@dataclass(frozen=True, kw_only=True)
class HandleParts:
    """One of each for a worker."""

    handles: Handles
    settlements: Settlements
    leases: Leases
    kills: Kills
    attempts: Attempts
    refusals: Refusals


def wire_handles(
    *, ground: Ground, window: WindowParts, meters: Meters, journaled: Journaled, move_dead: MoveDead
) -> HandleParts:
    """Builds them. `journaled` waits for an entry of the journal, `move_dead` moves what is
    killed.
    """
    scripts, receivable = ground.store.leases, window.receivable
    handles, refusals, by_unit = (
        Handles(ground.catalog, window.ids),
        Refusals(meters.note_stale),
        ByUnit(window.window, scripts.units),
    )
    acks = Acks(scripts, window.bodies)
    leases = Leases(scripts, handles, by_unit, window.delays, refusals, receivable, meters)
    return HandleParts(
        handles=handles,
        settlements=Settlements(acks, handles, by_unit, journaled, refusals, receivable, meters),
        leases=leases,
        kills=Kills(scripts, handles, by_unit, ground.targets, move_dead, refusals),
        attempts=Attempts(ground.log, scripts, window.window, leases),
        refusals=refusals,
    )
