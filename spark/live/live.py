"""The live measures: the same tallies as the batch report, per micro-batch, from checkpoints.

Two queries: one over the queues' topics, one over the journal. Micro-batch N reads the state that
N-1 left, and writes its counts and its own state to folders of its number. After a crash Spark
repeats a micro-batch with the same offsets, and it overwrites the same folders: so the sum over all
folders counts every record once. Rates go to a topic after that, at least once, with the number.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from schemas.topics import journal_topic, queue_topics
from spark.frames.columns import COUNTS, JOURNAL, LEASE_HISTOGRAM
from spark.frames.decode import entries_of, messages_of
from spark.frames.log import Log
from spark.frames.session import empty
from spark.frames.source import all_queues, make_topic, one_topic, stream, write_topic
from spark.frames.tables import Tables, with_queues
from spark.live.measures import write
from spark.live.streaming_state import (
    FIRSTS,
    RECORDS,
    SEQS,
    decided,
    new_entries,
    next_firsts,
    next_seqs,
    still_open,
    with_dedup,
    with_open_leases,
    without_repeats,
)
from spark.progress import tell
from spark.reports.counts import added, events, sends
from spark.reports.latency import lease_histogram
from spark.rules.deliveries import leases
from spark.rules.transitions import journal_of

BATCH_RECORDS = 200_000
_STATES_KEPT = 3
_MINUTE_S = 60


class Live:
    """The streaming job of one log. `out` holds counts, states and checkpoints; one job at a time
    may use it.
    """

    def __init__(
        self,
        spark_session: SparkSession,
        log: Log,
        out: Path,
        rates_topic: str | None,
        batch_records: int = BATCH_RECORDS,
    ) -> None:
        self._spark_session = spark_session
        self._log = log
        self._out = out.absolute()
        self._rates_topic = rates_topic
        self._batch_records = batch_records
        self._queries: list[StreamingQuery] = []

    def run(self, every_s: int | None) -> None:
        """Goes on where the checkpoints are; `every_s` None = takes what the log has now, and ends.

        Raises StreamingQueryException when a query fails; the other one is stopped.
        """
        if self._rates_topic is not None:
            make_topic(self._spark_session, self._log, self._rates_topic)
        self._start("sends", all_queues(self._log), self._take_messages, every_s)
        self._start("events", one_topic(journal_topic(self._log.prefix)), self._take_journal, every_s)
        try:
            if every_s is None:
                for query in self._queries:
                    query.awaitTermination()
            else:
                # Ends when the first does, which it does by failing.
                while not self._spark_session.streams.awaitAnyTermination(max(1, every_s)):
                    self._measure()
        finally:
            self.stop()
            self._measure()

    def _measure(self) -> None:
        """Writes what the queries have said last."""
        said = [query.lastProgress for query in self._queries]
        write(self._out, [json.loads(progress.json) for progress in said if progress is not None])

    def stop(self) -> None:
        """Ends the queries; a micro-batch in hand is repeated at the next start."""
        for query in self._queries:
            query.stop()

    def _start(
        self, name: str, topics: dict[str, str], take: Callable[[DataFrame, int], None], every_s: int | None
    ) -> None:
        def take_kept(batch: DataFrame, number: int) -> None:
            batch.persist()
            try:
                take(batch, number)
            finally:
                batch.unpersist()

        writer = stream(self._spark_session, self._log, topics, self._batch_records).writeStream.queryName(name)
        kept = writer.option("checkpointLocation", str(self._out / "checkpoints" / name))
        timed = (
            kept.trigger(availableNow=True) if every_s is None else kept.trigger(processingTime=f"{every_s} seconds")
        )
        self._queries.append(timed.foreachBatch(take_kept).start())

    def _take_messages(self, batch: DataFrame, number: int) -> None:
        queues = Tables(self._spark_session, self._log).queues()
        records = with_queues(messages_of(batch, queue_topics(self._log.prefix)), queues)
        known = self._state("firsts", number, FIRSTS)
        whole = decided(with_dedup(records), self._state("pending", number, RECORDS)).persist()
        judged = without_repeats(whole, known).persist()
        self._write(sends(judged), f"tallies/stream=sends/batch={number}")
        self._keep(judged.where(F.col("status") == "undecided"), "pending", number)
        self._keep(next_firsts(judged, known), "firsts", number)
        judged.unpersist()
        whole.unpersist()
        self._tell("sends", number)

    def _take_journal(self, batch: DataFrame, number: int) -> None:
        entries, seqs = entries_of(batch), self._state("seqs", number, SEQS)
        queues = Tables(self._spark_session, self._log).queues()
        journal = journal_of(new_entries(entries, seqs), queues).persist()
        self._write(events(journal), f"tallies/stream=events/batch={number}")
        rows = with_open_leases(journal, self._state("open", number, JOURNAL)).persist()
        self._write(lease_histogram(leases(rows)), f"leases/batch={number}")
        self._keep(still_open(rows), "open", number)
        self._keep(next_seqs(entries, seqs), "seqs", number)
        rows.unpersist()
        journal.unpersist()
        self._tell("events", number)

    def _write(self, frame: DataFrame, path: str) -> None:
        frame.hint("rebalance").write.mode("overwrite").parquet(str(self._out / path))

    def _state(self, name: str, number: int, shape: StructType) -> DataFrame:
        """The state that the micro-batch before left."""
        if number == 0:
            return empty(self._spark_session, shape)
        return self._spark_session.read.schema(shape).parquet(str(self._out / "states" / name / str(number - 1)))

    def _keep(self, frame: DataFrame, name: str, number: int) -> None:
        self._write(frame, f"states/{name}/{number}")
        shutil.rmtree(self._out / "states" / name / str(number - _STATES_KEPT), ignore_errors=True)

    def _tell(self, name: str, number: int) -> None:
        path = str(self._out / f"tallies/stream={name}/batch={number}")
        written = self._spark_session.read.schema(COUNTS).parquet(path)
        whole = written.agg(
            F.coalesce(F.sum("messages"), F.lit(0)).alias("messages"), F.max("minute").alias("minute")
        ).collect()[0]
        until = "" if whole["minute"] is None else f", up to {whole['minute']:%Y-%m-%d %H:%M}"
        tell("live", f"batch {number} of {name}: {whole['messages']:,} counted{until}")
        if self._rates_topic is not None:
            write_topic(rates(written, name, number), self._log, self._rates_topic)


def live_counts(spark_session: SparkSession, out: Path) -> DataFrame:
    """COUNTS of everything that the live job has counted below `out`: one row per key."""
    return added(spark_session.read.schema(COUNTS).parquet(str(out / "tallies" / "stream=*" / "batch=*")))


def live_leases(spark_session: SparkSession, out: Path) -> DataFrame:
    """LEASE_HISTOGRAM of everything that the live job has counted below `out`: one row per key."""
    rows = spark_session.read.schema(LEASE_HISTOGRAM).parquet(str(out / "leases" / "batch=*"))
    summed = [F.sum(name).cast("long").alias(name) for name in ("count", "sum_ms")]
    return rows.groupBy("minute", "queue", "tag", "below_ms").agg(*summed)


def rates(counts: DataFrame, stream: str, batch: int) -> DataFrame:
    """Records for the rates topic: one per row of COUNTS, key = queue/tag/measure, value = JSON.

    Of one minute there may be several: a reader adds those of different (stream, batch), and counts
    one (stream, batch) once. `per_second` is this record's messages spread over its minute.
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
    return counts.select(F.concat_ws("/", "queue", "tag", "measure").alias("key"), F.to_json(value).alias("value"))
