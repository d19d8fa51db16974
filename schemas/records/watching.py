"""Records of what requests a queue has seen, of who is told of it, and of who has asked for
what.
"""

from __future__ import annotations

from msgspec import Struct


class MeterRow(Struct, frozen=True):
    """Requests of one kind. `counts[i]` of them took longer than the bound before `bounds[i]` and
    no longer than that one; `schemas.vocabulary` has the bounds.
    """

    tag: str
    operation: str
    requests: int
    messages: int
    sum_us: int
    max_us: int
    bounds: list[int]
    counts: list[int]


class StaleRow(Struct, frozen=True):
    """How many handles were good for nothing for one reason, a StaleReason word."""

    reason: str
    handles: int


class MeterRecord(Struct, frozen=True):
    """The value of a record of the meter topic: what a worker has answered of a queue in a minute.

    Workers add up. A record of the same worker, incarnation and minute is a repeat: a reader drops
    it.
    """

    minute_ms: int
    worker: str
    queue: str
    incarnation: str
    rows: list[MeterRow]
    stale: list[StaleRow] = []


class Request(Struct, frozen=True, gc=False):
    """What requests are counted by. `operation` is what its dialect calls it, as in the metrics;
    `verb` what was asked of the engine, "" = nothing was.
    """

    principal: str
    queue: str
    operation: str
    verb: str
    outcome: str


class RequestRow(Struct, frozen=True):
    """Requests that are alike: the same who, what of which queue, in which dialect, and what came
    of it. All names but the dialect and the outcome empty = there was no room for their own rows.
    """

    dialect: str
    operation: str
    verb: str
    principal: str
    queue: str
    outcome: str
    requests: int
    sum_us: int
    max_us: int


class RequestsRecord(Struct, frozen=True):
    """The value of a record of the requests topic: what a worker was asked for in a minute, or a
    part of that.

    Records add up. `number` counts the records of a worker: one that a reader has seen is a repeat.
    """

    minute_ms: int
    worker: str
    number: int
    rows: list[RequestRow]


class HistoryRecord(Struct, frozen=True):
    """The value of a record of the history topic: what the numbers of a life of a queue were in a
    stretch of time, packed as Redis has it; without an incarnation, when numbers were noted.
    """

    incarnation: str
    span: str
    number: int
    packed: bytes


class AlertPolicy(Struct, frozen=True):
    """It fires when `measurement` of `subject` is at `threshold` or above; tag "" = of the queue as
    a whole.
    """

    id: str
    tag: str
    subject: str
    measurement: str
    threshold: float
    added_at_ms: int


class PolicyState(Struct, frozen=True):
    """What is known of a policy that has ever fired; times in epoch ms, `told_at_ms` 0 = never."""

    id: str
    firing: bool
    since_ms: int
    told_at_ms: int


class AlertEvent(Struct, frozen=True):
    """Something to tell the owner of a queue: a policy has fired, or, with a `day`, its statistics
    are there. `told` is a word of Telling.
    """

    id: str
    at_ms: int
    change: str
    told: str
    tag: str = ""
    subject: str = ""
    measurement: str = ""
    threshold: float = 0.0
    value: float = 0.0
    day: str = ""
    note: str = ""


class WatchRecord(Struct, frozen=True):
    """The value of a control record with key `watch/<queue>`: what is watched of this life of a
    queue, and what came of it, the newest event last.

    `mailed_day`: the last day (YYYY-MM-DD, UTC) whose statistics need not be mailed any more.
    """

    queue: str
    incarnation: str
    modified_at_ms: int
    policies: list[AlertPolicy] = []
    states: list[PolicyState] = []
    events: list[AlertEvent] = []
    daily_statistics: bool = False
    mailed_day: str = ""


class AuditRecord(Struct, frozen=True):
    """The value of a record of the audit topic: a request, and what came of it.

    `number` counts the records of a worker: one that a reader has seen is a repeat. `suppressed`
    failures before this one were not written down. Empty = not known, or there is none.
    """

    at_ms: int
    worker: str
    number: int
    principal: str
    key_id: str
    peer: str
    operation: str
    verb: str
    queue: str
    tag: str
    subject: str
    outcome: str
    status: int
    error: str
    request_id: str
    suppressed: int
