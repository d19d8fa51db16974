"""Who used how much, who asked for what, and who changed what, by day. Every function is a pure
DataFrame -> DataFrame.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_CONSUMED = ("leased", "acked", "released", "extended")


def metering(counts: DataFrame, deliveries: DataFrame, queues: DataFrame) -> DataFrame:
    """One row per UTC day, principal, role and queueName: requests, messages, bytes (of bodies).
    Reads COUNTS, DELIVERIES, QUEUES.

    role `sender`: who sent it ('' = a Kafka-native producer). role `owner`: deliveries and the
    calls of consumers; the journal does not say who they were, so they are the queue's owner's (''
    = the queue is gone). Messages and bytes of an owner are those delivered.
    """
    dated = counts.withColumn("date", F.to_date("minute"))
    sent = dated.where(F.col("measure") == "sent").groupBy("date", "principal", "queue")
    senders = sent.agg(
        F.sum("requests").alias("requests"), F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes")
    )
    calls = (
        dated.where(F.col("measure").isin(*_CONSUMED)).groupBy("date", "queue").agg(F.sum("requests").alias("requests"))
    )
    leased = deliveries.groupBy(F.to_date("received_at").alias("date"), "queue")
    given = leased.agg(F.count("*").alias("messages"), F.coalesce(F.sum("body_bytes"), F.lit(0)).alias("bytes"))
    owners = F.broadcast(queues.select("queue", F.col("owner").alias("principal")))
    owned = calls.join(given, on=["date", "queue"], how="left").join(owners, on="queue", how="left")
    rows = senders.withColumn("role", F.lit("sender")).unionByName(owned.withColumn("role", F.lit("owner")))
    filled = rows.fillna({"principal": "", "messages": 0, "bytes": 0}).withColumnRenamed("queue", "queueName")
    return filled.select("date", "principal", "role", "queueName", "requests", "messages", "bytes")


def audited(audit: DataFrame) -> DataFrame:
    """One row per UTC day, principal, verb, queue and outcome: requests, failures that were not
    written down (`suppressed`), and the last of them (`last_at`, `last_error`). Reads AUDIT.

    What was refused before the engine was asked has its dialect's name for a verb.
    """
    verb = F.when(F.col("verb") == "", F.col("operation")).otherwise(F.col("verb")).alias("verb")
    grouped = audit.groupBy(F.to_date("at").alias("date"), "principal", verb, "queue", "outcome")
    return grouped.agg(
        F.count("*").alias("requests"),
        F.sum("suppressed").alias("suppressed"),
        F.max("at").alias("last_at"),
        F.max_by("error", "at").alias("last_error"),
    )


def requested(requests: DataFrame) -> DataFrame:
    """One row per UTC day, principal, queue, verb, dialect and outcome: requests, mean and greatest
    of their times (us). Reads REQUESTS.

    What was answered before the engine was asked has its dialect's name for a verb.
    """
    verb = F.when(F.col("verb") == "", F.col("operation")).otherwise(F.col("verb")).alias("verb")
    grouped = requests.groupBy(F.to_date("minute").alias("date"), "principal", "queue", verb, "dialect", "outcome")
    return grouped.agg(
        F.sum("requests").alias("requests"),
        F.expr("sum(sum_us) div sum(requests)").alias("mean_us"),
        F.max("max_us").alias("max_us"),
    )
