"""Prometheus metrics of a facade worker, in a registry of its own (two apps in one process don't
share counts).

Each worker process counts itself: behind one port, a scrape gets the worker that took the
connection, and the label `worker` says which.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from facade.http import queue_metrics
from facade.http.operation import Answer, Call, Example, Operation
from runtime.asked import Asked
from schemas.records.watching import Request
from schemas.vocabulary import OK

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.meters.shapes import TimesOf
    from engine.shapes import Alarm

# Counts requests that are alike: how many, the sum and the greatest of their times in us.
Counted = Callable[[Request, int, int, int], None]
# From a hot verb without a wait to the longest long poll (60 s).
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0)
# Counters of the engine that are shown before they have counted something: what appears with 1 has
# no growth that an alert could see.
FROM_ZERO = (
    "alerts_not_told_total", "alerts_told_total", "attempts_refused_total", "audit_records_dropped_total",
    "audit_suppressed_total", "brought_total", "control_refused_total", "delay_pointers_total",
    "deliveries_returned_total", "deliveries_too_late_to_return_total", "groups_parked_total",
    "groups_unparked_total", "journal_entries_read_total", "journal_entries_total", "journal_gaps_total",
    "late_commits_total", "loaded_chunks_total", "lost_to_retention_total", "lost_with_topic_total",
    "messages_moved_total", "meter_records_dropped_total", "rebuilds_total", "rebuilt_deliveries_total",
    "rebuilt_settled_total", "receives_over_limit_total", "snapshots_total", "topics_lost_total",
    "torn_batch_records_total", "transaction_checks_total", "transactions_committed_total",
    "transactions_ended_total", "transactions_prepared_total", "undecodable_records_total",
    "webhooks_failed_total", "wheel_repairs_total", "write_through_failed_total", "wrong_secrets_total",
)  # fmt: skip


class EngineCounts(Collector):
    """The counters of the engine; a name that ends in _total is a counter, any other a gauge. One
    with `{reason="..."}` behind it is a series of several.
    """

    def __init__(self, counts: Callable[[], Mapping[str, float]]) -> None:
        self._counts = counts

    def describe(self) -> list[Metric]:
        """Nothing: the names are known when the engine runs, not before."""
        return []

    def collect(self) -> Iterator[Metric]:
        """One metric per counter."""
        by_reason: dict[str, CounterMetricFamily] = {}
        for name, value in {**dict.fromkeys(FROM_ZERO, 0.0), **self._counts()}.items():
            name, _, label = name.partition("{")
            full, about = "leaseway_" + re.sub(r"[^a-zA-Z0-9_]", "_", name), f"The engine's {name.replace('_', ' ')}."
            if label:
                family = by_reason.setdefault(name, CounterMetricFamily(full, about, labels=["reason"]))
                family.add_metric([label.split('"')[1]], value)
            else:
                yield (CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily)(full, about, value=value)
        yield from by_reason.values()


class EngineAlarms(Collector):
    """The engine's alarms as one gauge; a series is there while its alarm lasts. The alarms of a
    kind of all queues whose names nobody `shows` are one series.
    """

    def __init__(self, alarms: Callable[[], Sequence[Alarm]]) -> None:
        self._alarms = alarms
        self.shows: Callable[[str], bool] = bool

    def describe(self) -> list[Metric]:
        """Nothing, as `EngineCounts`."""
        return []

    def collect(self) -> Iterator[Metric]:
        """One metric with a series per alarm."""
        family = GaugeMetricFamily(
            "leaseway_alarm", "Needs attention: see docs/reference/metrics.md.", labels=["kind", "queue"]
        )
        numbers: dict[tuple[str, str], float] = {}
        for alarm in self._alarms():
            about = alarm.kind, alarm.queue if self.shows(alarm.queue) else ""
            numbers[about] = numbers.get(about, 0) + alarm.number
        for about, number in numbers.items():
            family.add_metric(about, number)
        yield family


class _Verb:
    """Requests of one verb: how many ended with each status, how many fell between each two
    buckets, and their seconds together.
    """

    __slots__ = ("between", "ended", "seconds")

    def __init__(self) -> None:
        self.ended: dict[int, int] = {}
        self.between = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0


class Requests(Collector):
    """The counts of requests. The library's own counters take a lock each and search their buckets
    one by one, at every request.
    """

    def __init__(self) -> None:
        self.verbs: dict[str, _Verb] = {}
        self.in_progress = 0
        self.ways: dict[str, int] = {}  # by why they went to Python; empty = the plane served them
        self.waiting_in_plane = 0

    def describe(self) -> list[Metric]:
        """Nothing, as `EngineCounts`."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Requests by verb and status, their time by verb; what the plane served; receives now."""
        requests = CounterMetricFamily("leaseway_requests", "Requests answered.", labels=["verb", "status"])
        seconds = HistogramMetricFamily(
            "leaseway_request_seconds", "Time from the request's head to its reply.", labels=["verb"]
        )
        for name, verb in self.verbs.items():
            for status, number in verb.ended.items():
                requests.add_metric([name, str(status)], number)
            ends = [*map(floatToGoString, BUCKETS), "+Inf"]
            seconds.add_metric([name], list(zip(ends, accumulate(verb.between), strict=True)), verb.seconds)
        yield requests
        yield seconds
        ways = CounterMetricFamily(
            "leaseway_plane_requests",
            "Requests, by who served them, and why the plane did not.",
            labels=["way", "reason"],
        )
        for why, number in self.ways.items():
            ways.add_metric(["python" if why else "plane", why], number)
        yield ways
        in_progress = self.in_progress + self.waiting_in_plane
        yield GaugeMetricFamily(
            "leaseway_receives_in_progress", "Receives being served: nearly all are waiting.", value=in_progress
        )


