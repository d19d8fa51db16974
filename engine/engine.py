"""The engine of a worker: starts and stops its parts, and has its verbs as services."""

from __future__ import annotations

from engine.gate import Gate
from engine.services.alerts import AlertService
from engine.services.callers import CallerService
from engine.services.definitions.around import Services
from engine.services.definitions.definitions import DefinitionService
from engine.services.messages import MessageService
from engine.services.queues import QueueService
from engine.services.routes import Routes
from engine.services.tasks import TaskService
from engine.services.traces.messages import TracedMessages, Traces
from engine.services.transactions import TransactionService
from engine.settings import EngineSettings
from engine.wiring.worker import wire


class Engine:
    """One per worker process. Several workers may serve the same Kafka and Redis.

    All that a dialect may call are the methods of the services. `by` is who asks; each passes the
    gate before anything else. All raise EngineError, and any number of tasks may call at once.
    """

    def __init__(self, settings: EngineSettings, traces: Traces | None = None) -> None:
        """`traces`: hears of messages, None = nobody does."""
        self.settings = settings
        self.parts = parts = wire(settings)
        base, messages, administration, transacted = (
            parts.base,
            parts.messages,
            parts.administration,
            parts.transactions,
        )
        watching, catalog, access, callers = parts.watching, base.catalog, base.access, administration.callers
        self.log, self.store, self.catalog, self.audit = base.log, base.store, catalog, callers.audit
        self.plane_news = parts.units.plane_news
        self.plane = self.plane_news.plane
        self.times, self.requests = base.meters.times.shown, base.meters.requests.add
        gate = Gate(settings, catalog, access, callers.quotas, base.meters)
        verbs = (gate, messages.sends, messages.receives, messages.handles)
        self.messages = MessageService(*verbs) if traces is None else TracedMessages(traces, *verbs)
        if traces is not None:
            messages.moves.mover.moved.connect(traces.moved)
        self.queues = QueueService(gate, catalog, access, administration.queues, parts.units.tallies)
        self.callers = CallerService(gate, catalog, access, callers)
        self.tasks = TaskService(gate, catalog, access, administration.tasks, messages.parking)
        self.alerts = AlertService(gate, catalog, watching, base.alarms)
        self.transactions = TransactionService(gate, catalog, access, transacted)
        creating, watches = administration.queues.creating, watching.watches
        services = Services(self.queues, self.callers, self.alerts)
        self.definitions = DefinitionService(gate, catalog, access, creating, watches, services)
        self.routes = Routes(gate, catalog, self.plane, messages.receives.wake)

    async def start(self) -> None:
        """Connects, reads the control topic, starts services in order. What a repeat may heal is
        repeated within the setting `start_wait_s`. Raises LogUnavailable when Kafka does not answer
        or does not let the service in; the text says why.
        """
        parts, base = self.parts, self.parts.base
        patience = base.log.patience(self.settings.start_wait_s)
        await base.log.start()
        await patience.repeat(base.log.reach)
        await base.connection.start()
        await base.clock.start()
        await parts.administration.watch.clock_watch.start()
        await patience.repeat(base.catalog.start)
        await base.lives.start()
        await parts.messages.receives.receiver.start()
        await parts.units.owner.start()
        await parts.administration.tasks.start()
        await base.snapshots.start()
        await patience.repeat(parts.transactions.half_log.start)
        await parts.transactions.keeper.start()
        await parts.administration.watch.alarm_monitor.start()
        await parts.watching.start()
        await parts.administration.queues.collector.start()
        await patience.repeat(self.audit.start)

    async def stop(self) -> None:
        """Ends waits, finishes sends, drains outboxes, closes: backwards."""
        parts, base = self.parts, self.parts.base
        await self.plane.stop()
        await self.audit.stop()
        await parts.administration.queues.collector.stop()
        await parts.watching.stop()
        await parts.administration.watch.alarm_monitor.stop()
        await parts.administration.watch.topic_guard.stop()
        await parts.transactions.keeper.stop()
        await parts.transactions.webhooks.stop()
        await parts.transactions.half_log.stop()
        await base.snapshots.stop()
        await parts.administration.tasks.stop()
        await parts.messages.receives.receiver.stop()
        await parts.messages.moves.dead_letters.stop()
        await parts.messages.sends.sender.stop()
        await parts.units.window.topic_retention.stop()
        await parts.transactions.finisher.stop()
        await parts.units.owner.stop()
        await base.rebuilder.stop()
        await parts.watching.reporter.stop()
        await base.lives.stop()
        await base.catalog.stop()
        await parts.administration.watch.clock_watch.stop()
        await base.clock.stop()
        await base.connection.stop()
        await base.log.stop()

    async def ready(self) -> dict[str, str]:
        """Part -> "ok", or what is wrong."""
        alive = await self.log.alive()
        redis = (self.parts.base.lives.trouble or "ok") if self.parts.base.connection.connected else "no connection"
        return {"kafka": "ok" if alive else "does not answer", "redis": redis}

    def counts(self) -> dict[str, float]:
        """Counters of this process."""
        return self.parts.counts()
