"""What a frame reads of Kafka and of tables, by its physical plan: no record is read for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

Range = tuple[str, int, int, int]  # topic, partition, first offset, one after the last


def scans(frame: DataFrame) -> list[set[Range]]:
    """The ranges that each scan of Kafka reads, those of kept frames once, without empty ones."""
    seen: set[int] = set()
    return list(_scans(frame._jdf.queryExecution().executedPlan(), seen))


def times_read(frame: DataFrame) -> Counter[str]:
    """Topic -> how many scans read some of it."""
    return Counter(topic for scan in scans(frame) for topic in {topic for topic, *_ in scan})


def kept_frames(spark_session: SparkSession) -> int:
    """How many frames Spark keeps, of all sessions."""
    return int(spark_session._jsparkSession.sharedState().cacheManager().numCachedEntries())


def files_read(frame: DataFrame) -> int:
    """How many files the scans of tables read."""
    plans = _plans(frame._jdf.queryExecution().executedPlan(), set())
    return sum(_files(plan) for plan in plans if plan.getClass().getSimpleName() == "BatchScanExec")


def _files(scan: Any) -> int:
    parts = scan.inputPartitions()
    return sum(int(parts.apply(place).taskGroup().tasks().size()) for place in range(parts.size()))


def _scans(plan: Any, seen: set[int]) -> Iterator[set[Range]]:
    for one in _plans(plan, seen):
        if one.getClass().getSimpleName() == "RowDataSourceScanExec" and "KafkaRelation" in one.relation().toString():
            yield set(_ranges(one.rdd()))


def _plans(plan: Any, seen: set[int]) -> Iterator[Any]:
    """A plan and all below it, those of kept frames once."""
    yield plan
    kind = plan.getClass().getSimpleName()
    inner = []
    if kind == "AdaptiveSparkPlanExec":
        inner.append(plan.executedPlan())
    elif kind == "InMemoryTableScanExec":
        kept = plan.relation().cachedPlan()
        if kept.id() not in seen:
            seen.add(kept.id())
            inner.append(kept)
    elif kind in ("ReusedExchangeExec", "ReusedSubqueryExec"):
        return
    for below in (plan.children(), plan.subqueries()):
        inner += [below.apply(place) for place in range(below.size())]
    for one in inner:
        yield from _plans(one, seen)


def _ranges(rdd: Any) -> Iterator[Range]:
    if rdd.getClass().getSimpleName() == "KafkaSourceRDD":
        for part in rdd.partitions():
            of = part.offsetRange()
            yield str(of.topic()), int(of.partition()), int(of.fromOffset()), int(of.untilOffset())
    needed = rdd.dependencies()
    for place in range(needed.size()):
        yield from _ranges(needed.apply(place).rdd())
