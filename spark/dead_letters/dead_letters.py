"""Dead letters counted: by reason, source and tag, by age, by shape of the body, and when they came
in bursts.

Input is DEAD_LETTERS of `columns.py`. Times are timestamps, `*_ms` milliseconds, `*_bytes` bytes;
`at_rest` counts dead letters that nobody has settled yet.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark.dead_letters.shape import with_body

SOURCE = ("queue", "source_queue", "source_tag", "reason")
# Upper bounds in ms of how long a dead letter has been at rest; the last one is open.
AGES = (
    (60_000, "under 1 min"),
    (3_600_000, "1 min to 1 h"),
    (86_400_000, "1 h to 1 day"),
    (7 * 86_400_000, "1 to 7 days"),
    (None, "over 7 days"),
)
BURST_FACTOR = 4.0  # So many times the usual a minute,
BURST_DEAD_LETTERS = 10  # and at least so many dead letters in that minute, begin a burst.
BURST_GAP_S = 120  # Minutes of a burst are at most so far apart.
EXAMPLE_CHARS = 2000


def dead_letter_sources(dead_letters: DataFrame) -> DataFrame:
    """One row per queue, source_queue, source_tag and reason.

    dead_letters, at_rest, body_bytes (sum), receive_count_max, lived_ms_p50 and lived_ms_p95 (first
    send to death, within 1%), first_seen_at, last_seen_at. A source that is gone is null and a row
    of its own.
    """
    return dead_letters.groupBy(*SOURCE).agg(
        F.count("*").alias("dead_letters"),
        _at_rest(),
        F.sum("body_bytes").alias("body_bytes"),
        F.max("receive_count").alias("receive_count_max"),
        F.percentile_approx("lived_ms", 0.5, 1000).alias("lived_ms_p50"),
        F.percentile_approx("lived_ms", 0.95, 1000).alias("lived_ms_p95"),
        *_seen(),
    )


def dead_letter_ages(dead_letters: DataFrame, now: Column) -> DataFrame:
    """One row per queue and age: dead letters at rest by how long they have been dead at `now` (a
    timestamp column or literal).

    queue, age (words), age_order (0 = youngest), dead_letters, oldest_ms (age of the oldest). Dead
    letters of the future count as young.
    """
    age_ms = F.greatest(F.unix_millis(now) - F.unix_millis("dead_at"), F.lit(0))
    resting = dead_letters.where(F.col("settled_how").isNull()).select("queue", age_ms.alias("age_ms"))
    order = F.lit(len(AGES) - 1)
    for place, (bound_ms, _) in reversed(list(enumerate(AGES[:-1]))):
        order = F.when(F.col("age_ms") < bound_ms, place).otherwise(order)
    words = F.element_at(F.array(*(F.lit(name) for _, name in AGES)), F.col("age_order") + 1)
    counted = resting.groupBy("queue", order.alias("age_order")).agg(
        F.count("*").alias("dead_letters"), F.max("age_ms").alias("oldest_ms")
    )
    return counted.select("queue", words.alias("age"), "age_order", "dead_letters", "oldest_ms")


def dead_letter_shapes(dead_letters: DataFrame) -> DataFrame:
    """One row per queue, source_queue and shape of body.

    body_kind, shape (see `shape.with_body`), dead_letters, at_rest, first_seen_at, last_seen_at,
    example_address and example (the first one's body, at most 2,000 characters, null = not text).
    """
    first = F.min_by(
        F.struct("address", F.substring("body_text", 1, EXAMPLE_CHARS).alias("text")), F.struct("dead_at", "address")
    )
    shaped = with_body(dead_letters).groupBy("queue", "source_queue", "body_kind", "shape")
    counted = shaped.agg(F.count("*").alias("dead_letters"), _at_rest(), *_seen(), first.alias("first"))
    kept = ("queue", "source_queue", "body_kind", "shape", "dead_letters", "at_rest", "first_seen_at", "last_seen_at")
    return counted.select(*kept, F.col("first.address").alias("example_address"), F.col("first.text").alias("example"))


def dead_letter_minutes(dead_letters: DataFrame) -> DataFrame:
    """One row per source_queue, reason and minute between the first and the last dead letter of
    that source: dead_letters, 0 where none came.
    """
    minute = F.date_trunc("minute", "dead_at").alias("minute")
    counted = dead_letters.groupBy("source_queue", "reason", minute).agg(F.count("*").alias("dead_letters"))
    spans = counted.groupBy("source_queue", "reason").agg(F.min("minute").alias("low"), F.max("minute").alias("high"))
    every = spans.select(
        "source_queue", "reason", F.explode(F.sequence("low", "high", F.expr("interval 1 minute"))).alias("minute")
    )
    same = [every[name].eqNullSafe(counted[name]) for name in ("source_queue", "reason", "minute")]
    joined = every.join(counted, on=same, how="left")
    return joined.select(
        every["source_queue"],
        every["reason"],
        every["minute"],
        F.coalesce("dead_letters", F.lit(0)).alias("dead_letters"),
    )


def dead_letter_bursts(
    dead_letters: DataFrame, factor: float = BURST_FACTOR, least: int = BURST_DEAD_LETTERS
) -> DataFrame:
    """One row per burst: minutes in which a source gave at least `least` dead letters and `factor`
    times its usual number.

    source_queue, reason, began_at, ended_at (end of the last minute), dead_letters,
    peak_per_minute, usual_per_minute (the median of all its minutes, silent ones too).
    """
    minutes = dead_letter_minutes(dead_letters)
    series = Window.partitionBy("source_queue", "reason")
    usual = minutes.withColumn("usual_per_minute", F.percentile("dead_letters", 0.5).over(series))
    loud = usual.where((F.col("dead_letters") >= least) & (F.col("dead_letters") >= factor * F.col("usual_per_minute")))
    in_order = series.orderBy("minute")
    gap_s = F.unix_seconds("minute") - F.unix_seconds(F.lag("minute").over(in_order))
    begins = F.coalesce((gap_s > BURST_GAP_S).cast("int"), F.lit(1))
    islands = loud.withColumn("_begins", begins)
    upto = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    numbered = islands.withColumn("_burst", F.sum("_begins").over(upto))
    bursts = numbered.groupBy("source_queue", "reason", "usual_per_minute", "_burst").agg(
        F.min("minute").alias("began_at"),
        (F.max("minute") + F.expr("interval 1 minute")).alias("ended_at"),
        F.sum("dead_letters").alias("dead_letters"),
        F.max("dead_letters").alias("peak_per_minute"),
    )
    return bursts.select(
        "source_queue", "reason", "began_at", "ended_at", "dead_letters", "peak_per_minute", "usual_per_minute"
    )


def succeeded_of(messages: DataFrame, journal: DataFrame) -> DataFrame:
    """One row per message that was acked under any tag; columns as MESSAGES. What was moved here
    from elsewhere counts too.
    """
    acked = journal.where(F.col("kind") == "acked").select("incarnation", "partition", "offset")
    return messages.join(acked, on=["incarnation", "partition", "offset"], how="left_semi")


def _at_rest() -> Column:
    return F.count_if(F.col("settled_how").isNull()).alias("at_rest")


def _seen() -> tuple[Column, Column]:
    return F.min("dead_at").alias("first_seen_at"), F.max("dead_at").alias("last_seen_at")
