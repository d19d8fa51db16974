"""The verbs of alerts, metrics and daily statistics.

Each method passes the authoriser before anything else.
"""

from __future__ import annotations

from engine.alerts.parts import Watching
from engine.catalog.catalog import Catalog
from engine.gate import Gate, bounded
from engine.meters.shapes import DayStatistics, MetricQuery, Series
from engine.rules.queue import Queue
from engine.shapes import Alarm, Principal
from runtime.counters import Alarms
from runtime.deadline import CHANGE_S, MESSAGES_S
from schemas.records.watching import AlertEvent, AlertPolicy, PolicyState
from schemas.vocabulary import Verb


class AlertService:
    """Watches queues for their owners, and shows what was counted."""

    def __init__(self, gate: Gate, catalog: Catalog, watching: Watching, alarms: Alarms) -> None:
        self._gate = gate
        self._catalog = catalog
        self._watches = watching.watches
        self._statistics = watching.statistics
        self._metrics = watching.metrics
        self._alarms = alarms

    @bounded(CHANGE_S)
    async def add_alert(
        self, by: Principal, queue: str, tag: str | None, subject: str, measurement: str, threshold: float
    ) -> AlertPolicy:
        """Adds an alert policy for a tag, None = the queue as a whole; an equal one that is there
        is fine. Raises InvalidValue, TagNotFound.
        """
        found = await self._gate.queue(by, Verb.ADD_ALERT, queue, tag)
        return await self._watches.add(found, None if tag is None else found.tag(tag), subject, measurement, threshold)

    @bounded(CHANGE_S)
    async def delete_alert(self, by: Principal, queue: str, id: str) -> None:
        """Takes an alert policy away. Raises AlertNotFound."""
        await self._watches.delete(await self._gate.queue(by, Verb.DELETE_ALERT, queue), id)

    @bounded(MESSAGES_S)
    async def list_alerts(
        self, by: Principal, queue: str, tag: str | None = None
    ) -> list[tuple[AlertPolicy, PolicyState]]:
        """The alert policies in the order in which they were added, with what is known of each;
        None = those of the queue and of all tags. Raises TagNotFound.
        """
        record = self._watches.of(found := await self._watched(by, Verb.LIST_ALERTS, queue, tag))
        name = None if tag is None else found.tag(tag).name
        states = {state.id: state for state in record.states}
        return [
            (policy, states.get(policy.id) or PolicyState(policy.id, False, 0, 0))
            for policy in record.policies
            if name in (None, policy.tag)
        ]

    @bounded(MESSAGES_S)
    async def list_alert_events(self, by: Principal, queue: str) -> list[AlertEvent]:
        """What has fired and cleared, newest first; at most 50."""
        record = self._watches.of(await self._watched(by, Verb.LIST_ALERTS, queue))
        return [event for event in reversed(record.events) if not event.day]

    @bounded(CHANGE_S)
    async def set_daily_statistics(self, by: Principal, queue: str, enabled: bool) -> None:
        """Has each day's statistics mailed to the owner, or no longer."""
        await self._watches.set_daily(await self._gate.queue(by, Verb.SET_DAILY_STATISTICS, queue), enabled)

    @bounded(MESSAGES_S)
    async def get_daily_statistics(self, by: Principal, queue: str) -> bool:
        """Whether each day's statistics are mailed to the owner."""
        return self._watches.of(await self._watched(by, Verb.GET_STATISTICS, queue)).daily_statistics

    async def _watched(self, by: Principal, verb: Verb, name: str, tag: str | None = None) -> Queue:
        """As `Gate.queue`, with all that is watched of it by changes that were answered before, at
        whichever worker.
        """
        found = await self._gate.queue(by, verb, name, tag)
        await self._gate.sync()
        return self._catalog.queues.get(found.name, found)

    @bounded(MESSAGES_S)
    async def statistics(self, by: Principal, queue: str, day: str) -> DayStatistics:
        """The requests of a UTC day, YYYY-MM-DD. Raises InvalidValue."""
        return await self._statistics.day(await self._gate.queue(by, Verb.GET_STATISTICS, queue), day)

    @bounded(MESSAGES_S)
    async def query_metric(self, by: Principal, queue: str, query: MetricQuery) -> Series:
        """A metric over time. Raises InvalidValue, TagNotFound."""
        return await self._metrics.series(await self._gate.queue(by, Verb.QUERY_METRIC, queue, query.tag), query)

    def alarms(self) -> list[Alarm]:
        """What needs somebody's attention, as this worker knows it; see engine/queues/alarms.py for
        the kinds.
        """
        found = {**self._alarms.values, **self._firing()}
        return [Alarm(kind, queue, number) for (kind, queue), number in sorted(found.items())]

    def _firing(self) -> dict[tuple[str, str], float]:
        """How many policies fire, as alarms: (kind, queue) -> number."""
        found: dict[tuple[str, str], float] = {}
        for name in self._catalog.watches:
            queue: Queue | None = self._catalog.queues.get(name)
            if queue is not None and (firing := sum(state.firing for state in self._watches.of(queue).states)):
                found["alert_firing", name] = firing
        return found
