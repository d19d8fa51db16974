"""Bodies and parameters of requests on alerts, metrics and statistics."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from engine.meters.shapes import AGGREGATORS, METRICS
from engine.rules.limits import HISTORY_SPANS
from facade.dialects.native.wire.shapes import Body
from facade.dialects.native.wire.units import Millis, Name, Whole, one_of, within
from schemas.vocabulary import Measurement, Subject, Verb

Aggregator = Annotated[str, Meta(max_length=16)]


class AlertBody(Body, frozen=True, kw_only=True):
    """An alert policy: it fires when `measurement` of `subject` is at `threshold` or above."""

    subject: Annotated[str, Meta(max_length=64), one_of(Subject, "What is watched. Sends are watched without a tag.")]
    measurement: Annotated[
        str,
        Meta(max_length=32),
        one_of(Measurement, "What of it, over a minute; queue_message_number has a count only."),
    ]
    threshold: Annotated[float, within("threshold", "Milliseconds, or a count.")]
    tag: Annotated[Name, Meta(description="A tag of the queue. Default: the queue as a whole.")] | None = None


class AlertsQuery(Body, frozen=True, kw_only=True):
    """Which policies."""

    tag: (
        Annotated[Name, Meta(description="Only those of this tag. Default: all of the queue and its tags.")] | UnsetType
    ) = UNSET


class DailyStatisticsBody(Body, frozen=True, kw_only=True):
    """Whether each day's numbers are mailed."""

    enabled: Annotated[bool, Meta(description="Whether the owner gets the numbers of each day by mail.")]


class StatisticsQuery(Body, frozen=True, kw_only=True):
    """Which day."""

    day: Annotated[str, Meta(max_length=10, description="A day in UTC, YYYY-MM-DD, of the last 35.")]


class HistoryQuery(Body, frozen=True, kw_only=True):
    """How far back."""

    span: Annotated[
        str, Meta(max_length=16), one_of(HISTORY_SPANS, "The last hour by 10 s, or the last day by 5 min.")
    ] = "hour"


class AuditParameters(Body, frozen=True, kw_only=True):
    """Which records of the audit, newest first."""

    from_: Annotated[Millis, within("from", "Noted at or after, epoch ms.")] | UnsetType = field(
        name="from", default=UNSET
    )
    to: Annotated[Millis, within("to", "Noted before, epoch ms.")] | UnsetType = UNSET
    principal: Annotated[str, Meta(max_length=200, description="Only what this principal has asked.")] = ""
    queue: Annotated[
        str, Meta(max_length=200, description="Only what was asked of this queue, also one that is gone.")
    ] = ""
    verb: Annotated[str, Meta(max_length=64), one_of(Verb, "Only this.")] = ""
    limit: Annotated[Whole, within("limit", "Records of a page.")] = 100
    cursor: (
        Annotated[str, Meta(min_length=1, max_length=64, description="The `next` of the page before.")] | UnsetType
    ) = UNSET


class MetricParameters(Body, frozen=True, kw_only=True):
    """Which metric, when, and how its minutes and tags become one value."""

    metric: Annotated[str, Meta(max_length=64), one_of(METRICS, "subject.measure; times are in ms.")]
    from_: (
        Annotated[Millis, within("from", "Minutes that began at or after, epoch ms. Default: an hour before `to`.")]
        | UnsetType
    ) = field(name="from", default=UNSET)
    to: Annotated[Millis, within("to", "Minutes that began before, epoch ms. Default: now.")] | UnsetType = UNSET
    interval_seconds: Annotated[Whole, within("interval_ms", "A value for each interval, which is whole minutes.")] = 60
    tag: (
        Annotated[Name, Meta(description="Only requests of this tag. Default: of all, and those of none.")] | UnsetType
    ) = UNSET
    aggregator: (
        Annotated[Aggregator, one_of(AGGREGATORS, "Make the value of those of the tags. Default: of all requests.")]
        | UnsetType
    ) = UNSET
    downsample: (
        Annotated[Aggregator, one_of(AGGREGATORS, "Make it of those of the minutes. Default: of all requests.")]
        | UnsetType
    ) = UNSET
    rate: Annotated[bool, Meta(description="A second: counts are divided by the interval.")] = False
