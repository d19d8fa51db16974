"""Operations on what is counted and watched: alert policies, metrics, statistics of days.

Each reads its parameters, asks the engine, and renders.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, structs

from engine.meters.shapes import MetricQuery
from facade.dialects.native.reference.examples_watching import WATCHING
from facade.dialects.native.wire.replies_watching import (
    AlertEventReply,
    AlertEventsReply,
    AlertReply,
    AlertsReply,
    AuditRecordReply,
    AuditReply,
    DailyStatisticsReply,
    HistoryReply,
    MetricReply,
    PointReply,
    StatisticsReply,
    StatisticsRowReply,
    TagHistoryReply,
)
from facade.dialects.native.wire.shapes_watching import (
    AlertBody,
    AlertsQuery,
    AuditParameters,
    DailyStatisticsBody,
    HistoryQuery,
    MetricParameters,
    StatisticsQuery,
)
from facade.dialects.native.wire.units import QUEUE_RULE
from facade.http.operation import Answer, Call, Operation, PathRule
from schemas.records.watching import AlertPolicy, AuditRecord, PolicyState

if TYPE_CHECKING:
    from engine.engine import Engine

_ALERTS: Final = "/v1/queues/{queue}/alerts"
_DAILY: Final = "/v1/queues/{queue}/daily-statistics"
_QUEUE: Final = {"queue": QUEUE_RULE}
_ALERT: Final = {
    "queue": QUEUE_RULE,
    "alert": PathRule(re.compile(r"a[0-9a-f]{12}"), "an alert policy's id", "a1f2e3d4c5b6"),
}
_HOUR_MS: Final = 3_600_000


def _alert_reply(policy: AlertPolicy, state: PolicyState) -> AlertReply:
    return AlertReply(
        id=policy.id,
        tag=policy.tag or None,
        subject=policy.subject,
        measurement=policy.measurement,
        threshold=policy.threshold,
        added_at_ms=policy.added_at_ms,
        firing=state.firing,
        since_ms=state.since_ms or None,
    )


async def add_alert(engine: Engine, call: Call) -> Answer:
    """Watch a queue, or a tag."""
    body: AlertBody = call.body
    policy = await engine.alerts.add_alert(
        call.by, call.path["queue"], body.tag, body.subject, body.measurement, body.threshold
    )
    return Answer(_alert_reply(policy, PolicyState(policy.id, False, 0, 0)), 201)


async def list_alerts(engine: Engine, call: Call) -> Answer:
    """The alert policies of a queue, and whether they fire."""
    asked: AlertsQuery = call.query
    found = await engine.alerts.list_alerts(call.by, call.path["queue"], None if asked.tag is UNSET else asked.tag)
    return Answer(AlertsReply(alerts=[_alert_reply(policy, state) for policy, state in found]))


async def delete_alert(engine: Engine, call: Call) -> Answer:
    """Take an alert policy away."""
    await engine.alerts.delete_alert(call.by, call.path["queue"], call.path["alert"])
    return Answer(status=204)


async def list_alert_events(engine: Engine, call: Call) -> Answer:
    """What has fired and cleared."""
    events = [
        AlertEventReply(
            id=event.id,
            change=event.change,
            at_ms=event.at_ms,
            tag=event.tag or None,
            subject=event.subject,
            measurement=event.measurement,
            threshold=event.threshold,
            value=event.value,
            told=event.told,
            note=event.note,
        )
        for event in await engine.alerts.list_alert_events(call.by, call.path["queue"])
    ]
    return Answer(AlertEventsReply(events=events))


async def get_daily_statistics(engine: Engine, call: Call) -> Answer:
    """Whether each day's numbers are mailed."""
    return Answer(DailyStatisticsReply(enabled=await engine.alerts.get_daily_statistics(call.by, call.path["queue"])))


async def set_daily_statistics(engine: Engine, call: Call) -> Answer:
    """Have each day's numbers mailed to the owner, or no longer."""
    body: DailyStatisticsBody = call.body
    await engine.alerts.set_daily_statistics(call.by, call.path["queue"], body.enabled)
    return Answer(DailyStatisticsReply(enabled=body.enabled))


async def statistics(engine: Engine, call: Call) -> Answer:
    """The requests of a day."""
    found = await engine.alerts.statistics(call.by, call.path["queue"], call.query.day)
    rows = [
        StatisticsRowReply(
            tag=row.tag or None,
            subject=row.subject,
            requests=row.requests,
            messages=row.messages,
            latency_ms=row.mean_us / 1000,
            latency_p999_ms=row.p999_us / 1000,
            latency_max_ms=row.max_us / 1000,
        )
        for row in found.rows
    ]
    return Answer(StatisticsReply(queue=found.queue, day=found.day, complete=found.complete, rows=rows))


async def history(engine: Engine, call: Call) -> Answer:
    """The numbers of a queue over time."""
    found = await engine.queues.history(call.by, call.path["queue"], call.query.span)
    return Answer(
        HistoryReply(
            queue=found.queue,
            step_ms=found.step_ms,
            as_of_ms=found.as_of_ms or None,
            at_ms=found.at_ms,
            tags=[TagHistoryReply(name=name, **done) for name, done in found.done.items()],
            **found.numbers,
        )
    )


