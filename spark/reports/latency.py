"""How long messages wait and leases last. Every function is a pure DataFrame -> DataFrame."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

# approx_percentile: a relative error of rank of 1/ACCURACY.
ACCURACY = 2_000
# A lease that was used up to this share was nearly too short.
SLOW_SHARE = 0.8
_SHARES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999}


def _measures() -> Column:
    """Each delivery as (measure, at, ms): the first waits, the acked lasts."""
    waited = F.struct(
        F.lit("send_to_receive").alias("measure"), F.col("received_at").alias("at"), F.col("wait_ms").alias("ms")
    )
    lasted = F.struct(
        F.lit("receive_to_ack").alias("measure"), F.col("settled_at").alias("at"), F.col("lease_ms").alias("ms")
    )
    first = (F.col("receive_count") == 1) & F.col("wait_ms").isNotNull()
    return F.array_compact(F.array(F.when(first, waited), F.when(F.col("how") == "acked", lasted)))


def latency(deliveries: DataFrame, *by: str) -> DataFrame:
    """Percentiles: one row per queue, tag, `by` (minute, or nothing) and measure. Reads DELIVERIES.

    `send_to_receive`: of first deliveries, from receivable (send + delay) to received, in the
    minute of the receive. `receive_to_ack`: of acked deliveries, in the minute of the ack. Columns:
    count, mean_ms, p50_ms, p95_ms, p99_ms, p999_ms, max_ms.
    """
    rows = deliveries.select("queue", "tag", F.explode(_measures()).alias("m")).select("queue", "tag", "m.*")
    timed = rows.withColumn("minute", F.date_trunc("minute", "at"))
    shares = F.percentile_approx("ms", list(_SHARES.values()), ACCURACY).alias("shares")
    count, mean, most = F.count("*").alias("count"), F.avg("ms").alias("mean_ms"), F.max("ms").alias("max_ms")
    found = timed.groupBy("queue", "tag", *by, "measure").agg(count, mean, shares, most)
    named = [F.col("shares")[place].alias(name) for place, name in enumerate(_SHARES)]
    return found.select("queue", "tag", *by, "measure", "count", "mean_ms", *named, "max_ms")


def slow_leases(deliveries: DataFrame) -> DataFrame:
    """Consumers that work slower than their leases allow: one row per queue, tag and hour of the
    receive. Reads DELIVERIES.

    Columns: leases, lapsed, late (acked or released after the deadline), near (ended later than 80
    % of the lease), extended, lease_p50_ms, lease_p99_ms, longest_ms, lapsed_share. Hours with none
    of lapsed, late, near are left out.
    """
    given = F.unix_millis("deadline_at") - F.unix_millis("received_at")
    ended = F.col("how").isin("acked", "released", "killed")
    late = ended & (F.col("settled_at") > F.col("deadline_at"))
    near = ended & ~late & (F.col("lease_ms") >= given * SLOW_SHARE)
    rows = (
        deliveries.withColumn("hour", F.date_trunc("hour", "received_at"))
        .withColumn("late", late)
        .withColumn("near", near)
    )
    found = rows.groupBy("queue", "tag", "hour").agg(
        F.count("*").alias("leases"),
        F.count_if(F.col("how") == "lapsed").alias("lapsed"),
        F.count_if("late").alias("late"),
        F.count_if("near").alias("near"),
        F.count_if(F.col("extensions") > 0).alias("extended"),
        F.percentile_approx("lease_ms", 0.5, ACCURACY).alias("lease_p50_ms"),
        F.percentile_approx("lease_ms", 0.99, ACCURACY).alias("lease_p99_ms"),
        F.max("lease_ms").alias("longest_ms"),
    )
    kept = found.where(F.col("lapsed") + F.col("late") + F.col("near") > 0)
    return kept.withColumn("lapsed_share", F.col("lapsed") / F.col("leases"))


def lease_histogram(deliveries: DataFrame) -> DataFrame:
    """How long acked leases lasted, additive: one row per minute of the ack, queue, tag and bucket.
    Reads DELIVERIES.

    `below_ms` is the bucket's bound, a power of two (the bucket begins at half of it); count,
    sum_ms.
    """
    acked = deliveries.where(F.col("how") == "acked")
    bound = F.pow(F.lit(2), F.floor(F.log2(F.greatest("lease_ms", F.lit(1)))) + 1).cast("long")
    keyed = acked.select(
        F.date_trunc("minute", "settled_at").alias("minute"), "queue", "tag", bound.alias("below_ms"), "lease_ms"
    )
    return keyed.groupBy("minute", "queue", "tag", "below_ms").agg(
        F.count("*").alias("count"), F.sum("lease_ms").alias("sum_ms")
    )