class MessageTimes(Collector):
    """How long messages were in queues and in hand."""

    def __init__(self, times: Callable[[], Sequence[TimesOf]]) -> None:
        self._times = times

    def describe(self) -> list[Metric]:
        """Nothing, as `EngineCounts`."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Both."""
        queue = HistogramMetricFamily(
            "leaseway_time_in_queue_seconds", "Time from the send to the first delivery.", labels=[]
        )
        hand = HistogramMetricFamily(
            "leaseway_time_in_hand_seconds", "Time from a delivery to its end.", labels=["verb"]
        )
        for one in self._times():
            ends = [*map(floatToGoString, one.bounds), "+Inf"]
            buckets = list(zip(ends, accumulate(one.between), strict=True))
            if one.place == "queue":
                queue.add_metric([], buckets, one.seconds)
            else:
                hand.add_metric([one.verb], buckets, one.seconds)
        yield queue
        yield hand


class OfWorker(Collector):
    """What a worker counts, each series with the label `worker`; without it where the worker has no
    name.
    """

    def __init__(self, collectors: Sequence[Collector], worker: str) -> None:
        self._collectors = collectors
        self._worker = worker

    def describe(self) -> list[Metric]:
        """Nothing, as `EngineCounts`."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics of all, in their order."""
        for collector in self._collectors:
            for family in collector.collect():
                yield self._named(family) if self._worker else family

    def _named(self, family: Metric) -> Metric:
        """The same with the label."""
        found = Metric(family.name, family.documentation, family.type, family.unit)
        for one in family.samples:
            found.add_sample(one.name, {**one.labels, "worker": self._worker}, one.value)
        return found


