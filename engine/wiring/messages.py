"""What the verbs of messages are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from engine.handles.acks import Acks
from engine.handles.attempts import Attempts
from engine.handles.by_unit import ByUnit
from engine.handles.handles import Handles
from engine.handles.kills import Kills
from engine.handles.leases import Leases
from engine.handles.parts import HandleParts
from engine.handles.refusals import Refusals
from engine.handles.settlements import Settlements
from engine.move.copies import Copies
from engine.move.dead_letters import DeadLetters
from engine.move.mover import Mover
from engine.move.parking import ParkedGroups, Parking
from engine.plane.parts import join_delays, join_plane
from engine.receive.browse import Browse
from engine.receive.completing import Completing
from engine.receive.deliveries import Deliveries
from engine.receive.filtered import FilteredReceives
from engine.receive.poll import Move, Poller
from engine.receive.receiver import LongPolls, Receiver, ShortPolls
from engine.receive.returns import Returns
from engine.receive.serving import Serving
from engine.rules.queue import Queue
from engine.send.schedule import Schedule
from engine.send.sender import Sender
from engine.settings import EngineSettings
from engine.window.delays import Delays
from engine.wiring.foundation import Base
from engine.wiring.units import Units
from runtime.background import Background
from runtime.signals import Signal
from schemas.records import TagRecord
from state.redis.wake import Wake
from state.replies import Dying


def _beside(receiving: Background, dead_letters: DeadLetters, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying]) -> None:
    receiving.start(dead_letters.move_dead(queue, tag, partition, dying), "move_dead")


@dataclass(frozen=True)
class Messages:
    """What the verbs of messages are made of."""

    sender: Sender
    mover: Mover
    dead_letters: DeadLetters
    poller: Poller
    deliveries: Deliveries
    receiver: Receiver
    wake: Wake
    handles: HandleParts
    browse: Browse
    schedule: Schedule
    parked: ParkedGroups
    parking: Parking


def _wire_handles(base: Base, units: Units, delays: Delays, dead_letters: DeadLetters) -> HandleParts:
    scripts, catalog, meters, window = base.store.leases, base.catalog, base.meters, units.window
    handles, refusals, by_unit = Handles(catalog, units.ids), Refusals(), ByUnit(window, scripts.units)
    acks = Acks(scripts, units.bodies)
    leases = Leases(scripts, handles, by_unit, delays, refusals, units.receivable, meters)
    return HandleParts(
        handles=handles,
        settlements=Settlements(acks, handles, by_unit, units.owner.journaled.wait, refusals, units.receivable, meters),
        leases=leases,
        kills=Kills(scripts, handles, by_unit, base.targets, dead_letters.kill, refusals),
        attempts=Attempts(base.log, scripts, window, leases),
        refusals=refusals,
    )


@dataclass(frozen=True)
class Receives:
    """What receives are made of. `heard` tells what other workers say may be receivable."""

    poller: Poller
    deliveries: Deliveries
    returns: Returns
    browse: Browse
    long_polls: LongPolls
    receiver: Receiver
    wake: Wake
    heard: Signal[[str, int, int]]


def _wire_receives(settings: EngineSettings, base: Base, units: Units, receiving: Background, move_beside: Move) -> Receives:
    store, catalog, targets, counters = base.store, base.catalog, base.targets, base.counters
    ids, window, owner, scripts = units.ids, units.window, units.owner, base.store.leases
    returns = Returns(scripts, window, ids, units.receivable, counters, lambda work: receiving.start(work, "give back"))
    deliveries = Deliveries(scripts, window, ids, units.body_source, returns, lambda work: receiving.start(work, "return"))
    poller = Poller(scripts, targets, window, counters, owner.note_receive, owner.load_soon, move_beside)
    completing = Completing(catalog, deliveries, returns, units.plane_news.plane.empty)
    serving = Serving(catalog, poller, completing, units.activity, receiving, owner.refresh)
    heard: Signal[[str, int, int]] = Signal()
    wake = Wake(settings.redis_url, settings.topic_prefix, store.units.name, heard)
    browse = Browse(base.log, store, targets, window, ids, owner.refresh)
    filtered = FilteredReceives(store, window, browse, poller, completing, owner.refresh)
    long_polls = LongPolls(units.wait_lists, serving.serve, wake, returns, receiving)
    short_polls = ShortPolls(poller, completing, owner.refresh)
    return Receives(
        poller=poller,
        deliveries=deliveries,
        returns=returns,
        browse=browse,
        long_polls=long_polls,
        receiver=Receiver(catalog, ids, short_polls, long_polls, filtered, returns, receiving),
        wake=wake,
        heard=heard,
    )


def wire_messages(settings: EngineSettings, base: Base, units: Units) -> Messages:
    """Builds and connects them; nothing is started."""
    log, store, catalog, counters, targets = base.log, base.store, base.catalog, base.counters, base.targets
    ids, window, write_through, journaled = units.ids, units.window, units.write_through, units.owner.journaled.wait
    delays = Delays(store.upkeep, units.topic_retention)
    sender = Sender(log, catalog, ids, units.bodies, write_through, delays, units.activity)
    copies = Copies(log, store.units, ids)
    mover = Mover(log, store.leases, window, ids, write_through, counters, copies)
    dead_letters = DeadLetters(mover, copies, store.leases, catalog, targets, window, units.body_source)
    receiving = units.wait_lists.background
    move_beside = partial(_beside, receiving, dead_letters)
    receives = _wire_receives(settings, base, units, receiving, move_beside)
    handles = _wire_handles(base, units, delays, dead_letters)
    news, wakes = units.plane_news, (receives.heard, units.receivable)
    base.lives.moved.connect(receives.wake.reconnect)
    news.refused.connect(handles.refusals.note)
    woken, returns = units.wait_lists.woken, receives.returns
    join_plane(news, catalog, units.owner, units.activity, returns, receiving, move_beside, woken, wakes, write_through)
    join_delays(news, delays, receiving)
    base.rebuilt.connect(returns.tell_again)
    for part in (delays, sender, receives.long_polls):
        base.queue_gone.connect(part.forget_queue)
    return Messages(
        sender=sender,
        mover=mover,
        dead_letters=dead_letters,
        poller=receives.poller,
        deliveries=receives.deliveries,
        receiver=receives.receiver,
        wake=receives.wake,
        handles=handles,
        browse=receives.browse,
        parked=ParkedGroups(log, store.deferred, window, ids),
        parking=Parking(store.deferred, window, dead_letters, counters, handles.kills.check_policy, journaled),
        schedule=Schedule(log, store.deferred, window, delays, receives.browse.address, journaled),
    )
