"""Records of queues that no frame shows in full, from staged messages. Every function is a pure
DataFrame -> DataFrame.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.frames.decode import counted_unread


def unread_messages(messages: DataFrame, topic_prefix: str) -> DataFrame:
    """UNREAD of the queues' topics, as `decode.unread_of` says it of records. Reads MESSAGES
    without bodies, any status.

    A raw record without a Confluent head is not unread; a native one with a head is of a schema
    that this build does not know.
    """
    broken = F.col("status") == "undecodable"
    reason = F.when(broken, "undecodable").when(F.col("native") & F.col("schema_id").isNotNull(), "unknown_schema")
    told = messages.withColumn("reason", reason).where(F.col("reason").isNotNull())
    return counted_unread(told.withColumn("topic", F.concat(F.lit(topic_prefix), F.col("queue"))))
