"""Builds what moves messages that die, and what holds groups back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.catalog.ground import Ground
from engine.move.copies import Copies
from engine.move.dead_letters import DeadLetters
from engine.move.mover import Mover
from engine.move.parking import CheckPolicy, ParkedGroups, Parking
from engine.rules.queue import Queue
from engine.window.parts import WindowParts
from engine.window.window import Journaled
from runtime.background import Background
from schemas.records import TagRecord
from state.replies import Dying


@dataclass(frozen=True, kw_only=True)
class MoveParts:
    """One of each for a worker."""

    mover: Mover
    dead_letters: DeadLetters

    def move_beside(self, moving: Background, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying]) -> None:
        """Begins to move what is dying."""
        moving.start(self.dead_letters.move_dead(queue, tag, partition, dying), "move_dead")


@dataclass(frozen=True, kw_only=True)
class ParkingParts:
    """One of each for a worker."""

    parked: ParkedGroups
    parking: Parking


def wire_moves(*, ground: Ground, window: WindowParts) -> MoveParts:
    """Builds them; nothing is started."""
    log, store, ids, calls = ground.log, ground.store, window.ids, window.window
    copies = Copies(log, store.units, ids)
    mover = Mover(log, store.leases, calls, ids, window.write_through, ground.counters, copies)
    dead_letters = DeadLetters(mover, copies, store.leases, ground.catalog, ground.targets, calls, window.body_source)
    return MoveParts(mover=mover, dead_letters=dead_letters)


def wire_parking(
    *, ground: Ground, window: WindowParts, dead_letters: DeadLetters, check_policy: CheckPolicy, journaled: Journaled
) -> ParkingParts:
    """Builds them. `check_policy` and `journaled`: as of Parking."""
    deferred, calls = ground.store.deferred, window.window
    return ParkingParts(
        parked=ParkedGroups(ground.log, deferred, calls, window.ids),
        parking=Parking(deferred, calls, dead_letters, ground.counters, check_policy, journaled),
    )