async def query_metric(engine: Engine, call: Call) -> Answer:
    """A metric over time."""
    asked: MetricParameters = call.query
    to_ms = int(time.time() * 1000) if asked.to is UNSET else asked.to
    query = MetricQuery(
        metric=asked.metric,
        from_ms=to_ms - _HOUR_MS if asked.from_ is UNSET else asked.from_,
        to_ms=to_ms,
        interval_ms=asked.interval_seconds * 1000,
        tag=None if asked.tag is UNSET else asked.tag,
        aggregator=None if asked.aggregator is UNSET else asked.aggregator,
        downsample=None if asked.downsample is UNSET else asked.downsample,
        rate=asked.rate,
    )
    found = await engine.alerts.query_metric(call.by, call.path["queue"], query)
    points = [PointReply(at_ms=at, value=value) for at, value in found.values.items()]
    return Answer(MetricReply(metric=found.metric, points=points))


async def list_audit(engine: Engine, call: Call) -> Answer:
    """Who has asked for what, and what came of it."""
    asked: AuditParameters = call.query
    from_ms, to_ms = (None if value is UNSET else value for value in (asked.from_, asked.to))
    cursor = None if asked.cursor is UNSET else asked.cursor
    page = await engine.callers.list_audit(
        call.by,
        asked.limit,
        cursor,
        from_ms=from_ms,
        to_ms=to_ms,
        principal=asked.principal,
        queue=asked.queue,
        verb=asked.verb,
    )
    records = [_audit_reply(record) for record in page.records]
    return Answer(AuditReply(records=records, next=page.next, scanned=page.scanned, cut=page.cut or None))


def _audit_reply(record: AuditRecord) -> AuditRecordReply:
    shown = structs.asdict(record)
    return AuditRecordReply(id=f"{shown.pop('worker')}-{shown.pop('number')}", **shown)


OPERATIONS = (
    Operation(
        name="list_audit",
        method="GET",
        path="/v1/audit",
        group="Audit",
        summary="Who has asked for what, and what came of it, newest first",
        run=list_audit,
        replies={200: AuditReply},
        example=WATCHING["list_audit"],
        query=AuditParameters,
    ),
    Operation(
        name="add_alert",
        method="POST",
        path=_ALERTS,
        group="Alerts",
        summary="Watch a queue or a tag: when to tell its owner; an equal policy that is there is fine",
        run=add_alert,
        replies={201: AlertReply},
        example=WATCHING["add_alert"],
        rules=_QUEUE,
        body=AlertBody,
        codes=("queue_not_found", "tag_not_found", "queue_in_use"),
    ),
    Operation(
        name="list_alerts",
        method="GET",
        path=_ALERTS,
        group="Alerts",
        summary="The alert policies of a queue, and whether they fire",
        run=list_alerts,
        replies={200: AlertsReply},
        example=WATCHING["list_alerts"],
        rules=_QUEUE,
        query=AlertsQuery,
        codes=("queue_not_found", "tag_not_found"),
    ),
    Operation(
        name="list_alert_events",
        method="GET",
        path=_ALERTS + "/history",
        group="Alerts",
        summary="What has fired and cleared, newest first, and whether the owner was told",
        run=list_alert_events,
        replies={200: AlertEventsReply},
        example=WATCHING["list_alert_events"],
        rules=_QUEUE,
        codes=("queue_not_found",),
    ),
    Operation(
        name="delete_alert",
        method="DELETE",
        path=_ALERTS + "/{alert}",
        group="Alerts",
        summary="Take an alert policy away",
        run=delete_alert,
        replies={204: None},
        example=WATCHING["delete_alert"],
        rules=_ALERT,
        codes=("queue_not_found", "alert_not_found", "queue_in_use"),
    ),
    Operation(
        name="get_daily_statistics",
        method="GET",
        path=_DAILY,
        group="Statistics",
        summary="Whether the owner of a queue gets each day's numbers by mail",
        run=get_daily_statistics,
        replies={200: DailyStatisticsReply},
        example=WATCHING["get_daily_statistics"],
        rules=_QUEUE,
        codes=("queue_not_found",),
    ),
    Operation(
        name="set_daily_statistics",
        method="PUT",
        path=_DAILY,
        group="Statistics",
        summary="Mail each day's numbers to the owner of a queue, or no longer",
        run=set_daily_statistics,
        replies={200: DailyStatisticsReply},
        example=WATCHING["set_daily_statistics"],
        rules=_QUEUE,
        body=DailyStatisticsBody,
        codes=("queue_not_found", "queue_in_use"),
    ),
    Operation(
        name="statistics",
        method="GET",
        path="/v1/queues/{queue}/statistics",
        group="Statistics",
        summary="The requests to a queue on a UTC day, by tag and kind",
        run=statistics,
        replies={200: StatisticsReply},
        example=WATCHING["statistics"],
        rules=_QUEUE,
        query=StatisticsQuery,
        codes=("queue_not_found",),
    ),
    Operation(
        name="history",
        method="GET",
        path="/v1/queues/{queue}/history",
        group="Statistics",
        summary="What was in a queue and what was done, over the last hour or day",
        run=history,
        replies={200: HistoryReply},
        example=WATCHING["history"],
        rules=_QUEUE,
        query=HistoryQuery,
        codes=("queue_not_found",),
    ),
    Operation(
        name="query_metric",
        method="GET",
        path="/v1/queues/{queue}/metrics",
        group="Statistics",
        summary="A metric of a queue over time",
        run=query_metric,
        replies={200: MetricReply},
        example=WATCHING["query_metric"],
        rules=_QUEUE,
        query=MetricParameters,
        codes=("queue_not_found", "tag_not_found"),
    ),
)
