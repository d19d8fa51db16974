"""The live measures: the same tallies as the batch report, per micro-batch, from checkpoints.

Two queries, one over the queues' topics and one over the journal. Each micro-batch writes its tallies to a folder of its number, which
a repeated micro-batch overwrites: Spark repeats one after a crash with the same offsets, so the sum over all folders counts every record
once. Rates go to a topic after that: a micro-batch that is repeated writes its rates again, with the same batch number.
Neighbours: `tables.py` gives the streams, `tallies.py` the counts. Must not know who reads the rates.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark.columns import TALLIES
from spark.log import Log
from spark.source import write_topic
from spark.tables import LATENESS, Tables
from spark.tallies import added, events, sends

TALLY_FOLDER = "tallies"
_MINUTE_S = 60


class Live:
    """The streaming job of one log. `out` holds tallies and checkpoints; one job at a time may use it."""

    def __init__(self, spark_session: SparkSession, log: Log, out: Path, rates_topic: str | None, lateness: str = LATENESS) -> None:
        self._spark_session = spark_session
        self._log = log
        self._out = out.absolute()
        self._rates_topic = rates_topic
        self._lateness = lateness
        self._queries: list[StreamingQuery] = []

    def start(self, every_s: int | None) -> None:
        """Starts the queries where their checkpoints are; `every_s` None = take what the log has now, and end."""
        tables = Tables(self._spark_session, self._log)
        self._query("sends", tables.message_stream(self._lateness), sends, every_s)
        self._query("events", tables.journal_stream(self._lateness), events, every_s)

    def run(self, every_s: int | None) -> None:
        """Starts and waits until the queries end. Raises StreamingQueryException when one fails; the other is stopped."""
        self.start(every_s)
        try:
            for query in self._queries:
                query.awaitTermination()
        finally:
            self.stop()

    def stop(self) -> None:
        """Ends the queries; a micro-batch in hand is repeated at the next start."""
        for query in self._queries:
            query.stop()

    def _query(self, name: str, frame: DataFrame, count: Callable[[DataFrame], DataFrame], every_s: int | None) -> None:
        def take(batch: DataFrame, number: int) -> None:
            path = str(self._out / TALLY_FOLDER / f"stream={name}" / f"batch={number}")
            count(batch).coalesce(1).write.mode("overwrite").parquet(path)
            if self._rates_topic is not None:
                written = self._spark_session.read.schema(TALLIES).parquet(path)
                write_topic(rates(written, name, number), self._log, self._rates_topic)

        writer = frame.writeStream.queryName(name).option("checkpointLocation", str(self._out / "checkpoints" / name)).outputMode("append")
        timed = writer.trigger(availableNow=True) if every_s is None else writer.trigger(processingTime=f"{every_s} seconds")
        self._queries.append(timed.foreachBatch(take).start())


def live_tallies(spark_session: SparkSession, out: Path) -> DataFrame:
    """TALLIES of everything that the live job has counted below `out`: one row per key."""
    return added(spark_session.read.schema(TALLIES).parquet(str(out / TALLY_FOLDER / "stream=*" / "batch=*")))


def rates(tallies: DataFrame, stream: str, batch: int) -> DataFrame:
    """Records for the rates topic: one per row of TALLIES, key = queue/tag/measure, value = JSON.

    Of a minute there may be several: a reader adds `messages` and `requests` of one (key, minute) over (stream, batch) and counts a
    (stream, batch) once. `per_second` is this record's messages spread over its minute.
    """
    value = F.struct(
        F.lit(stream).alias("stream"),
        F.lit(batch).alias("batch"),
        F.unix_millis("minute").alias("minute_ms"),
        "queue",
        "tag",
        "principal",
        "measure",
        "requests",
        "messages",
        "bytes",
        F.round(F.col("messages") / _MINUTE_S, 4).alias("per_second"),
    )
    return tallies.select(F.concat_ws("/", "queue", "tag", "measure").alias("key"), F.to_json(value).alias("value"))