class Metrics:
    """Counts requests by verb and status, their time by verb, and long polls that wait. Belongs to
    one event loop.
    """

    def __init__(
        self,
        counts: Callable[[], Mapping[str, float]],
        alarms: Callable[[], Sequence[Alarm]] = tuple,
        worker: str = "",
        times: Callable[[], Sequence[TimesOf]] = tuple,
        counted: Counted = lambda request, requests, sum_us, max_us: None,
    ) -> None:
        """`worker`: its name among those behind one port; empty = it is alone there. `counted`
        counts who has asked.
        """
        self.worker = worker
        self.counted = counted
        self._registry = CollectorRegistry(auto_describe=False)
        self._requests = Requests()
        self._refresh: Callable[[], None] = _nothing
        self._engine_alarms = EngineAlarms(alarms)
        mine = (
            self._requests,
            MessageTimes(times),
            EngineCounts(counts),
            self._engine_alarms,
            ProcessCollector(registry=None),
        )
        self._registry.register(OfWorker(mine, worker))

    def refresh_by(self, refresh: Callable[[], None]) -> None:
        """Calls `refresh` before the metrics are told: it counts what was counted elsewhere."""
        self._refresh = refresh

    def observe(self, verb: str, status: int, seconds: float, asked: Asked, outcome: str = OK) -> None:
        """Counts one request. `verb` and `status` must come from small sets: each pair is a time
        series; so must `outcome`, which is OK, GONE or the word of an error.
        """
        us = round(seconds * 1_000_000)
        self.counted(Request(asked.caller, asked.queue, verb, asked.verb, outcome), 1, us, us)
        cell = self._requests.verbs.get(verb)
        if cell is None:
            cell = self._requests.verbs[verb] = _Verb()
        try:
            cell.ended[status] += 1
        except KeyError:
            cell.ended[status] = 1
        cell.between[bisect_left(BUCKETS, seconds)] += 1
        cell.seconds += seconds

    def observe_many(self, verb: str, status: int, requests: int, seconds: float, between: Sequence[int]) -> None:
        """Counts requests that the plane has timed; `between`: how many fell between each two
        buckets.
        """
        cell = self._requests.verbs.get(verb)
        if cell is None:
            cell = self._requests.verbs[verb] = _Verb()
        cell.ended[status] = cell.ended.get(status, 0) + requests
        cell.between = [mine + more for mine, more in zip(cell.between, between, strict=True)]
        cell.seconds += seconds

    def count_way(self, why: str, requests: int) -> None:
        """Counts requests that the plane has served, or why it has not: `engine.plane.whys` has
        these.
        """
        ways = self._requests.ways
        ways[why] = ways.get(why, 0) + requests

    def note_waiting(self, receives: int) -> None:
        """So many receives wait in the plane."""
        self._requests.waiting_in_plane = receives

    def receive_begins(self) -> None:
        """A receive is in progress; pair with `receive_ends`."""
        self._requests.in_progress += 1

    def receive_ends(self) -> None:
        """A receive has ended."""
        self._requests.in_progress -= 1

    def text(self, shows: Callable[[str], bool] = lambda queue: True) -> bytes:
        """All metrics in Prometheus' text format, with the names of the queues that are shown."""
        self._refresh()
        self._engine_alarms.shows = shows
        return generate_latest(self._registry)


def _nothing() -> None:
    """Nothing is counted elsewhere."""


def operations(metrics: Metrics) -> tuple[Operation, ...]:
    """GET /metrics, and /metrics/queues."""

    async def run(engine: Engine, call: Call) -> Answer:
        mine = metrics.text(partial(engine.queues.knows, call.by))
        mine += "".join(queue_metrics.most_of_worker(engine, call, metrics.worker)).encode()
        return Answer(mine + await queue_metrics.worst(engine, call), media_type=queue_metrics.MEDIA_TYPE)

    return (
        Operation(
            name="metrics",
            method="GET",
            path="/metrics",
            group="Operation",
            summary="Metrics of this worker in Prometheus' text format; names of the queues that who asks is told of",
            run=run,
            replies={200: str},
            example=Example(reply='leaseway_requests_total{status="200",verb="send"} 42.0\n'),
            or_anonymous=True,
            media_type="text/plain",
        ),
        queue_metrics.operation(metrics.worker),
    )
