"""What the meters answer: a day of a queue, and a series of one metric."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from schemas.vocabulary import OPERATIONS, Subject

# What a metric tells of the requests of its subject: their number and their messages, and in ms
# their mean time, the time that 99.9 % of them did not take, and the longest.
MEASURES: Final = ("count", "messages", "latency", "latency_p999", "latency_max")
METRICS: Final = tuple(f"{subject}.{measure}" for subject in Subject if OPERATIONS[subject] for measure in MEASURES)
AGGREGATORS: Final = ("sum", "avg", "min", "max")


class StatisticsRow(Struct, frozen=True):
    """Requests of a day: `subject` is a Subject word, tag "" = of the queue (sends). Times in whole
    microseconds.
    """

    tag: str
    subject: str
    requests: int
    messages: int
    mean_us: int
    p999_us: int
    max_us: int


class DayStatistics(Struct, frozen=True):
    """The requests of a UTC day. `complete` = the day is over, and the last of its minutes is
    written.
    """

    queue: str
    day: str
    complete: bool
    rows: list[StatisticsRow]


class MetricQuery(Struct, frozen=True):
    """What to show of a queue in [from_ms, to_ms): a value for each `interval_ms`.

    Without `downsample` a value is of all requests of its interval; with it (sum, avg, min, max) it
    is made of the values of its minutes. Without `aggregator` a value is of all tags, or of `tag`;
    with it, it is made of the values of the tags. `rate`: a second.
    """

    metric: str
    from_ms: int
    to_ms: int
    interval_ms: int
    tag: str | None = None
    aggregator: str | None = None
    downsample: str | None = None
    rate: bool = False


class Series(Struct, frozen=True):
    """Values by the beginning of their interval (epoch ms), ascending; an interval without requests
    has none.
    """

    metric: str
    values: dict[int, float]


class ReceiveCounts(Struct, frozen=True):
    """Receives of one worker under a tag of a queue: how many were answered without a message since
    the worker began, and how many wait now.
    """

    queue: str
    tag: str
    empty: int
    waiting: int


class TimesOf(Struct, frozen=True):
    """How long messages were in a `place`, `queue` or `hand`, until a `verb` (empty = they were
    delivered): how many fell between each two bounds, and the sum of their times, in seconds.
    """

    place: str
    verb: str
    bounds: list[float]
    between: list[int]
    seconds: float
