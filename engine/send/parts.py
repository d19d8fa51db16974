"""Builds what sends are made of."""

from __future__ import annotations

from dataclasses import dataclass

from engine.catalog.ground import Ground
from engine.rules.linger import Activity
from engine.send.schedule import Address, Schedule
from engine.send.sender import Sender
from engine.window.parts import WindowParts
from engine.window.window import Journaled


@dataclass(frozen=True, kw_only=True)
class SendParts:
    """One of each for a worker."""

    sender: Sender
    schedule: Schedule


def wire_sends(
    *, ground: Ground, window: WindowParts, activity: Activity, address: Address, journaled: Journaled
) -> SendParts:
    """Builds them; nothing is started. `address` and `journaled`: as of Schedule."""
    log, store, delays = ground.log, ground.store, window.delays
    sender = Sender(log, ground.catalog, window.ids, window.bodies, window.write_through, delays, activity)
    ground.queue_gone.connect(sender.forget_queue)
    return SendParts(sender=sender, schedule=Schedule(log, store.deferred, window.window, delays, address, journaled))
