"""Committed messages of transactions: of several copies the first that was not late counts, as for
the engine (docs/decisions/0022).

A copy is late when it was appended more than 30 s after its attempt began.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from schemas.vocabulary import COMMIT_SPAN_MS, Reason


def is_commit() -> Column:
    """Whether a message came by the commit of a transaction."""
    return F.coalesce(F.col("origin.reason") == Reason.COMMITTED, F.lit(False))


def first_copies(messages: DataFrame) -> DataFrame:
    """The same rows; `status` of `shown` copies that do not count becomes `repeated`.

    Reads queue, partition, offset, sent_at, status, origin.
    """
    marked = is_commit() & (F.col("status") == "shown")
    late = F.unix_millis("sent_at") - F.col("origin.moved_at_ms") > COMMIT_SPAN_MS
    # Each other record is a group of its own, so that no task gets all of them.
    copies = Window.partitionBy(
        "queue", "partition", F.when(marked, F.col("origin.from_id")), F.when(~marked, F.col("offset"))
    )
    place = F.row_number().over(copies.orderBy(late, "offset"))
    return messages.withColumn("status", F.when(marked & (late | (place > 1)), "repeated").otherwise(F.col("status")))
