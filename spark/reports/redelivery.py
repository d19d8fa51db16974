"""Messages that are delivered again and again. Every function is a pure DataFrame -> DataFrame."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark.frames.columns import DELIVERY_ENDS

POISON_DELIVERIES = 3
MOST_POISON = 100


def _touched(deliveries: DataFrame) -> DataFrame:
    """One row per message and tag: how often it was delivered, and how its last delivery ended."""
    key = ("queue", "incarnation", "tag", "partition", "offset")
    return deliveries.groupBy(*key).agg(
        F.max("receive_count").alias("deliveries"),
        F.max_by("how", "nonce").alias("last_how"),
        F.max("received_at").alias("last_received_at"),
        F.first("sent_at").alias("sent_at"),
    )


def redelivery(deliveries: DataFrame) -> DataFrame:
    """One row per queue and tag. Reads DELIVERIES.

    Columns: messages (delivered at least once), deliveries, redeliveries (deliveries after the
    first), redelivered (messages with one or more), most_deliveries; by how deliveries ended those
    of DELIVERY_ENDS, which add up to deliveries; redelivery_share.
    """
    again = F.col("receive_count") > 1
    ends = [F.count_if(F.col("how") == how).alias(how) for how in DELIVERY_ENDS]
    found = deliveries.groupBy("queue", "tag").agg(
        F.count_if(~again).alias("messages"),
        F.count("*").alias("deliveries"),
        F.count_if(again).alias("redeliveries"),
        F.count_if(F.col("receive_count") == 2).alias("redelivered"),
        F.max("receive_count").alias("most_deliveries"),
        *ends,
    )
    return found.withColumn("redelivery_share", F.col("redeliveries") / F.col("deliveries"))


def poison(deliveries: DataFrame, lifecycles: DataFrame) -> DataFrame:
    """Messages delivered at least 3 times without an ack: the 100 worst of each queue and tag, one
    row each. Reads DELIVERIES, LIFECYCLES.

    Columns: partition, offset, sent_at, deliveries, last_received_at, last_how, settled_how (dead,
    expired ...; null = still there).
    """
    touched = _touched(deliveries).where((F.col("deliveries") >= POISON_DELIVERIES) & (F.col("last_how") != "acked"))
    worst = Window.partitionBy("queue", "tag").orderBy(F.desc("deliveries"), "partition", "offset")
    few = touched.withColumn("rank", F.row_number().over(worst)).where(F.col("rank") <= MOST_POISON)
    ends = lifecycles.select("incarnation", "tag", "partition", "offset", "settled_how")
    joined = few.join(ends, on=["incarnation", "tag", "partition", "offset"], how="left")
    return joined.select(
        "queue", "tag", "partition", "offset", "sent_at", "deliveries", "last_received_at", "last_how", "settled_how",
        "rank"
    )  # fmt: skip
