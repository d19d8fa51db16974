"""Bodies of replies on alerts, metrics and statistics."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from engine.meters.shapes import METRICS
from facade.dialects.native.wire.replies import Count, Cut, Reply
from facade.dialects.native.wire.units import Moment, one_of
from schemas.vocabulary import OPERATIONS, AlertChange, Measurement, Outcome, Subject, Telling


def _about(text: str) -> Meta:
    return Meta(description=text)


REQUESTS = [subject for subject in Subject if OPERATIONS[subject]]
OfTag = Annotated[str | None, _about("The tag; null = the queue as a whole.")]
OfSubject = Annotated[str, one_of(Subject, "What is watched.")]
Measured = Annotated[str, one_of(Measurement, "What of it, over a minute.")]
Threshold = Annotated[float, _about("Milliseconds, or a count.")]
Time = Annotated[float, Meta(ge=0)]


class AlertReply(Reply, frozen=True, kw_only=True):
    """An alert policy, and whether it fires."""

    id: Annotated[str, _about("The policy's id, which follows from what it says.")]
    tag: OfTag
    subject: OfSubject
    measurement: Measured
    threshold: Threshold
    added_at_ms: Annotated[Moment, _about("When it was added (epoch ms).")]
    firing: Annotated[bool, _about("Whether it fires.")]
    since_ms: Annotated[Moment | None, _about("Since when that is so (epoch ms); null = it never fired.")]


class AlertsReply(Reply, frozen=True, kw_only=True):
    """Alert policies."""

    alerts: Annotated[list[AlertReply], _about("The policies, in the order in which they were added.")]


class AlertEventReply(Reply, frozen=True, kw_only=True):
    """Something that an alert policy has done."""

    id: Annotated[str, _about("The event's id; messages about it carry it.")]
    change: Annotated[str, one_of(AlertChange, "What happened.")]
    at_ms: Annotated[Moment, _about("The end of the minute that was judged (epoch ms).")]
    tag: OfTag
    subject: OfSubject
    measurement: Measured
    threshold: Threshold
    value: Annotated[float, _about("What was measured; 0 if nothing was.")]
    told: Annotated[str, one_of(Telling, "Whether the owner was told.")]
    note: Annotated[str, _about("Who has taken the message, or why nobody has.")]


class AlertEventsReply(Reply, frozen=True, kw_only=True):
    """What has happened, newest first; at most 50."""

    events: Annotated[list[AlertEventReply], _about("The events, newest first.")]


class DailyStatisticsReply(Reply, frozen=True, kw_only=True):
    """Whether each day's numbers are mailed."""

    enabled: Annotated[bool, _about("Whether the owner gets the numbers of each day by mail.")]


class StatisticsRowReply(Reply, frozen=True, kw_only=True):
    """Requests of one kind."""

    tag: Annotated[str | None, _about("The tag; null = none: sends, and handles that held nothing.")]
    subject: Annotated[str, one_of(REQUESTS, "What was asked.")]
    requests: Annotated[Count, _about("Requests that were done.")]
    messages: Annotated[Count, _about("Messages in them.")]
    latency_ms: Annotated[Time, _about("Their mean time.")]
    latency_p999_ms: Annotated[Time, _about("99.9 % of them took no longer.")]
    latency_max_ms: Annotated[Time, _about("The longest.")]


class StatisticsReply(Reply, frozen=True, kw_only=True):
    """The requests of a day."""

    queue: Annotated[str, _about("The queue.")]
    day: Annotated[str, _about("The day in UTC, YYYY-MM-DD.")]
    complete: Annotated[bool, _about("Whether the day is over and all of it is counted.")]
    rows: Annotated[list[StatisticsRowReply], _about("A row for each tag and kind of request that there was.")]


class PointReply(Reply, frozen=True, kw_only=True):
    """A value."""

    at_ms: Annotated[Moment, _about("When its interval began (epoch ms).")]
    value: Annotated[float, _about("The value.")]


class MetricReply(Reply, frozen=True, kw_only=True):
    """A metric over time; an interval without requests has no value."""

    metric: Annotated[str, one_of(METRICS, "The metric.")]
    points: Annotated[list[PointReply], _about("The values, oldest first.")]


class AuditRecordReply(Reply, frozen=True, kw_only=True):
    """A request, and what came of it."""

    id: Annotated[str, _about("The record's id.")]
    at_ms: Annotated[Moment, _about("When it was answered (epoch ms).")]
    principal: Annotated[str, _about("Who asked; empty = nobody who is known.")]
    key_id: Annotated[str, _about("By which key, or which was claimed.")]
    peer: Annotated[str, _about("From which address.")]
    operation: Annotated[str, _about("What its dialect calls it.")]
    verb: Annotated[str, _about("What was asked of the engine; empty = nothing.")]
    queue: Annotated[str, _about("Of which queue.")]
    tag: Annotated[str, _about("Of which of its tags.")]
    subject: Annotated[str, _about("Of what else: a key, a user, a copy, a producer group; as the engine calls it.")]
    outcome: Annotated[str, one_of(Outcome, "What came of it: refused = for who asked, failed = for another reason.")]
    status: Annotated[int, _about("How it was answered: a status of HTTP, or a code of RocketMQ.")]
    error: Annotated[str, _about("Why it failed; empty = it did not.")]
    request_id: Annotated[str, _about("The id of the request.")]
    suppressed: Annotated[Count, _about("Failures before it, at the same worker, that were not written down.")]


class AuditReply(Reply, frozen=True, kw_only=True):
    """A page of the audit."""

    records: Annotated[list[AuditRecordReply], _about("The records, newest first.")]
    next: Annotated[str | None, _about("The `cursor` of the next page; null at the end.")]
    scanned: Annotated[Count, _about("Records that were read for it.")]
    cut: Annotated[Cut | None, _about("The bound that has ended the page before it was full; null = none.")]


Numbers = Annotated[list[int | None], _about("A number for each of `at_ms`; null = nobody has noted it then.")]


class TagHistoryReply(Reply, frozen=True, kw_only=True):
    """What was done under a tag since its queue was made, as it was at each time."""

    name: Annotated[str, _about("The tag's name.")]
    received: Numbers
    redelivered: Numbers
    acked: Numbers
    released: Numbers
    dead: Numbers


class HistoryReply(Reply, frozen=True, kw_only=True):
    """The numbers of a queue over time, as `counts` of a list of queues has them now."""

    queue: Annotated[str, _about("The queue.")]
    step_ms: Annotated[Count, _about("How far apart the times are.")]
    as_of_ms: Annotated[int | None, _about("The last of the times at which numbers were noted; null = there is none.")]
    at_ms: Annotated[list[int], _about("The times (epoch ms), ascending.")]
    ready: Numbers
    delayed: Numbers
    leased: Numbers
    parked: Numbers
    stored: Numbers
    oldest_at_ms: Annotated[Numbers, _about("When the oldest one was sent that was not settled (epoch ms); 0 = none.")]
    sent: Numbers
    tags: Annotated[list[TagHistoryReply], _about("The same of each tag that the queue has now.")]
