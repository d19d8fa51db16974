"""Atomic batches: the rule by which every reader of the log decides alike (docs/decisions/0002).

The records of a batch are shown only when all of them are there and the last was appended at most
30 s after the first.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from schemas.vocabulary import BATCH_CLOCK_MARGIN_MS, BATCH_SPAN_MS
from spark.rules.commits import first_copies, is_commit

_UNIT = ("queue", "partition")


def judged(messages: DataFrame) -> DataFrame:
    """Returns the same rows; `status` of `shown` records of a batch becomes `undecided` or `torn`
    when the batch is not whole, and that of second copies of a commit `repeated`.

    For a frame that is cheap to read, which is read several times: for its newest records, and so
    that what was sent singly is not shuffled.
    """
    newest = messages.groupBy(*_UNIT).agg(F.unix_millis(F.max("sent_at")).alias("_newest_here"))
    anywhere = messages.agg(F.unix_millis(F.max("sent_at")).alias("_newest_anywhere"))
    special = F.col("batch").isNotNull() | is_commit()
    few = messages.where(special).join(F.broadcast(newest), on=list(_UNIT), how="left")
    timed = few.crossJoin(F.broadcast(anywhere))
    found = judged_by(timed, F.col("_newest_here"), F.col("_newest_anywhere")).select(*messages.columns)
    return messages.where(~special).unionByName(found)


def judged_by(messages: DataFrame, newest_here: Column, newest_anywhere: Column) -> DataFrame:
    """Returns the same rows with `status` as `judged` says it; reads its input once, and looks at
    batches only when somebody asks for `status`.

    Reads queue, partition, offset, sent_at, status, batch, origin. `newest_here` and
    `newest_anywhere` are the times (epoch ms) of the newest records of a row's partition and of the
    log. The log alone decides, not the clock of whoever reads: a batch that lacks records is torn
    when its partition has a record 30 s younger than its first, or any partition one that is 40 s
    younger (10 s for the clocks of brokers). Else it is undecided.
    """
    marked = F.col("batch").isNotNull() & (F.col("status") == "shown")
    # Each record that was sent singly is a group of its own, so that no task gets all of them.
    alone = F.when(~marked, F.col("offset"))
    batch = Window.partitionBy(*_UNIT, F.when(marked, F.col("batch.id")), alone)
    verdict = _verdict(
        F.size(F.collect_set("batch.index").over(batch)),
        F.max("batch.size").over(batch),
        F.min("batch.index").over(batch),
        F.unix_millis(F.min("sent_at").over(batch)),
        F.unix_millis(F.max("sent_at").over(batch)),
        (newest_here, newest_anywhere),
    )
    return first_copies(messages.withColumn("status", F.when(marked, verdict).otherwise(F.col("status"))))


def _verdict(
    seen: Column, of: Column, lowest: Column, first_ms: Column, last_ms: Column, newest_ms: tuple[Column, Column]
) -> Column:
    whole = (seen == of) & (last_ms - first_ms <= BATCH_SPAN_MS)
    begun = (lowest == 0) & (seen < of)
    here_ms, anywhere_ms = (F.coalesce(newest, first_ms) for newest in newest_ms)
    over = (here_ms - first_ms > BATCH_SPAN_MS) | (anywhere_ms - first_ms > BATCH_SPAN_MS + BATCH_CLOCK_MARGIN_MS)
    return F.when(whole, "shown").when(begun & ~over, "undecided").otherwise("torn")
