"""All parts of a worker's engine: joins the rooms, from the ground up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from engine.alerts.parts import Watching, wire_watching
from engine.handles.parts import HandleParts, wire_handles
from engine.loading.owner import UnitOwner
from engine.loading.parts import wire_loading
from engine.move.mover import Mover
from engine.move.parts import MoveParts, ParkingParts, wire_moves, wire_parking, wire_tasks
from engine.move.tasks.redrive import Tasks
from engine.plane.news import PlaneNews
from engine.plane.parts import join_delays, join_drains, join_plane, wire_allowances, wire_plane
from engine.plane.tallies import Tallies
from engine.queues.callers.quotas import UserBounds
from engine.queues.parts import CallerParts, QueueParts, QueueWatch, watch_queues, wire_callers, wire_queues
from engine.receive.parts import ReceiveParts, wire_receives
from engine.receive.waits.wait_lists import WaitLists
from engine.rules.linger import Activity
from engine.send.parts import SendParts, wire_sends
from engine.settings import EngineSettings
from engine.transactions.parts import Transacted, wire_transactions
from engine.window.parts import WindowParts, wire_window
from engine.wiring.foundation import Base, wire_base
from runtime.background import Background
from runtime.failpoints import arm


@dataclass(frozen=True, kw_only=True)
class Units:
    """What works on units, below the verbs."""

    window: WindowParts
    activity: Activity
    wait_lists: WaitLists
    owner: UnitOwner
    plane_news: PlaneNews
    tallies: Tallies


def wire_units(base: Base) -> Units:
    """Builds and connects them; nothing is started."""

    def wakes_as() -> str | None:
        return None if window.bodies.is_only_worker else base.store.units.name

    news = wire_plane(ground=base, wakes_as=wakes_as, meters=base.meters)
    activity, wait_lists = Activity(), WaitLists(news.plane.waits)
    window = wire_window(ground=base, recovery=base.rebuilder, is_kept_elsewhere=news.plane.may_serve)
    owner = wire_loading(ground=base, window=window, journal=base.journal, rebuilder=base.rebuilder, waiting=wait_lists)
    join_drains(news, base.drains)
    base.catalog.rights_changed.connect(wait_lists.ask_again)
    wait_lists.watched.connect(news.plane.watch)
    owner.used.connect(activity.note_use)
    base.queue_gone.connect(lambda queue: activity.forget(queue.incarnation))
    base.rebuilt.connect(owner.forget_cursors)
    tallies = Tallies(base.catalog.by_incarnation, base.meters, wait_lists, news.waiters)
    return Units(window=window, activity=activity, wait_lists=wait_lists, owner=owner, plane_news=news, tallies=tallies)


@dataclass(frozen=True, kw_only=True)
class Messages:
    """What the verbs of messages are made of."""

    sends: SendParts
    moves: MoveParts
    receives: ReceiveParts
    handles: HandleParts
    parking: ParkingParts


def wire_messages(base: Base, units: Units) -> Messages:
    """Builds and connects them; nothing is started."""
    window, owner, news, wait_lists, activity = (
        units.window,
        units.owner,
        units.plane_news,
        units.wait_lists,
        units.activity,
    )
    journaled, receiving = owner.journaled.wait, wait_lists.background
    moves = wire_moves(ground=base, window=window)
    receives = wire_receives(
        ground=base,
        window=window,
        wait_lists=wait_lists,
        activity=activity,
        loads=owner,
        move=partial(moves.move_beside, receiving),
        empty_plane=news.plane.empty,
        journal=base.journal,
        journaled=owner.journaled.reach,
    )
    handles = wire_handles(
        ground=base, window=window, meters=base.meters, journaled=journaled, move_dead=moves.dead_letters.kill
    )
    sends = wire_sends(
        ground=base, window=window, activity=activity, address=receives.browse.address, journaled=journaled
    )
    sends.sender.stored.connect(base.meters.note_stored)
    parking = wire_parking(
        ground=base,
        window=window,
        dead_letters=moves.dead_letters,
        check_policy=handles.kills.check_policy,
        journaled=journaled,
    )
    join_plane(
        news=news, ground=base, window=window, owner=owner, activity=activity, wait_lists=wait_lists, receives=receives
    )
    join_delays(news, window.delays, receiving)
    news.refused.connect(handles.refusals.note)
    base.lives.moved.connect(receives.wake.reconnect)
    base.rebuilt.connect(receives.returns.tell_again)
    return Messages(sends=sends, moves=moves, receives=receives, handles=handles, parking=parking)


@dataclass(frozen=True, kw_only=True)
class Administration:
    """What the verbs of queues, tags, keys and tasks are made of."""

    callers: CallerParts
    queues: QueueParts
    watch: QueueWatch
    tasks: Tasks


def wire_administration(base: Base, units: Units, mover: Mover) -> Administration:
    """Builds and connects them; nothing is started."""
    window, owner, news, bounds = units.window, units.owner, units.plane_news, UserBounds(base.settings, base.catalog)
    queues = wire_queues(
        ground=base,
        window=window,
        bounds=bounds,
        show_plane=news.plane.show,
        recovery=base.rebuilder,
        owned=lambda: owner.owned,
    )
    allowances = wire_allowances(news, base.catalog)
    callers = wire_callers(
        ground=base, bounds=bounds, records=queues.records, key_uses=base.key_uses, unused=allowances.unused
    )
    news.low.connect(lambda number, queue: allowances.grant(number, queue, *callers.quotas.spare(queue)))
    return Administration(
        callers=callers,
        queues=queues,
        watch=watch_queues(ground=base, window=window, queues=queues, clock=base.clock, troubles=owner.troubles),
        tasks=wire_tasks(
            ground=base,
            window=window,
            mover=mover,
            journal=base.journal,
            journaled=owner.journaled.reach,
            backlog=queues.info.backlog,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Parts:
    """All parts of a worker's engine."""

    base: Base
    units: Units
    messages: Messages
    administration: Administration
    transactions: Transacted
    watching: Watching

    def counts(self) -> dict[str, float]:
        """Counters of this process."""
        base, units = self.base, self.units
        waiting, most = units.plane_news.plane.waiting()
        return {
            **(base.counters.values | self.messages.handles.refusals.counts),
            "redis_scripts_total": base.store.units.scripts.calls + units.plane_news.plane.calls(),
            "transactions_open": self.transactions.book.open_count,
            "long_polls_waiting": units.wait_lists.waiting + waiting,
            "long_polls_waiting_of_one": max(units.wait_lists.most_waiting, most),
            "quota_refusals_total": self.administration.callers.quotas.refused + units.wait_lists.refused,
            "units_owned": len(units.owner.owned),
            "queues": len(base.catalog.queues),
            "partitions": sum(queue.record.partitions for queue in base.catalog.queues.values()),
            "journal_lag_seconds": units.owner.journaled.lag_s(),
            "background_failures_total": Background.failures,
        }


def wire(settings: EngineSettings) -> Parts:
    """The engine of a worker, with its failpoints armed. Nothing is started."""
    arm(settings.failpoints)
    base = wire_base(settings)
    units = wire_units(base)
    messages = wire_messages(base, units)
    asked = wire_administration(base, units, messages.moves.mover)
    return Parts(
        base=base,
        units=units,
        messages=messages,
        administration=asked,
        transactions=wire_transactions(ground=base, window=units.window),
        watching=wire_watching(ground=base, meters=base.meters, tags_of=asked.queues.info.tags),
    )
