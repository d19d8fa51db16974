"""All parts of a worker's engine."""

from __future__ import annotations

from dataclasses import dataclass

from engine.alerts.parts import Watching, wire_watching
from engine.settings import EngineSettings
from engine.transactions.parts import Transacted, wire_transactions
from engine.wiring.administration import Administration, wire_administration
from engine.wiring.foundation import Base, wire_base
from engine.wiring.messages import Messages, wire_messages
from engine.wiring.units import Units, wire_units
from runtime.background import Background
from runtime.failpoints import arm


@dataclass(frozen=True)
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
            "quota_refusals_total": self.administration.quotas.refused + units.wait_lists.refused,
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
    units = wire_units(settings, base)
    messages = wire_messages(settings, base, units)
    asked = wire_administration(settings, base, units, messages.mover)
    transacted = wire_transactions(
        settings, units.ids.secret, base.log, base.connection, base.catalog, base.access, units.write_through, base.counters
    )
    watching = wire_watching(
        settings,
        worker=base.worker,
        log=base.log,
        connection=base.connection,
        catalog=base.catalog,
        meters=base.meters,
        counters=base.counters,
        tags_of=asked.queues.info.tags,
    )
    base.queue_gone.connect(watching.reporter.forget_queue)
    return Parts(base, units, messages, asked, transacted, watching)
