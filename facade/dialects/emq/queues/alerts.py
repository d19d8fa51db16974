"""Methods on alert policies, metrics and daily statistics.

A policy is known by its three values.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from engine.meters.shapes import MetricQuery
from facade.dialects.emq.queues.call import Call, EmqError
from facade.dialects.emq.queues.names import full_name, record_of
from facade.dialects.emq.wire.enums import AlertType, Measurement
from facade.dialects.emq.wire.errors import ErrorCode
from facade.dialects.emq.wire.structs import access
from facade.dialects.emq.wire.structs import statistics as wire
from schemas.vocabulary import DEFAULT_TAG

if TYPE_CHECKING:
    from engine.engine import Engine
    from schemas.records import QueueRecord
    from schemas.records.watching import AlertPolicy

HOUR_MS: Final = 3_600_000
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": HOUR_MS, "d": 24 * HOUR_MS}


def _words(policy: wire.AlertPolicy) -> tuple[str, str, float]:
    """Subject, measurement and threshold. Raises EmqError."""
    try:
        subject, measurement = AlertType(policy.type).name.lower(), Measurement(policy.measurement).name.lower()
    except ValueError:
        most = f"type must be 0 to {max(AlertType).value}, measurement 0 to {max(Measurement).value}"
        raise EmqError(ErrorCode.INVALID_ATTRIBUTE, f"{most}, given {policy.type} and {policy.measurement}") from None
    if policy.threshold is None:
        raise EmqError(ErrorCode.INVALID_ATTRIBUTE, "the policy has no threshold")
    return subject, measurement, policy.threshold


def _reply(policy: AlertPolicy) -> wire.AlertPolicy:
    return wire.AlertPolicy(
        type=AlertType[policy.subject.upper()],
        measurement=Measurement[policy.measurement.upper()],
        threshold=policy.threshold,
    )


async def _delete(engine: Engine, call: Call, record: QueueRecord, tag: str | None, policy: wire.AlertPolicy) -> None:
    """Raises EmqError when there is no such policy."""
    wanted = _words(policy)
    for found, _ in await engine.alerts.list_alerts(call.by, record.name, tag):
        if (found.subject, found.measurement, found.threshold) == wanted and (tag is not None or not found.tag):
            await engine.alerts.delete_alert(call.by, record.name, found.id)
            return
    raise EmqError(
        ErrorCode.INVALID_ATTRIBUTE, f"there is no alert policy on {wanted[0]} {wanted[1]} with threshold {wanted[2]:g}"
    )


async def add_queue_alert_policy(engine: Engine, call: Call) -> None:
    """Watch a queue as a whole; an equal policy that is there is fine."""
    given: wire.AddQueueAlertPolicyRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    await engine.alerts.add_alert(call.by, record.name, None, *_words(given.alert_policy))


async def delete_queue_alert_policy(engine: Engine, call: Call) -> None:
    """Take a policy of a queue away."""
    given: wire.DeleteQueueAlertPolicyRequest = call.body
    await _delete(engine, call, await record_of(engine, given.queue_name, call.by), None, given.alert_policy)


async def list_queue_alert_policies(engine: Engine, call: Call) -> wire.ListQueueAlertPoliciesResponse:
    """The policies of a queue as a whole."""
    record = await record_of(engine, call.body.queue_name, call.by)
    policies = [_reply(policy) for policy, _ in await engine.alerts.list_alerts(call.by, record.name) if not policy.tag]
    return wire.ListQueueAlertPoliciesResponse(queue_name=full_name(engine, record, call.by), alert_policies=policies)


async def add_tag_alert_policy(engine: Engine, call: Call) -> None:
    """Watch what a tag receives; an equal policy that is there is fine."""
    given: wire.AddTagAlertPolicyRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    await engine.alerts.add_alert(call.by, record.name, given.tag_name or DEFAULT_TAG, *_words(given.alert_policy))


async def delete_tag_alert_policy(engine: Engine, call: Call) -> None:
    """Take a policy of a tag away."""
    given: wire.DeleteTagAlertPolicyRequest = call.body
    await _delete(
        engine,
        call,
        await record_of(engine, given.queue_name, call.by),
        given.tag_name or DEFAULT_TAG,
        given.alert_policy,
    )


async def list_tag_alert_policies(engine: Engine, call: Call) -> wire.ListTagAlertPoliciesResponse:
    """The policies of a tag."""
    given: wire.ListTagAlertPoliciesRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    policies = [
        _reply(policy)
        for policy, _ in await engine.alerts.list_alerts(call.by, record.name, given.tag_name or DEFAULT_TAG)
    ]
    return wire.ListTagAlertPoliciesResponse(
        queue_name=full_name(engine, record, call.by), tag_name=given.tag_name, alert_policies=policies
    )


async def set_queue_daily_statistics_state(engine: Engine, call: Call) -> None:
    """Have each day's numbers mailed, or no longer."""
    given: wire.SetQueueDailyStatisticsStateRequest = call.body
    await engine.alerts.set_daily_statistics(
        call.by, (await record_of(engine, given.queue_name, call.by)).name, given.enabled
    )


async def get_queue_daily_statistics_state(engine: Engine, call: Call) -> wire.GetQueueDailyStatisticsStateResponse:
    """Whether each day's numbers are mailed."""
    record = await record_of(engine, call.body.queue_name, call.by)
    enabled = await engine.alerts.get_daily_statistics(call.by, record.name)
    return wire.GetQueueDailyStatisticsStateResponse(queue_name=full_name(engine, record, call.by), enabled=enabled)


async def query_metric(engine: Engine, call: Call) -> access.TimeSeriesData:
    """A metric over time; of the last hour, minute by minute, unless the request says otherwise."""
    given: access.QueryMetricRequest = call.body
    if given.tags:
        raise EmqError(
            ErrorCode.INVALID_ATTRIBUTE, "`tags` select nothing here: the name of the metric does, and tagName"
        )
    record = await record_of(engine, given.queue_name or "", call.by)
    unit = (given.downsample_time_unit or "ms").lower()
    if unit not in _UNITS_MS:
        raise EmqError(
            ErrorCode.INVALID_ATTRIBUTE,
            f"downsampleTimeUnit must be one of {', '.join(_UNITS_MS)}, given {unit[:40]!r}",
        )
    interval_ms = 60_000 if given.downsample_interval is None else given.downsample_interval * _UNITS_MS[unit]
    to_ms = int(time.time() * 1000) if given.end_time is None else given.end_time
    query = MetricQuery(
        metric=given.metrics or "",
        from_ms=to_ms - HOUR_MS if given.start_time is None else given.start_time,
        to_ms=to_ms,
        interval_ms=interval_ms,
        tag=given.tag_name or None,
        aggregator=given.aggregator or None,
        downsample=given.downsample_aggregator or None,
        rate=bool(given.cal_rate),
    )
    found = await engine.alerts.query_metric(call.by, record.name, query)
    return access.TimeSeriesData(
        metric=found.metric, tags={"queue": full_name(engine, record, call.by)}, data=found.values
    )
