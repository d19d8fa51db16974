"""The requests of each day, as the workers counted them. Pure DataFrame -> DataFrame.

The numbers are those of `GET /v1/queues/{queue}/statistics`: whole microseconds, added up in any
order.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from schemas.vocabulary import BOUNDS_US, OPERATIONS, P999

_KEY = ("date", "queue", "incarnation", "tag", "subject")


def daily_statistics(meters: DataFrame) -> DataFrame:
    """One row per UTC day, life of a queue, tag ('' = none: sends) and subject: requests, messages,
    mean_us, p999_us, max_us. Reads METERS.
    """
    operations = {str(operation) for some in OPERATIONS.values() for operation in some}
    subjects = F.create_map(
        *(
            part
            for operation in sorted(operations)
            for part in (
                F.lit(operation),
                F.array(*(F.lit(str(subject)) for subject, some in OPERATIONS.items() if operation in some)),
            )
        )
    )
    dated = meters.withColumn("date", F.to_date("minute")).withColumn(
        "subject", F.explode(subjects[F.col("operation")])
    )
    sums = [F.sum(name).alias(name) for name in ("requests", "messages", "sum_us")]
    totals = dated.groupBy(*_KEY).agg(*sums, F.max("max_us").alias("max_us"))
    placed = dated.select(*_KEY, F.explode(F.arrays_zip("bounds", "counts")).alias("z"))
    counted = placed.groupBy(*_KEY, F.col("z.bounds").alias("place")).agg(F.sum("z.counts").alias("count"))
    so_far = F.sum("count").over(Window.partitionBy(*_KEY).orderBy("place"))
    ranked = counted.withColumn("so_far", so_far).join(totals.select(*_KEY, "requests"), on=list(_KEY))
    needed = F.expr(f"({P999} * requests + 999) div 1000")
    place = ranked.where(F.col("so_far") >= needed).groupBy(*_KEY).agg(F.min("place").alias("place"))
    bounds = F.array(*(F.lit(bound).cast("long") for bound in BOUNDS_US))
    bound = F.coalesce(F.get(bounds, F.col("place")), F.col("max_us"))
    joined = totals.join(place, on=list(_KEY))
    return joined.select(
        *_KEY,
        "requests",
        "messages",
        F.expr("sum_us div requests").alias("mean_us"),
        F.least(bound, F.col("max_us")).alias("p999_us"),
        "max_us",
    )


def stale_handles(stale: DataFrame) -> DataFrame:
    """One row per UTC day, life of a queue and reason: handles that were good for nothing. Reads
    STALE_HANDLES.
    """
    dated = stale.withColumn("date", F.to_date("minute"))
    return dated.groupBy("date", "queue", "incarnation", "reason").agg(F.sum("handles").alias("handles"))
