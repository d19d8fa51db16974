"""A metric over time (EMQ queryMetric): its name is `subject.measure`, as `send_request.count`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engine.errors import InvalidValue
from engine.meters.history import History
from engine.meters.meters import Cell
from engine.meters.shapes import AGGREGATORS, METRICS, MetricQuery, Series
from engine.rules.limits import check_asked
from engine.rules.queue import Queue
from schemas.records.watching import MeterRecord
from schemas.topics import METER_DAYS
from schemas.vocabulary import MINUTE_MS, OPERATIONS, Subject

# So much is held in memory for one question, about 500 bytes each.
MAX_CELLS = 10_080
MAX_SPAN_MS = METER_DAYS * 86_400_000

_MEASURED: Final[Mapping[str, Callable[[Cell], float]]] = {
    "count": lambda cell: float(cell.requests),
    "messages": lambda cell: float(cell.messages),
    "latency": lambda cell: cell.mean_us / 1000,
    "latency_p999": lambda cell: cell.p999_us / 1000,
    "latency_max": lambda cell: cell.max_us / 1000,
}
_COUNTS = frozenset(("count", "messages"))
_AGGREGATED: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "sum": sum,
    "avg": lambda values: sum(values) / len(values),
    "min": min,
    "max": max,
}


def check_query(query: MetricQuery) -> None:
    """Raises InvalidValue for what is no metric, no aggregator, no span of time, or too much."""
    if query.metric not in METRICS:
        raise InvalidValue(
            f"there is no metric {query.metric[:100]!r}", field="metric", limit=list(METRICS), given=query.metric[:100]
        )
    for field, given in (("aggregator", query.aggregator), ("downsample", query.downsample)):
        if given is not None and given not in AGGREGATORS:
            words = list(AGGREGATORS)
            raise InvalidValue(
                f"{field} must be one of {', '.join(words)}, given {given[:100]!r}",
                field=field,
                limit=words,
                given=given[:100],
            )
    if not 0 < query.to_ms - query.from_ms <= MAX_SPAN_MS or query.from_ms < 0:
        raise InvalidValue(
            f"from must be before to, by {METER_DAYS} days at most",
            field="from",
            limit=MAX_SPAN_MS,
            given=query.from_ms,
        )
    check_asked("interval_ms", query.interval_ms)
    if query.interval_ms % MINUTE_MS:
        raise InvalidValue(
            "the interval must be whole minutes", field="interval_ms", limit=MINUTE_MS, given=query.interval_ms
        )
    slot = MINUTE_MS if query.downsample else query.interval_ms
    if (query.to_ms - query.from_ms) // slot > MAX_CELLS:
        raise InvalidValue(
            f"{MAX_CELLS} values may be asked for: ask for a longer interval, or a shorter time",
            field="interval_ms", limit=MAX_CELLS, given=query.interval_ms,
        )  # fmt: skip
    if query.rate and query.metric.rpartition(".")[2] not in _COUNTS:
        raise InvalidValue("a time has no rate", field="rate", limit=sorted(_COUNTS), given=query.metric)


class Metrics:
    """Series of metrics. Memory: at most MAX_CELLS cells for each question."""

    def __init__(self, history: History) -> None:
        self._history = history

    async def series(self, queue: Queue, query: MetricQuery) -> Series:
        """The series that was asked for. Raises InvalidValue, TagNotFound, LogUnavailable."""
        check_query(query)
        subject, _, measure = query.metric.partition(".")
        wanted, tag = {str(operation) for operation in OPERATIONS[Subject(subject)]}, None
        if query.tag is not None:
            tag = queue.tag(query.tag).name
        slot_ms = MINUTE_MS if query.downsample else query.interval_ms
        cells: dict[tuple[int, str], Cell] = {}

        def add(record: MeterRecord) -> None:
            slot = record.minute_ms // slot_ms * slot_ms
            for row in record.rows:
                if row.operation in wanted and tag in (None, row.tag):
                    key = slot, row.tag if query.aggregator else ""
                    if key not in cells and len(cells) >= MAX_CELLS:
                        raise InvalidValue(
                            f"that needs more than {MAX_CELLS} values, by tags and minutes: ask for a shorter time",
                            field="interval_ms", limit=MAX_CELLS, given=query.interval_ms,
                        )  # fmt: skip
                    cells.setdefault(key, Cell()).add_row(row)

        await self._history.read(queue.incarnation, query.from_ms, query.to_ms, add)
        return Series(query.metric, _values(cells, query, _MEASURED[measure]))


def _values(
    cells: Mapping[tuple[int, str], Cell], query: MetricQuery, measure: Callable[[Cell], float]
) -> dict[int, float]:
    """The values by interval: first of each tag over time, then of the tags."""
    by_tag: dict[tuple[int, str], list[float]] = {}
    for (slot, tag), cell in cells.items():
        by_tag.setdefault((slot // query.interval_ms * query.interval_ms, tag), []).append(measure(cell))
    over_time = _AGGREGATED[query.downsample or "sum"]
    by_interval: dict[int, list[float]] = {}
    for (at, _), values in by_tag.items():
        by_interval.setdefault(at, []).append(over_time(values))
    over_tags = _AGGREGATED[query.aggregator or "sum"]
    per = query.interval_ms / 1000 if query.rate else 1
    return {at: over_tags(values) / per for at, values in sorted(by_interval.items())}
