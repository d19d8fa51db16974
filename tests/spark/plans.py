"""What a frame reads of Kafka, by its physical plan: no record is read for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

Range = tuple[str, int, int, int]  # topic, partition, first offset, one after the last


def scans(frame: DataFrame) -> list[set[Range]]:
    """The ranges that each scan of Kafka reads, those of kept frames once, without empty ones."""
    seen: set[int] = set()
    return list(_scans(frame._jdf.queryExecution().executedPlan(), seen))


def times_read(frame: DataFrame) -> Counter[str]:
    """Topic -> how many scans read some of it."""
    return Counter(topic for scan in scans(frame) for topic in {topic for topic, *_ in scan})


def _scans(plan: Any, seen: set[int]) -> Iterator[set[Range]]:
    kind = plan.getClass().getSimpleName()
    if kind == "RowDataSourceScanExec" and "KafkaRelation" in plan.relation().toString():
        yield set(_ranges(plan.rdd()))
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
        yield from _scans(one, seen)


def _ranges(rdd: Any) -> Iterator[Range]:
    if rdd.getClass().getSimpleName() == "KafkaSourceRDD":
        for part in rdd.partitions():
            of = part.offsetRange()
            yield str(of.topic()), int(of.partition()), int(of.fromOffset()), int(of.untilOffset())
    needed = rdd.dependencies()
    for place in range(needed.size()):
        yield from _ranges(needed.apply(place).rdd())
