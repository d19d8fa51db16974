"""The jobs behind `leaseway redrive`: which dead letters an SQL condition chooses, and how those
were settled that no task has counted.

The facade reads the files and starts redrive tasks; Spark never talks to it.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.arguments import OUTCOMES
from spark.frames.log import log_of
from spark.frames.questions import open_views
from spark.frames.session import job
from spark.frames.source import Span, span_of
from spark.frames.tables import Tables
from spark.frames.wanted import plan_of
from spark.progress import tell
from spark.rules.transitions import settlements

FILES = "queue=*/*.txt"  # Below the folder that `write_selected` made; a line of a file is an address.


def selected_of(dead_letters: DataFrame, where: str, queue: str | None) -> DataFrame:
    """The dead letters at rest for which `where` (an SQL condition over DEAD_LETTERS) is true; one
    row per dead letter, columns as DEAD_LETTERS.

    `queue` bounds it to one dead-letter queue. Dead letters of a queue that the control topic does
    not know have no address and are left out. Raises AnalysisException, ParseException: the
    condition is wrong.
    """
    known = dead_letters.where(where).where(F.col("settled_how").isNull() & F.col("address").isNotNull())
    return known if queue is None else known.where(F.col("queue") == queue)


def write_selected(selected: DataFrame, out: Path) -> None:
    """Writes addresses as text below `out`, a folder per queue, in the order of partition and
    offset within a file. A partition of a queue is sorted by one task, not the whole queue.
    """
    ordered = selected.select("queue", "partition", "offset", "address").repartition("queue", "partition")
    addresses = ordered.sortWithinPartitions("queue", "partition", "offset").select("queue", "address")
    addresses.write.mode("overwrite").partitionBy("queue").text(str(out))


def write_chosen(given: Namespace, opened: AbstractContextManager[SparkSession]) -> int:
    """Writes below `given.out` what `given.where` chooses of the view `dead_letters` of a session
    that is opened here; 0 done, 2 the condition is wrong (stderr says why).
    """
    try:
        with opened as spark_session:
            write_selected(selected_of(spark_session.table("dead_letters"), given.where, given.queue), given.out)
    except (AnalysisException, ParseException) as error:
        tell("redrive", f"--where: {error.getMessage() or error}")
        return 2
    return 0


@contextmanager
def views_of_log(given: Namespace) -> Iterator[SparkSession]:
    """A session with the views of the log that the condition names. Raises as `job`."""
    log = log_of(given)
    with job("redrive", given.master, log) as spark_session:

        def selected(session: SparkSession) -> DataFrame:
            return selected_of(session.table("dead_letters"), given.where, given.queue)

        # In a subquery the condition may ask other views too.
        tables = Tables(spark_session, log, span_of(given))
        views = open_views(tables, lambda session: plan_of(selected(session)), asked_for(given))
        tell("redrive", f"asking {', '.join(views)}")
        yield spark_session


def asked_for(given: Namespace) -> str:
    """A text that names the views that a choice needs."""
    return f"dead_letters {given.where}"


def outcomes_of(selected: DataFrame, journal: DataFrame) -> DataFrame:
    """How dead letters ended: queue, settled_how, dead letters. Reads queue and address of
    `chosen`, JOURNAL; those at rest give no row.
    """
    settled = settlements(journal.where(F.col("tag_id") == 0))
    known = settled.select(F.concat_ws("/", "incarnation", "partition", "offset").alias("address"), "settled_how")
    return selected.join(known, on="address").groupBy("queue", "settled_how").agg(F.count("*").alias("dead_letters"))


def run_outcomes(given: Namespace) -> int:
    """Writes to `given.out`/OUTCOMES how the dead letters that are named there were settled since
    `given.since_ms`; 0 done.
    """
    log = log_of(given)
    with job("redrive", given.master, log) as spark_session:
        tell("redrive", "asking the journal what became of the others")
        selected = spark_session.read.schema("address string, queue string").text(str(given.out))
        journal = Tables(spark_session, log, Span(given.since_ms)).journal()
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for row in outcomes_of(selected, journal).collect():
            found[row["queue"]][row["settled_how"]] = row["dead_letters"]
    (given.out / OUTCOMES).write_text(json.dumps(found), encoding="ascii")
    return 0
